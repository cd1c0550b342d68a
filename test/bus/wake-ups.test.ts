// What processes on one PostgreSQL tell each other: who is woken by what, while time stands still,
// so that nobody finds work by looking for it.

import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { createMessageBus } from '../../src/kernel/bus/message-bus.ts';
import { openPostgresStore } from '../../src/kernel/bus/store/postgres/store.ts';
import type { NodeRole } from '../../src/kernel/bus/store/shared.ts';
import { createBusyGauge } from '../../src/lib/async.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import {
  queued,
  resultOf,
  scriptedCourier,
  session,
  startDelivery,
  startWork,
} from '../contract/bus-bench.ts';
import { createMovableClock, type MovableClock } from '../support/movable-clock.ts';
import { hasPgBouncer, type PgBouncer, startPgBouncer } from '../support/pgbouncer.ts';
import { hasPostgres, type PostgresServer, startPostgres } from '../support/postgres.ts';

const LIMITS = { maxPendingPerChat: 1000, maxPending: 10_000 };
/** More than a process waits for all that come before it. */
const LONG_MS = 1000;
/** Fewer than there are processes. */
const SESSIONS = 2;
const MESSAGES = 40;

let server: PostgresServer;
let url: string;
let clock: MovableClock;
let pooler: PgBouncer | undefined;

beforeAll(async () => {
  if (!hasPostgres) return;
  server = await startPostgres();
  if (hasPgBouncer) pooler = await startPgBouncer(await server.emptied(), SESSIONS);
});
afterAll(async () => {
  await pooler?.[Symbol.asyncDispose]();
  await server?.[Symbol.asyncDispose]();
});
beforeEach(async () => {
  if (!hasPostgres) return;
  url = await server.emptied();
  clock = createMovableClock(Date.now());
});

let isPooled = false;

async function openNode(role: NodeRole) {
  const store = await openPostgresStore({
    ...{ url, clock, log: silentLogger, isGateway: true, isShared: true },
    poolUrl: isPooled ? pooler?.urlOf(url) : undefined,
    node: { name: role, role, version: '1', config: '' },
  });
  onTestFinished(() => store[Symbol.asyncDispose]());
  const bus = createMessageBus({ store, clock, log: silentLogger, limits: LIMITS });
  const { shared } = store;
  if (shared === undefined) throw new TypeError('not shared');
  return { bus, shared };
}

type Node = Awaited<ReturnType<typeof openNode>>;

/** Each knows the others, so that all agree who comes first. */
async function all(count: number, nodes: readonly Node[]) {
  const chats = Array.from({ length: 40 }, (_, at) => session(`c${at}`));
  const agreed = () =>
    chats.every((chat) => {
      const ranks = nodes
        .map(({ shared }) => shared.rankFor(chat))
        .filter((rank) => rank !== undefined);
      return ranks.toSorted().join() === Array.from({ length: count }, (_, at) => at).join();
    });
  await expect.poll(agreed).toBe(true);
}

const WAYS = [
  { way: 'directly', through: false, isMissing: !hasPostgres },
  { way: 'through PgBouncer', through: true, isMissing: !hasPostgres || !hasPgBouncer },
];

it('notices that its event loop has hardly a pause', async () => {
  const time = createMovableClock();
  const isBusy = createBusyGauge(time);
  const until = performance.now() + 20;
  while (performance.now() < until);
  await time.advance(LONG_MS);
  expect(isBusy()).toBe(true);
  await expect
    .poll(async () => {
      await time.advance(LONG_MS);
      return isBusy();
    })
    .toBe(false);
});

for (const { way, through, isMissing } of WAYS) {
  describe.skipIf(isMissing)(`processes on one PostgreSQL, ${way}`, () => {
    beforeAll(() => {
      isPooled = through;
    });
    suite();
  });
}

