// Which questions have to be taken up, and the wait for the next moment at which one has to be.

import type { Clock } from '../lib/clock.ts';
import type { OpenQuestion } from './question-book.ts';

/** Timers take no more than 2^31 ms. */
const MAX_SLEEP_MS = 86_400_000;

/** It was answered and what that does was not done yet, or its time is over. */
export const isDue = ({ chosen, expiresAt }: OpenQuestion, now: number) =>
  chosen !== undefined || expiresAt <= now;

/** One that cannot be taken up now does not keep the others. @throws what it threw */
export async function eachDue(
  all: readonly OpenQuestion[],
  now: number,
  takeUp: (open: OpenQuestion) => Promise<void>,
): Promise<void> {
  const results = await Promise.allSettled(all.filter((open) => isDue(open, now)).map(takeUp));
  const failed = results.find((result) => result.status === 'rejected');
  if (failed !== undefined) throw failed.reason;
}

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
