// The bus contract, answers in parts: what is in doubt is the part whose request was under way, and
// what a person stops goes no further.

import { describe, expect, it } from 'vitest';
import type { SendContext } from '../../src/kernel/bus/bus.ts';
import { BACKOFF, DeliveryError } from '../../src/kernel/message/errors.ts';
import { mediaId, nativeId, turnId } from '../../src/kernel/message/ids.ts';
import type { OutboundMessage } from '../../src/kernel/message/message.ts';
import {
  type BusBench,
  chat,
  eventually,
  inTime,
  type MakeBusBench,
  never,
  outbound,
  queued,
  resultOf,
  scriptedCourier,
  session,
  startDelivery,
  startWork,
} from './bus-bench.ts';

const ANNOUNCING = { onUnknown: 'resend', announcesRequests: true } as const;
const PARTS = ['p1', 'p2', 'p3', 'p4'];
const PICTURE: NonNullable<OutboundMessage['attachments']>[number] = {
  ...{ kind: 'image', media: mediaId('a'.repeat(64)), name: 'a.png' },
  ...{ mimeType: 'image/png', sizeBytes: 1 },
};

/** Sends what is left of four parts and notes each request with its mark; `dies` names where it ends. */
function partCourier(requests: string[], dies: (place: string) => boolean = () => false) {
  return scriptedCourier(ANNOUNCING, async ({ context }) => {
    for (const [index, part] of PARTS.entries()) {
      if (index < context.sentParts.length) continue;
      if (dies(`before ${part}`)) return never;
      await context.requestBegins();
      requests.push(markOf(context, index) + part);
      if (dies(`during ${part}`)) return never;
      await context.partSent(nativeId(part));
    }
    return { nativeIds: PARTS.map(nativeId) };
  });
}

const markOf = (context: SendContext, index: number) =>
  context.repeatsUnknown && index === context.sentParts.length ? 'again ' : '';

/** A process that delivers until it ends at that place. */
async function deliverUntil(bench: BusBench, place: string, requests: string[]) {
  const bus = await bench.open();
  let isThere = false;
  startDelivery(
    bus,
    partCourier(requests, (at) => {
      isThere ||= at === place;
      return at === place;
    }),
  );
  return {
    bus,
    dead: async () => {
      await eventually(bench.clock, () => isThere);
      await bench.kill(bus);
    },
  };
}

