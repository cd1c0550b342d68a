import { describe, expect, it } from 'vitest';
import { judgeReply, type ReplyRequest, type SentReply } from '../../../src/core/mail/budget.ts';

const NOW = Date.UTC(2026, 0, 15, 12);
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const ANNA = 'anna@person.test';

const request: ReplyRequest = {
  recipient: ANNA,
  thread: 't1',
  textHash: 'new',
  isAuthenticated: true,
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
  it('goes out', () => {
    expect(judgeReply(request, [], [], NOW)).toEqual({ kind: 'send' });
    expect(judgeReply(request, [sent(MINUTE_MS)], [], NOW)).toEqual({ kind: 'send' });
  });

  it('waits until 20 s after the last one in the thread', () => {
    const verdict = judgeReply(request, [sent(5_000)], [], NOW);
    expect(verdict).toMatchObject({ kind: 'delay', delayMs: 15_000 });
  });

  it.each([
    ['a thread', 6, () => ({})],
    ['an address', 10, (n: number) => ({ thread: `t${n + 5}` })],
    ['a domain', 30, (n: number) => ({ recipient: `p${n}@person.test` })],
    ['the mailbox', 60, (n: number) => ({ recipient: `p@d${n}.test` })],
  ])('waits when %s has had %i within the hour', (_, count, changes) => {
    const log = many(count, 50_000, changes);
    const verdict = judgeReply(request, log, [], NOW);
    expect(verdict).toMatchObject({ kind: 'delay', delayMs: HOUR_MS - count * 50_000 });
    expect(judgeReply(request, log.slice(0, -1), [], NOW)).toEqual({ kind: 'send' });
  });

  it('waits when the mailbox has sent 300 within the day', () => {
    const log = many(300, 4.5 * MINUTE_MS, (n) => ({ recipient: `p@d${n}.test` }));
    expect(judgeReply(request, log, [], NOW).kind).toBe('delay');
  });

  it('is not sent after three without a new mail, and the owner hears of it', () => {
    const log = [sent(90_000), sent(60_000), sent(30_000)];
    const silent = { ...request, lastHumanAt: NOW - 10 * MINUTE_MS };
    expect(judgeReply(silent, log, [], NOW)).toMatchObject({ kind: 'refuse', alert: true });
    expect(judgeReply(request, log, [], NOW)).toEqual({ kind: 'send' });
  });

  it('is not sent twice, unless the person wrote again in between', () => {
    const log = [sent(60_000, { textHash: 'new' })];
    const silent = { ...request, lastHumanAt: NOW - 120_000 };
    expect(judgeReply(silent, log, [], NOW).kind).toBe('refuse');
    expect(judgeReply(request, log, [], NOW)).toEqual({ kind: 'send' });
  });
});

describe('an answer to anybody else', () => {
  const stranger = { ...request, isAuthenticated: false };

  it('goes out once a day and is then dropped without a word', () => {
    expect(judgeReply(stranger, [], [], NOW)).toEqual({ kind: 'send' });
    const verdict = judgeReply(stranger, [sent(23 * HOUR_MS)], [], NOW);
    expect(verdict).toMatchObject({ kind: 'refuse', alert: false });
    expect(judgeReply(stranger, [sent(25 * HOUR_MS)], [], NOW)).toEqual({ kind: 'send' });
  });
});

describe('bounces', () => {
  const bounce = (ageMs: number, recipient = ANNA) => ({ at: NOW - ageMs, recipient });

  it('silence an address for a week after three within an hour', () => {
    const three = [bounce(3 * HOUR_MS), bounce(3 * HOUR_MS + 1), bounce(3 * HOUR_MS + 2)];
    expect(judgeReply(request, [], three, NOW)).toMatchObject({ kind: 'refuse', alert: true });
    expect(judgeReply(request, [], three.slice(1), NOW)).toEqual({ kind: 'send' });
    const old = three.map((one) => ({ ...one, at: one.at - 8 * 24 * HOUR_MS }));
    expect(judgeReply(request, [], old, NOW)).toEqual({ kind: 'send' });
  });

  it('of many addresses stop everything', () => {
    const log = many(50, 30 * MINUTE_MS, (n) => ({ recipient: `p@d${n}.test` }));
    const bounces = [1, 2, 3].map((n) => bounce(n * HOUR_MS, `p@d${n}.test`));
    expect(judgeReply(request, log, bounces, NOW)).toMatchObject({ kind: 'refuse', alert: true });
    expect(judgeReply(request, log, bounces.slice(1), NOW)).toEqual({ kind: 'send' });
  });
});

describe('two machines that answer each other for ever', () => {
  it('fall silent', () => {
    const log: SentReply[] = [];
    let answered = 0;
    for (let second = 0; second < 3600; second += 1) {
      const now = NOW + second * 1000;
      const verdict = judgeReply(
        { ...request, isAuthenticated: false, textHash: `h${second}`, lastHumanAt: now },
        log,
        [],
        now,
      );
      if (verdict.kind !== 'send') continue;
      answered += 1;
      log.push({ at: now, recipient: ANNA, thread: 't1', textHash: `h${second}` });
    }
    expect(answered).toBe(1);
  });
});
