// A clock that stands still until the test moves it. Timers fire in order of their time; between
// two of them pending promise work runs to rest, so one `advance` behaves like real time passing.

import type { Clock } from '../../src/lib/time/clock.ts';

type Timer = { at: number; readonly order: number; readonly fn: () => void };

export interface MovableClock extends Clock {
  /** Moves time on, firing what falls due. */
  advance(ms: number): Promise<void>;
  /**
   * Moves time on, or back, at a stroke, as for a machine that slept or whose clock was set: what fell
   * due in between fires afterwards, once.
   */
  jump(ms: number): Promise<void>;
  /** Timers that have not fired. */
  readonly pending: number;
}

/** @param settle lets what is under way come to rest before time moves on */
export function createMovableClock(
  startMs = Date.UTC(2026, 0, 15, 12),
  settle: () => Promise<void> = settleCallbacks,
): MovableClock {
  let nowMs = startMs;
  let order = 0;
  const timers = new Set<Timer>();

  const clock: MovableClock = {
    now: () => nowMs,
    monotonic: () => nowMs - startMs,
    get pending() {
      return timers.size;
    },
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        signal?.throwIfAborted();
        const timer = clock.timer(ms, () => {
          signal?.removeEventListener('abort', onAbort);
          resolve();
        });
        const onAbort = () => {
          timer[Symbol.dispose]();
          reject(signal?.reason);
        };
        signal?.addEventListener('abort', onAbort, { once: true });
      }),
    timer(ms, fn) {
      const timer: Timer = { at: nowMs + Math.max(0, ms), order: order++, fn };
      timers.add(timer);
      return { [Symbol.dispose]: () => void timers.delete(timer) };
    },
    async advance(ms) {
      const target = nowMs + ms;
      await settle();
      for (;;) {
        const next = [...timers]
          .filter((timer) => timer.at <= target)
          .sort((a, b) => a.at - b.at || a.order - b.order)[0];
        if (next === undefined) break;
        timers.delete(next);
        nowMs = Math.max(nowMs, next.at);
        next.fn();
        await settle();
      }
      nowMs = target;
      await settle();
    },
    async jump(ms) {
      await settle();
      nowMs += ms;
      // Timers wait for time that passes, not for what the clock says.
      if (ms < 0) for (const timer of timers) timer.at += ms;
      await clock.advance(0);
    },
  };
  return clock;
}

/** Lets promise chains and immediate I/O callbacks run before time moves on. */
export async function settleCallbacks() {
  for (let round = 0; round < 5; round += 1) {
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
}
