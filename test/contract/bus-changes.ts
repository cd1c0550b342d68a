// The bus contract: changes of earlier messages, and what of our texts can be taken back.

import { describe, expect, it } from 'vitest';
import type { InboundEntry, Turn } from '../../src/kernel/bus/bus.ts';
import { nativeId, threadId, turnId, userId } from '../../src/kernel/message/ids.ts';
import type { Amendment } from '../../src/kernel/message/message.ts';
import {
  echo,
  eventually,
  type MakeBusBench,
  message,
  never,
  outbound,
  queued,
  resultOf,
  scriptedCourier,
  session,
  startDelivery,
  startWork,
} from './bus-bench.ts';

/** A change of message `native` in chat `name`; the nth of its author. */
function changed(
  name: string,
  native: string,
  text: string,
  { kind = 'edited', nth = 1, by = 'ada' }: Partial<Change> = {},
): InboundEntry {
  const target = message(name, native).id;
  const edit = message(name, `${native}~${nth}`, text);
  const sender = { kind: 'person', id: userId(by), verified: 'verified' } as const;
  return { kind: 'queue', message: { ...edit, sender, amends: { id: target, kind } } };
}
type Change = { readonly kind: Amendment['kind']; readonly nth: number; readonly by: string };

const textsOf = (turn: Pick<Turn, 'messages'>) => turn.messages.map((one) => one.message.text);

