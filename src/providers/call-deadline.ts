// Three deadlines of one model call: until its first token, between two pieces of its stream, and as a
// whole. Whichever passes first aborts the HTTP request.

import type { Clock } from '../lib/time/clock.ts';

export type CallTimeouts = {
  readonly firstTokenMs: number;
  readonly idleMs: number;
  readonly wholeCallMs: number;
};

export type DeadlineStage = 'first_token' | 'idle' | 'whole_call';

export class CallDeadline implements Disposable {
  readonly #timeouts: CallTimeouts;
  readonly #clock: Clock;
  readonly #outer: AbortSignal;
  readonly #controller = new AbortController();
  readonly #whole: Disposable;
  readonly #first: Disposable;
  #idle: Disposable | undefined;
  #expired: DeadlineStage | undefined;
  #lastProgress: number | undefined;

  constructor(timeouts: CallTimeouts, clock: Clock, outer: AbortSignal) {
    this.#timeouts = timeouts;
    this.#clock = clock;
    this.#outer = outer;
    this.#whole = clock.timer(timeouts.wholeCallMs, () => this.#expire('whole_call'));
    this.#first = clock.timer(timeouts.firstTokenMs, () => this.#expire('first_token'));
    if (outer.aborted) this.stop();
    outer.addEventListener('abort', this.stop, { once: true });
  }

  /** Aborts with the caller's signal or when a deadline passes. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get expired(): DeadlineStage | undefined {
    return this.#expired;
  }

  /** A piece of the answer came. Keep-alives are none. */
  progress(): void {
    const isFirst = this.#lastProgress === undefined;
    this.#lastProgress = this.#clock.monotonic();
    if (!isFirst) return;
    this.#first[Symbol.dispose]();
    this.#watchIdle(this.#timeouts.idleMs);
  }

  /** Ends the request: nothing more of it is wanted. */
  readonly stop = (): void => this.#controller.abort();

  [Symbol.dispose](): void {
    this.#outer.removeEventListener('abort', this.stop);
    this.#whole[Symbol.dispose]();
    this.#first[Symbol.dispose]();
    this.#idle?.[Symbol.dispose]();
  }

  #expire(stage: DeadlineStage) {
    this.#expired ??= stage;
    this.stop();
  }

  /** One timer per idle period, not one per piece: it looks when the last piece came. */
  #watchIdle(waitMs: number) {
    this.#idle = this.#clock.timer(waitMs, () => {
      const since = this.#clock.monotonic() - (this.#lastProgress ?? 0);
      const leftMs = this.#timeouts.idleMs - since;
      if (leftMs <= 0) this.#expire('idle');
      else this.#watchIdle(leftMs);
    });
  }
}