export function partsContract(name: string, makeBench: MakeBusBench): void {
  describe(`${name}: an answer in parts`, () => {
    it('goes on unmarked behind any number of deaths between two parts', async () => {
      await using bench = await makeBench();
      const requests: string[] = [];
      const first = await deliverUntil(bench, 'before p2', requests);
      await first.bus.send(outbound('a', 'a1'));
      await first.dead();
      for (const place of ['before p2', 'before p3', 'before p4']) {
        await (await deliverUntil(bench, place, requests)).dead();
      }
      await using last = await bench.open();
      const delivery = startDelivery(last, partCourier(requests));
      await eventually(bench.clock, () => requests.length === PARTS.length);
      await delivery.stop();
      expect(requests).toEqual(PARTS);
      expect((await last.trace(outbound('a', 'a1').id))?.state).toBe('sent');
    });

    it('marks each part once whose request was under way at a death', async () => {
      await using bench = await makeBench();
      const requests: string[] = [];
      const first = await deliverUntil(bench, 'during p1', requests);
      await first.bus.send(outbound('a', 'a1'));
      await first.dead();
      for (const place of ['before p2', 'during p2', 'during p3']) {
        await (await deliverUntil(bench, place, requests)).dead();
      }
      await using last = await bench.open();
      const delivery = startDelivery(last, partCourier(requests));
      await eventually(bench.clock, () => requests.at(-1) === 'p4');
      await delivery.stop();
      expect(requests).toEqual(['p1', 'again p1', 'p2', 'again p2', 'p3', 'again p3', 'p4']);
      expect((await last.trace(outbound('a', 'a1').id))?.state).toBe('sent');
    });

    it.each([
      ['a text is', {}, 'again p1'],
      ['a file is not', { attachments: [PICTURE] }, 'p1'],
    ])('%s in doubt behind a death between its claim and its first part', async (_, with_, p1) => {
      await using bench = await makeBench();
      const requests: string[] = [];
      const first = await deliverUntil(bench, 'before p1', requests);
      await first.bus.send({ ...outbound('a', 'a1'), ...with_ });
      await first.dead();
      const second = await deliverUntil(bench, 'during p4', requests);
      await second.dead();
      expect(requests).toEqual([p1, 'p2', 'p3', 'p4']);
    });

    it('is in doubt no more once the part in doubt has arrived', async () => {
      await using bench = await makeBench();
      await using bus = await bench.open();
      const marks: boolean[] = [];
      const courier = scriptedCourier(ANNOUNCING, async ({ context }, nth) => {
        await context.requestBegins();
        marks.push(context.repeatsUnknown);
        if (nth === 1) throw new Error('the connection broke');
        if (nth > 2) return { nativeIds: [] };
        await context.partSent(nativeId('p1'));
        await context.requestBegins();
        throw new DeliveryError('refused', { certainty: 'not_sent', remedy: BACKOFF });
      });
      const delivery = startDelivery(bus, courier);
      await bus.send(outbound('a', 'a1'));
      await inTime(bench.clock, () => marks.length === 3);
      expect(marks).toEqual([false, true, false]);
      await delivery.stop();
    });

    it('surely did not arrive where the channel failed before any request', async () => {
      await using bench = await makeBench();
      await using bus = await bench.open();
      const marks: boolean[] = [];
      const courier = scriptedCourier(ANNOUNCING, async ({ context }, nth) => {
        marks.push(context.repeatsUnknown);
        if (nth === 1) throw new Error('a file could not be read');
        return { nativeIds: [] };
      });
      const delivery = startDelivery(bus, courier);
      await bus.send(outbound('a', 'a1'));
      await inTime(bench.clock, () => marks.length === 2);
      expect(marks).toEqual([false, false]);
      await delivery.stop();
    });

    it.each(['announces its requests', 'does not'])(
      'goes no further once it was stopped, where the channel %s',
      async (how) => {
        await using bench = await makeBench();
        await using bus = await bench.open();
        const gate = Promise.withResolvers<void>();
        const sent: string[] = [];
        const isAnnouncing = how !== 'does not';
        const courier = scriptedCourier(
          isAnnouncing ? ANNOUNCING : { onUnknown: 'idempotent' },
          async ({ message, context }) => {
            for (const part of PARTS) {
              if (isAnnouncing) await context.requestBegins();
              sent.push(`${message.markdown} ${part}`);
              if (part === 'p2' && message.markdown === 'one') await gate.promise;
              await context.partSent(nativeId(part));
            }
            return { nativeIds: PARTS.map(nativeId) };
          },
        );
        const work = startWork(bus, async (turn) => resultOf(turn, 'one', 'two'));
        const delivery = startDelivery(bus, courier);
        await bus.accept([queued('a', '1')]);
        await eventually(bench.clock, () => sent.length === 2);
        const stopped = await bus.cancel(session('a'), 'stopped by /stop');
        expect(stopped).toEqual({ running: false, withdrawn: 0, unsent: 2 });
        gate.resolve();
        await bus.send(outbound('a', 'a1', 'another'));
        await eventually(bench.clock, () => sent.length === 2 + PARTS.length);
        expect(sent.slice(0, 3)).toEqual(['one p1', 'one p2', 'another p1']);
        // What stands in the chat can still be taken back.
        const { sent: standing } = await bus.takeBack(turnId(`${session('a')}#1`));
        expect(standing.map(({ parts }) => parts)).toEqual([['p1', 'p2']]);
        expect(await bus.dead()).toEqual([]);
        await work.stop();
        await delivery.stop();
      },
    );

    it('stays stopped where the process died in between, and another chat is left alone', async () => {
      await using bench = await makeBench();
      const first = await bench.open();
      let isHeld = false;
      const dying = scriptedCourier(ANNOUNCING, async ({ message, context }) => {
        if (message.markdown !== 'mine') return { nativeIds: [] };
        await context.requestBegins();
        isHeld = true;
        return never;
      });
      startWork(first, async (turn) => resultOf(turn, 'mine'));
      startDelivery(first, dying);
      await first.accept([queued('a', '1')]);
      await eventually(bench.clock, () => isHeld);
      await first.send({ ...outbound('a', 'notice'), chat: chat('a') });
      expect((await first.cancel(session('a'), 'stopped')).unsent).toBe(1);
      expect((await first.cancel(session('b'), 'stopped')).unsent).toBe(0);
      await bench.kill(first);
      await using second = await bench.open();
      const courier = scriptedCourier(ANNOUNCING);
      const delivery = startDelivery(second, courier);
      await eventually(bench.clock, () => courier.sent.length === 1);
      expect(courier.texts()).toEqual(['notice']);
      expect(await second.dead()).toEqual([]);
      await delivery.stop();
    });
  });
}
