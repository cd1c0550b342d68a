// From what a clock on the wall shows in a time zone to the moment it is: also around the hours that
// a zone skips or has twice.

import { createMinuteText } from './zone-time.ts';

const DAY_MS = 86_400_000;

export type WallMoment =
  /** Epoch milliseconds; the first of two where the zone has the minute twice. */
  | { readonly kind: 'moment'; readonly at: number }
  /** The zone's clock jumps over it. */
  | { readonly kind: 'skipped' }
  /** No day of the calendar, or no time of a day. */
  | { readonly kind: 'unknown' };

/** `wall`: `YYYY-MM-DD HH:MM`. @throws RangeError for an unknown zone */
export function wallMoment(wall: string, timeZone: string): WallMoment {
  const asUtc = Date.parse(`${wall.replace(' ', 'T')}:00Z`);
  const isDay = !Number.isNaN(asUtc) && new Date(asUtc).toISOString().startsWith(wall.slice(0, 10));
  if (!isDay) return { kind: 'unknown' };
  const minuteText = createMinuteText();
  const offsetAt = (at: number) => shownAsUtc(minuteText(at, timeZone)) - at;
  // A zone changes at most once in two days, so one of the two holds.
  const found = [asUtc - DAY_MS, asUtc + DAY_MS]
    .map((near) => asUtc - offsetAt(near))
    .filter((at) => minuteText(at, timeZone) === wall);
  return found.length === 0 ? { kind: 'skipped' } : { kind: 'moment', at: Math.min(...found) };
}

/** Minutes after midnight that the zone's clock shows. */
export function minuteOfDay(atMs: number, timeZone: string): number {
  const [hour = 0, minute = 0] = createMinuteText()(atMs, timeZone)
    .slice(-5)
    .split(':')
    .map(Number);
  return hour * 60 + minute;
}

const shownAsUtc = (text: string) => Date.parse(`${text.replace(' ', 'T')}:00Z`);
