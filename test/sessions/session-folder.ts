// A temporary sessions folder with a store over it and a clock to move.

import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { SessionKey } from '../../src/kernel/message/ids.ts';
import { listSessions, readSession } from '../../src/kernel/sessions/catalog.ts';
import { stemOf } from '../../src/kernel/sessions/file-lines.ts';
import { createJsonlSessionStore } from '../../src/kernel/sessions/jsonl.ts';
import type { SessionPolicy } from '../../src/kernel/sessions/rules/carry.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { createMovableClock } from '../support/movable-clock.ts';

export const ROOMY: SessionPolicy = {
  rotationSizeBytes: 1_000_000,
  rotationTokens: 200_000,
  carry: 'recent',
  rotationCarryMessages: 10,
  timeZone: 'UTC',
};

export async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'nanobot-test-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

export async function createSessionFolder(policy: Partial<SessionPolicy> = {}) {
  const folder = join(await temporaryFolder(), 'sessions');
  const clock = createMovableClock();
  const open = () =>
    createJsonlSessionStore({
      folder,
      clock,
      log: silentLogger,
      policy: () => ({ ...ROOMY, ...policy }),
    });
  const fileNames = async () =>
    (await readdir(folder)).filter((name) => name.endsWith('.jsonl')).toSorted();
  const linesOf = async (name: string) =>
    (await readFile(join(folder, name), 'utf8'))
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  const list = () => listSessions(folder);
  /** Every entry of the session, oldest first, all files. */
  const read = (key: SessionKey) => Array.fromAsync(readSession(folder, stemOf(key)));
  return { folder, clock, open, fileNames, linesOf, list, read };
}
