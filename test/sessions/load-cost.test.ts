// What a load costs is counted in calls to the file system, never in time.

import syncFs from 'node:fs';
import fs from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { expect, onTestFinished, test } from 'vitest';
import { sessionKey } from '../../src/kernel/message/ids.ts';
import { turnEntries } from '../contract/session-store.ts';
import { userEntry } from '../contract/user-entry.ts';
import { createSessionFolder } from './session-folder.ts';

const KEY = sessionKey('telegram:42');
const DURABLE = { durable: true };
const DAY_MS = 86_400_000;
const COUNTED = ['open', 'readFile', 'readdir', 'opendir', 'stat', 'access', 'readlink'] as const;

/** Counts calls of the named functions, of either kind, while the task runs. */
async function countCalls(task: () => Promise<unknown>): Promise<Record<string, number>> {
  const calls: Record<string, number> = {};
  const places = COUNTED.flatMap((name) => [
    { name, module: fs, own: name, original: fs[name] },
    { name, module: syncFs, own: `${name}Sync`, original: syncFs[`${name}Sync`] },
  ]);
  const restore = () => {
    for (const { module, own, original } of places) Reflect.set(module, own, original);
    syncBuiltinESMExports();
  };
  onTestFinished(restore);
  for (const { name, module, own, original } of places) {
    Reflect.set(module, own, (...args: unknown[]) => {
      calls[name] = (calls[name] ?? 0) + 1;
      return Reflect.apply(original, module, args);
    });
  }
  syncBuiltinESMExports();
  await task();
  restore();
  return calls;
}

async function createAgedSession(days: number, otherSessions: number) {
  const session = await createSessionFolder();
  const store = session.open();
  for (let other = 0; other < otherSessions; other += 1) {
    await store.append(sessionKey(`web:${other}`), [userEntry('t', 'hi')], { durable: false });
  }
  for (let day = 0; day < days; day += 1) {
    for (let turn = 0; turn < 3; turn += 1) {
      await store.append(KEY, turnEntries(`t${day}.${turn}`, 'hello'), DURABLE);
    }
    await session.clock.advance(DAY_MS);
  }
  await store[Symbol.asyncDispose]();
  return session;
}

test('the first load of a session costs the same after 2 days and after 60 among 500 sessions', async () => {
  const young = await createAgedSession(2, 0);
  const old = await createAgedSession(60, 500);
  await using youngStore = young.open();
  await using oldStore = old.open();
  const youngCalls = await countCalls(() => youngStore.load(KEY));
  const oldCalls = await countCalls(() => oldStore.load(KEY));
  expect(oldCalls).toEqual(youngCalls);
  expect(oldCalls['open']).toBeLessThanOrEqual(2);
  expect(oldCalls['opendir']).toBeUndefined();
});

test('a session nobody has written to yet is not looked for in the folder either', async () => {
  const old = await createAgedSession(2, 500);
  await using store = old.open();
  const calls = await countCalls(() => store.load(sessionKey('telegram:new')));
  expect(calls['opendir']).toBeUndefined();
  expect(calls['readdir']).toBeUndefined();
});

test('turn 500 of a running session reads no more than turn 10', async () => {
  const { open } = await createSessionFolder();
  await using store = open();
  const playTurn = async (turn: number) => {
    await store.load(KEY);
    await store.append(KEY, [userEntry(`t${turn}`, 'hi')], { durable: false });
    await store.append(KEY, turnEntries(`t${turn}`, 'hi').slice(1), DURABLE);
  };
  for (let turn = 0; turn < 10; turn += 1) await playTurn(turn);
  const early = await countCalls(() => playTurn(10));
  for (let turn = 11; turn < 500; turn += 1) await playTurn(turn);
  const late = await countCalls(() => playTurn(500));
  expect(late).toEqual(early);
  expect(late['open']).toBeUndefined();
  expect(late['readFile']).toBeUndefined();
});
