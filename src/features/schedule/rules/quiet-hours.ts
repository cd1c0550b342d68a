// The hours in which a person is not to be disturbed by what the machine begins of its own accord.

import { minuteOfDay } from '../../../lib/time/zone-time.ts';
import { type Hours, readHours } from '../../letters/rules/letter.ts';

/** Instead of hours: none, whatever the configuration says. */
export const NO_QUIET_HOURS = 'off';

const MINUTE_MS = 60_000;
const DAY_MINUTES = 1440;
/** Longest shift of a clock. */
const SHIFT_MINUTES = 180;

/** `22:00-07:00` or `off` in its one spelling; undefined where it is neither. */
export function quietHoursOf(typed: string): string | undefined {
  const text = typed
    .trim()
    .toLowerCase()
    .replace(/\s*[-–]\s*/, '-');
  const padded = text.replace(/(^|-)(\d)(?=:)/g, '$10$2');
  if (padded === NO_QUIET_HOURS) return NO_QUIET_HOURS;
  return readHours(padded) === undefined ? undefined : padded;
}

/**
 * When the quiet hours that hold now end, epoch milliseconds; undefined where none hold. `quiet` as
 * `quietHoursOf` gives it, empty: none. They end as the clock on the wall reaches their end.
 */
export function quietUntil(nowMs: number, quiet: string, timeZone: string): number | undefined {
  const hours = readHours(quiet);
  if (hours === undefined || hours.from === hours.to) return undefined;
  if (!isInside(minuteOfDay(nowMs, timeZone), hours)) return undefined;
  const minute = Math.floor(nowMs / MINUTE_MS);
  const left = (hours.to - minuteOfDay(nowMs, timeZone) + DAY_MINUTES) % DAY_MINUTES;
  // Where the clock changes in between, the end comes as much earlier or later.
  let at = minute + Math.max(1, left - SHIFT_MINUTES);
  while (isInside(minuteOfDay(at * MINUTE_MS, timeZone), hours)) at += 1;
  return at * MINUTE_MS;
}

/** `hours` as `08:00-22:00`. */
export function isWithinHours(nowMs: number, hours: string, timeZone: string): boolean {
  const read = readHours(hours);
  return read !== undefined && isInside(minuteOfDay(nowMs, timeZone), read);
}

function isInside(minute: number, { from, to }: Hours): boolean {
  return from < to ? minute >= from && minute < to : minute >= from || minute < to;
}
