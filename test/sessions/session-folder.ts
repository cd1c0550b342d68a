// A temporary sessions folder with a store over it and a clock to move.

import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { EmbeddedStore } from '../../src/kernel/bus/store/store.ts';
import type { SessionKey } from '../../src/kernel/message/ids.ts';
import { listSessions, readSession } from '../../src/kernel/sessions/catalog.ts';
import { stemOf } from '../../src/kernel/sessions/file-lines.ts';
import type { SessionFiles } from '../../src/kernel/sessions/forget.ts';
import { completeSessionFiles } from '../../src/kernel/sessions/journal.ts';
import { createJsonlSessionStore } from '../../src/kernel/sessions/jsonl.ts';
import type { SessionPolicy } from '../../src/kernel/sessions/rules/carry.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import type { Clock } from '../../src/lib/time/clock.ts';
import { createMovableClock } from '../support/movable-clock.ts';
import { openAt } from '../support/open-store.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

export const ROOMY: SessionPolicy = {
  rotationSizeBytes: 1_000_000,
  rotationTokens: 200_000,
  carry: 'recent',
  rotationCarryMessages: 10,
  timeZone: 'UTC',
};

/** In a file, or in a database by its URL. Closed with the test; what is open over it is closed before. */
export async function openEntryRows(clock: Clock, given?: string): Promise<EmbeddedStore> {
  const path = given ?? join(await temporaryFolder(), 'state.db');
  const store = await openAt(path, clock, silentLogger);
  onTestFinished(() => store[Symbol.asyncDispose]());
  return store;
}

export async function createSessionFolder(policy: Partial<SessionPolicy> = {}, given?: string) {
  const home = await temporaryFolder();
  const folder = join(home, 'sessions');
  const state = given ?? join(home, 'state.db');
  const clock = createMovableClock();
  const store = await openEntryRows(clock, state);
  const deps = { folder, store, clock, log: silentLogger };
  const opened: SessionFiles[] = [];
  const open = () => {
    const sessions = createJsonlSessionStore({ ...deps, policy: () => ({ ...ROOMY, ...policy }) });
    opened.push(sessions);
    return sessions;
  };
  /** Brings everything that was committed into the files. */
  const complete = async () => {
    for (const sessions of opened) await sessions.complete();
    await completeSessionFiles(deps);
  };
  const fileNames = async () => {
    await complete();
    return (await readdir(folder)).filter((name) => name.endsWith('.jsonl')).toSorted();
  };
  const linesOf = async (name: string) => {
    await complete();
    return (await readFile(join(folder, name), 'utf8'))
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  };
  const list = async () => {
    await complete();
    return listSessions(folder);
  };
  /** Every entry of the session, oldest first, all files. */
  const read = async (key: SessionKey) => {
    await complete();
    return Array.fromAsync(readSession(folder, stemOf(key)));
  };
  return { folder, state, store, clock, open, complete, fileNames, linesOf, list, read };
}
