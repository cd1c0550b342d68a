// Conversations that several processes write, their entries in PostgreSQL: the contract of session
// stores, and what two of them do to one conversation.

import { rm } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { openPostgresStore } from '../../src/kernel/bus/store/postgres/store.ts';
import { sessionKey } from '../../src/kernel/message/ids.ts';
import { createSessionIndexing, forgetMissing } from '../../src/kernel/sessions/index-sessions.ts';
import { createJsonlSessionStore } from '../../src/kernel/sessions/jsonl.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { testSessionStore, turnEntries } from '../contract/session-store.ts';
import { userEntry } from '../contract/user-entry.ts';
import { createMovableClock } from '../support/movable-clock.ts';
import { hasPostgres, type PostgresServer, startPostgres } from '../support/postgres.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { ROOMY } from './session-folder.ts';

const KEY = sessionKey('telegram:42');
const DURABLE = { durable: true };
const DAY_MS = 86_400_000;

let server: PostgresServer;

beforeAll(async () => {
  if (hasPostgres) server = await startPostgres();
});
afterAll(() => server?.[Symbol.asyncDispose]());

async function createWriters() {
  const url = await server.emptied();
  const folder = await temporaryFolder();
  const clock = createMovableClock();
  async function open() {
    const store = await openPostgresStore({ url, clock, log: silentLogger, isShared: true });
    onTestFinished(() => store[Symbol.asyncDispose]());
    const policy = () => ROOMY;
    const sessions = createJsonlSessionStore({ folder, store, clock, log: silentLogger, policy });
    if (store.textIndex === undefined) throw new Error('the store has no index');
    return Object.assign(sessions, { index: store.textIndex });
  }
  return { clock, folder, open };
}

describe.skipIf(!hasPostgres)('with the PostgreSQL server of Debian', () => {
  testSessionStore('sessions that several processes write', async () => {
    const { open } = await createWriters();
    return { store: await open(), reopen: open };
  });

  it('show each process what another one wrote', async () => {
    const { open } = await createWriters();
    await using one = await open();
    await using other = await open();
    await one.append(KEY, turnEntries('c#1', 'one'), DURABLE);
    expect(await other.load(KEY)).toEqual(turnEntries('c#1', 'one'));
    await other.append(KEY, turnEntries('c#2', 'two'), DURABLE);
    const both = [...turnEntries('c#1', 'one'), ...turnEntries('c#2', 'two')];
    expect(await one.load(KEY)).toEqual(both);
    await one.complete();
    expect(await one.load(KEY)).toEqual(both);
  });

  it('lose nothing and keep one order where both write without having looked', async () => {
    const { open } = await createWriters();
    const writers = [await open(), await open(), await open()];
    await Promise.all(
      writers.flatMap((writer, at) =>
        Array.from({ length: 8 }, (_, each) =>
          writer.append(KEY, [userEntry(`t${at}`, `${at}-${each}`)], DURABLE),
        ),
      ),
    );
    const [first, ...others] = await Promise.all(writers.map((writer) => writer.load(KEY)));
    const texts = first?.map((entry) => (entry.role === 'user' ? entry.text : ''));
    expect(new Set(texts).size).toBe(24);
    for (const view of others) expect(view).toEqual(first);
    for (const writer of writers) await writer[Symbol.asyncDispose]();
  });

  it('continue in one new file on the next day, whoever begins it', async () => {
    const { clock, open } = await createWriters();
    await using one = await open();
    await using other = await open();
    await one.append(KEY, turnEntries('c#1', 'one'), DURABLE);
    expect(await other.load(KEY)).toHaveLength(5);
    await one.complete();
    await clock.advance(DAY_MS);
    await Promise.all([
      one.append(KEY, turnEntries('c#2', 'two'), DURABLE),
      other.append(KEY, turnEntries('c#3', 'three'), DURABLE),
    ]);
    const seen = await one.load(KEY);
    expect(await other.load(KEY)).toEqual(seen);
    const users = seen.flatMap((entry) => (entry.role === 'user' ? entry.text : []));
    expect(users.toSorted()).toEqual(['one', 'three', 'two']);
    await one.complete();
    await using third = await open();
    expect(await third.load(KEY)).toEqual(seen);
  });

  it('take in a conversation whose file is all there is', async () => {
    const { folder, clock, open } = await createWriters();
    const one = await open();
    await one.append(KEY, turnEntries('c#1', 'one'), DURABLE);
    await one[Symbol.asyncDispose]();
    const url = await server.emptied();
    const store = await openPostgresStore({ url, clock, log: silentLogger, isShared: true });
    onTestFinished(() => store[Symbol.asyncDispose]());
    const policy = () => ROOMY;
    await using again = createJsonlSessionStore({
      folder,
      store,
      clock,
      log: silentLogger,
      policy,
    });
    expect(await again.load(KEY)).toEqual(turnEntries('c#1', 'one'));
    await again.append(KEY, turnEntries('c#2', 'two'), DURABLE);
    expect(await again.load(KEY)).toHaveLength(10);
  });

  it('find what another process wrote, and nothing that it erased', async () => {
    const { clock, open } = await createWriters();
    await using one = await open();
    await using other = await open();
    const indexing = createSessionIndexing({
      ...{ files: other, index: other.index, clock, log: silentLogger, isShared: true },
      forgetOthers: async () => undefined,
    });
    const options = { scopes: [`session:${KEY}`], limit: 9, now: 0 };
    const found = async (words: string) => (await other.index.find(words, options)).length;
    await one.append(KEY, [userEntry('t1', 'the parrot sings')], DURABLE);
    await indexing.flushFor([KEY]);
    expect(await found('parrot')).toBe(1);
    await one.append(KEY, [userEntry('t2', 'a parrot again')], DURABLE);
    await indexing.flushFor([KEY]);
    expect(await found('parrot')).toBe(2);
    await one.exclusively(KEY, () => rm(one.folder, { recursive: true }));
    await forgetMissing(one.index, one.folder);
    expect(await found('parrot')).toBe(0);
  });

  it('leave nothing for others to index that they do not know of', async () => {
    const { clock, open } = await createWriters();
    await using one = await open();
    await using other = await open();
    const indexing = createSessionIndexing({
      ...{ files: one, index: one.index, clock, log: silentLogger, isShared: true },
      forgetOthers: async () => undefined,
    });
    await one.append(KEY, [userEntry('t1', 'the parrot sings')], DURABLE);
    indexing.changed(KEY);
    await indexing[Symbol.asyncDispose]();
    const options = { scopes: [`session:${KEY}`], limit: 9, now: 0 };
    expect(await other.index.find('parrot', options)).toHaveLength(1);
  });

  it('see at once what was erased in another process', async () => {
    const { open } = await createWriters();
    await using one = await open();
    await using other = await open();
    await one.append(KEY, turnEntries('c#1', 'one'), DURABLE);
    expect(await other.load(KEY)).toHaveLength(5);
    const { readdir } = await import('node:fs/promises');
    await one.exclusively(KEY, async () => {
      for (const name of await readdir(one.folder)) {
        if (name.endsWith('.jsonl')) await rm(`${one.folder}/${name}`);
      }
    });
    expect(await other.load(KEY)).toEqual([]);
  });
});
