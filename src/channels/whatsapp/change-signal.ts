// Something others wait for: they look, and where it is not yet so, wait for the next change.

import type { Clock } from '../../lib/time/clock.ts';

export interface Change {
  notify(): void;
  /** Resolves at the next change. @throws the signal's reason */
  next(signal: AbortSignal): Promise<void>;
}

export function createChange(): Change {
  const waiting = new Set<() => void>();
  return {
    notify() {
      for (const resume of [...waiting]) resume();
    },
    next(signal) {
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      const onAbort = () => reject(signal.reason);
      if (signal.aborted) onAbort();
      signal.addEventListener('abort', onAbort, { once: true });
      waiting.add(resolve);
      return promise.finally(() => {
        waiting.delete(resolve);
        signal.removeEventListener('abort', onAbort);
      });
    },
  };
}

// Deadlines for calls into the vendor's library, which takes no signal and may never answer.

/**
 * The work's result; rejects with what `late` makes when the time or the signal is up before. The
 * signal given to the work aborts then.
 */
export async function within<T>(
  {
    clock,
    ms,
    signal,
  }: { readonly clock: Clock; readonly ms: number; readonly signal: AbortSignal },
  work: (signal: AbortSignal) => Promise<T>,
  late: () => Error,
): Promise<T> {
  const ending = new AbortController();
  const inner = AbortSignal.any([signal, ending.signal]);
  const ended = Promise.withResolvers<never>();
  ended.promise.catch(() => undefined);
  const end = () => ended.reject(late());
  inner.addEventListener('abort', end, { once: true });
  if (inner.aborted) end();
  const timer = clock.timer(ms, () => ending.abort());
  try {
    const result = work(inner);
    // Comes too late to be of interest where the deadline won.
    result.catch(() => undefined);
    return await Promise.race([result, ended.promise]);
  } finally {
    timer[Symbol.dispose]();
    inner.removeEventListener('abort', end);
    ending.abort();
  }
}

/** The answer, or `late` after this many milliseconds. @throws what the call throws in time */
export async function inTime<T>(clock: Clock, ms: number, answer: Promise<T>): Promise<T | 'late'> {
  const { promise, resolve } = Promise.withResolvers<'late'>();
  const timer = clock.timer(ms, () => resolve('late'));
  try {
    return await Promise.race([answer, promise]);
  } finally {
    timer[Symbol.dispose]();
  }
}
