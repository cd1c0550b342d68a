// The clock, exponential backoff, and waiting that ends with an abort signal.

import { setTimeout as delay } from 'node:timers/promises';

export interface Clock {
  /** Epoch milliseconds. */
  now(): number;
  /** Monotonic milliseconds since an arbitrary start; unaffected by clock changes. */
  monotonic(): number;
  /** Resolves after `ms`; rejects with the signal's reason when aborted first. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /** Calls `fn` once after `ms` unless disposed first. */
  timer(ms: number, fn: () => void): Disposable;
}

/** setTimeout takes 32 bits; a longer wait is cut and fires early. */
const MAX_TIMER_MS = 2_147_483_647;

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  async sleep(ms, signal) {
    signal?.throwIfAborted();
    try {
      await delay(Math.min(Math.max(0, ms), MAX_TIMER_MS), undefined, signal ? { signal } : {});
    } catch (error) {
      signal?.throwIfAborted();
      throw error;
    }
  },
  timer(ms, fn) {
    const handle = setTimeout(fn, Math.min(Math.max(0, ms), MAX_TIMER_MS));
    return { [Symbol.dispose]: () => clearTimeout(handle) };
  },
};

/** A clock that is ahead of another one by so many milliseconds. */
export const shiftedClock = (clock: Clock, offsetMs: () => number): Clock => ({
  ...clock,
  now: () => clock.now() + offsetMs(),
});

/** Smaller differences of clocks are measuring errors. */
const MIN_OFFSET_MS = 500;

/**
 * How far a server's clock is ahead of this one, milliseconds. It said `server` at some time between
 * `sentAt` and `answeredAt`: half of the round trip is added to the measuring error, so that a slow
 * answer does not move the time forth and back, which changes what came first.
 */
export function clockOffsetMs(
  known: number,
  sentAt: number,
  server: number,
  answeredAt: number,
): number {
  const offset = server - (sentAt + answeredAt) / 2;
  const errorMs = MIN_OFFSET_MS + (answeredAt - sentAt) / 2;
  return Math.abs(offset - known) > errorMs ? Math.round(offset) : known;
}

// Waiting times between tries: doubling, with jitter, capped.

type BackoffOptions = {
  readonly minMs: number;
  readonly maxMs: number;
  /** 0 to 1; random so that many clients do not return at the same instant. */
  readonly random: () => number;
};

/**
 * The wait before try `failures + 1`: between half and all of min · 2^(failures-1), at most max.
 */
export function backoffMs(failures: number, options: BackoffOptions): number {
  const ceiling = Math.min(options.maxMs, options.minMs * 2 ** Math.max(0, failures - 1));
  return Math.round(ceiling / 2 + (ceiling / 2) * options.random());
}

// Waiting with an AbortSignal: for its abort, or for something else until then.

/** Why a wait ends that nobody waits for any more. Shared: each new one would format its stack. */
const WAIT_OVER = new DOMException('The wait is over', 'AbortError');

/**
 * For one wait or turn: a signal that aborts with any of these until it is disposed. One of
 * `AbortSignal.any` costs three times as much, and is kept until V8 collects old objects, with all
 * that its listeners refer to.
 */
export function following(...signals: readonly AbortSignal[]) {
  const controller = new AbortController();
  const follow = () => controller.abort(signals.find(({ aborted }) => aborted)?.reason);
  const release = () => {
    for (const signal of signals) signal.removeEventListener('abort', follow);
  };
  for (const signal of signals) signal.addEventListener('abort', follow, { once: true });
  if (signals.some(({ aborted }) => aborted)) follow();
  return {
    signal: controller.signal,
    abort(reason: unknown = WAIT_OVER): void {
      release();
      controller.abort(reason);
    },
    [Symbol.dispose]: release,
  };
}

export type Following = ReturnType<typeof following>;

/** Calls it when the signal aborts, at once if it has; not any more once it is disposed. */
export function onAbort(signal: AbortSignal, call: () => void): Disposable {
  if (signal.aborted) call();
  else signal.addEventListener('abort', call, { once: true });
  return { [Symbol.dispose]: () => signal.removeEventListener('abort', call) };
}

/** Resolves when the signal aborts, at once if it has. */
export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => void onAbort(signal, resolve));
}

/** The work's outcome; rejects with the signal's reason when that aborts first. */
export function orAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const aborting = onAbort(signal, () => reject(signal.reason));
    work.then(resolve, reject).finally(() => aborting[Symbol.dispose]());
  });
}

/**
 * Waits until so many milliseconds have passed, `woken` is settled or the signal aborts. @throws
 * what `woken` throws
 */
export async function sleepOrWoken(
  clock: Clock,
  ms: number,
  woken: Promise<unknown>,
  signal: AbortSignal,
): Promise<void> {
  const wait = following(signal);
  const slept = clock.sleep(ms, wait.signal).catch(() => undefined);
  try {
    await Promise.race([slept, woken]);
  } finally {
    wait.abort();
  }
}

/**
 * Whether it holds within so many milliseconds, asked each `everyMs`. @throws the signal's reason
 */
export async function comesTrue(
  clock: Clock,
  limits: { readonly withinMs: number; readonly everyMs: number; readonly signal?: AbortSignal },
  holds: () => boolean | Promise<boolean>,
): Promise<boolean> {
  const until = clock.monotonic() + limits.withinMs;
  while (!(await holds())) {
    if (clock.monotonic() > until) return false;
    await clock.sleep(limits.everyMs, limits.signal);
  }
  return true;
}

/** Runs the work with a signal that also aborts, for this reason, after so many milliseconds. */
export async function withDeadline<T>(
  clock: Clock,
  ms: number,
  reason: () => unknown,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  using ending = following(signal);
  using _timer = clock.timer(ms, () => ending.abort(reason()));
  return await work(ending.signal);
}

/** Runs the work; if its signal aborted, throws that reason, whatever the work throws. */
export const reasonFirst =
  <T>(work: (signal: AbortSignal) => Promise<T>) =>
  (signal: AbortSignal): Promise<T> =>
    work(signal).catch((error: unknown) => {
      throw signal.aborted ? signal.reason : error;
    });
