// The calendar day of a moment in a time zone, and when it ends: also on days of 23 and 25 hours.

import { createDayText } from './zone-time.ts';

export type LocalDay = {
  /** `YYYY-MM-DD`. */
  readonly day: string;
  /** The first moment of the next day, epoch milliseconds. */
  readonly endsAt: number;
};

/** The day of a moment (epoch milliseconds); zones as in zone-time.ts. */
export type LocalDays = (atMs: number, timeZone: string) => LocalDay;

/** No day is longer, whatever its zone does. */
const LONGEST_DAY_MS = 27 * 3_600_000;
/** Zones change at whole minutes. */
const STEP_MS = 60_000;

/** Remembers the day it was asked for last: asked again it costs nothing. */
export function createLocalDays(): LocalDays {
  const dayText = createDayText();
  let last: (LocalDay & { readonly from: number; readonly timeZone: string }) | undefined;

  return (atMs, timeZone) => {
    const isKnown =
      last?.timeZone === timeZone && atMs >= last.from && atMs < last.endsAt ? last : undefined;
    if (isKnown !== undefined) return isKnown;
    const day = dayText(atMs, timeZone);
    const minute = Math.floor(atMs / STEP_MS);
    let inside = minute;
    let outside = minute + LONGEST_DAY_MS / STEP_MS;
    while (outside - inside > 1) {
      const middle = Math.floor((inside + outside) / 2);
      if (dayText(middle * STEP_MS, timeZone) === day) inside = middle;
      else outside = middle;
    }
    last = { day, endsAt: outside * STEP_MS, from: atMs, timeZone };
    return last;
  };
}
