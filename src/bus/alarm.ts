// One timer for the next thing that falls due. Nothing due, no timer.

import type { Clock } from '../lib/clock.ts';

export class Alarm {
  readonly #clock: Clock;
  readonly #ring: () => void;
  #timer: Disposable | undefined;
  #dueAt: number | undefined;

  constructor(clock: Clock, ring: () => void) {
    this.#clock = clock;
    this.#ring = ring;
  }

  /** Replaces the time of the alarm; undefined switches it off. Epoch milliseconds. */
  set(at: number | undefined): void {
    if (at === this.#dueAt) return;
    this.#timer?.[Symbol.dispose]();
    this.#timer = undefined;
    this.#dueAt = at;
    if (at === undefined) return;
    this.#timer = this.#clock.timer(Math.max(0, at - this.#clock.now()), () => {
      this.#dueAt = undefined;
      this.#ring();
    });
  }
}
