import { expect, it } from 'vitest';
import { clockOffsetMs } from '../../src/lib/time/clock.ts';

it('takes a clock for wrong that differs by more than measuring errors', () => {
  expect(clockOffsetMs(0, 1000, 11_001, 1004)).toBe(9999);
  expect(clockOffsetMs(9999, 1000, 1001, 1004)).toBe(-1);
  expect(clockOffsetMs(0, 1000, 1300, 1004)).toBe(0);
});

it('does not take an answer that was slow for another time', () => {
  expect(clockOffsetMs(0, 1000, 3900, 3900)).toBe(0);
  expect(clockOffsetMs(0, 1000, 1000, 3900)).toBe(0);
  expect(clockOffsetMs(0, 1000, 60_000, 3900)).toBe(57_550);
});
