// Keeps a long-lived task running: a failure becomes a log line and a wait, never a crash, until the
// caller aborts or the task says that starting again is useless.

import { backoffMs } from './backoff.ts';
import type { Clock } from './clock.ts';
import type { Logger } from './logger.ts';

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

export async function supervise(
  run: (signal: AbortSignal) => Promise<void>,
  options: SuperviseOptions,
): Promise<void> {
  const { signal, clock } = options;
  let failures = 0;
  while (!signal.aborted) {
    const startedAt = clock.monotonic();
    try {
      await run(signal);
      return;
    } catch (error) {
      if (signal.aborted) return;
      failures = clock.monotonic() - startedAt >= options.stableMs ? 1 : failures + 1;
      const waitMs = backoffMs(failures, { ...options, random: Math.random });
      options.log.warn('task failed', { task: options.name, failures, waitMs, error });
      if (options.onFailure(error, waitMs) === 'stop') return;
      await clock.sleep(waitMs, signal).catch(() => undefined);
    }
  }
}