function suite() {
  it('wake the worker that comes first, and the next where that one is busy', async () => {
    const channels = await openNode('channels');
    const workers = [await openNode('workers'), await openNode('workers')];
    await all(2, [channels, ...workers]);
    const taken: string[] = [];
    const works = workers.map(({ bus }, at) =>
      startWork(bus, async (turn) => {
        taken.push(`${turn.messages.map(({ message }) => message.text).join()} ${at}`);
        return resultOf(turn, 'answer');
      }),
    );
    const chats = Array.from({ length: 10 }, (_, at) => `c${at}`);
    const first = (chat: string) =>
      workers.findIndex(({ shared }) => shared.rankFor(session(chat)) === 0);
    expect(new Set(chats.map(first)).size).toBe(2);
    for (const [at, chat] of chats.entries()) {
      await expect.poll(async () => channels.bus.stats()).toMatchObject({ pending: 0, running: 0 });
      await channels.bus.accept([queued(chat, `m${at}`)]);
      await expect.poll(() => taken.length).toBe(at + 1);
    }
    const byFirst = chats.filter((chat, at) => taken[at] === `m${at} ${first(chat)}`);
    // A look after processes have come or gone may find a message before its worker does.
    expect(byFirst.length).toBeGreaterThanOrEqual(chats.length - 2);
    const busy = first('c0');
    await works[busy]?.stop();
    await channels.bus.accept([queued('c0', 'late')]);
    await expect
      .poll(async () => {
        await clock.advance(LONG_MS);
        return taken.at(-1);
      })
      .toBe(`late ${1 - busy}`);
    await works[1 - busy]?.stop();
  });

  it('leave what is due to the worker that comes first, also when they claim something else', async () => {
    const channels = await openNode('channels');
    const workers = [await openNode('workers'), await openNode('workers')];
    await all(2, [channels, ...workers]);
    const [own, other] = workers;
    if (own === undefined || other === undefined) throw new TypeError('two workers');
    const taken: string[] = [];
    const work = startWork(own.bus, async (turn) => {
      taken.push(turn.messages.map(({ message }) => message.text).join());
      return resultOf(turn, 'answer');
    });
    const chats = Array.from({ length: 40 }, (_, at) => `c${at}`);
    const first = (node: Node) =>
      chats.find((chat) => node.shared.rankFor(session(chat)) === 0) ?? 'none';
    expect(own.shared.rankFor(session(first(own)), true)).toBe(1);
    await channels.bus.accept([queued(first(other), 'for the other one')]);
    await channels.bus.accept([queued(first(own), 'own')]);
    await expect.poll(() => taken).toEqual(['own']);
    await expect.poll(async () => channels.bus.stats()).toMatchObject({ pending: 1, running: 0 });
    expect(taken).toEqual(['own']);
    await expect
      .poll(async () => {
        await clock.advance(LONG_MS);
        return taken;
      })
      .toEqual(['own', 'for the other one']);
    await work.stop();
  });

  it('tell a running turn of its follower and of its end, wherever they come from', async () => {
    const channels = await openNode('channels');
    const worker = await openNode('workers');
    await all(1, [channels, worker]);
    const joined: string[] = [];
    const stopped = Promise.withResolvers<unknown>();
    const work = startWork(worker.bus, async (turn) => {
      await turn.arrival(turn.signal);
      joined.push(...(await turn.join()).map(({ message }) => message.text));
      return new Promise((_resolve, reject) =>
        turn.signal.addEventListener('abort', () => {
          stopped.resolve(turn.signal.reason);
          reject(turn.signal.reason);
        }),
      );
    });
    await channels.bus.accept([queued('a', 'first')]);
    await expect.poll(async () => (await channels.bus.stats()).running).toBe(1);
    await channels.bus.accept([queued('a', 'second')]);
    await expect.poll(() => joined).toEqual(['second']);
    expect(await channels.bus.cancel(session('a'), 'enough')).toMatchObject({ running: true });
    expect(await stopped.promise).toMatchObject({ message: 'enough' });
    await work.stop();
  });

  it('send what a turn elsewhere answered, and lead what another gave back', async () => {
    const first = await openNode('channels');
    const second = await openNode('channels');
    const worker = await openNode('workers');
    await all(1, [first, second, worker]);
    const courier = scriptedCourier({ onUnknown: 'idempotent' });
    const led: string[] = [];
    const stopping = new AbortController();
    const over = new AbortController();
    const lead = (name: string, { bus }: Node, signal: AbortSignal) =>
      bus.lead(
        courier.account,
        async (until) => {
          led.push(name);
          const delivery = startDelivery(bus, courier);
          await new Promise((resolve) => until.addEventListener('abort', resolve));
          await delivery.stop();
        },
        signal,
      );
    const firstLead = lead('first', first, stopping.signal);
    await expect.poll(() => led).toEqual(['first']);
    const secondLead = lead('second', second, over.signal);
    const work = startWork(worker.bus, async (turn) => resultOf(turn, 'answer'));
    await second.bus.accept([queued('a', 'one')]);
    await expect.poll(() => courier.texts()).toEqual(['answer']);
    stopping.abort();
    await firstLead;
    await expect.poll(() => led).toEqual(['first', 'second']);
    await first.bus.accept([queued('a', 'two')]);
    await expect.poll(() => courier.texts()).toEqual(['answer', 'answer']);
    over.abort();
    await secondLead;
    await work.stop();
  });

  it('lose and double nothing while sessions of the server are cut', async () => {
    const channels = await openNode('channels');
    const worker = await openNode('workers');
    await all(1, [channels, worker]);
    const courier = scriptedCourier({ onUnknown: 'idempotent' });
    const over = new AbortController();
    const lead = channels.bus.lead(
      courier.account,
      async (signal) => {
        const delivery = startDelivery(channels.bus, courier);
        await new Promise((resolve) => signal.addEventListener('abort', resolve));
        await delivery.stop();
      },
      over.signal,
    );
    const work = startWork(worker.bus, async (turn) =>
      resultOf(turn, turn.messages.map(({ message }) => message.text).join(' ')),
    );
    const accepted: Promise<unknown>[] = [];
    for (let at = 0; at < MESSAGES; at += 1) {
      accepted.push(channels.bus.accept([queued(`c${at % 3}`, `m${at}`)]));
      if (at % 10 === 5) await expect.poll(cutSessions).toBeGreaterThan(0);
    }
    expect(new Set((await Promise.all(accepted)).flat())).toEqual(new Set(['accepted']));
    const texts = () => courier.texts().flatMap((text) => text.split(' '));
    await expect.poll(() => new Set(texts()).size).toBe(MESSAGES);
    expect(texts()).toHaveLength(MESSAGES);
    for (let chat = 0; chat < 3; chat += 1) {
      const own = texts().filter((text) => Number(text.slice(1)) % 3 === chat);
      expect(own).toEqual(
        own.toSorted((one, other) => Number(one.slice(1)) - Number(other.slice(1))),
      );
    }
    if (isPooled) expect(await cutSessions()).toBeLessThanOrEqual(SESSIONS);
    over.abort();
    await lead;
    await work.stop();
  });
}

/** All but those that show that a process lives; returns how many. */
async function cutSessions(): Promise<number> {
  const cut = await server.query(
    url,
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
     WHERE application_name LIKE 'nanobot %' AND application_name NOT LIKE '% pulse'`,
  );
  return cut.length;
}
