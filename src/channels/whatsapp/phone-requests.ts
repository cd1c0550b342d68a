// The library asks the account's own phone for every message it could not read, besides its sender.
// Each of these is a message of ours: a flood of unreadable ones must not become a flood by us
// (case W05). Senders are still asked for all of them.

import type { WASocket } from '@whiskeysockets/baileys';
import type { Clock } from '../../lib/clock.ts';

const WINDOW_MS = 60_000;
const MAX_PER_WINDOW = 20;

export function limitPhoneRequests(
  { messageRetryManager: manager }: Pick<WASocket, 'messageRetryManager'>,
  clock: Clock,
): void {
  if (manager === null) return;
  const schedule = manager.schedulePhoneRequest.bind(manager);
  let windowAt = clock.monotonic();
  let used = 0;
  manager.schedulePhoneRequest = (...request) => {
    const now = clock.monotonic();
    if (now - windowAt >= WINDOW_MS) {
      windowAt = now;
      used = 0;
    }
    used += 1;
    if (used <= MAX_PER_WINDOW) schedule(...request);
  };
}
