import { describe, expect, it } from 'vitest';
import {
  NO_PACE,
  pacedBy,
  type ReplyRequest,
  refusalOf,
  type SentReply,
  waitOf,
} from '../../../src/channels/email/rules/budget.ts';
import { configSchema } from '../../../src/kernel/config/config.ts';

const NOW = Date.UTC(2026, 0, 15, 12);
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const ANNA = 'anna@person.test';
const LIMITS = configSchema.parse({}).channels.email.limits;

const request: ReplyRequest = {
  recipient: ANNA,
  thread: 't1',
  textHash: 'new',
  to: 'proven',
  lastHumanAt: NOW - 1000,
};

let serial = 0;
const sent = (ageMs: number, changes: Partial<SentReply> = {}): SentReply => ({
  at: NOW - ageMs,
  recipient: ANNA,
  thread: 't1',
  textHash: `h${serial++}`,
  ...changes,
});
const many = (count: number, stepMs: number, changes: (n: number) => Partial<SentReply>) =>
  Array.from({ length: count }, (_, n) => sent((n + 1) * stepMs, changes(n)));

describe('an answer to a proven person', () => {
  it('waits for none of 59 in the hour, in one thread and one domain', () => {
    const log = many(59, 60_000, () => ({}));
    expect(waitOf(request, log, LIMITS, NOW)).toBeUndefined();
    expect(refusalOf(request, log, [], LIMITS, NOW)).toBeUndefined();
  });

  it.each([
    ['perHour', { perHour: 10 }, 10, (n: number) => ({ thread: `t${n + 5}` })],
    ['threadPerHour', { threadPerHour: 6 }, 6, () => ({})],
    ['mailboxPerHour', { mailboxPerHour: 60 }, 60, (n: number) => ({ recipient: `p@d${n}.test` })],
  ] as const)('waits where %s is reached, and says so', (key, setting, count, changes) => {
    const log = many(count, 50_000, changes);
    const limits = { ...LIMITS, ...setting };
    const delayMs = HOUR_MS - count * 50_000;
    expect(waitOf(request, log, limits, NOW)).toMatchObject({ key, delayMs });
    expect(waitOf(request, log.slice(0, -1), limits, NOW)).toBeUndefined();
    expect(waitOf(request, log, { ...limits, [key]: 0 }, NOW)).toBeUndefined();
  });

  it.each([
    ['perDay', 300, () => ({})],
    ['mailboxPerDay', 3000, (n: number) => ({ recipient: `p@d${n}.test` })],
  ] as const)('waits where %s of %i is reached', (key, count, changes) => {
    const log = many(count, (23 * HOUR_MS) / count, changes);
    expect(waitOf(request, log, LIMITS, NOW)?.key).toBe(key);
  });

  it('waits for the spacing in a thread where there is one', () => {
    const log = [sent(5_000)];
    expect(waitOf(request, log, LIMITS, NOW)).toBeUndefined();
    const wait = waitOf(request, log, { ...LIMITS, spacingSecs: 20 }, NOW);
    expect(wait).toMatchObject({ key: 'spacingSecs', delayMs: 15_000 });
  });

  it('may say the same again, as a report does every day', () => {
    const log = [sent(60_000, { textHash: 'new' })];
    const silent = { ...request, lastHumanAt: NOW - 120_000 };
    expect(refusalOf(silent, log, [], LIMITS, NOW)).toBeUndefined();
  });

  it('is refused after so many in a thread without a new mail', () => {
    const log = [sent(90_000), sent(60_000), sent(30_000)];
    const silent = { ...request, lastHumanAt: NOW - 10 * MINUTE_MS };
    const limits = { ...LIMITS, withoutReply: 3 };
    expect(refusalOf(silent, log, [], limits, NOW)).toMatchObject({ alert: true });
    expect(refusalOf(silent, log, [], LIMITS, NOW)).toBeUndefined();
    expect(refusalOf(request, log, [], limits, NOW)).toBeUndefined();
  });
});

