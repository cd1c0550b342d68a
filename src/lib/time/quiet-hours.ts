// Quiet hours: the hours in which the agent does not message a person first, the same each day or by
// weekday: `22:00-07:00`, `Sun-Thu 22:00-07:00, Fri-Sat 23:30-09:00`.

import { createWeekdayText, type Hours, QUIET_PATTERN, readHours, WEEKDAYS } from './zone-time.ts';

/** Instead of hours: none, whatever the configuration contains. */
export const NO_QUIET_HOURS = 'off';

/** They begin on these days, places in WEEKDAYS, and may end on the next one. */
type QuietSpan = Hours & { readonly first: number; readonly last: number };

const MINUTE_MS = 60_000;
const DAY_MINUTES = 1440;
const WEEK_MINUTES = 7 * DAY_MINUTES;
/** Longest shift of a clock. */
const SHIFT_MINUTES = 180;
const CLOCK_CHARS = 5;

/** Undefined for another form; empty: none. */
export function readQuietHours(text: string): readonly QuietSpan[] | undefined {
  if (text === '') return [];
  const spans = text.split(', ').map(readSpan);
  return spans.every((span) => span !== undefined) ? spans : undefined;
}

function readSpan(text: string): QuietSpan | undefined {
  const [, days, clock = ''] = /^(?:(\S+) )?(\S+)$/.exec(text) ?? [];
  const hours = readHours(clock);
  if (hours === undefined) return undefined;
  if (days === undefined) return { ...hours, first: 0, last: WEEKDAYS.length - 1 };
  const [from = '', to = from] = days.split('-');
  const first = WEEKDAYS.indexOf(from);
  const last = WEEKDAYS.indexOf(to);
  return first < 0 || last < 0 ? undefined : { ...hours, first, last };
}

/** As they are stored, or `off`; undefined for anything else. */
export function quietHoursOf(typed: string): string | undefined {
  const text = typed
    .trim()
    .toLowerCase()
    .replaceAll(/\s*[-–]\s*/g, '-')
    .replaceAll(/\s*,\s*/g, ', ')
    .replaceAll(/\s+/g, ' ')
    .replaceAll(/\b(\d)(?=:)/g, '0$1')
    .replaceAll(/\b[a-z](?=[a-z]{2}\b)/g, (letter) => letter.toUpperCase());
  if (text.toLowerCase() === NO_QUIET_HOURS) return NO_QUIET_HOURS;
  return QUIET_PATTERN.test(text) ? text : undefined;
}

/**
 * When the current quiet hours end, epoch milliseconds; undefined outside of them. `quiet` as
 * `quietHoursOf` returns it, empty: none. They end at their wall-clock time, hours without an end
 * after a week.
 */
export function quietUntil(nowMs: number, quiet: string, timeZone: string): number | undefined {
  const spans = readQuietHours(quiet)?.filter(({ from, to }) => from !== to) ?? [];
  if (spans.length === 0) return undefined;
  const weekdayText = createWeekdayText();
  const leftAt = (minute: number) => left(spans, weekdayText(minute * MINUTE_MS, timeZone));
  const now = Math.floor(nowMs / MINUTE_MS);
  let at = now;
  // If the clock changes in between, the end shifts accordingly.
  for (let rest = leftAt(at); rest > 0 && at - now < WEEK_MINUTES; rest = leftAt(at))
    at += Math.max(1, rest - SHIFT_MINUTES);
  return at === now ? undefined : at * MINUTE_MS;
}

/** Minutes until the end of the spans that contain the moment, `Sat 2026-01-17 23:00`; 0: none does. */
function left(spans: readonly QuietSpan[], moment: string): number {
  const day = WEEKDAYS.findIndex((name) => moment.startsWith(name));
  const [hour = 0, minute = 0] = moment.slice(-CLOCK_CHARS).split(':').map(Number);
  const now = hour * 60 + minute;
  const lefts = spans.map((span) => {
    const { from, to } = span;
    if (hasDay(span, day) && now >= from && (from > to || now < to))
      return to - now + (from > to ? DAY_MINUTES : 0);
    const isYesterdays = from > to && now < to && hasDay(span, (day + 6) % WEEKDAYS.length);
    return isYesterdays ? to - now : 0;
  });
  return Math.max(0, ...lefts);
}

/** `first` may be behind `last`: Fri-Mon. */
export function hasDay({ first, last }: Pick<QuietSpan, 'first' | 'last'>, day: number): boolean {
  return first <= last ? day >= first && day <= last : day >= first || day <= last;
}
