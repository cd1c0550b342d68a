// The time of one turn, or of one call beside it. While it waits for a place at a local model server,
// which answers others first, it does not count.

import type { Clock } from '../lib/clock.ts';

type Limit = { readonly atMs: number; readonly onUp: () => void };

export class TurnTime {
  readonly #clock: Clock;
  #countedMs = 0;
  /** Undefined while the time stands still. */
  #since: number | undefined;
  #limit: Limit | undefined;
  #deadline: Disposable | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#since = clock.monotonic();
  }

  elapsedMs(): number {
    const running = this.#since === undefined ? 0 : this.#clock.monotonic() - this.#since;
    return Math.round(this.#countedMs + running);
  }

  /** Calls `onUp` once `maxMs` more are counted, unless disposed first. */
  limit(maxMs: number, onUp: () => void): Disposable {
    this.#limit = { atMs: this.elapsedMs() + maxMs, onUp };
    this.#arm();
    return { [Symbol.dispose]: () => this.#deadline?.[Symbol.dispose]() };
  }

  standStill(): void {
    if (this.#since === undefined) return;
    this.#countedMs += this.#clock.monotonic() - this.#since;
    this.#since = undefined;
    this.#deadline?.[Symbol.dispose]();
  }

  goOn(): void {
    if (this.#since !== undefined) return;
    this.#since = this.#clock.monotonic();
    this.#arm();
  }

  #arm(): void {
    if (this.#limit === undefined) return;
    const { atMs, onUp } = this.#limit;
    this.#deadline = this.#clock.timer(atMs - this.elapsedMs(), onUp);
  }
}
