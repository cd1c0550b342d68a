// The wait for the next moment at which a question has to be closed.

import type { Clock } from '../lib/clock.ts';
import type { OpenQuestion } from './question-book.ts';

/** Timers take no more than 2^31 ms. */
const MAX_SLEEP_MS = 86_400_000;

/** Until a question falls due or another one is asked. */
export async function untilNext(
  open: readonly OpenQuestion[],
  changed: Promise<void>,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  const dueAt = Math.min(...open.map(({ expiresAt }) => expiresAt));
  const stop = new AbortController();
  const waits = AbortSignal.any([signal, stop.signal]);
  const waitMs = Math.min(MAX_SLEEP_MS, Math.max(0, dueAt - clock.now()));
  const slept = clock.sleep(waitMs, waits).catch(() => undefined);
  await Promise.race([slept, changed]);
  stop.abort();
}
