// The engines of the full-text index, each with what several processes see of one index.

import { join } from 'node:path';
import { afterAll, beforeAll, describe, onTestFinished } from 'vitest';
import { createFileIndex } from '../../src/kernel/bus/store/file-index.ts';
import { openPostgresStore } from '../../src/kernel/bus/store/postgres/store.ts';
import type { TextIndex } from '../../src/kernel/bus/store/text-index.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { createMovableClock } from './movable-clock.ts';
import { hasPgBouncer, type PgBouncer, startPgBouncer } from './pgbouncer.ts';
import { hasPostgres, type PostgresServer, startPostgres } from './postgres.ts';

/** Fewer than processes have connections. */
const POOL_SESSIONS = 3;

export type IndexProcesses = {
  /** A further process that uses the same, at first empty, index. */
  open(): Promise<TextIndex>;
};

type Tests = (processes: () => Promise<IndexProcesses>) => void;

/** Runs the tests on each engine; those whose program is not installed are skipped. */
export function onEachIndex(tests: Tests): void {
  describe('in a file', () => tests(inFile));
  onEachServer(tests);
}

function onEachServer(tests: Tests): void {
  let server: PostgresServer;
  let pooler: PgBouncer | undefined;
  beforeAll(async () => {
    if (!hasPostgres) return;
    server = await startPostgres();
    if (hasPgBouncer) pooler = await startPgBouncer(await server.emptied(), POOL_SESSIONS);
  });
  afterAll(async () => {
    await pooler?.[Symbol.asyncDispose]();
    await server?.[Symbol.asyncDispose]();
  });
  describe.skipIf(!hasPostgres)('in PostgreSQL', () =>
    tests(async () => inPostgres(await server.emptied())),
  );
  describe.skipIf(!hasPostgres || !hasPgBouncer)('through PgBouncer', () =>
    tests(async () => {
      const url = await server.emptied();
      return inPostgres(url, pooler?.urlOf(url));
    }),
  );
}

async function inFile(): Promise<IndexProcesses> {
  const path = join(await temporaryFolder(), 'index.db');
  return {
    async open() {
      const index = createFileIndex({ path, log: silentLogger });
      onTestFinished(() => index[Symbol.asyncDispose]());
      return index;
    },
  };
}

/** @param poolUrl of a pooler, for several processes of a gateway */
export function inPostgres(url: string, poolUrl?: string): IndexProcesses {
  const node = { name: 'test', role: 'all', version: '1', config: '' } as const;
  const how = poolUrl === undefined ? {} : { poolUrl, isShared: true, node };
  return {
    async open() {
      const clock = createMovableClock();
      const store = await openPostgresStore({ url, clock, log: silentLogger, ...how });
      onTestFinished(() => store[Symbol.asyncDispose]());
      if (store.textIndex === undefined) throw new Error('the store has no index');
      return store.textIndex;
    },
  };
}
