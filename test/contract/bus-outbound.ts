// The bus contract, outbound: answers arrive in order per chat, and never twice without a mark.

import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { createReadiness } from '../../src/channels/channel.ts';
import type { Courier, MessageBus, Receipt, UnknownPolicy } from '../../src/kernel/bus/bus.ts';
import {
  after,
  BACKOFF,
  DeliveryError,
  NEVER,
  type Remedy,
} from '../../src/kernel/message/errors.ts';
import { messageId, nativeId, turnId } from '../../src/kernel/message/ids.ts';
import {
  CHANNEL,
  chat,
  eventually,
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

const MINUTE_MS = 60_000;

function failure(certainty: 'not_sent' | 'unknown', remedy: Remedy = BACKOFF): DeliveryError {
  return new DeliveryError(`${certainty} because the wire broke`, { certainty, remedy });
}

async function stateOf(bus: MessageBus, id: string): Promise<string | undefined> {
  return (await bus.trace(outbound('a', id).id))?.state;
}

export function outboundContract(name: string, makeBench: MakeBusBench): void {
  describe(`${name}: delivering`, () => {
    it('keeps with a sent message that it came back, and why', async () => {
      await using bench = await makeBench();
      await using bus = await bench.open();
      const { id } = outbound('a', 'a1');
      expect(await bus.markBounced(id, 'too early')).toBe('not sent');
      const courier = scriptedCourier();
      const delivery = startDelivery(bus, courier);
      await bus.send(outbound('a', 'a1'));
      await eventually(bench.clock, () => courier.sent.length === 1);
      await delivery.stop();
      expect(await bus.markBounced(id, '5.1.1 (no such address)')).toBe('marked');
      expect(await bus.markBounced(id, 'another report')).toBe('known');
      const trace = await bus.trace(id);
      expect(trace?.state).toBe('bounced');
      expect(trace?.steps.at(-2)?.what).toBe('sent');
      expect(trace?.steps.at(-1)).toMatchObject({
        what: 'bounced',
        detail: '5.1.1 (no such address)',
      });
    });

    it('takes the report that came faster than the end of the send', async () => {
      await using bench = await makeBench();
      await using bus = await bench.open();
      const gate = Promise.withResolvers<Receipt>();
      const courier = scriptedCourier({}, () => gate.promise);
      const delivery = startDelivery(bus, courier);
      await bus.send(outbound('a', 'a1'));
      await eventually(bench.clock, () => courier.sent.length === 1);
      expect(await bus.markBounced(outbound('a', 'a1').id, '5.1.1')).toBe('marked');
      gate.resolve({ nativeIds: [nativeId('p1')] });
      await delivery.stop();
      expect(await stateOf(bus, 'a1')).toBe('bounced');
    });

    it('sends what is queued while an earlier look for work is under way', async () => {
      await using bench = await makeBench();
      await using bus = await bench.open();
      const readiness = createReadiness();
      readiness.set(true);
      const courier = scriptedCourier({ readiness });
      const delivery = startDelivery(bus, courier);
      await bench.clock.advance(0);
      // The look waits for what was asked before it.
      const listed = bus.dead();
      readiness.set(false);
      readiness.set(true);
      await nextTurn();
      await bus.send(outbound('a', 'a1'));
      await eventually(bench.clock, () => courier.sent.length === 1);
      await listed;
      await delivery.stop();
    });

    it('sends in order within a chat while other chats do not wait', async () => {
      await using bench = await makeBench();
      await using bus = await bench.open();
      const gate = Promise.withResolvers<void>();
      const courier = scriptedCourier({}, async ({ message }) => {
        if (message.id === 'a1') await gate.promise;
        return { nativeIds: [nativeId(message.id)] };
      });
      const delivery = startDelivery(bus, courier);
      for (const id of ['a1', 'a2', 'a3']) await bus.send(outbound('a', id));
      for (const id of ['b1', 'b2']) await bus.send(outbound('b', id));
      await eventually(bench.clock, () => courier.sent.length === 3);
      expect(courier.texts()).toEqual(['a1', 'b1', 'b2']);
      gate.resolve();
      await eventually(bench.clock, () => courier.sent.length === 5);
      expect(courier.texts().slice(3)).toEqual(['a2', 'a3']);
      await delivery.stop();
    });

    it('holds no more sends open than it may', async () => {
      await using bench = await makeBench();
      await using bus = await bench.open();
      let open = 0;
      let most = 0;
      const courier = scriptedCourier({}, async () => {
        open += 1;
        most = Math.max(most, open);
        await bench.clock.sleep(10);
        open -= 1;
        return { nativeIds: [] };
      });
      const delivery = startDelivery(bus, courier, 3);
      await Promise.all(
        ['a', 'b', 'c', 'd', 'e', 'f', 'g'].map((one) => bus.send(outbound(one, one))),
      );
      await eventually(bench.clock, () => open === 3);
      for (let round = 0; round < 5; round += 1) await bench.clock.advance(10);
      expect(courier.sent).toHaveLength(7);
      expect(most).toBe(3);
      await delivery.stop();
    });

    it('takes an id once', async () => {
      await using bench = await makeBench();
      await using bus = await bench.open();
      const courier = scriptedCourier();
      const delivery = startDelivery(bus, courier);
      expect(await bus.send(outbound('a', 'x'))).toBe('queued');
      await eventually(bench.clock, () => courier.sent.length === 1);
      expect(await bus.send(outbound('a', 'x'))).toBe('duplicate');
      await bench.clock.advance(MINUTE_MS);
      expect(courier.sent).toHaveLength(1);
      await delivery.stop();
    });

    it('waits with a channel that is not ready, which costs no try, and sends once it is', async () => {
      await using bench = await makeBench();
      await using bus = await bench.open();
      const readiness = createReadiness();
      const tries: [string, number, number][] = [];
      const courier = scriptedCourier({ readiness }, ({ message, context }) => {
        tries.push([message.id, context.attempt, bench.clock.monotonic()]);
        if (tries.length > 2) return undefined;
        // The connection went away while this was being sent.
        readiness.set(false);
        throw failure('not_sent');
      });
      const delivery = startDelivery(bus, courier, 1);
      for (const id of ['a1', 'a2']) await bus.send(outbound('a', id));
      await bench.clock.advance(10 * MINUTE_MS);
      expect(tries).toEqual([]);
      for (const wait of [1, 1, 1]) {
        readiness.set(true);
        await eventually(bench.clock, () => !readiness.isReady || courier.sent.length === 4);
        await bench.clock.advance(wait);
      }
      const start = 10 * MINUTE_MS;
      expect(tries).toEqual([
        ['a1', 1, start],
        ['a1', 1, start + 1],
        ['a1', 1, start + 2],
        ['a2', 1, start + 2],
      ]);
      await delivery.stop();
    });

    it('keeps a chat in order while its oldest message waits for a retry, and others go on', async () => {
      await using bench = await makeBench();
      await using bus = await bench.open();
      const tries: [string, number][] = [];
      const courier = scriptedCourier({}, ({ message, context }) => {
        tries.push([message.id, bench.clock.monotonic()]);
        if (message.id === 'a1' && context.attempt === 1) throw failure('not_sent', after(7000));
        if (message.id === 'a1' && context.attempt === 2) throw failure('not_sent');
        return undefined;
      });
      const delivery = startDelivery(bus, courier);
      await bus.send(outbound('a', 'a1'));
      await eventually(bench.clock, () => tries.length === 1);
      await bus.send(outbound('a', 'a2'));
      await bus.send(outbound('b', 'b1'));
      await bench.clock.advance(6999);
      expect(tries.map(([id]) => id)).toEqual(['a1', 'b1']);
      await bench.clock.advance(1);
      await bench.clock.advance(1000);
      await eventually(bench.clock, () => tries.length === 5);
      expect(tries.slice(2)).toEqual([
        ['a1', 7000],
        ['a1', 8000],
        ['a2', 8000],
      ]);
      await delivery.stop();
    });

    it('makes a refused message a dead letter at once and goes on with the chat', async () => {
      await using bench = await makeBench();
      await using bus = await bench.open();
      const courier = scriptedCourier({}, ({ message }) => {
        if (message.id === 'a1') throw failure('not_sent', NEVER);
        return undefined;
      });
      const delivery = startDelivery(bus, courier);
      await bus.send(outbound('a', 'a1', 'an answer nobody wants'));
      await bus.send(outbound('a', 'a2'));
      await eventually(bench.clock, () => courier.sent.length === 2);
      expect(await bus.dead()).toMatchObject([
        { id: 'a1', direction: 'outbound', state: 'dead', excerpt: 'an answer nobody wants' },
      ]);
      await delivery.stop();
    });

    it('gives up when the answer is no longer worth delivering', async () => {
      await using bench = await makeBench();
      await using bus = await bench.open();
      const courier = scriptedCourier({ lifetimeMs: 10 * MINUTE_MS }, () => {
        throw failure('not_sent');
      });
      const delivery = startDelivery(bus, courier);
      await bus.send(outbound('a', 'a1'));
      await bench.clock.advance(20 * MINUTE_MS);
      expect(await stateOf(bus, 'a1')).toBe('dead');
      const tries = courier.sent.length;
      await bench.clock.advance(20 * MINUTE_MS);
      expect(courier.sent.length).toBe(tries);
      await delivery.stop();
    });

    it('does not send the parts again that an earlier try delivered', async () => {
      await using bench = await makeBench();
      await using bus = await bench.open();
      const courier = scriptedCourier({}, async ({ context }) => {
        if (context.attempt === 1) {
          await context.partSent(nativeId('p1'));
          await context.partSent(nativeId('p2'), true);
          throw failure('not_sent');
        }
        return { nativeIds: [...context.sentParts, nativeId('p3')] };
      });
      const delivery = startDelivery(bus, courier);
      await bus.send(outbound('a', 'a1'));
      await bench.clock.advance(0);
      await bench.clock.advance(500);
      await eventually(bench.clock, () => courier.sent.length === 2);
      expect(courier.sent[1]?.context.sentParts).toEqual(['p1', 'p2']);
      await bench.clock.advance(0);
      expect((await bus.trace(outbound('a', 'a1').id))?.steps.at(-1)?.detail).toBe('p1, p2, p3');
      await delivery.stop();
    });

    it('knows of a draft that was about to be placed and never noted', async () => {
      await using bench = await makeBench();
      await using bus = await bench.open();
      const turn = turnId(`${session('a')}#1`);
      const replyTo = messageId('test:default:a:1');
      await bus.placingDraft(turn, chat('a'), replyTo);
      const placing = { turnId: turn, chat: chat('a'), replyTo };
      expect(await bus.draft(turn)).toEqual(placing);
      expect(await bus.orphanDrafts(CHANNEL)).toEqual([placing]);
      const courier = scriptedCourier();
      await bus.send({ ...outbound('a', 'a1'), finalizes: turn });
      expect(await bus.orphanDrafts(CHANNEL)).toEqual([]);
      await bus.recordDraft(turn, chat('a'), nativeId('draft-1'));
      await bus.placingDraft(turn, chat('a'), undefined);
      expect(await bus.draft(turn)).toEqual({ ...placing, nativeId: 'draft-1' });
      const delivery = startDelivery(bus, courier);
      await eventually(bench.clock, () => courier.sent.length === 1);
      expect(courier.sent[0]?.context.draft).toBe('draft-1');
      await delivery.stop();
    });

    it('hands a turn’s draft to the message that completes it, then forgets it', async () => {
      await using bench = await makeBench();
      await using bus = await bench.open();
      const courier = scriptedCourier();
      const work = startWork(bus, async (turn) => {
        await bus.recordDraft(turn.id, turn.chat, nativeId('draft-1'));
        expect(await bus.orphanDrafts(CHANNEL)).toEqual([]);
        const { throughSeq } = resultOf(turn);
        const final = { chat: turn.chat, markdown: 'final', finalizes: turn.id };
        return { throughSeq, outbound: [final, { chat: turn.chat, markdown: 'more' }] };
      });
      await bus.accept([queued('a', '1')]);
      await bench.clock.advance(0);
      expect(await bus.orphanDrafts(CHANNEL)).toEqual([]);
      const delivery = startDelivery(bus, courier);
      await eventually(bench.clock, () => courier.sent.length === 2);
      expect(courier.sent.map(({ context }) => context.draft)).toEqual(['draft-1', undefined]);
      expect(await bus.draft(turnId(`${session('a')}#1`))).toBeUndefined();
      await work.stop();
      await delivery.stop();
    });

    it('names the drafts whose turn ended without a final text', async () => {
      await using bench = await makeBench();
      await using bus = await bench.open();
      const ids: string[] = [];
      const work = startWork(bus, async (turn) => {
        await bus.recordDraft(turn.id, turn.chat, nativeId('left over'));
        ids.push(turn.id);
        return resultOf(turn);
      });
      await bus.accept([queued('a', '1')]);
      await eventually(bench.clock, () => ids.length === 1);
      await bench.clock.advance(0);
      const orphan = { turnId: turnId(ids[0] ?? ''), chat: chat('a'), nativeId: 'left over' };
      expect(await bus.orphanDrafts(CHANNEL)).toEqual([orphan]);
      await bus.forgetDraft(orphan.turnId);
      expect(await bus.orphanDrafts(CHANNEL)).toEqual([]);
      await work.stop();
    });
  });

  describe(`${name}: a send of which it is not known whether it arrived`, () => {
    type Case = {
      readonly policy: UnknownPolicy;
      readonly reconcile?: Courier['reconcile'];
      readonly sends: number;
      readonly state: string;
      readonly marked?: readonly boolean[];
    };
    const found = async () => ({ nativeIds: [nativeId('found')] });
    const absent = async () => 'absent' as const;
    const untold = async () => undefined;
    const cases: readonly Case[] = [
      { policy: 'hold', sends: 1, state: 'unknown' },
      { policy: 'resend', sends: 2, state: 'unknown', marked: [false, true] },
      { policy: 'idempotent', sends: 4, state: 'sent' },
      { policy: 'reconcile', reconcile: found, sends: 1, state: 'sent' },
      {
        policy: 'reconcile',
        reconcile: absent,
        sends: 2,
        state: 'unknown',
        marked: [false, false],
      },
      { policy: 'reconcile', reconcile: untold, sends: 1, state: 'queued' },
    ];
    for (const { policy, reconcile, sends, state, marked } of cases) {
      const answer = reconcile === undefined ? '' : ` (${reconcile.name})`;
      it(`is dealt with by the channel’s policy: ${policy}${answer}`, async () => {
        await using bench = await makeBench();
        await using bus = await bench.open();
        const courier = scriptedCourier(
          { onUnknown: policy, ...(reconcile === undefined ? {} : { reconcile }) },
          (_, nth) => {
            if (nth < 4) throw failure('unknown');
            return undefined;
          },
        );
        const delivery = startDelivery(bus, courier);
        await bus.send(outbound('a', 'a1'));
        await bench.clock.advance(5 * MINUTE_MS);
        expect(courier.sent).toHaveLength(sends);
        expect(await stateOf(bus, 'a1')).toBe(state);
        if (marked !== undefined) {
          expect(courier.sent.map(({ context }) => context.repeatsUnknown)).toEqual(marked);
        }
        await delivery.stop();
      });
    }

    for (const { policy, reconcile, sends } of [
      { policy: 'hold', sends: 0 },
      { policy: 'resend', sends: 1 },
      { policy: 'idempotent', sends: 1 },
      { policy: 'reconcile', reconcile: found, sends: 0 },
      { policy: 'reconcile', reconcile: absent, sends: 1 },
    ] as const) {
      const answer = reconcile === undefined ? '' : ` (${reconcile.name})`;
      it(`is what a process leaves that died while sending: ${policy}${answer}`, async () => {
        await using bench = await makeBench();
        const first = await bench.open();
        const dying = scriptedCourier({ onUnknown: policy }, () => never);
        startDelivery(first, dying);
        await first.send(outbound('a', 'a1'));
        await eventually(bench.clock, () => dying.sent.length === 1);
        await using second = await bench.open();
        const courier = scriptedCourier({
          onUnknown: policy,
          ...(reconcile === undefined ? {} : { reconcile }),
        });
        const delivery = startDelivery(second, courier);
        await second.send(outbound('a', 'a2'));
        await eventually(bench.clock, () => courier.texts().includes('a2'));
        expect(courier.texts().filter((text) => text === 'a1')).toHaveLength(sends);
        expect(await stateOf(second, 'a1')).toBe(policy === 'hold' ? 'unknown' : 'sent');
        await delivery.stop();
      });
    }

    it('is not repeated when a quarter of an hour has passed', async () => {
      await using bench = await makeBench();
      const first = await bench.open();
      const dying = scriptedCourier({ onUnknown: 'resend' }, () => never);
      startDelivery(first, dying);
      await first.send(outbound('a', 'a1'));
      await eventually(bench.clock, () => dying.sent.length === 1);
      await bench.clock.advance(15 * MINUTE_MS + 1);
      await using second = await bench.open();
      const courier = scriptedCourier({ onUnknown: 'resend' });
      const delivery = startDelivery(second, courier);
      await bench.clock.advance(0);
      expect(courier.sent).toEqual([]);
      expect(await second.stats()).toMatchObject({ unknown: 1, outboundQueued: 0 });
      await delivery.stop();
    });

    it('is assumed of an error that does not say so', async () => {
      await using bench = await makeBench();
      await using bus = await bench.open();
      const courier = scriptedCourier({}, () => {
        throw new TypeError('a bug');
      });
      const delivery = startDelivery(bus, courier);
      await bus.send(outbound('a', 'a1'));
      await bench.clock.advance(0);
      expect(await stateOf(bus, 'a1')).toBe('unknown');
      await delivery.stop();
    });
  });
}
