// When what failed for a session may be tried again: after a while that doubles with each failure.
// Kept in memory only; a restart tries again.

import type { SessionKey } from '../core/ids.ts';
import type { Clock } from '../lib/clock.ts';

export interface RetryTimes {
  isResting(session: SessionKey): boolean;
  failed(session: SessionKey): void;
  succeeded(session: SessionKey): void;
}

const FIRST_REST_MS = 60_000;
const LONGEST_REST_MS = 3_600_000;
const MAX_SESSIONS = 1000;

type Rest = { readonly untilMs: number; readonly restMs: number };

export function createRetryTimes(clock: Clock): RetryTimes {
  const rests = new Map<SessionKey, Rest>();
  return {
    isResting: (session) => (rests.get(session)?.untilMs ?? 0) > clock.monotonic(),
    failed(session) {
      const last = rests.get(session)?.restMs;
      const restMs = last === undefined ? FIRST_REST_MS : Math.min(2 * last, LONGEST_REST_MS);
      rests.delete(session);
      rests.set(session, { untilMs: clock.monotonic() + restMs, restMs });
      const [oldest] = rests.keys();
      if (rests.size > MAX_SESSIONS && oldest !== undefined) rests.delete(oldest);
    },
    succeeded: (session) => void rests.delete(session),
  };
}
