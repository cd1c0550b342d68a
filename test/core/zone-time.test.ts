import { afterEach, expect, test } from 'vitest';
import { createTimeText, describeTime, zoneInForce } from '../../src/lib/time/zone-names.ts';
import {
  createDayText,
  createMinuteText,
  createWeekdayText,
} from '../../src/lib/time/zone-time.ts';

const MOMENT = Date.UTC(2026, 0, 15, 23, 30);
const HOUR_MS = 3_600_000;
const machine = process.env['TZ'];

afterEach(() => {
  process.env['TZ'] = machine;
});

test('the day is that of the zone, also when the zone changes', () => {
  const dayOf = createDayText();
  expect(dayOf(MOMENT, 'UTC')).toBe('2026-01-15');
  expect(dayOf(MOMENT, 'Asia/Tokyo')).toBe('2026-01-16');
  expect(dayOf(MOMENT, 'UTC')).toBe('2026-01-15');
});

test('the prompt and the tool tell the same time', () => {
  expect(createTimeText()(MOMENT, 'Asia/Tokyo')).toBe('Now: Friday 2026-01-16 08:30 (Asia/Tokyo)');
  expect(describeTime(MOMENT, 'Asia/Tokyo')).toBe(
    'Friday, 2026-01-16 08:30:00 (GMT+09:00, Asia/Tokyo)',
  );
});

test('an unknown zone is told apart from the machine’s', () => {
  expect(describeTime(MOMENT, 'Mars/Base')).toBeUndefined();
  expect(describeTime(MOMENT, '')).toContain('2026');
});

test.each([
  'UTC',
  'Europe/London',
  'Europe/Berlin',
  'Asia/Tehran',
  'America/St_Johns',
  'America/Caracas',
  'Australia/Lord_Howe',
])('the machine’s zone has the same texts as where it is named: %s', (zone) => {
  process.env['TZ'] = zone;
  const texts = [createDayText, createMinuteText, createWeekdayText, createTimeText];
  const moments = Array.from({ length: 500 }, (_, step) => MOMENT + step * 37.25 * HOUR_MS);
  const inZone = (name: string) => [
    ...texts.flatMap((create) => moments.map((at) => create()(at, name))),
    ...moments.map((at) => describeTime(at, name)),
  ];
  const named = inZone(zone);
  expect(inZone('')).toEqual(named);
  expect(new Set(named).size).toBe(named.length);
});

test('the machine’s zone is that of its clock', () => {
  delete process.env['TZ'];
  expect(zoneInForce('')).toBe(Intl.DateTimeFormat().resolvedOptions().timeZone);
});
