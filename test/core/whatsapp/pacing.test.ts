import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createPacer } from '../../../src/channels/whatsapp/pacer.ts';
import {
  CONTACT_WINDOW_MS,
  type PacedSend,
  type PaceState,
  type PacingLimits,
  paceSent,
  paceWait,
  TEXT_WINDOW_MS,
  textsAfter,
  UNPACED,
} from '../../../src/channels/whatsapp/rules/pacing.ts';
import { createMemoryHost } from '../../support/memory-host.ts';
import { createMovableClock } from '../../support/movable-clock.ts';

const MINUTE = 60_000;
const T0 = Date.UTC(2026, 0, 15);
const LIMITS: PacingLimits = {
  chatPerMinute: 20,
  accountPerMinute: 40,
  minGapMs: 400,
  maxGapMs: 1600,
  firstContactsPerDay: 2,
  identicalTexts: 3,
};
type Sent = { readonly at: number; readonly send: PacedSend };

const send = (rest: Partial<PacedSend> = {}): PacedSend => ({
  chat: 'a',
  isFirstContact: false,
  isAnswer: true,
  ...rest,
});

/** With what it changes about the texts. */
function sentIn(
  state: PaceState,
  { at, send: one }: Sent,
  limits: PacingLimits,
  random: number,
): PaceState {
  const { expired, sightings } = textsAfter(state, one, at);
  const texts = new Map([...state.texts].filter(([text]) => !expired.includes(text)));
  if (one.text !== undefined && sightings !== undefined) {
    texts.delete(one.text);
    texts.set(one.text, sightings);
  }
  return { ...paceSent(state, one, limits, at, random), texts };
}

/** The state after these sends, each at its time. */
const stateAfter = (sends: readonly Sent[]) =>
  sends.reduce<PaceState>((state, one) => sentIn(state, one, LIMITS, 0.5), UNPACED);

describe('the pace', () => {
  test('a first message goes at once, the second after a pause drawn between the two limits', () => {
    expect(paceWait(UNPACED, send(), LIMITS, T0).waitMs).toBe(0);
    const pauses = [0, 0.5, 1].map((random) => {
      const state = paceSent(UNPACED, send(), LIMITS, T0, random);
      return paceWait(state, send({ chat: 'b' }), LIMITS, T0);
    });
    expect(pauses.map(({ waitMs }) => waitMs)).toEqual([400, 1000, 1600]);
    expect(pauses[0]?.limit).toBe('gap');
  });

  test('a chat that got its burst waits, another chat only for the pause', () => {
    const burst = Array.from({ length: 5 }, (_, n) => ({ at: T0 + n * 500, send: send() }));
    const state = stateAfter(burst);
    const now = T0 + 2500;
    expect(paceWait(state, send(), LIMITS, now)).toEqual({
      limit: 'chat',
      waitMs: 1250,
    });
    expect(paceWait(state, send({ chat: 'b' }), LIMITS, now)).toEqual({
      limit: 'gap',
      waitMs: 500,
    });
  });

  test('people who never wrote wait for the next day once the quota is used up', () => {
    const first = (chat: string) => send({ chat, isFirstContact: true });
    const state = stateAfter([
      { at: T0, send: first('a') },
      { at: T0 + MINUTE, send: first('b') },
    ]);
    const now = T0 + 2 * MINUTE;
    expect(paceWait(state, first('c'), LIMITS, now)).toEqual({
      limit: 'first contacts',
      waitMs: CONTACT_WINDOW_MS - 2 * MINUTE,
    });
    expect(paceWait(state, first('a'), LIMITS, now).waitMs).toBe(0);
    expect(paceWait(state, send({ chat: 'c' }), LIMITS, now).waitMs).toBe(0);
    expect(paceWait(state, first('c'), LIMITS, T0 + CONTACT_WINDOW_MS).waitMs).toBe(0);
  });

  test('the same text to many chats waits, unless they asked for it', () => {
    const same = (chat: string) => send({ chat, text: 'hash', isAnswer: false });
    const state = stateAfter(
      ['a', 'b', 'c'].map((chat, n) => ({ at: T0 + n * MINUTE, send: same(chat) })),
    );
    const now = T0 + 5 * MINUTE;
    expect(paceWait(state, same('d'), LIMITS, now)).toEqual({
      limit: 'identical text',
      waitMs: TEXT_WINDOW_MS - 5 * MINUTE,
    });
    expect(paceWait(state, same('a'), LIMITS, now).waitMs).toBe(0);
    expect(paceWait(state, { ...same('d'), text: 'other' }, LIMITS, now).waitMs).toBe(0);
    expect(paceWait(state, { ...same('d'), isAnswer: true }, LIMITS, now).waitMs).toBe(0);
  });

  test('a clock that was set back by a year stops nobody for longer than a limit says', () => {
    const state = stateAfter([
      { at: T0, send: send({ isFirstContact: true, text: 'hash', isAnswer: false }) },
    ]);
    const before = T0 - 365 * CONTACT_WINDOW_MS;
    expect(paceWait(state, send(), LIMITS, before).waitMs).toBeLessThanOrEqual(5000);
    const contact = send({ chat: 'b', isFirstContact: true });
    expect(paceWait(state, contact, { ...LIMITS, firstContactsPerDay: 1 }, before).waitMs).toBe(
      CONTACT_WINDOW_MS,
    );
  });

  test('what no longer matters is forgotten', () => {
    const state = stateAfter(
      Array.from({ length: 500 }, (_, n) => ({
        at: T0 + n * MINUTE * 10,
        send: send({ chat: `c${n}`, isFirstContact: true, text: `t${n}`, isAnswer: false }),
      })),
    );
    expect(state.chats.size).toBe(1);
    expect(state.texts.size).toBeLessThanOrEqual(6);
    expect(state.firstContacts.length).toBeLessThanOrEqual(144);
  });
});

