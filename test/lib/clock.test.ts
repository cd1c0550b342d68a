import { expect, it } from 'vitest';
import { clockOffsetMs, comesTrue, systemClock } from '../../src/lib/time/clock.ts';

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

it.each([
  ['at once', 0, true, 0],
  ['after two looks', 20, true, 20],
  ['at the last look', 110, true, 110],
  ['too late', 120, false, 110],
])('looks at most so long: what holds %s', async (_when, from, found, waited) => {
  let now = 0;
  const clock = {
    ...systemClock,
    monotonic: () => now,
    async sleep(ms: number) {
      now += ms;
    },
  };
  const limits = { withinMs: 100, everyMs: 10 };
  expect(await comesTrue(clock, limits, () => now >= from)).toBe(found);
  expect(now).toBe(waited);
});
