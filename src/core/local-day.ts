// The calendar day of a moment in a time zone, and when it ends: also on days of 23 and 25 hours.

import { createDayText, type ZonedText } from './zone-time.ts';

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
    const day = timeZone === '' ? machineDay(atMs) : zonedDay(atMs, timeZone, dayText);
    last = { ...day, from: atMs, timeZone };
    return last;
  };
}

/** Dates know the machine's zone by themselves; the first formatter of Intl takes 6 MB. */
function machineDay(atMs: number): LocalDay {
  const at = new Date(atMs);
  const [year, month, date] = [at.getFullYear(), at.getMonth(), at.getDate()];
  const day = [padded(year, 4), padded(month + 1, 2), padded(date, 2)].join('-');
  return { day, endsAt: new Date(year, month, date + 1).getTime() };
}

function zonedDay(atMs: number, timeZone: string, dayText: ZonedText): LocalDay {
  const day = dayText(atMs, timeZone);
  const minute = Math.floor(atMs / STEP_MS);
  let inside = minute;
  let outside = minute + LONGEST_DAY_MS / STEP_MS;
  while (outside - inside > 1) {
    const middle = Math.floor((inside + outside) / 2);
    if (dayText(middle * STEP_MS, timeZone) === day) inside = middle;
    else outside = middle;
  }
  return { day, endsAt: outside * STEP_MS };
}

const padded = (value: number, digits: number) => String(value).padStart(digits, '0');
