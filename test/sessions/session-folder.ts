// A temporary sessions folder with a store over it and a clock to move.

import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { SessionKey } from '../../src/core/ids.ts';
import type { SessionPolicy } from '../../src/core/session/carry.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { listSessions, readSession } from '../../src/sessions/catalog.ts';
import { createJsonlSessionStore } from '../../src/sessions/jsonl.ts';
import { stemOf } from '../../src/sessions/stem.ts';
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
