// Notes in a workspace that several processes share: what one of them changes is not lost by what
// another one does at the same time, or when it comes back.

import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { createFileMemory } from '../../src/features/memory/notes.ts';
import { openPostgresStore } from '../../src/kernel/bus/store/postgres/store.ts';
import { createGuardedFiles } from '../../src/lib/files/guarded-files.ts';
import { silentLogger as log } from '../../src/lib/logger.ts';
import { systemClock as clock } from '../../src/lib/time/clock.ts';
import { hasPostgres, type PostgresServer, startPostgres } from '../support/postgres.ts';

const PATH = 'memory/MEMORY.md';
const LIMITS = { maxBytes: 100_000 };

let server: PostgresServer;
let url: string;
let workspace: string;

beforeAll(async () => {
  if (!hasPostgres) return;
  server = await startPostgres();
  url = await server.database();
  workspace = await mkdtemp(join(tmpdir(), 'nanobot-notes-'));
});
afterAll(async () => {
  await server?.[Symbol.asyncDispose]();
  if (workspace !== undefined) await rm(workspace, { recursive: true });
});

async function openProcess(name: string) {
  const store = await openPostgresStore({
    ...{ url, clock, log, isGateway: true, isShared: true },
    node: { name, role: 'all', version: '1', config: '' },
  });
  onTestFinished(() => store[Symbol.asyncDispose]());
  const files = createGuardedFiles({ exclusively: store.shared?.exclusively });
  return {
    files,
    memory: createFileMemory({
      files,
      workspace: () => workspace,
      log,
      clock,
      timeZone: () => 'UTC',
    }),
  };
}

const written = () => readFile(join(workspace, PATH), 'utf8');

describe.skipIf(!hasPostgres)('notes of several processes on one PostgreSQL', () => {
  it('keep every fact that several processes remember at the same time', async () => {
    const processes = [
      await openProcess('one'),
      await openProcess('other'),
      await openProcess('third'),
    ];
    const facts = Array.from({ length: 30 }, (_, at) => `the number ${at} is kept`);
    const remembered = facts.map((fact, at) => processes[at % 3]?.memory.remember(fact));
    expect(new Set(await Promise.all(remembered))).toEqual(new Set(['added']));
    const text = await written();
    expect(facts.filter((fact) => !text.includes(fact))).toEqual([]);
  });

  it('are not overwritten by a process that was taken for dead while it changed them', async () => {
    const [one, other] = [await openProcess('one'), await openProcess('other')];
    await one.memory.remember('the first fact');
    const stale = one.files.update(
      workspace,
      PATH,
      async (content) => {
        await server.query(
          url,
          `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
           WHERE application_name LIKE 'nanobot % notes' AND pid IN (SELECT pid FROM pg_locks WHERE locktype = 'advisory')`,
        );
        await other.memory.remember('the second fact');
        return `${content} and a stale one`;
      },
      LIMITS,
    );
    await expect(stale).rejects.toMatchObject({ code: 'store_unreachable' });
    expect(await written()).toContain('the second fact');
    expect(await written()).not.toContain('stale');
    expect(await one.memory.remember('the third fact')).toBe('added');
    expect(await written()).toContain('the second fact');
  });
});
