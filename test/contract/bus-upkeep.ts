// The bus contract, the rest: dead letters, traces, live pictures, leading, forgetting, idling.

import { describe, expect, it } from 'vitest';
import { DeliveryError, NEVER } from '../../src/kernel/message/errors.ts';
import { messageId, turnId } from '../../src/kernel/message/ids.ts';
import type { LiveUpdate } from '../../src/kernel/message/message.ts';
import {
  type BusProcess,
  CHANNEL,
  chat,
  echo,
  eventually,
  inTime,
  type MakeBusBench,
  message,
  outbound,
  queued,
  resultOf,
  scriptedCourier,
  startDelivery,
  startWork,
} from './bus-bench.ts';

const DAY_MS = 86_400_000;

export function upkeepContract(name: string, makeBench: MakeBusBench, process: BusProcess): void {
  describe(`${name}: dead letters`, () => {
    it.skipIf(process === 'of several')(
      'can be tried again from another process, with answers of their own',
      async () => {
        await using bench = await makeBench();
        await using bus = await bench.open();
        await using command = await bench.open();
        const courier = scriptedCourier();
        const delivery = startDelivery(bus, courier);
        let isBroken = true;
        const work = startWork(
          bus,
          async (turn) => {
            if (isBroken) throw new Error('broken');
            return resultOf(turn, 'well again');
          },
          { maxAttempts: 1 },
        );
        await bus.accept([queued('a', '1')]);
        await eventually(bench.clock, () => courier.sent.length === 1);
        isBroken = false;
        expect(await command.retry([message('a', '1').id, messageId('no such')])).toBe(1);
        await inTime(bench.clock, () => courier.sent.length === 2);
        expect(courier.texts()).toEqual(['set aside', 'well again']);
        expect(await bus.dead()).toEqual([]);
        await work.stop();
        await delivery.stop();
      },
    );

    it('are sent when their owner says so, marked where they may have arrived', async () => {
      await using bench = await makeBench();
      await using bus = await bench.open();
      const courier = scriptedCourier({}, ({ message: { id } }, nth) => {
        if (nth > 2) return undefined;
        const certainty = id === 'sure' ? 'not_sent' : 'unknown';
        throw new DeliveryError('no', { certainty, remedy: NEVER });
      });
      const delivery = startDelivery(bus, courier);
      await bus.send(outbound('a', 'sure'));
      await bus.send(outbound('b', 'unsure'));
      await eventually(bench.clock, () => courier.sent.length === 2);
      await bench.clock.advance(0);
      const dead = await bus.dead();
      expect(dead.map(({ id, state }) => [id, state])).toEqual([
        ['sure', 'dead'],
        ['unsure', 'unknown'],
      ]);
      expect(await bus.retry(dead.map(({ id }) => id))).toBe(2);
      await eventually(bench.clock, () => courier.sent.length === 4);
      const retried = courier.sent
        .slice(2)
        .map(({ message: { id }, context }) => [id, context.repeatsUnknown]);
      expect(retried).toEqual([
        ['sure', false],
        ['unsure', true],
      ]);
      await delivery.stop();
    });

    it('are deleted on request, yet the message stays known', async () => {
      await using bench = await makeBench();
      await using bus = await bench.open();
      const work = startWork(
        bus,
        async () => {
          throw new Error('no');
        },
        { maxAttempts: 1, onPoison: () => [] },
      );
      await bus.accept([queued('a', '1')]);
      await bench.clock.advance(0);
      expect(await bus.drop([message('a', '1').id])).toBe(1);
      expect(await bus.drop([message('a', '1').id])).toBe(0);
      expect(await bus.dead()).toEqual([]);
      expect(await bus.accept([queued('a', '1')])).toEqual(['duplicate']);
      await work.stop();
    });
  });

  describe(`${name}: trace and gc`, () => {
    it('tells the life of a message from its arrival to the id of its answer', async () => {
      await using bench = await makeBench();
      await using bus = await bench.open();
      const courier = scriptedCourier();
      const delivery = startDelivery(bus, courier);
      const { handle } = echo();
      const work = startWork(bus, handle);
      await bus.accept([queued('a', '1')]);
      await bus.send(outbound('a', `${message('a', '1').id}/reply`, 'by the way'));
      await eventually(bench.clock, () => courier.sent.length === 2);
      await bench.clock.advance(0);
      const trace = await bus.trace('last');
      expect(trace?.steps.map(({ what }) => what)).toEqual([
        'received',
        'accepted',
        'turn started',
        'turn finished',
      ]);
      expect(trace?.answers.map(({ id }) => id)).toEqual([
        `${trace?.turnId}/0`,
        `${message('a', '1').id}/reply`,
      ]);
      expect(trace?.answers[0]?.steps.map(({ what }) => what)).toEqual([
        'queued',
        'sending',
        'sent',
      ]);
      expect(await bus.trace(messageId('nobody knows'))).toBeUndefined();
      await work.stop();
      await delivery.stop();
    });

    it('forgets what is long over, but not the ids that recognise a repeat', async () => {
      await using bench = await makeBench();
      await using bus = await bench.open();
      const { turns, handle } = echo();
      await bus.accept([queued('a', '1')]);
      const work = startWork(bus, handle);
      await eventually(bench.clock, () => turns.length === 1);
      await work.stop();
      await bench.clock.advance(8 * DAY_MS);
      await bus.accept([queued('a', '2')]);
      expect(await bus.gc(7 * DAY_MS)).toBe(1);
      expect(await bus.gc(7 * DAY_MS)).toBe(0);
      expect(await bus.accept([queued('a', '1'), queued('a', '2')])).toEqual([
        'duplicate',
        'duplicate',
      ]);
      expect(await bus.stats()).toMatchObject({ pending: 1 });
    });
  });

  describe(`${name}: live pictures`, () => {
    const picture = (turn: string, markdown: string): LiveUpdate => ({
      turnId: turnId(turn),
      chat: chat('a'),
      phase: 'writing',
      markdown,
      tools: [],
    });

    it('show a slow reader the newest of each turn', async () => {
      await using bench = await makeBench();
      await using bus = await bench.open();
      const stop = new AbortController();
      const updates = bus.live.subscribe(CHANNEL, stop.signal)[Symbol.asyncIterator]();
      for (const text of ['s', 'so', 'son']) bus.live.publish(picture('t1', text));
      bus.live.publish(picture('t2', 'other'));
      bus.live.publish(picture('t1', 'song'));
      expect((await updates.next()).value).toMatchObject({ turnId: 't1', markdown: 'song' });
      expect((await updates.next()).value).toMatchObject({ turnId: 't2' });
      const next = updates.next();
      bus.live.publish(picture('t1', 'songs'));
      expect((await next).value).toMatchObject({ markdown: 'songs' });
      const last = updates.next();
      stop.abort();
      expect((await last).done).toBe(true);
    });
  });

  describe(`${name}: leading`, () => {
    it('lets one at a time lead a resource, under growing epochs, until it ends', async () => {
      await using bench = await makeBench();
      await using bus = await bench.open();
      const epochs: number[] = [];
      const ends: (() => void)[] = [];
      const { signal } = new AbortController();
      let begun = 0;
      const leading = (note: number[]) => (_: AbortSignal, epoch: number) => {
        begun += 1;
        note.push(epoch);
        return new Promise<void>((resolve) => ends.push(resolve));
      };
      const run = leading(epochs);
      const first = bus.lead('poller', run, signal);
      const second = bus.lead('poller', run, signal);
      const elsewhere = bus.lead('another', leading([]), signal);
      await eventually(bench.clock, () => begun === 2);
      for (const end of ends) end();
      await Promise.all([first, elsewhere]);
      await eventually(bench.clock, () => begun === 3);
      ends.at(-1)?.();
      await second;
      expect(epochs).toEqual([...epochs].sort((a, b) => a - b));
      expect(new Set(epochs).size).toBe(2);
    });

    it('passes a leader’s failure on and lets the next one lead', async () => {
      await using bench = await makeBench();
      await using bus = await bench.open();
      const { signal } = new AbortController();
      const failing = bus.lead('poller', async () => Promise.reject(new Error('401')), signal);
      await expect(failing).rejects.toThrow('401');
      await expect(bus.lead('poller', async () => undefined, signal)).resolves.toBeUndefined();
    });
  });

  describe(`${name}: idling`, () => {
    it.skipIf(process === 'of several')(
      'keeps one slow timer while it works and none when it does not',
      async () => {
        await using bench = await makeBench();
        await using bus = await bench.open();
        expect(bench.clock.pending).toBe(0);
        const work = startWork(bus, echo().handle);
        const delivery = startDelivery(bus, scriptedCourier());
        await bench.clock.advance(60_000);
        expect(bench.clock.pending).toBe(1);
        await work.stop();
        await delivery.stop();
        expect(bench.clock.pending).toBe(0);
      },
    );
  });
}
