// The pace of messages against the WhatsApp server (case W14), and what outlives a restart of it.

import { describe, expect, test } from 'vitest';
import { DeliveryError } from '../../../src/kernel/message/errors.ts';
import { messageId } from '../../../src/kernel/message/ids.ts';
import type { ChatRef } from '../../../src/kernel/message/message.ts';
import { createMovableClock, type MovableClock } from '../../support/movable-clock.ts';
import { trustedWhatsAppServer } from '../../support/whatsapp-server/trusted.ts';
import { answer, OutboxRig, refOf, refusalOf } from './outbox-rig.ts';

const server = await trustedWhatsAppServer();

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

/** Moves time on in steps until it is done; no step while a message is on its way. */
async function play<T>(rig: OutboxRig, clock: MovableClock, work: Promise<T>): Promise<T> {
  let isDone = false;
  const done = work.finally(() => {
    isDone = true;
  });
  done.catch(() => undefined);
  while (!isDone) {
    server.setTime(clock.now());
    await clock.advance(100);
    while (await rig.isSending()) await new Promise<void>((resolve) => setImmediate(resolve));
  }
  return done;
}

/** As the bus does: in order per chat, again after the time that was asked for. */
async function deliver(
  rig: OutboxRig,
  chat: ChatRef,
  markdowns: readonly string[],
  name: string,
): Promise<void> {
  for (const [index, markdown] of markdowns.entries()) {
    const message = answer(chat, markdown, { id: messageId(`${name}/${index}`) });
    for (let attempt = 1; ; attempt += 1) {
      const error = await rig.send(message, { attempt }).then(
        () => undefined,
        (reason: unknown) => reason,
      );
      if (error === undefined) break;
      if (!(error instanceof DeliveryError) || error.remedy.kind !== 'after') throw error;
      await rig.clock.sleep(error.remedy.delayMs);
    }
  }
}

/** The most that left within any such time. */
const densest = (times: readonly number[], ms: number) =>
  Math.max(...times.map((from) => times.filter((at) => at >= from && at < from + ms).length));

describe('the pace', () => {
  test('200 messages to ten people leave as a person could write them, every one of them', async () => {
    const clock = createMovableClock();
    const pacing = { chatPerMinute: 20, accountPerMinute: 40, minGapMs: 400, maxGapMs: 1600 };
    await using rig = await OutboxRig.start(server, { clock, settings: { pacing } });
    const friends = await Promise.all(Array.from({ length: 10 }, () => rig.friend()));
    const startedAt = clock.now();
    const deliveries = friends.map(([, chat], index) => {
      const texts = Array.from({ length: 20 }, (_, n) => `message ${n} to ${index}`);
      return deliver(rig, chat, texts, `turn ${index}`);
    });
    await play(rig, clock, Promise.all(deliveries));

    const { outbound } = rig.phone;
    expect(outbound).toHaveLength(200);
    const times = outbound.map(({ at }) => at);
    expect(densest(times, MINUTE)).toBeLessThanOrEqual(40);
    for (const to of new Set(outbound.map((sent) => sent.to))) {
      const own = outbound.filter((sent) => sent.to === to).map(({ at }) => at);
      expect(densest(own, MINUTE)).toBeLessThanOrEqual(20);
    }
    // Measured in steps of 100 ms.
    const gaps = times.slice(1).map((at, index) => at - (times[index] ?? 0));
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(300);
    // Never idle for long either: 40 a minute are 200 in five minutes.
    expect(clock.now() - startedAt).toBeLessThan(6.5 * MINUTE);
    for (const [index, [friend]] of friends.entries()) {
      const texts = Array.from({ length: 20 }, (_, n) => `message ${n} to ${index}`);
      expect(friend.seen.map(({ text }) => text)).toEqual(texts);
      expect(friend.seen.every(({ arrivals }) => arrivals === 1)).toBe(true);
    }
  });

  test('a message that waits is announced by typing, which ends with it', async () => {
    const clock = createMovableClock();
    const pacing = { minGapMs: 3000, maxGapMs: 3000 };
    await using rig = await OutboxRig.start(server, { clock, settings: { pacing } });
    const [ben, chat] = await rig.friend();
    await rig.send(answer(chat, 'one', { id: messageId('t/0') }));
    expect(ben.typing).toEqual([]);
    await play(rig, clock, rig.send(answer(chat, 'two', { id: messageId('t/1') })));
    await ben.sees(({ text }) => text === 'two');
    expect(ben.typing).toEqual(['composing', 'paused']);
  });

  test('a wait ends with the send’s signal, and nothing is sent', async () => {
    const clock = createMovableClock();
    const pacing = { minGapMs: 10_000, maxGapMs: 10_000 };
    await using rig = await OutboxRig.start(server, { clock, settings: { pacing } });
    const [, chat] = await rig.friend();
    await rig.send(answer(chat, 'one', { id: messageId('t/0') }));
    const controller = new AbortController();
    const { signal } = controller;
    const refusal = refusalOf(rig.send(answer(chat, 'two', { id: messageId('t/1') }), { signal }));
    await clock.advance(1000);
    controller.abort();
    expect((await refusal).certainty).toBe('not_sent');
    expect(rig.phone.outbound).toHaveLength(1);
  });

  test('a wait ends with the owner writing there by hand', async () => {
    const clock = createMovableClock();
    const pacing = { minGapMs: 10_000, maxGapMs: 10_000 };
    await using rig = await OutboxRig.start(server, { clock, settings: { pacing } });
    const [, chat] = await rig.friend();
    await rig.send(answer(chat, 'one', { id: messageId('t/0') }));
    const refusal = refusalOf(rig.send(answer(chat, 'two', { id: messageId('t/1') })));
    await clock.advance(1000);
    rig.paused.add(chat.chat);
    await clock.advance(10_000);
    expect((await refusal).message).toMatch(/answering in this chat/);
    expect(rig.phone.outbound).toHaveLength(1);
  });

  test('a long wait is the bus’s, for as long as it must be', async () => {
    const clock = createMovableClock();
    const pacing = { minGapMs: 60_000, maxGapMs: 60_000 };
    await using rig = await OutboxRig.start(server, { clock, settings: { pacing } });
    const [, chat] = await rig.friend();
    await rig.send(answer(chat, 'one', { id: messageId('t/0') }));
    await clock.advance(15_000);
    const error = await refusalOf(rig.send(answer(chat, 'two', { id: messageId('t/1') })));
    expect(error).toMatchObject({
      certainty: 'not_sent',
      remedy: { kind: 'after', delayMs: 45_000 },
    });
  });
});

