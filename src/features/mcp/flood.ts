// How much a server may say: a burst, and then so many messages a second. More is an attack or a fault,
// and the connection ends.

import type { Clock } from '../../lib/time/clock.ts';

/** In words for an owner. */
export const TOO_MUCH = 'it sent more than can be listened to';
const BURST = 5000;
const PER_SECOND = 200;

export type FloodGuard = ReturnType<typeof createFloodGuard>;

export function createFloodGuard(clock: Clock) {
  let left = BURST;
  let at = clock.monotonic();
  return {
    /** False once too much was said. */
    take(): boolean {
      const now = clock.monotonic();
      left = Math.min(BURST, left + ((now - at) / 1000) * PER_SECOND);
      at = now;
      if (left < 1) return false;
      left -= 1;
      return true;
    },
  };
}