describe('an answer to an unproven address', () => {
  const unproven = { ...request, to: 'unproven' } as const;

  it('goes out once a day and is then refused without a word', () => {
    expect(refusalOf(unproven, [], [], LIMITS, NOW)).toBeUndefined();
    const early = refusalOf(unproven, [sent(23 * HOUR_MS)], [], LIMITS, NOW);
    expect(early).toMatchObject({ alert: false });
    expect(refusalOf(unproven, [sent(25 * HOUR_MS)], [], LIMITS, NOW)).toBeUndefined();
  });

  it('waits where its domain had 30 in the hour, those to proven people not counted', () => {
    const log = many(30, 50_000, (n) => ({ recipient: `p${n}@person.test` }));
    expect(waitOf(unproven, log, LIMITS, NOW)).toBeUndefined();
    const same = log.map((reply) => ({ ...reply, isUnproven: true as const }));
    expect(waitOf(unproven, same, LIMITS, NOW)?.key).toBe('unprovenDomainPerHour');
    expect(waitOf(request, same, LIMITS, NOW)).toBeUndefined();
  });
});

describe('bounces', () => {
  const bounce = (ageMs: number, recipient = ANNA) => ({ at: NOW - ageMs, recipient });
  const refusal = (log: readonly SentReply[], all: ReturnType<typeof bounce>[], more = {}) =>
    refusalOf({ ...request, ...more }, log, all, LIMITS, NOW);

  it('pause an address for a week after three within an hour', () => {
    const three = [bounce(3 * HOUR_MS), bounce(3 * HOUR_MS + 1), bounce(3 * HOUR_MS + 2)];
    expect(refusal([], three)).toMatchObject({ alert: true });
    expect(refusal([], three.slice(1))).toBeUndefined();
    const old = three.map((one) => ({ ...one, at: one.at - 8 * 24 * HOUR_MS }));
    expect(refusal([], old)).toBeUndefined();
  });

  it('of many addresses stop everything but answers to proven people', () => {
    const log = many(50, 30 * MINUTE_MS, (n) => ({ recipient: `p@d${n}.test` }));
    const bounces = [1, 2, 3].map((n) => bounce(n * HOUR_MS, `p@d${n}.test`));
    expect(refusal(log, bounces, { to: 'letter' })).toMatchObject({ alert: true });
    expect(refusal(log, bounces.slice(1), { to: 'letter' })).toBeUndefined();
    expect(refusal(log, bounces)).toBeUndefined();
  });
});

describe('the pace of a thread', () => {
  const answersEvery = (stepMs: number, afterMs: number) => {
    let pace = NO_PACE;
    const answers: number[] = [];
    for (let n = 0; n < 8; n += 1) {
      const receivedAt = NOW + n * stepMs + (n === 0 ? 0 : afterMs);
      pace = pacedBy(pace, { id: `m${n}`, receivedAt }, answers, LIMITS);
      if (pace.endedBy !== undefined) return pace.endedBy;
      answers.push(NOW + (n + 1) * stepMs);
    }
    return undefined;
  };

  it('ends it at the fifth mail in a row that comes soon after an answer', () => {
    expect(answersEvery(10_000, 1000)).toBe('m5');
    expect(answersEvery(10 * MINUTE_MS, 3 * MINUTE_MS)).toBeUndefined();
  });

  it('counts each answer once, however many mails follow it', () => {
    const answers = [NOW];
    let pace = NO_PACE;
    for (let n = 0; n < 9; n += 1) {
      pace = pacedBy(pace, { id: `m${n}`, receivedAt: NOW + n }, answers, LIMITS);
    }
    expect(pace).toEqual({ quick: 1, answerAt: NOW });
  });

  it('begins anew after a pause, and can be switched off', () => {
    const pace = { quick: 4, answerAt: NOW };
    const mail = { id: 'm', receivedAt: NOW + HOUR_MS };
    expect(pacedBy(pace, mail, [NOW + 1], LIMITS).quick).toBe(0);
    const soon = { id: 'm', receivedAt: NOW + 2 };
    expect(pacedBy(pace, soon, [NOW + 1], LIMITS).endedBy).toBe('m');
    expect(pacedBy(pace, soon, [NOW + 1], { ...LIMITS, loopMails: 0 }).endedBy).toBeUndefined();
  });
});
