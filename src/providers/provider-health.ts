// What the callers of a model share. When a vendor asks them to wait, they all wait; only a hint of the
// vendor sets that: one session's bad request never touches the others. A model that goes on failing is
// left alone for a while where a fallback model can answer.

import type { ProviderFailure } from '../kernel/message/errors.ts';
import type { Clock } from '../lib/time/clock.ts';
import { hintOf } from './rules/provider-failure.ts';
import {
  afterFailure,
  type BreakerPolicy,
  CLOSED,
  isOpen,
  isOutage,
  LONGEST_HINTED_WAIT_MS,
} from './rules/retry.ts';

export interface ProviderHealth {
  /** Milliseconds to wait before the next call; 0 = none. */
  waitMs(): number;
  noteFailure(failure: ProviderFailure): void;
  /** A call ended with this, after its last try. */
  noteGivenUp(failure: ProviderFailure): void;
  /** The last call failed, and no other succeeded since. */
  isFailing(): boolean;
  /** Why the model is left alone for now, after several failed calls in a row. */
  restsAfter(): ProviderFailure | undefined;
  noteSuccess(): void;
}

export function createProviderHealth(clock: Clock, policy: BreakerPolicy): ProviderHealth {
  let quietUntil = 0;
  let breaker = CLOSED;
  let last: ProviderFailure | undefined;
  return {
    waitMs: () => Math.max(0, quietUntil - clock.monotonic()),
    noteFailure(failure) {
      const waitMs = Math.min(hintOf(failure) ?? 0, LONGEST_HINTED_WAIT_MS);
      quietUntil = Math.max(quietUntil, clock.monotonic() + waitMs);
    },
    noteGivenUp(failure) {
      if (!isOutage(failure)) return;
      breaker = afterFailure(breaker, policy, clock.monotonic());
      last = failure;
    },
    isFailing: () => breaker.failures > 0,
    restsAfter: () => (isOpen(breaker, clock.monotonic()) ? last : undefined),
    noteSuccess() {
      quietUntil = 0;
      breaker = CLOSED;
    },
  };
}
