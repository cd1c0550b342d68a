// When a vendor asks the callers of a model to wait, they all wait; this remembers until when. Only a hint of
// the vendor sets it: one session's bad request never touches the others.

import type { ProviderFailure } from '../core/errors.ts';
import { hintOf } from '../core/provider-failure.ts';
import { LONGEST_HINTED_WAIT_MS } from '../core/retry.ts';
import type { Clock } from '../lib/clock.ts';

export interface ProviderHealth {
  /** Milliseconds to wait before the next call; 0 = none. */
  waitMs(): number;
  noteFailure(failure: ProviderFailure): void;
  noteSuccess(): void;
}

export function createProviderHealth(clock: Clock): ProviderHealth {
  let quietUntil = 0;
  return {
    waitMs: () => Math.max(0, quietUntil - clock.monotonic()),
    noteFailure(failure) {
      const waitMs = Math.min(hintOf(failure) ?? 0, LONGEST_HINTED_WAIT_MS);
      quietUntil = Math.max(quietUntil, clock.monotonic() + waitMs);
    },
    noteSuccess() {
      quietUntil = 0;
    },
  };
}
