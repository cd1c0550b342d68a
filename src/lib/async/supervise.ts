// Keeps a long-lived task running: a failure becomes a log line and a wait, never a crash, until the
// caller aborts or the task says that starting again is useless.

import type { Logger } from '../logger.ts';
import { backoffMs } from '../time/backoff.ts';
import type { Clock } from '../time/clock.ts';

export type SuperviseOptions = {
  readonly name: string;
  readonly signal: AbortSignal;
  readonly clock: Clock;
  readonly log: Logger;
  readonly minMs: number;
  readonly maxMs: number;
  /** A run this long counts as healthy and resets the backoff. */
  readonly stableMs: number;
  /** `stop` ends the supervision. */
  onFailure(error: unknown, retryInMs: number): 'restart' | 'stop';
};

/** Failures within `stableMs` after which a task that works in between is slowed down all the same. */
const MAX_QUICK_RESTARTS = 10;

/** The run calls `works` once it has done something useful: its earlier failures are forgotten then. */
export async function supervise(
  run: (signal: AbortSignal, works: () => void) => Promise<void>,
  options: SuperviseOptions,
): Promise<void> {
  const { signal, clock, stableMs } = options;
  let failures = 0;
  let recent: readonly number[] = [];
  while (!signal.aborted) {
    const startedAt = clock.monotonic();
    let hasWorked = false;
    try {
      await run(signal, () => {
        hasWorked = true;
      });
      return;
    } catch (error) {
      if (signal.aborted) return;
      const now = clock.monotonic();
      recent = [...recent.filter((at) => now - at < stableMs), now];
      const isFlapping = recent.length > MAX_QUICK_RESTARTS;
      const isForgiven = now - startedAt >= stableMs || (hasWorked && !isFlapping);
      failures = isForgiven ? 1 : failures + 1;
      const waitMs = backoffMs(failures, { ...options, random: Math.random });
      options.log.warn('task failed', { task: options.name, failures, waitMs, error });
      if (options.onFailure(error, waitMs) === 'stop') return;
      await clock.sleep(waitMs, signal).catch(() => undefined);
    }
  }
}
