// Budgets and limits of messages that several processes keep together, in PostgreSQL: no limit is
// passed by all of them, and what a process held that is gone counts as spent. The transaction under
// it, on both engines.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Refusal, Reservation } from '../../src/agent/agent.ts';
import { createBudgetNotes } from '../../src/features/spending/budget-notes.ts';
import { Spending } from '../../src/features/spending/spending.ts';
import { openEmbeddedStore } from '../../src/kernel/bus/store/embedded.ts';
import { openPostgresStore } from '../../src/kernel/bus/store/postgres/store.ts';
import type { EmbeddedStore } from '../../src/kernel/bus/store/store.ts';
import { limitsSchema } from '../../src/kernel/config/limits.ts';
import { createFairUse } from '../../src/kernel/intake/fair-use.ts';
import type { Gated } from '../../src/kernel/intake/group-intake.ts';
import { changeCounts } from '../../src/kernel/intake/shared-counts.ts';
import {
  channelName,
  chatId,
  DEFAULT_ACCOUNT,
  messageId,
  nativeId,
  userId,
} from '../../src/kernel/message/ids.ts';
import { silentLogger as log } from '../../src/lib/logger.ts';
import { systemClock as clock } from '../../src/lib/time/clock.ts';
import { hasPostgres, type PostgresServer, startPostgres } from '../support/postgres.ts';

let server: PostgresServer;
beforeAll(async () => {
  if (hasPostgres) server = await startPostgres();
});
afterAll(() => server?.[Symbol.asyncDispose]());

type Stores = AsyncDisposable & { open(): Promise<EmbeddedStore> };

async function files(): Promise<Stores> {
  const folder = await mkdtemp(join(tmpdir(), 'nanobot-counts-'));
  const path = join(folder, 'state.db');
  return {
    open: () => openEmbeddedStore({ path, clock, log }),
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  };
}

async function database(): Promise<Stores> {
  const url = await server.database();
  return {
    open: () => openPostgresStore({ url, clock, log }),
    [Symbol.asyncDispose]: async () => undefined,
  };
}

const sums = (store: EmbeddedStore) => ({
  ...{ state: store.scope('sums'), prefix: 'd|', fresh: 0 },
  join: (left: number, right: number) => left + right,
});
const add = (store: EmbeddedStore, names: readonly [string, ...string[]], count: number) =>
  changeCounts(sums(store), [names], (rows) => {
    const row = rows.at(names);
    row.value += count;
    return row.value;
  });

describe.each([
  ['SQLite', files],
  ['PostgreSQL', database],
] as const)('counts of several processes on %s', (engine, open) => {
  it.skipIf(engine === 'PostgreSQL' && !hasPostgres)(
    'lose no change and find a person under each of their names',
    async () => {
      await using stores = await open();
      await using one = await stores.open();
      await using other = await stores.open();
      const each = Array.from({ length: 40 }, (_, at) => (at % 2 === 0 ? one : other));
      const seen = await Promise.all(each.map((store) => add(store, ['a'], 1)));
      expect(seen.toSorted((left, right) => left - right)).toEqual(each.map((_, at) => at + 1));
      await add(other, ['b', 'c'], 5);
      expect(await add(one, ['c'], 1)).toBe(6);
      // They turn out to be one person.
      expect(await add(other, ['c', 'a'], 1)).toBe(47);
      for (const name of ['a', 'b', 'c']) expect(await add(one, [name], 0)).toBe(47);
    },
  );

  it.skipIf(engine === 'PostgreSQL' && !hasPostgres)(
    'change nothing where a step fails',
    async () => {
      await using stores = await open();
      await using store = await stores.open();
      await add(store, ['a'], 1);
      const failing = changeCounts(sums(store), [['a']], (rows) => {
        rows.at(['a']).value = 7;
        throw new Error('no');
      });
      await expect(failing).rejects.toThrow('no');
      expect(await add(store, ['a'], 0)).toBe(1);
    },
  );
});

const signal = new AbortController().signal;
const CAP = 20_000;

const payerOf = (id: string) => ({
  chat: { channel: channelName('chat'), account: DEFAULT_ACCOUNT, chat: chatId(id) },
  sender: { kind: 'person' as const, id: userId(id), verified: 'verified' as const },
});

/**
 * What one of several processes has of budgets.
 * @param isCut whether it takes that one for dead, which lives
 */
async function processOf(
  url: string,
  name: string,
  isCut: (owner: string) => boolean = () => false,
) {
  const node = { name, role: 'all', version: '1', config: '' } as const;
  const store = await openPostgresStore({ url, clock, log, isShared: true, node });
  const { shared } = store;
  if (shared === undefined) throw new Error('not shared');
  const chat = payerOf('owner').chat;
  const spending = new Spending({
    ...{ state: store.scope('spending'), clock, log },
    notes: createBudgetNotes({
      ...{ bus: { send: async () => 'queued' }, log, ownerChat: async () => chat },
      ...{ now: () => clock.now(), currency: () => 'USD', askOwner: async () => undefined },
    }),
    knownAs: async () => ({ names: [] }),
    ownerOf: async () => ({}),
    settings: () => ({
      limits: limitsSchema.parse({ budget: { totalTokensPerDay: CAP } }),
      prices: [{ model: 'test/model', input: 1, output: 10, cached: 0.1 }],
      timeZone: 'UTC',
    }),
    sharing: {
      ...{ owner: shared.owner, isLive: (owner) => !isCut(owner) && shared.isLive(owner) },
      revision: () => store.revision('spending'),
    },
  });
  const ask = (id: string) => {
    const call = { role: 'turn', payer: payerOf(id), model: 'test/model' };
    return spending.reserve({ ...call, inputTokens: 800, outputTokens: 1000 }, signal);
  };
  const total = async () => {
    const { ledgers } = await spending.shown();
    return ledgers.at(['total']).value;
  };
  return { store, spending, ask, total, isLive: shared.isLive, owner: shared.owner };
}

