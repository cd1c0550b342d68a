// The bus contract, inbound: what was accepted is worked on once, in order, one turn per session.

import { describe, expect, it } from 'vitest';
import { type Turn, TurnCancelled, TurnInterrupted } from '../../src/kernel/bus/bus.ts';
import { BusFullError } from '../../src/kernel/message/errors.ts';
import { DEFAULT_ACCOUNT } from '../../src/kernel/message/ids.ts';
import {
  CHANNEL,
  echo,
  eventually,
  type MakeBusBench,
  message,
  never,
  queued,
  resultOf,
  scriptedCourier,
  session,
  startDelivery,
  startWork,
  untilAborted,
} from './bus-bench.ts';

const textsOf = (turn: Pick<Turn, 'messages'>) => turn.messages.map((one) => one.message.text);

export function inboundContract(name: string, makeBench: MakeBusBench): void {
  describe(`${name}: accepting`, () => {
    it('takes a message once, however often the platform delivers it', async () => {
      await using bench = await makeBench();
      await using bus = await bench.open();
      const { turns, handle } = echo();
      const work = startWork(bus, handle);
      const first = await bus.accept([queued('a', '1'), queued('a', '1'), queued('a', '2')]);
      await eventually(bench.clock, () => turns.length === 1);
      const again = await bus.accept([queued('a', '1'), queued('a', '2')]);
      await bench.clock.advance(60_000);
      expect(first).toEqual(['accepted', 'duplicate', 'accepted']);
      expect(again).toEqual(['duplicate', 'duplicate']);
      expect(turns).toEqual([['1', '2']]);
      await work.stop();
    });

    it('stores nothing, not even the cursor, when a chat or the whole bus is full', async () => {
      await using bench = await makeBench({ maxPendingPerChat: 2, maxPending: 3 });
      await using bus = await bench.open();
      const cursor = { channel: CHANNEL, account: DEFAULT_ACCOUNT, value: '17' };
      await bus.accept([queued('a', '1'), queued('a', '2')]);
      await expect(bus.accept([queued('b', '3'), queued('a', '4')], { cursor })).rejects.toThrow(
        BusFullError,
      );
      expect(await bus.cursor(CHANNEL, DEFAULT_ACCOUNT)).toBeUndefined();
      expect((await bus.stats()).pending).toBe(2);
      await bus.accept([queued('b', '3')]);
      await expect(bus.accept([queued('c', '5')])).rejects.toThrow(BusFullError);
      expect(await bus.accept([queued('a', '1')], { cursor })).toEqual(['duplicate']);
      expect(await bus.cursor(CHANNEL, DEFAULT_ACCOUNT)).toBe('17');
    });

    it('takes a batch whole that is larger than the limit, or it would be offered for ever', async () => {
      await using bench = await makeBench({ maxPendingPerChat: 2, maxPending: 3 });
      await using bus = await bench.open();
      const batch = ['1', '2', '3', '4', '5'].map((native) => queued('a', native));
      expect(await bus.accept(batch)).toHaveLength(5);
      await expect(bus.accept([queued('a', '6')])).rejects.toThrow(BusFullError);
    });

    it('does not count what a running turn holds against its chat', async () => {
      await using bench = await makeBench({ maxPendingPerChat: 2 });
      await using bus = await bench.open();
      let isRunning = false;
      const work = startWork(bus, async (turn) => {
        isRunning = true;
        return untilAborted(turn.signal);
      });
      await bus.accept([queued('a', '1'), queued('a', '2')]);
      await eventually(bench.clock, () => isRunning);
      expect(await bus.accept([queued('a', '3')])).toEqual(['accepted']);
      await work.stop();
    });

    it('keeps of a refused message its id and the gate, never its text', async () => {
      await using bench = await makeBench();
      await using bus = await bench.open();
      const { turns, handle } = echo();
      const work = startWork(bus, handle);
      const refused = message('a', '1', 'a secret');
      await bus.accept([{ kind: 'record', message: refused, gate: 'stranger' }]);
      expect(await bus.accept([{ kind: 'queue', message: refused }])).toEqual(['duplicate']);
      await bench.clock.advance(0);
      expect(turns).toEqual([]);
      const trace = await bus.trace('last');
      expect(trace?.state).toBe('recorded');
      expect(trace?.steps.at(-1)?.detail).toBe('stranger');
      expect(JSON.stringify(trace)).not.toContain('secret');
      await work.stop();
    });
  });

  describe(`${name}: turns`, () => {
    it('hands out all that waits in a session as one turn named after its first message', async () => {
      await using bench = await makeBench();
      await using bus = await bench.open();
      const seen: Turn[] = [];
      await bus.accept([queued('a', '1'), queued('b', '2'), queued('a', '3')]);
      const work = startWork(bus, async (turn) => {
        seen.push(turn);
        return resultOf(turn);
      });
      await eventually(bench.clock, () => seen.length === 2);
      expect(seen.map(textsOf)).toEqual([['1', '3'], ['2']]);
      for (const turn of seen) expect(turn.id).toBe(`${turn.session}#${turn.messages[0].seq}`);
      await work.stop();
    });

    it('runs sessions side by side up to the limit, and one turn at a time in each', async () => {
      await using bench = await makeBench();
      await using bus = await bench.open();
      const open = new Map<string, () => void>();
      let most = 0;
      const handled: string[] = [];
      const work = startWork(
        bus,
        async (turn) => {
          expect(open.has(turn.session)).toBe(false);
          await new Promise<void>((resolve) => {
            open.set(turn.session, resolve);
            most = Math.max(most, open.size);
          });
          open.delete(turn.session);
          handled.push(...textsOf(turn));
          return resultOf(turn);
        },
        { maxOpenTurns: () => 2 },
      );
      for (const chatName of ['a', 'b', 'c']) await bus.accept([queued(chatName, `${chatName}1`)]);
      for (const chatName of ['a', 'b', 'c']) await bus.accept([queued(chatName, `${chatName}2`)]);
      while (handled.length < 6) {
        await eventually(bench.clock, () => open.size > 0);
        for (const release of open.values()) release();
        await bench.clock.advance(0);
      }
      expect(most).toBe(2);
      for (const chatName of ['a', 'b', 'c']) {
        expect(handled.filter((text) => text.startsWith(chatName))).toEqual([
          `${chatName}1`,
          `${chatName}2`,
        ]);
      }
      await work.stop();
    });

    it('lets a running turn hear of its followers and join them, once', async () => {
      await using bench = await makeBench();
      await using bus = await bench.open();
      const joined: string[][] = [];
      const { turns, handle } = echo();
      let isFirst = true;
      const work = startWork(bus, async (turn) => {
        if (!isFirst) return handle(turn);
        isFirst = false;
        joined.push((await turn.join()).map((one) => one.message.text));
        await turn.arrival(turn.signal);
        await turn.arrival(turn.signal);
        const followers = await turn.join();
        joined.push(followers.map((one) => one.message.text));
        joined.push((await turn.join()).map((one) => one.message.text));
        return { throughSeq: followers.at(-1)?.seq ?? 0, outbound: [] };
      });
      await bus.accept([queued('a', '1')]);
      await eventually(bench.clock, () => joined.length === 1);
      await bus.accept([queued('a', '2'), queued('b', 'elsewhere'), queued('a', '3')]);
      await eventually(bench.clock, () => joined.length === 3);
      await bus.accept([queued('a', '4')]);
      await eventually(bench.clock, () => turns.length === 2);
      expect(joined).toEqual([[], ['2', '3'], []]);
      expect(turns.flat().sort()).toEqual(['4', 'elsewhere']);
      await work.stop();
    });

    it('stops waiting for a follower when its signal aborts', async () => {
      await using bench = await makeBench();
      await using bus = await bench.open();
      const waiting = new AbortController();
      const reasons: unknown[] = [];
      const work = startWork(bus, async (turn) => {
        await turn.arrival(waiting.signal).catch((error) => reasons.push(error));
        return resultOf(turn);
      });
      await bus.accept([queued('a', '1')]);
      await bench.clock.advance(0);
      waiting.abort('enough');
      await eventually(bench.clock, () => reasons.length === 1);
      expect(reasons).toEqual(['enough']);
      await work.stop();
    });

    it('gives what a turn did not consume to the next turn', async () => {
      await using bench = await makeBench();
      await using bus = await bench.open();
      const turns: string[][] = [];
      await bus.accept([queued('a', '1'), queued('a', '2'), queued('a', '3')]);
      const work = startWork(bus, async (turn) => {
        turns.push(textsOf(turn));
        return { throughSeq: turn.messages[0].seq, outbound: [] };
      });
      await eventually(bench.clock, () => turns.length === 3);
      expect(turns).toEqual([['1', '2', '3'], ['2', '3'], ['3']]);
      await work.stop();
    });
  });

  describe(`${name}: failing turns`, () => {
    it('tries again under the same name, later each time, at last with the first message alone', async () => {
      await using bench = await makeBench();
      await using bus = await bench.open();
      const tries: { id: string; attempt: number; texts: string[]; at: number }[] = [];
      const joins: number[] = [];
      await bus.accept([queued('a', '1'), queued('a', '2')]);
      const work = startWork(
        bus,
        async (turn) => {
          const at = bench.clock.monotonic();
          tries.push({ id: turn.id, attempt: turn.attempt, texts: textsOf(turn), at });
          if (turn.attempt > 1) joins.push((await turn.join()).length);
          if (turn.attempt < 4) throw new Error('the model is away');
          return resultOf(turn);
        },
        { maxAttempts: 5 },
      );
      await eventually(bench.clock, () => tries.length === 1);
      await bench.clock.advance(500);
      await bench.clock.advance(1000);
      await bench.clock.advance(2000);
      await eventually(bench.clock, () => tries.length === 5);
      expect(tries.map(({ attempt, texts }) => [attempt, ...texts])).toEqual([
        [1, '1', '2'],
        [2, '1', '2'],
        [3, '1'],
        [4, '1'],
        [1, '2'],
      ]);
      expect(new Set(tries.slice(0, 4).map(({ id }) => id)).size).toBe(1);
      expect(tries.slice(0, 4).map(({ at }) => at)).toEqual([0, 500, 1500, 3500]);
      expect(joins).toEqual([0, 0, 0]);
      await work.stop();
    });

    it('keeps the order while a message waits for its next try', async () => {
      await using bench = await makeBench();
      await using bus = await bench.open();
      const done: string[] = [];
      const work = startWork(bus, async (turn) => {
        if (turn.attempt === 1 && turn.messages[0].message.text === '1') throw new Error('once');
        done.push(...textsOf(turn));
        return resultOf(turn);
      });
      await bus.accept([queued('a', '1')]);
      await bench.clock.advance(0);
      await bus.accept([queued('a', '2')]);
      await bench.clock.advance(0);
      expect(done).toEqual([]);
      await bench.clock.advance(500);
      await eventually(bench.clock, () => done.length === 2);
      expect(done).toEqual(['1', '2']);
      await work.stop();
    });

    it('sets a poison message aside, tells the chat and goes on with the lane', async () => {
      await using bench = await makeBench();
      await using bus = await bench.open();
      const courier = scriptedCourier();
      const delivery = startDelivery(bus, courier);
      const work = startWork(bus, async (turn) => {
        if (turn.messages[0].message.text === 'poison') throw new Error('cannot digest');
        return resultOf(turn, `re: ${textsOf(turn).join(', ')}`);
      });
      await bus.accept([queued('a', '1', 'poison'), queued('a', '2', 'bread')]);
      await bench.clock.advance(0);
      await bench.clock.advance(500);
      await bench.clock.advance(1000);
      await eventually(bench.clock, () => courier.sent.length === 2);
      expect(courier.texts()).toEqual(['set aside', 're: bread']);
      expect(await bus.dead()).toMatchObject([
        {
          direction: 'inbound',
          state: 'dead',
          reason: 'cannot digest',
          attempts: 3,
          excerpt: 'poison',
        },
      ]);
      await delivery.stop();
      await work.stop();
    });
  });

  describe(`${name}: cancelling`, () => {
    it('withdraws what waits and never runs again a turn that gave up', async () => {
      await using bench = await makeBench();
      await using bus = await bench.open();
      const reasons: unknown[] = [];
      let turns = 0;
      const work = startWork(bus, async (turn) => {
        turns += 1;
        if (turns > 1) return resultOf(turn);
        return untilAborted(turn.signal).catch((reason) => {
          reasons.push(reason);
          throw reason;
        });
      });
      await bus.accept([queued('a', '1')]);
      await eventually(bench.clock, () => turns === 1);
      await bus.accept([queued('a', '2'), queued('a', '3')]);
      expect(await bus.cancel(session('a'), 'stopped')).toMatchObject({
        withdrawn: 2,
        running: true,
      });
      await eventually(bench.clock, () => reasons.length === 1);
      await bench.clock.advance(120_000);
      expect(reasons[0]).toBeInstanceOf(TurnCancelled);
      expect(turns).toBe(1);
      expect((await bus.trace(message('a', '1').id))?.state).toBe('cancelled');
      expect((await bus.trace(message('a', '3').id))?.steps.at(-1)?.detail).toBe('stopped');
      await bus.accept([queued('a', '4')]);
      await eventually(bench.clock, () => turns === 2);
      expect(await bus.cancel(session('a'), 'again')).toMatchObject({
        withdrawn: 0,
        running: false,
      });
      await work.stop();
    });

    it('delivers what a cancelled turn still has to say', async () => {
      await using bench = await makeBench();
      await using bus = await bench.open();
      const courier = scriptedCourier();
      const delivery = startDelivery(bus, courier);
      let isRunning = false;
      const work = startWork(bus, async (turn) => {
        isRunning = true;
        await untilAborted(turn.signal).catch(() => undefined);
        return resultOf(turn, 'stopped here');
      });
      await bus.accept([queued('a', '1')]);
      await eventually(bench.clock, () => isRunning);
      await bus.cancel(session('a'), 'stopped');
      await eventually(bench.clock, () => courier.sent.length === 1);
      expect(courier.texts()).toEqual(['stopped here']);
      await work.stop();
      await delivery.stop();
    });

    it('withdraws a message that waits for its next try', async () => {
      await using bench = await makeBench();
      await using bus = await bench.open();
      let tries = 0;
      const work = startWork(bus, async () => {
        tries += 1;
        throw new Error('no');
      });
      await bus.accept([queued('a', '1')]);
      await eventually(bench.clock, () => tries === 1);
      await bench.clock.advance(0);
      expect(await bus.cancel(session('a'), 'enough')).toMatchObject({
        withdrawn: 1,
        running: false,
      });
      await bench.clock.advance(120_000);
      expect(tries).toBe(1);
      await work.stop();
    });
  });

  describe(`${name}: stopping`, () => {
    it('interrupts running turns, waits for them and does not count the try', async () => {
      await using bench = await makeBench();
      await using bus = await bench.open();
      const attempts: number[] = [];
      const reasons: unknown[] = [];
      await bus.accept([queued('a', '1')]);
      const hanging = async (turn: Turn) => {
        attempts.push(turn.attempt);
        return untilAborted(turn.signal).catch((reason) => {
          reasons.push(reason);
          throw reason;
        });
      };
      for (const round of [1, 2, 3, 4, 5]) {
        const work = startWork(bus, hanging, { maxAttempts: 2 });
        await eventually(bench.clock, () => attempts.length === round);
        await work.stop();
      }
      expect(attempts).toEqual([1, 1, 1, 1, 1]);
      for (const reason of reasons) expect(reason).toBeInstanceOf(TurnInterrupted);
      expect((await bus.stats()).pending).toBe(1);
    });

    it('does not wait for ever for a handler that heeds no signal', async () => {
      await using bench = await makeBench();
      const bus = await bench.open();
      let isRunning = false;
      startWork(bus, async () => {
        isRunning = true;
        return never;
      });
      await bus.accept([queued('a', '1')]);
      await eventually(bench.clock, () => isRunning);
      let isDisposed = false;
      const disposed = bus[Symbol.asyncDispose]().then(() => {
        isDisposed = true;
      });
      await bench.clock.advance(1000);
      expect(isDisposed).toBe(false);
      await bench.clock.advance(60_000);
      await disposed;
    });

    it('lets running turns finish within the drain time and begins no new one', async () => {
      await using bench = await makeBench();
      await using bus = await bench.open();
      let finish = () => {};
      const started: string[] = [];
      const ended: string[] = [];
      const handler = async (turn: Turn) => {
        started.push(turn.session);
        if (turn.session === session('slow')) await untilAborted(turn.signal);
        await new Promise<void>((resolve) => {
          finish = resolve;
        });
        ended.push(turn.session);
        return resultOf(turn);
      };
      const work = startWork(bus, handler, { drainMs: 5000 });
      await bus.accept([queued('slow', '1'), queued('a', '2')]);
      await eventually(bench.clock, () => started.length === 2);
      work.abort();
      await bus.accept([queued('b', '3')]);
      await bench.clock.advance(1000);
      finish();
      await bench.clock.advance(4000);
      await work.over;
      expect(started).toHaveLength(2);
      expect(ended).toEqual([session('a')]);
      expect(await bus.stats()).toMatchObject({ pending: 2, running: 0 });
    });
  });
}
