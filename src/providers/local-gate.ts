// The gate of one local model server: as many calls at once as it has places, the others wait in the
// order in which they came. Servers that load a model when it is asked for would throw it out again
// between two calls that overlap. The wait is measured apart from the call.

import { createPermits } from '../lib/async/permits.ts';
import type { Clock } from '../lib/time/clock.ts';

/** A place at the server; disposing gives it back, a second time changes nothing. */
export type Place = Disposable & {
  /** Milliseconds until it was given. */
  readonly waitedMs: number;
};

export type GateLoad = {
  readonly running: number;
  readonly waiting: number;
  /** Since the start: calls that were let in, and how long they waited, all together. */
  readonly calls: number;
  readonly waitedMs: number;
};

export class LocalGate {
  readonly #clock: Clock;
  readonly #permits = createPermits(1);
  #places = 1;
  #running = 0;
  #waiting = 0;
  #calls = 0;
  #waitedMs = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get load(): GateLoad {
    return {
      running: this.#running,
      waiting: this.#waiting,
      calls: this.#calls,
      waitedMs: this.#waitedMs,
    };
  }

  /** Calls that would be let in first. */
  ahead(places: number): number {
    return this.#running < places ? 0 : this.#waiting + this.#running - places + 1;
  }

  /** Given back by itself when the signal aborts. @throws the signal's reason */
  async enter(places: number, signal: AbortSignal): Promise<Place> {
    if (places !== this.#places) this.#permits.resize(places);
    this.#places = places;
    const startedAt = this.#clock.monotonic();
    this.#waiting += 1;
    const permit = await this.#permits.acquire(signal).finally(() => {
      this.#waiting -= 1;
    });
    const waitedMs = Math.round(this.#clock.monotonic() - startedAt);
    this.#running += 1;
    this.#calls += 1;
    this.#waitedMs += waitedMs;
    return this.#placeOf(permit, waitedMs, signal);
  }

  #placeOf(permit: Disposable, waitedMs: number, signal: AbortSignal): Place {
    let isHeld = true;
    const giveBack = () => {
      if (!isHeld) return;
      isHeld = false;
      this.#running -= 1;
      signal.removeEventListener('abort', giveBack);
      permit[Symbol.dispose]();
    };
    // Who is aborted may leave its stream behind without closing it.
    signal.addEventListener('abort', giveBack, { once: true });
    if (signal.aborted) giveBack();
    return { waitedMs, [Symbol.dispose]: giveBack };
  }
}
