// Three deadlines of one model call: until its first token, between two pieces of its stream, and as a
// whole. Whichever passes first aborts the HTTP request.

import type { Clock } from '../lib/clock.ts';

export type CallTimeouts = {
  readonly firstTokenMs: number;
  readonly idleMs: number;
  readonly wholeCallMs: number;
};

export type DeadlineStage = 'first_token' | 'idle' | 'whole_call';

export interface CallDeadline extends Disposable {
  /** Aborts with the caller's signal or when a deadline passes. */
  readonly signal: AbortSignal;
  readonly expired: DeadlineStage | undefined;
  /** A piece of the answer came. Keep-alives are none. */
  progress(): void;
  /** Ends the request: everything needed is here. */
  stop(): void;
}

export function createCallDeadline(
  timeouts: CallTimeouts,
  clock: Clock,
  outer: AbortSignal,
): CallDeadline {
  const controller = new AbortController();
  let expired: DeadlineStage | undefined;
  let lastProgress: number | undefined;
  let idleTimer: Disposable | undefined;

  function expire(stage: DeadlineStage) {
    expired ??= stage;
    controller.abort(new Error(`model call deadline: ${stage}`));
  }

  /** One timer per idle period, not one per piece: it looks when the last piece came. */
  function watchIdle(waitMs: number) {
    idleTimer = clock.timer(waitMs, () => {
      const left = (lastProgress ?? 0) + timeouts.idleMs - clock.monotonic();
      if (left <= 0) expire('idle');
      else watchIdle(left);
    });
  }

  const onAbort = () => controller.abort(outer.reason);
  if (outer.aborted) onAbort();
  outer.addEventListener('abort', onAbort, { once: true });
  const whole = clock.timer(timeouts.wholeCallMs, () => expire('whole_call'));
  const first = clock.timer(timeouts.firstTokenMs, () => expire('first_token'));

  return {
    signal: controller.signal,
    get expired() {
      return expired;
    },
    progress() {
      const isFirst = lastProgress === undefined;
      lastProgress = clock.monotonic();
      if (!isFirst) return;
      first[Symbol.dispose]();
      watchIdle(timeouts.idleMs);
    },
    stop: () => controller.abort(),
    [Symbol.dispose]() {
      outer.removeEventListener('abort', onAbort);
      whole[Symbol.dispose]();
      first[Symbol.dispose]();
      idleTimer?.[Symbol.dispose]();
    },
  };
}
