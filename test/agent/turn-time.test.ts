import { expect, it } from 'vitest';
import { TurnTime } from '../../src/agent/turn-time.ts';
import { createMovableClock } from '../support/movable-clock.ts';

it('counts what a turn takes, and nothing of what it waits for others', async () => {
  const clock = createMovableClock();
  const time = new TurnTime(clock);
  let isUp = false;
  await clock.advance(1000);
  const limit = time.limit(10_000, () => {
    isUp = true;
  });
  await clock.advance(4000);
  time.standStill();
  time.standStill();
  await clock.advance(600_000);
  expect({ isUp, elapsed: time.elapsedMs() }).toEqual({ isUp: false, elapsed: 5000 });
  time.goOn();
  time.goOn();
  await clock.advance(5999);
  expect(isUp).toBe(false);
  await clock.advance(1);
  expect(isUp).toBe(true);
  limit[Symbol.dispose]();
});

it('ends nothing once it is disposed of', async () => {
  const clock = createMovableClock();
  const time = new TurnTime(clock);
  let isUp = false;
  const limit = time.limit(1000, () => {
    isUp = true;
  });
  limit[Symbol.dispose]();
  await clock.advance(5000);
  expect({ isUp, pending: clock.pending }).toEqual({ isUp: false, pending: 0 });
});