function finish(reserved: Reservation | Refusal) {
  if (reserved.kind === 'refused') throw new Error(reserved.text);
  const usage = { inputTokens: 800, outputTokens: 200, cachedTokens: 0 };
  reserved.settle({ kind: 'finished', usage, answerTokens: 1 });
}

describe.skipIf(!hasPostgres)('a budget of two processes', () => {
  it('is passed by no number of calls, and what a process held that is gone is spent', async () => {
    const url = await server.database();
    const one = await processOf(url, 'one');
    const other = await processOf(url, 'other');
    let running = 0;
    let most = 0;
    const calls = Array.from({ length: 60 }, async (_, at) => {
      const reserved = await (at % 2 === 0 ? one : other).ask(`${at % 7}`);
      if (reserved.kind === 'refused') return 'refused';
      running += 1;
      most = Math.max(most, running);
      await new Promise((resolve) => setImmediate(resolve));
      running -= 1;
      finish(reserved);
      return 'answered';
    });
    const answered = (await Promise.all(calls)).filter((end) => end === 'answered').length;
    // Each holds 2,000 at most and takes 1,000.
    expect(most).toBeLessThanOrEqual(CAP / 2000);
    expect(answered).toBeGreaterThanOrEqual(CAP / 1000 - 2);
    expect(answered).toBeLessThanOrEqual(CAP / 1000);
    for (const each of [one, other]) {
      await expect.poll(async () => (await each.total()).spent.tokens).toBe(answered * 1000);
    }

    await server.query(url, 'DELETE FROM nanobot.key_value');
    const fresh = await processOf(url, 'third');
    expect((await other.ask('1')).kind).toBe('reserved');
    await other.store[Symbol.asyncDispose]();
    await expect.poll(() => fresh.isLive(other.owner)).toBe(false);
    // The next call finds nothing of it held any more.
    const reserved = await fresh.ask('2');
    expect(await fresh.total()).toMatchObject({ spent: { tokens: 2000 }, held: { tokens: 2000 } });
    finish(reserved);
    await fresh.spending[Symbol.asyncDispose]();
    expect(await fresh.total()).toMatchObject({ spent: { tokens: 3000 }, held: { tokens: 0 } });
    await Promise.all([one, fresh].map(({ store }) => store[Symbol.asyncDispose]()));
  });

  it('counts once what a process took that was taken for dead and came back', async () => {
    const url = await server.database();
    const one = await processOf(url, 'one');
    let cut = '';
    const other = await processOf(url, 'other', (owner) => owner === cut);
    const late = await one.ask('1');
    await other.ask('2');
    const { holds = {} } = await other.total();
    expect(Object.keys(holds).toSorted()).toEqual([one.owner, other.owner].toSorted());
    cut = one.owner;
    await other.ask('3');
    expect(await other.total()).toMatchObject({ spent: { tokens: 2000 }, held: { tokens: 4000 } });
    finish(late);
    await one.spending[Symbol.asyncDispose]();
    await expect.poll(async () => (await other.total()).spent.tokens).toBe(1000);
    await Promise.all([one, other].map(({ store }) => store[Symbol.asyncDispose]()));
  });
});

describe.skipIf(!hasPostgres)('a limit of messages', () => {
  const queuedFrom = (id: string, at: number): Gated => ({
    entry: {
      kind: 'queue',
      message: {
        ...{ ...payerOf(id), id: messageId(`${id}/${at}`), nativeId: nativeId(`${at}`) },
        ...{
          text: 'hello',
          attachments: [],
          addressing: 'direct',
          sentAt: clock.now(),
          receivedAt: clock.now(),
        },
      },
    },
    counts: { role: 'guest', as: 'message' },
  });

  it('holds for two processes together, and counts no message that was known', async () => {
    await using stores = await database();
    await using one = await stores.open();
    await using other = await stores.open();
    const [first, second] = [one, other].map((store) =>
      createFairUse({
        ...{ state: store.scope('fair-use'), clock, log, isShared: true },
        ...{ bus: { send: async () => 'queued' }, knownAs: async () => ({ names: [] }) },
        settings: () => ({
          limits: limitsSchema.parse({ messages: { perMinute: 0, perDay: 10 } }),
          timeZone: 'UTC',
        }),
      }),
    );
    const takes = async (by: typeof first, at: number) => {
      const weighed = await by?.weigh([queuedFrom('7', at)]);
      weighed?.settle(['accepted']);
      return weighed?.batch[0]?.entry.kind;
    };
    const known = await first?.weigh([queuedFrom('7', 0)]);
    known?.settle(['duplicate']);
    const each = Array.from({ length: 30 }, (_, at) => takes(at % 2 === 0 ? first : second, at));
    const kinds = await Promise.all(each);
    expect(kinds.filter((kind) => kind === 'queue')).toHaveLength(10);
    expect(kinds.filter((kind) => kind === 'record')).toHaveLength(20);
  });
});
