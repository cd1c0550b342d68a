// When a turn may begin: rapid messages of one chat are one question. The quiet time counts from
// the last message; a part that fills the channel's limit waits longer for its continuation.

export type CoalescePolicy = {
  readonly quietMs: number;
  readonly maxWaitMs: number;
  readonly maxMessages: number;
  readonly continuationMs: number;
};

export type Arrival = {
  /** Epoch milliseconds by our clock. */
  readonly receivedAt: number;
  /** UTF-16 units. */
  readonly length: number;
  /** It says itself that more may come. */
  readonly mayContinue?: boolean;
};

/** Clients split a long paste a little below the limit. */
const FULL_PART_SHARE = 0.97;

/** Milliseconds to wait for followers before the turn begins; 0 = begin now. */
export function coalesceWaitMs(
  arrivals: readonly [Arrival, ...Arrival[]],
  policy: CoalescePolicy,
  limitUnits: number,
  now: number,
): number {
  if (arrivals.length >= policy.maxMessages) return 0;
  const first = arrivals[0];
  const last = arrivals.at(-1) ?? first;
  const isFull = last.mayContinue === true || last.length >= limitUnits * FULL_PART_SHARE;
  const quietMs = isFull ? Math.max(policy.quietMs, policy.continuationMs) : policy.quietMs;
  const dueAt = Math.min(last.receivedAt + quietMs, first.receivedAt + policy.maxWaitMs);
  return Math.max(0, dueAt - now);
}