test('a clock that was set back holds a text for no longer than its window', async () => {
  const clock = createMovableClock(T0);
  const host = createMemoryHost(clock);
  await host.state.set('pace/text/stored/a', String(T0 + 365 * CONTACT_WINDOW_MS));
  const limits = { ...LIMITS, maxGapMs: 400, identicalTexts: 1 };
  const pacer = createPacer({ ...host, limits, random: () => 0 });
  const { signal } = new AbortController();
  const b = send({ chat: 'b', text: 'stored', isAnswer: false });
  await expect(pacer.admit(b, signal)).rejects.toThrow('identical text');
  await clock.advance(TEXT_WINDOW_MS);
  expect(await pacer.admit(b, signal)).toHaveLength(1);
});

const limitsOf = fc.record({
  chatPerMinute: fc.integer({ min: 1, max: 30 }),
  accountPerMinute: fc.integer({ min: 1, max: 60 }),
  minGapMs: fc.integer({ min: 0, max: 2000 }),
  maxGapMs: fc.integer({ min: 0, max: 3000 }),
  firstContactsPerDay: fc.integer({ min: 1, max: 4 }),
  identicalTexts: fc.integer({ min: 1, max: 4 }),
});
const arrivals = fc.array(
  fc.record({
    delay: fc.oneof(
      fc.constant(0),
      fc.integer({ min: 0, max: 5000 }),
      fc.integer({ min: 0, max: 7_200_000 }),
    ),
    chat: fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f'),
    text: fc.constantFrom(undefined, 'x', 'y'),
    isFirstContact: fc.boolean(),
  }),
  { maxLength: 80 },
);

/** Everybody asks, waits as told and asks again; the order is by time, then by arrival. */
function play(asked: readonly Sent[], limits: PacingLimits): readonly Sent[] {
  const waiting = asked.map(({ at, send: one }, order) => ({ at, order, send: one }));
  const sent: Sent[] = [];
  let state = UNPACED;
  for (let steps = 0; waiting.length > 0; steps += 1) {
    if (steps > 100_000) throw new Error('somebody waits for ever');
    waiting.sort((a, b) => a.at - b.at || a.order - b.order);
    const next = waiting.shift();
    if (next === undefined) break;
    const { waitMs } = paceWait(state, next.send, limits, next.at);
    if (waitMs > 0) {
      waiting.push({ ...next, at: next.at + waitMs });
      continue;
    }
    state = sentIn(state, next, limits, ((steps * 7919) % 100) / 100);
    sent.push({ at: next.at, send: next.send });
  }
  return sent;
}

/** The most that lie within any such window. */
function densest(times: readonly number[], windowMs: number): number {
  return Math.max(
    0,
    ...times.map((from) => times.filter((at) => at >= from && at < from + windowMs).length),
  );
}

/** When each chat came new into the window. */
function entries(sent: readonly Sent[], windowMs: number): readonly number[] {
  const last = new Map<string, number>();
  return sent.flatMap(({ at, send: { chat } }) => {
    const isNew = at - (last.get(chat) ?? Number.NEGATIVE_INFINITY) >= windowMs;
    if (isNew) last.set(chat, at);
    return isNew ? [at] : [];
  });
}

test('whatever arrives when, no limit is ever exceeded and everything is sent in the end', () => {
  fc.assert(
    fc.property(limitsOf, arrivals, (limits, pattern) => {
      let at = T0;
      const asked = pattern.map(({ delay, ...rest }) => {
        at += delay;
        return { at, send: { ...rest, isAnswer: false } as PacedSend };
      });
      const sent = play(asked, limits);
      expect(sent).toHaveLength(pattern.length);
      const times = sent.map((one) => one.at);
      expect(densest(times, MINUTE)).toBeLessThanOrEqual(limits.accountPerMinute);
      for (const [index, time] of times.entries()) {
        if (index > 0)
          expect(time - (times[index - 1] ?? 0)).toBeGreaterThanOrEqual(limits.minGapMs);
      }
      for (const chat of new Set(sent.map((one) => one.send.chat))) {
        const own = sent.filter((one) => one.send.chat === chat).map((one) => one.at);
        expect(densest(own, MINUTE)).toBeLessThanOrEqual(limits.chatPerMinute);
      }
      for (const text of ['x', 'y']) {
        const same = sent.filter((one) => one.send.text === text);
        const seen = entries(same, TEXT_WINDOW_MS);
        expect(densest(seen, TEXT_WINDOW_MS)).toBeLessThanOrEqual(limits.identicalTexts);
      }
      const strangers = entries(
        sent.filter((one) => one.send.isFirstContact),
        CONTACT_WINDOW_MS,
      );
      expect(densest(strangers, CONTACT_WINDOW_MS)).toBeLessThanOrEqual(limits.firstContactsPerDay);
    }),
    { numRuns: 300 },
  );
});
