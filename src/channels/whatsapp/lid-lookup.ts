// Asks WhatsApp which LID belongs to a phone number, in bounded time: a session call waits for the
// answer, and behind it every chat. Known pairs are kept by Baileys' own mapping store.

import type { SocketConfig } from '@whiskeysockets/baileys';
import type { Clock } from '../../lib/clock.ts';
import type { Logger } from '../../lib/logger.ts';
import { inTime } from './deadline.ts';

type Ask = NonNullable<Parameters<SocketConfig['makeSignalRepository']>[2]>;

export type LidLookupDeps = {
  readonly ask: Ask | undefined;
  readonly clock: Clock;
  readonly log: Logger;
};

const ANSWER_DEADLINE_MS = 5_000;
/** So long a number without an answer counts as one without a LID: it is addressed by number. */
const UNKNOWN_FOR_MS = 60_000;
const MAX_UNKNOWN = 1_000;

/** Never rejects: who cannot be found, or not in time, is left out. */
export function createLidLookup({ ask, clock, log }: LidLookupDeps): Ask {
  const unknownUntil = new Map<string, number>();

  function remember(numbers: readonly string[]): void {
    if (unknownUntil.size + numbers.length > MAX_UNKNOWN) unknownUntil.clear();
    for (const number of numbers) unknownUntil.set(number, clock.monotonic() + UNKNOWN_FOR_MS);
  }

  return async (numbers) => {
    const now = clock.monotonic();
    const asked = numbers.filter((number) => (unknownUntil.get(number) ?? 0) <= now);
    if (ask === undefined || asked.length === 0) return [];
    const answer = await inTime(clock, ANSWER_DEADLINE_MS, ask(asked)).catch(() => 'late' as const);
    if (answer === 'late') log.warn('WhatsApp did not say whose number it is');
    const found = answer === 'late' ? [] : (answer ?? []);
    remember(asked.filter((number) => !found.some(({ pn }) => pn === number)));
    return found;
  };
}
