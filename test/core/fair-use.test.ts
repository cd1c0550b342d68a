// The limits of messages by values: no window ever holds more than it may, whatever comes when.

import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import {
  givenBack,
  joinedTallies,
  MINUTE_MS,
  NO_MESSAGES,
  pauseNotice,
  spanWords,
  type Tally,
  taken,
  weigh,
} from '../../src/kernel/message/message-limits.ts';
import { createLocalDays } from '../../src/lib/time/zone-time.ts';

const dayOf = createLocalDays();
const START = Date.UTC(2026, 0, 15, 12);
const momentOf = (now: number) => ({ now, saidAt: now, today: dayOf(now, 'UTC') });

/** Which of these moments are answered, and how often the person is told of a pause. */
function answered(moments: readonly number[], limits: { perMinute: number; perDay: number }) {
  let tally: Tally = NO_MESSAGES;
  const times: number[] = [];
  let notices = 0;
  for (const now of moments) {
    const moment = momentOf(now);
    const verdict = weigh(tally, moment, limits);
    if (verdict.kind === 'take') {
      tally = taken(tally, moment, limits);
      times.push(now);
    } else {
      if (verdict.isNew) notices += 1;
      tally = { ...tally, pause: verdict.pause };
    }
  }
  return { times, notices };
}

const gaps = fc.array(fc.integer({ min: 0, max: 40_000 }), { maxLength: 300 });
const moments = gaps.map((all) => {
  let at = START;
  return all.map((gap) => {
    at += gap;
    return at;
  });
});
const limits = fc.record({
  perMinute: fc.integer({ min: 1, max: 12 }),
  perDay: fc.integer({ min: 1, max: 100 }),
});

describe('the limit of messages', () => {
  it('lets no minute and no day have more than its number', () => {
    fc.assert(
      fc.property(moments, limits, (all, { perMinute, perDay }) => {
        const { times } = answered(all, { perMinute, perDay });
        for (const from of times) {
          const inMinute = times.filter((at) => at >= from && at < from + MINUTE_MS);
          expect(inMinute.length).toBeLessThanOrEqual(perMinute);
          const { day } = dayOf(from, 'UTC');
          const onDay = times.filter((at) => dayOf(at, 'UTC').day === day);
          expect(onDay.length).toBeLessThanOrEqual(perDay);
        }
      }),
    );
  });

  it('lets everything pass that stays below it', () => {
    fc.assert(
      fc.property(moments, (all) => {
        expect(answered(all, { perMinute: 1000, perDay: 1000 }).times).toEqual(all);
        expect(answered(all, { perMinute: 0, perDay: 0 }).times).toEqual(all);
      }),
    );
  });

  it('says so at most once a minute, however fast somebody writes', () => {
    fc.assert(
      fc.property(moments, fc.integer({ min: 1, max: 12 }), (all, perMinute) => {
        const { notices } = answered(all, { perMinute, perDay: 0 });
        const minutes = ((all.at(-1) ?? START) - START) / MINUTE_MS;
        expect(notices).toBeLessThanOrEqual(Math.ceil(minutes) + 1);
      }),
    );
  });

  it('goes on with a whole allowance a minute after the last message that was taken', () => {
    const burst = Array.from({ length: 30 }, (_, index) => START + index * 100);
    const later = Array.from({ length: 20 }, (_, index) => START + 1900 + MINUTE_MS + index);
    const { times, notices } = answered([...burst, ...later], { perMinute: 20, perDay: 0 });
    expect(times).toEqual([...burst.slice(0, 20), ...later]);
    expect(notices).toBe(1);
  });

  it('takes what waited during an outage for what it is: said long ago, one by one', () => {
    let tally: Tally = NO_MESSAGES;
    const verdicts = Array.from({ length: 60 }, (_, index) => {
      const moment = { ...momentOf(START), saidAt: START - (60 - index) * 60_000 };
      const verdict = weigh(tally, moment, { perMinute: 2, perDay: 0 });
      tally = taken(tally, moment, { perMinute: 2, perDay: 0 });
      return verdict.kind;
    });
    expect(new Set(verdicts)).toEqual(new Set(['take']));
  });

  it('gives a message back that turned out to be counted already', () => {
    const first = taken(NO_MESSAGES, momentOf(START), { perMinute: 20, perDay: 0 });
    const second = taken(first, momentOf(START + 5), { perMinute: 20, perDay: 0 });
    expect(givenBack(second, momentOf(START + 5))).toEqual(first);
  });

  it('adds up what was counted under two names of one person', () => {
    const one = taken(NO_MESSAGES, momentOf(START), { perMinute: 20, perDay: 0 });
    expect(joinedTallies(one, one)).toMatchObject({ recent: [START, START], today: 2 });
  });

  it('is told kindly, with when it goes on', () => {
    const pause = { until: START + 45_000, because: 'minute' } as const;
    const text = pauseNotice('person', pause, { perMinute: 20, perDay: 200 }, START);
    expect(text).toContain('20 messages a minute');
    expect(text).toContain('in 45 seconds');
  });

  test.each([
    [400, '1 second'],
    [90_000, '90 seconds'],
    [91_000, '2 minutes'],
    [5 * 3_600_000, '5 hours'],
  ])('%i ms are %s', (ms, words) => expect(spanWords(ms)).toBe(words));
});

describe('a local day', () => {
  test.each([
    ['UTC', '2026-01-15T12:00:00Z', '2026-01-15', '2026-01-16T00:00:00Z'],
    ['Europe/Berlin', '2026-03-29T00:30:00Z', '2026-03-29', '2026-03-29T22:00:00Z'],
    ['Europe/Berlin', '2026-10-24T22:00:00Z', '2026-10-25', '2026-10-25T23:00:00Z'],
    ['America/New_York', '2026-11-01T05:30:00Z', '2026-11-01', '2026-11-02T05:00:00Z'],
    ['Asia/Kolkata', '2026-01-15T18:29:59Z', '2026-01-15', '2026-01-15T18:30:00Z'],
    ['America/Sao_Paulo', '2018-11-04T03:00:00Z', '2018-11-04', '2018-11-05T02:00:00Z'],
    ['Australia/Lord_Howe', '2026-04-04T20:00:00Z', '2026-04-05', '2026-04-05T13:30:00Z'],
  ])('of %s at %s is %s and ends at %s', (zone, at, day, end) => {
    expect(createLocalDays()(Date.parse(at), zone)).toMatchObject({ day, endsAt: Date.parse(end) });
  });

  it('is the same asked again, and another after its end', () => {
    const days = createLocalDays();
    const first = days(START, 'Europe/Berlin');
    expect(days(START + 1000, 'Europe/Berlin')).toBe(first);
    expect(days(first.endsAt, 'Europe/Berlin').day).toBe('2026-01-16');
    expect(days(START, 'UTC').endsAt).toBe(Date.UTC(2026, 0, 16));
  });
});
