// How a channel was over the last days, as spans of one state each; a gap is a gateway that did not run.

import { z } from 'zod';

const DAY_MS = 86_400_000;
const HISTORY_MS = 7 * DAY_MS;
/** The states are looked at every minute. */
const GAP_MS = 150_000;
const MAX_SPANS = 300;
const MAX_REASON_CHARS = 200;

export const channelSpan = z.object({
  kind: z.enum(['starting', 'running', 'degraded', 'stopped']),
  from: z.number().describe('Epoch milliseconds.'),
  to: z.number(),
  reason: z.string().exactOptional(),
});
export type ChannelSpan = z.infer<typeof channelSpan>;
export const channelSpans = z.array(z.tuple([z.string(), z.array(channelSpan)]));

export type SeenState = Pick<ChannelSpan, 'kind'> & { readonly reason?: string | undefined };

/** The spans after a look at the channel. */
export function withLook(
  spans: readonly ChannelSpan[],
  { kind, reason: words }: SeenState,
  now: number,
): readonly ChannelSpan[] {
  const reason = words?.slice(0, MAX_REASON_CHARS);
  const last = spans.at(-1);
  const isConnected = last !== undefined && now - last.to <= GAP_MS;
  if (isConnected && last.kind === kind && last.reason === reason) {
    return [...spans.slice(0, -1), { ...last, to: now }];
  }
  const from = isConnected ? last.to : now;
  const next = { kind, from, to: now, ...(reason === undefined ? {} : { reason }) };
  return [...spans, next].filter(({ to }) => now - to < HISTORY_MS).slice(-MAX_SPANS);
}
