// Time as a dependency: everything that waits or stamps asks a Clock, so a test moves time by hand.

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

/** setTimeout holds 32 bits; a longer wait is cut and simply fires early. */
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
