// The bus contract, recovery: what a process that died or froze left behind.

import { describe, expect, it } from 'vitest';
import type { Turn } from '../../src/kernel/bus/bus.ts';
import { DEFAULT_ACCOUNT } from '../../src/kernel/message/ids.ts';
import {
  type BusBench,
  type BusProcess,
  CHANNEL,
  echo,
  eventually,
  inTime,
  type MakeBusBench,
  message,
  never,
  queued,
  resultOf,
  scriptedCourier,
  session,
  startDelivery,
  startWork,
} from './bus-bench.ts';

/** So long a process runs before messages are tried that others ended with. */
async function passQuarantine({ clock }: BusBench): Promise<void> {
  for (let second = 0; second < 15; second += 1) await clock.advance(1000);
}

export function recoveryContract(name: string, makeBench: MakeBusBench, process: BusProcess): void {
  describe(`${name}: after a process died`, () => {
    it('has every accepted message and the cursor that was committed with them', async () => {
      await using bench = await makeBench();
      const first = await bench.open();
      const cursor = { channel: CHANNEL, account: DEFAULT_ACCOUNT, value: '42' };
      await first.accept([queued('a', '1'), queued('b', '2')], { cursor });
      await using second = await bench.open();
      const { turns, handle } = echo();
      const work = startWork(second, handle);
      await eventually(bench.clock, () => turns.length === 2);
      expect(turns).toEqual([['1'], ['2']]);
      expect(await second.cursor(CHANNEL, DEFAULT_ACCOUNT)).toBe('42');
      expect(await second.accept([queued('a', '1')])).toEqual(['duplicate']);
      await work.stop();
    });

    it('runs a turn again that the process held, counted as a try, under the same name', async () => {
      await using bench = await makeBench();
      const seen: Pick<Turn, 'id' | 'attempt'>[] = [];
      const first = await bench.open();
      await first.accept([queued('a', '1')]);
      startWork(first, async (turn) => {
        seen.push(turn);
        return never;
      });
      await eventually(bench.clock, () => seen.length === 1);
      await using second = await bench.open();
      const work = startWork(second, async (turn) => {
        seen.push(turn);
        return resultOf(turn);
      });
      await eventually(bench.clock, () => seen.length === 2);
      expect(seen.map(({ attempt }) => attempt)).toEqual([1, 2]);
      expect(seen[1]?.id).toBe(seen[0]?.id);
      await work.stop();
    });

    it('finishes with a later try what an earlier one was given and this one was not', async () => {
      await using bench = await makeBench();
      const tries: string[][] = [];
      const dies = async (turn: Turn) => {
        tries.push(turn.messages.map(({ message: { text } }) => text));
        return never;
      };
      const first = await bench.open();
      await first.accept([queued('a', '1'), queued('a', '2')]);
      startWork(first, dies);
      await eventually(bench.clock, () => tries.length === 1);
      startWork(await bench.open(), dies);
      await eventually(bench.clock, () => tries.length === 2);
      await using last = await bench.open();
      const work = startWork(last, async (turn) => {
        tries.push(turn.messages.map(({ message: { text } }) => text));
        return { throughSeq: turn.messages[0].seq + 1, outbound: [] };
      });
      await eventually(bench.clock, () => tries.length === 3);
      await last.accept([queued('a', '3')]);
      await eventually(bench.clock, () => tries.length === 4);
      expect(tries).toEqual([['1', '2'], ['1', '2'], ['1'], ['3']]);
      await work.stop();
    });

    it('sets a message aside that ended the process nine times, without trying once more', async () => {
      await using bench = await makeBench();
      let tries = 0;
      const deadly = async () => {
        tries += 1;
        return never;
      };
      const first = await bench.open();
      await first.accept([queued('a', '1', 'deadly'), queued('a', '2', 'harmless')]);
      startWork(first, deadly);
      await eventually(bench.clock, () => tries === 1);
      await bench.kill(first);
      for (const death of [2, 3, 4, 5, 6, 7, 8, 9]) {
        const next = await bench.open();
        startWork(next, deadly);
        await passQuarantine(bench);
        await eventually(bench.clock, () => tries === death);
        await bench.kill(next);
      }
      await using last = await bench.open();
      const courier = scriptedCourier();
      const delivery = startDelivery(last, courier);
      const { turns, handle } = echo();
      const work = startWork(last, handle);
      await passQuarantine(bench);
      await eventually(bench.clock, () => courier.sent.length === 2);
      expect(turns).toEqual([['harmless']]);
      expect(courier.texts()).toEqual(['set aside', 're: harmless']);
      expect(await last.dead()).toMatchObject([{ excerpt: 'deadly', attempts: 10 }]);
      await work.stop();
      await delivery.stop();
    });

    it('sets none of many messages aside for deaths soon after the start', async () => {
      await using bench = await makeBench();
      const names = Array.from({ length: 20 }, (_, n) => `chat${n}`);
      for (let death = 1; death <= 10; death += 1) {
        const bus = await bench.open();
        let tries = 0;
        startWork(bus, async () => {
          tries += 1;
          return never;
        });
        if (death === 1) await bus.accept(names.map((name) => queued(name, name)));
        if (death <= 3) await eventually(bench.clock, () => tries > 0);
        await bench.clock.advance(700);
        await bench.kill(bus);
      }
      await using last = await bench.open();
      const { turns, handle } = echo();
      const work = startWork(last, handle, { maxOpenTurns: () => 30 });
      for (let wait = 0; wait < 100 && turns.length < names.length; wait += 1) {
        await bench.clock.advance(1000);
      }
      expect(turns.flat().toSorted()).toEqual(names.toSorted());
      expect(await last.dead()).toEqual([]);
      await work.stop();
    });

    it('finds out which of many messages ends the process, and answers the others', async () => {
      await using bench = await makeBench();
      const names = Array.from({ length: 10 }, (_, n) => `chat${n}`);
      const answered: string[] = [];
      let deaths = 0;
      for (let isOver = false; !isOver; ) {
        const bus = await bench.open();
        let isDead = false;
        startWork(bus, async (turn) => {
          const [{ message }] = turn.messages;
          isDead ||= message.text === 'chat4';
          // Any other takes its time: those at work when the process ends have no answer yet.
          await bench.clock.sleep(3000);
          if (isDead) return never;
          answered.push(message.text);
          return resultOf(turn);
        });
        if (deaths === 0) await bus.accept(names.map((name) => queued(name, name)));
        for (let step = 0; step < 240 && !isDead; step += 1) await bench.clock.advance(250);
        await bench.kill(bus);
        isOver = !isDead;
        if (isDead) deaths += 1;
      }
      await using last = await bench.open();
      expect((await last.dead()).map(({ excerpt }) => excerpt)).toEqual(['chat4']);
      expect(answered.toSorted()).toEqual(names.filter((name) => name !== 'chat4'));
      expect(deaths).toBe(9);
    });

    it.skipIf(process === 'of several')(
      'lets a frozen process change nothing when it wakes up behind its successor',
      async () => {
        await using bench = await makeBench();
        const wake = Promise.withResolvers<void>();
        const joined: number[] = [];
        const zombie = await bench.open();
        await zombie.accept([queued('a', '1')]);
        let isHeld = false;
        const frozen = async (turn: Turn) => {
          isHeld = true;
          await wake.promise;
          await turn.arrival(turn.signal);
          joined.push((await turn.join()).length);
          expect(turn.signal.aborted).toBe(true);
          return resultOf(turn, 'from the zombie');
        };
        const frozenWork = startWork(zombie, frozen, { maxOpenTurns: () => 1, drainMs: 60_000 });
        await eventually(bench.clock, () => isHeld);
        await using successor = await bench.open();
        const courier = scriptedCourier();
        const delivery = startDelivery(successor, courier);
        const work = startWork(successor, async (turn) => resultOf(turn, 'from the successor'));
        await eventually(bench.clock, () => courier.sent.length === 1);
        await zombie.accept([queued('a', '2')]);
        // So that it does not take the follower as a turn of its own.
        frozenWork.abort();
        wake.resolve();
        await eventually(bench.clock, () => joined.length === 1);
        await inTime(bench.clock, () => courier.sent.length === 2);
        expect(joined).toEqual([0]);
        expect(courier.texts()).toEqual(['from the successor', 'from the successor']);
        await work.stop();
        await delivery.stop();
      },
    );

    it('does not run a turn again that was stopped before the process died', async () => {
      await using bench = await makeBench();
      const first = await bench.open();
      let isHeld = false;
      await first.accept([queued('a', '1')]);
      startWork(first, async () => {
        isHeld = true;
        return never;
      });
      await eventually(bench.clock, () => isHeld);
      await first.cancel(session('a'), 'stopped');
      await using second = await bench.open();
      const { turns, handle } = echo();
      const work = startWork(second, handle);
      await second.accept([queued('a', '2')]);
      await eventually(bench.clock, () => turns.length === 1);
      expect(turns).toEqual([['2']]);
      expect((await second.trace(message('a', '1').id))?.state).toBe('cancelled');
      await work.stop();
    });

    it.skipIf(process === 'of several')(
      'commits a claim before the handler runs and before the courier sends',
      async () => {
        await using bench = await makeBench();
        await using bus = await bench.open();
        await using observer = await bench.open();
        const steps: (string | undefined)[] = [];
        const courier = scriptedCourier({}, async ({ message: { id } }) => {
          steps.push((await observer.trace(id))?.state);
          return { nativeIds: [] };
        });
        const delivery = startDelivery(bus, courier);
        const work = startWork(bus, async (turn) => {
          steps.push((await observer.trace(turn.messages[0].message.id))?.turnId);
          return resultOf(turn, 'hello');
        });
        await bus.accept([queued('a', '1')]);
        await eventually(bench.clock, () => steps.length === 2);
        expect(steps).toEqual([expect.stringContaining('#'), 'sending']);
        await work.stop();
        await delivery.stop();
      },
    );
  });
}