describe('what outlives a restart', () => {
  test('the quota of first contacts', async () => {
    const clock = createMovableClock();
    const settings = {
      firstContact: true,
      pacing: { firstContactsPerDay: 1, minGapMs: 0, maxGapMs: 0 },
    };
    await using rig = await OutboxRig.start(server, { clock, settings });
    const [one, two] = [await server.contact(rig.phone), await server.contact(rig.phone)];
    await rig.send(answer(refOf(`+${one.number}`), 'hello', { id: messageId('t/0') }));
    await rig.restart();
    const second = answer(refOf(`+${two.number}`), 'good day', { id: messageId('t/1') });
    const error = await refusalOf(rig.send(second));
    expect(error.message).toMatch(/first contacts/);
    expect(error.remedy).toEqual({ kind: 'after', delayMs: HOUR });
    await rig.send(answer(refOf(`+${one.number}`), 'are you there?', { id: messageId('t/2') }));
    await clock.advance(24 * HOUR);
    await rig.send(second);
    await two.sees(({ text }) => text === 'good day');
  });

  test('the brake on the same text to many', async () => {
    const clock = createMovableClock();
    const pacing = { identicalTexts: 2, minGapMs: 0, maxGapMs: 0 };
    await using rig = await OutboxRig.start(server, { clock, settings: { pacing } });
    const friends = [await rig.friend(), await rig.friend(), await rig.friend()];
    const news = (index: number, rest = {}) => {
      const chat = friends[index]?.[1] ?? refOf('nobody');
      return answer(chat, 'News of the day', { id: messageId(`t/${index}`), ...rest });
    };
    await rig.send(news(0));
    await clock.advance(10 * MINUTE);
    await rig.send(news(1));
    await rig.restart();
    const error = await refusalOf(rig.send(news(2)));
    expect(error.message).toMatch(/identical text/);
    expect(error.remedy).toEqual({ kind: 'after', delayMs: 50 * MINUTE });
    // Whoever asked for it gets it.
    await rig.send(news(2, { id: messageId('t/asked'), replyTo: messageId('whatsapp:q') }));
    expect((await friends[2]?.[0].sees(() => true))?.text).toBe('News of the day');
  });
});
