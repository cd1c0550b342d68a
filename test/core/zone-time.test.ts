import { expect, test } from 'vitest';
import { createDayText, createTimeText, describeTime } from '../../src/lib/time/zone-time.ts';

const MOMENT = Date.UTC(2026, 0, 15, 23, 30);

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
