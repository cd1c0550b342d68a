// How many messages waited over the last day: the most of each five minutes, by a look a minute.

import { z } from 'zod';

export const DEPTHS_MS = 86_400_000;
const STEP_MS = 300_000;

const queueDepth = z.object({
  at: z.number().describe('Epoch milliseconds: when the five minutes began.'),
  toAnswer: z.number().describe('The most that waited or were being answered.'),
  toSend: z.number(),
});
export type QueueDepth = z.infer<typeof queueDepth>;
export const queueDepths = z.array(queueDepth);

/** The depths after a look. */
export function withDepth(
  depths: readonly QueueDepth[],
  { toAnswer, toSend }: Omit<QueueDepth, 'at'>,
  now: number,
): readonly QueueDepth[] {
  const at = now - (now % STEP_MS);
  const last = depths.at(-1);
  if (last?.at === at) {
    const most = {
      at,
      toAnswer: Math.max(last.toAnswer, toAnswer),
      toSend: Math.max(last.toSend, toSend),
    };
    return [...depths.slice(0, -1), most];
  }
  // A clock that was set back begins anew.
  const before = depths.filter((one) => one.at < at && at - one.at < DEPTHS_MS);
  return [...before, { at, toAnswer, toSend }];
}
