// For tests of what counts per day in a program with a clock of its own: they begin in the new day when
// the old one is nearly over.

import { setTimeout as delay } from 'node:timers/promises';

const DAY_MS = 86_400_000;
/** More than such a test takes. */
const MARGIN_MS = 60_000;

/** Resolves at once, except in the last minute of a day (UTC). */
export async function awayFromMidnight(): Promise<void> {
  const left = DAY_MS - (Date.now() % DAY_MS);
  if (left <= MARGIN_MS) await delay(left);
}
