import { expect, it } from 'vitest';
import { supervise } from '../../src/lib/async.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { createMovableClock } from '../support/movable-clock.ts';

const STABLE_MS = 600_000;

/** The waits after runs that each end by a failure. */
async function waitsOf(runs: number, hasWorked: boolean): Promise<readonly number[]> {
  const clock = createMovableClock();
  const stop = new AbortController();
  const waits: number[] = [];
  const supervised = supervise(
    async (_signal, works) => {
      if (hasWorked) works();
      throw new Error('the connection was lost');
    },
    {
      ...{ name: 'test', signal: stop.signal, clock, log: silentLogger },
      ...{ minMs: 5_000, maxMs: 300_000, stableMs: STABLE_MS },
      onFailure(_error, waitMs) {
        waits.push(waitMs);
        return waits.length < runs ? 'restart' : 'stop';
      },
    },
  );
  while (waits.length < runs) await clock.advance(300_000);
  await supervised;
  return waits;
}

it('waits longer after each failure of a task that never works', async () => {
  const waits = await waitsOf(6, false);
  expect(waits.at(-1)).toBeGreaterThanOrEqual(80_000);
});

it('begins again with the shortest wait after a task has worked', async () => {
  const waits = await waitsOf(6, true);
  expect(Math.max(...waits)).toBeLessThanOrEqual(5_000);
});

it('slows down a task that works each time and fails all the time', async () => {
  const clock = createMovableClock();
  const stop = new AbortController();
  let runs = 0;
  const supervised = supervise(
    async (_signal, works) => {
      runs += 1;
      works();
      throw new Error('the connection was lost');
    },
    {
      ...{ name: 'test', signal: stop.signal, clock, log: silentLogger },
      ...{ minMs: 5_000, maxMs: 300_000, stableMs: STABLE_MS, onFailure: () => 'restart' },
    },
  );
  await clock.advance(3_600_000);
  stop.abort();
  await supervised;
  // Without it an hour has at least 720 of them.
  expect(runs).toBeLessThanOrEqual(100);
  expect(runs).toBeGreaterThanOrEqual(40);
});