export function changesContract(name: string, makeBench: MakeBusBench): void {
  describe(`${name}: changes of what was said`, () => {
    it('swaps the text of a message that waits, and knows a repeat', async () => {
      await using bench = await makeBench();
      await using bus = await bench.open();
      const { turns, handle } = echo();
      await bus.accept([queued('a', '1', 'old'), queued('a', '2', 'and')]);
      expect(await bus.accept([changed('a', '1', 'new')])).toEqual(['applied']);
      expect(await bus.accept([changed('a', '1', 'new')])).toEqual(['duplicate']);
      const work = startWork(bus, handle);
      await eventually(bench.clock, () => turns.length === 1);
      expect(turns).toEqual([['new', 'and']]);
      await work.stop();
    });

    it('takes a message and its change in one batch', async () => {
      await using bench = await makeBench();
      await using bus = await bench.open();
      const { turns, handle } = echo();
      const work = startWork(bus, handle);
      const batch = [queued('a', '1', 'old'), changed('a', '1', 'new')];
      expect(await bus.accept(batch)).toEqual(['accepted', 'applied']);
      await eventually(bench.clock, () => turns.length === 1);
      expect(turns).toEqual([['new']]);
      await work.stop();
    });

    it('withdraws a message that waits, so that no turn has it', async () => {
      await using bench = await makeBench();
      await using bus = await bench.open();
      const { turns, handle } = echo();
      await bus.accept([queued('a', '1', 'not this'), queued('a', '2', 'this')]);
      expect(await bus.accept([changed('a', '1', '', { kind: 'withdrawn' })])).toEqual(['applied']);
      const work = startWork(bus, handle);
      await eventually(bench.clock, () => turns.length === 1);
      expect(turns).toEqual([['this']]);
      await work.stop();
    });

    it('hands the change to the turn that has the message, with what it changes', async () => {
      await using bench = await makeBench();
      await using bus = await bench.open();
      const joined: string[] = [];
      const earlier: (string | undefined)[] = [];
      let isRunning = false;
      const work = startWork(bus, async (turn) => {
        isRunning = true;
        await turn.arrival(turn.signal);
        for (const { message: one } of await turn.join()) {
          joined.push(one.text);
          earlier.push(one.amends?.earlier);
        }
        return { throughSeq: 99, outbound: [] };
      });
      await bus.accept([queued('a', '1', 'old')]);
      await eventually(bench.clock, () => isRunning);
      expect(await bus.accept([changed('a', '1', 'new')])).toEqual(['accepted']);
      await eventually(bench.clock, () => joined.length === 1);
      expect([joined, earlier]).toEqual([['new'], ['old']]);
      await work.stop();
    });

    it('keeps a change of an answered message for a turn of its own', async () => {
      await using bench = await makeBench();
      await using bus = await bench.open();
      const { turns, handle } = echo();
      const work = startWork(bus, handle);
      await bus.accept([queued('a', '1', 'old')]);
      await eventually(bench.clock, () => turns.length === 1);
      await bench.clock.advance(0);
      expect(await bus.accept([changed('a', '1', 'new')])).toEqual(['accepted']);
      await eventually(bench.clock, () => turns.length === 2);
      expect(turns[1]).toEqual(['new']);
      await work.stop();
    });

    it('knows the newest words of an answered message, so that going back is a change', async () => {
      await using bench = await makeBench();
      await using bus = await bench.open();
      const { turns, handle } = echo();
      const work = startWork(bus, handle);
      await bus.accept([queued('a', '1', 'old')]);
      await eventually(bench.clock, () => turns.length === 1);
      await bench.clock.advance(0);
      expect(await bus.accept([changed('a', '1', 'new')])).toEqual(['accepted']);
      expect(await bus.inbound(message('a', '1').id)).toMatchObject({ text: 'new' });
      expect(await bus.accept([changed('a', '1', 'new', { nth: 2 })])).toEqual(['applied']);
      expect(await bus.accept([changed('a', '1', 'old', { nth: 3 })])).toEqual(['accepted']);
      await eventually(bench.clock, () => turns.length >= 2 && turns.flat().includes('old'));
      await work.stop();
    });

    it('tells in the trace why nothing came of a message', async () => {
      await using bench = await makeBench();
      await using bus = await bench.open();
      const note = 'nothing came of it';
      let isDone = false;
      const work = startWork(bus, async (turn) => {
        isDone = true;
        return { ...resultOf(turn), note };
      });
      await bus.accept([queued('a', '1', 'old'), queued('a', '2', 'other')]);
      await eventually(bench.clock, () => isDone);
      await bench.clock.advance(0);
      const lastStep = async (native: string) =>
        (await bus.trace(message('a', native).id))?.steps.at(-1);
      expect(await lastStep('1')).toMatchObject({ what: 'turn finished', detail: note });
      expect((await lastStep('2'))?.detail).toBeUndefined();
      await work.stop();
    });

    it.each([
      ['by somebody else', changed('a', '1', 'mine now', { by: 'eve' })],
      ['into the same text', changed('a', '1', 'old')],
      ['of a message nobody knows', changed('a', '77', 'new')],
    ])('a change %s has no effect', async (_name, entry) => {
      await using bench = await makeBench();
      await using bus = await bench.open();
      const { turns, handle } = echo();
      await bus.accept([queued('a', '1', 'old')]);
      expect(await bus.accept([entry])).toEqual(['applied']);
      const work = startWork(bus, handle);
      await eventually(bench.clock, () => turns.length === 1);
      await bench.clock.advance(60_000);
      expect(turns).toEqual([['old']]);
      await work.stop();
    });

    it('a change of a message that a dead process was working on is not lost', async () => {
      await using bench = await makeBench();
      const first = await bench.open();
      let isRunning = false;
      startWork(first, async () => {
        isRunning = true;
        return never;
      });
      await first.accept([queued('a', '1', 'old')]);
      await eventually(bench.clock, () => isRunning);
      expect(await first.accept([changed('a', '1', 'new')])).toEqual(['accepted']);
      await using bus = await bench.open();
      const seen: (readonly string[])[] = [];
      const work = startWork(bus, async (turn) => {
        seen.push(textsOf(turn));
        return resultOf(turn);
      });
      await eventually(bench.clock, () => seen.length === 2);
      expect(seen).toEqual([['old'], ['new']]);
      await work.stop();
    });
  });

  describe(`${name}: what was said`, () => {
    it("finds a text by the platform's id of any of its parts, in its own chat only", async () => {
      await using bench = await makeBench();
      await using bus = await bench.open();
      const parts = ['p1', 'p2'].map(nativeId);
      const topic = { ...message('a', '0').chat, thread: threadId('7') };
      const courier = scriptedCourier({}, () => ({ nativeIds: parts }));
      const delivery = startDelivery(bus, courier);
      await bus.send({ ...outbound('a', 'y#1/0', 'in a topic'), chat: topic });
      await eventually(bench.clock, () => courier.sent.length === 1);
      await bench.clock.advance(0);
      expect(await bus.sentAs(session('a'), nativeId('p1'))).toMatchObject({ id: 'y#1/0' });
      await bus.send(outbound('a', 'x#1/0', 'hello'));
      await eventually(bench.clock, () => courier.sent.length === 2);
      await bench.clock.advance(0);
      const found = await bus.sentAs(session('a'), nativeId('p2'));
      expect(found).toMatchObject({ id: 'x#1/0', markdown: 'hello', parts });
      expect(await bus.sentAs(session('b'), nativeId('p2'))).toBeUndefined();
      expect(await bus.sentAs(session('a'), nativeId('p'))).toBeUndefined();
      await delivery.stop();
    });

    it('takes back what a turn said: the unsent is dropped, the sent is named', async () => {
      await using bench = await makeBench();
      await using bus = await bench.open();
      const courier = scriptedCourier();
      const delivery = startDelivery(bus, courier);
      await bus.send(outbound('a', 'x#1/0'));
      await bus.send(outbound('a', 'x#10/0'));
      await eventually(bench.clock, () => courier.sent.length === 2);
      await delivery.stop();
      await bus.send(outbound('a', 'x#1/1'));
      await bus.send(outbound('a', 'x#2/0'));
      const back = await bus.takeBack(turnId('x#1'));
      expect(back).toMatchObject({ isUnderWay: false, sent: [{ id: 'x#1/0', parts: ['n1'] }] });
      const again = startDelivery(bus, courier);
      await eventually(bench.clock, () => courier.texts().includes('x#2/0'));
      expect(courier.texts()).toEqual(['x#1/0', 'x#10/0', 'x#2/0']);
      await again.stop();
    });

    it('takes back what a turn said in several chats, and goes on behind it in each', async () => {
      await using bench = await makeBench();
      await using bus = await bench.open();
      for (const id of ['x#1/0', 'y#1/0']) await bus.send(outbound('a', id));
      for (const id of ['x#1/1', 'y#1/1']) await bus.send(outbound('b', id));
      await bus.takeBack(turnId('x#1'));
      const courier = scriptedCourier();
      const delivery = startDelivery(bus, courier);
      await eventually(bench.clock, () => courier.sent.length === 2);
      expect(courier.texts().toSorted()).toEqual(['y#1/0', 'y#1/1']);
      await delivery.stop();
    });

    it('gives a message out as it came', async () => {
      await using bench = await makeBench();
      await using bus = await bench.open();
      await bus.accept([queued('a', '1', 'hello')]);
      expect(await bus.inbound(message('a', '1').id)).toMatchObject({ text: 'hello' });
      expect(await bus.inbound(message('a', '2').id)).toBeUndefined();
    });
  });
}
