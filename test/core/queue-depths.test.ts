// How many messages waited over the last day, as it is kept for the operations page.

import { expect, test } from 'vitest';
import {
  DEPTHS_MS,
  type QueueDepth,
  withDepth,
} from '../../src/features/health/rules/queue-depths.ts';

const START = 1_795_860_000_000;
const MINUTE_MS = 60_000;

test('keeps the most of each five minutes for a day, and begins anew where the clock was set back', () => {
  let depths: readonly QueueDepth[] = [];
  const look = (minute: number, toAnswer: number, toSend = 0) => {
    depths = withDepth(depths, { toAnswer, toSend }, START + minute * MINUTE_MS);
  };
  look(0, 2, 1);
  look(1, 7);
  look(4, 1, 3);
  look(5, 4);
  expect(depths).toEqual([
    { at: START, toAnswer: 7, toSend: 3 },
    { at: START + 5 * MINUTE_MS, toAnswer: 4, toSend: 0 },
  ]);
  for (let minute = 6; minute < (2 * DEPTHS_MS) / MINUTE_MS; minute += 1) look(minute, 1);
  expect(depths).toHaveLength(DEPTHS_MS / (5 * MINUTE_MS));
  look(0, 3);
  expect(depths).toEqual([{ at: START, toAnswer: 3, toSend: 0 }]);
});
