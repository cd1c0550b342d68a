// Slots over both changes of the clocks of 2026 in fourteen zones, among them half hours and changes at
// midnight: each time of the wall clock once, whenever it is asked for. Case R19 of the catalogue.

import { describe, expect, test } from 'vitest';
import { createNextSlot } from '../../src/features/schedule/jobs.ts';
import { createMinuteText, wallMoment } from '../../src/lib/time/zone-time.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const ZONES = [
  ...['Europe/Berlin', 'Europe/Dublin', 'Europe/Lisbon', 'Atlantic/Azores', 'America/New_York'],
  ...['America/St_Johns', 'America/Havana', 'America/Santiago', 'Africa/Cairo', 'Asia/Beirut'],
  ...['Australia/Adelaide', 'Australia/Lord_Howe', 'Pacific/Chatham', 'Africa/Casablanca'],
] as const;

const minuteText = createMinuteText();
const shownAsUtc = (at: number, zone: string) =>
  Date.parse(`${minuteText(at, zone).replace(' ', 'T')}:00Z`);
const offsetAt = (at: number, zone: string) => shownAsUtc(at, zone) - at;

/** The first moments of the new offsets of the year. */
function changesOf(zone: string): readonly number[] {
  const changes: number[] = [];
  for (let at = Date.UTC(2026, 0, 1); at < Date.UTC(2027, 0, 1); at += DAY) {
    if (offsetAt(at, zone) === offsetAt(at + DAY, zone)) continue;
    let [before, after] = [at, at + DAY];
    while (after - before > MINUTE) {
      const middle = before + Math.floor((after - before) / 2 / MINUTE) * MINUTE;
      if (offsetAt(middle, zone) === offsetAt(before, zone)) before = middle;
      else after = middle;
    }
    changes.push(after);
  }
  return changes;
}

/** Times of the wall clock around the change, those included that are skipped or come twice. */
function timesAround(change: number, zone: string): readonly string[] {
  const first = shownAsUtc(change - 90 * MINUTE, zone);
  return Array.from({ length: 14 }, (_, index) =>
    new Date(first + index * 15 * MINUTE).toISOString().slice(11, 16),
  );
}

/** Each day's first moment of that time; as the clock jumps where it jumps over it. */
function expectedSlots(time: string, change: number, zone: string): readonly number[] {
  // A day may be over an hour late, or begin an hour early.
  const hours = Array.from({ length: 9 }, (_, index) => (index - 4) * 12);
  const days = new Set(hours.map((hour) => minuteText(change + hour * HOUR, zone).slice(0, 10)));
  return [...days].map((day) => {
    const found = wallMoment(`${day} ${time}`, zone);
    return found.kind === 'moment' ? found.at : change;
  });
}

describe.each(ZONES)('in %s', (zone) => {
  const changes = changesOf(zone);

  test('over each change of the clocks each time of each day is one slot', async () => {
    expect(changes.length).toBeGreaterThanOrEqual(2);
    const next = createNextSlot();
    for (const change of changes) {
      for (const time of timesAround(change, zone)) {
        const [hour, minute] = time.split(':').map(Number);
        const schedule = {
          kind: 'cron',
          expression: `${minute} ${hour} * * *`,
          timeZone: zone,
        } as const;
        const slots = expectedSlots(time, change, zone);
        for (const [index, slot] of slots.slice(0, -1).entries()) {
          const what = `${zone} ${time} ${new Date(slot).toISOString()}`;
          expect(await next(schedule, slot - 1000), `${what}, a second before`).toBe(slot);
          expect(await next(schedule, slot), `${what}, right then`).toBe(slots[index + 1]);
          expect(await next(schedule, slot + 1000), `${what}, after it`).toBe(slots[index + 1]);
        }
      }
    }
  });

  test('asked at any minute around the change, nothing comes twice', async () => {
    const next = createNextSlot();
    for (const change of changes) {
      const time = timesAround(change, zone)[7] ?? '';
      const [hour, minute] = time.split(':').map(Number);
      const schedule = {
        kind: 'cron',
        expression: `${minute} ${hour} * * *`,
        timeZone: zone,
      } as const;
      const slots = expectedSlots(time, change, zone);
      for (let at = change - 3 * HOUR; at < change + 3 * HOUR; at += 7 * MINUTE) {
        expect(await next(schedule, at)).toBe(slots.find((slot) => slot > at));
      }
    }
  });

  test('an interval keeps its distance in real time', async () => {
    const next = createNextSlot();
    const [change = 0] = changes;
    const anchor = change - DAY;
    const schedule = { kind: 'every', everyMs: 6 * HOUR, anchor } as const;
    expect(await next(schedule, change)).toBe(change + 6 * HOUR);
    expect(await next(schedule, anchor - DAY)).toBe(anchor + 6 * HOUR);
  });
});

test('lists and ranges of hours count each time once too', async () => {
  const next = createNextSlot();
  const schedule = { kind: 'cron', expression: '30 1-3 * * *', timeZone: 'Europe/Berlin' } as const;
  const slots: string[] = [];
  let at = Date.parse('2026-10-24T23:00:00Z');
  while (slots.length < 4) {
    at = (await next(schedule, at)) ?? Number.NaN;
    slots.push(
      `${new Date(at).toISOString().slice(0, 16)} ${minuteText(at, 'Europe/Berlin').slice(11)}`,
    );
  }
  expect(slots).toEqual([
    '2026-10-24T23:30 01:30',
    '2026-10-25T00:30 02:30',
    '2026-10-25T02:30 03:30',
    '2026-10-26T00:30 01:30',
  ]);
});
