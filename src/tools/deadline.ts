// Runs a tool until it ends, its time is up or the turn is stopped; a tool that does not listen to
// its signal is left behind, it never holds the turn.

import { ToolError } from '../core/errors.ts';
import type { Clock } from '../lib/clock.ts';

/** @throws ToolError timeout, cancelled, or what the work throws */
export async function runWithDeadline<T>(
  work: (signal: AbortSignal) => Promise<T>,
  options: { readonly signal: AbortSignal; readonly timeoutMs: number; readonly clock: Clock },
): Promise<T> {
  const { signal, timeoutMs, clock } = options;
  if (signal.aborted) throw cancelled();
  const own = new AbortController();
  const cut = Promise.withResolvers<never>();
  const end = (error: ToolError) => {
    cut.reject(error);
    own.abort(error);
  };
  const onStop = () => end(cancelled());
  signal.addEventListener('abort', onStop, { once: true });
  const timer = clock.timer(timeoutMs, () => end(timedOut(timeoutMs)));
  try {
    return await Promise.race([work(own.signal), cut.promise]);
  } finally {
    timer[Symbol.dispose]();
    signal.removeEventListener('abort', onStop);
    cut.promise.catch(() => undefined);
  }
}

const cancelled = () => new ToolError('cancelled', 'the turn was stopped');
const timedOut = (timeoutMs: number) =>
  new ToolError('timeout', `the tool did not end within ${timeoutMs / 1000} s`);
