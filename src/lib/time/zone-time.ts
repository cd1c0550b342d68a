// Moments in a time zone: the calendar day, and words that leave nothing to guess. Everywhere the
// empty zone is the machine's, and an unknown one throws RangeError unless said otherwise.

/** A moment, epoch milliseconds, as the zone (an IANA name) sees it. */
type ZonedText = (atMs: number, timeZone: string) => string;

type PartOf = (type: Intl.DateTimeFormatPartTypes) => string;

const DAY = { year: 'numeric', month: '2-digit', day: '2-digit' } as const;
const DAY_AND_TIME = {
  ...DAY,
  weekday: 'long',
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  hourCycle: 'h23',
  timeZoneName: 'longOffset',
} as const;
const SHORT_WEEKDAY = 3;

/** The calendar day, `YYYY-MM-DD`. */
export const createDayText = (): ZonedText => zonedText(DAY, dayOf);

/** `YYYY-MM-DD HH:MM`. */
export const createMinuteText = (): ZonedText =>
  zonedText(DAY_AND_TIME, (part) => `${dayOf(part)} ${part('hour')}:${part('minute')}`);

/** `Sat YYYY-MM-DD HH:MM`. */
export const createWeekdayText = (): ZonedText =>
  zonedText(DAY_AND_TIME, (part) => {
    const weekday = part('weekday').slice(0, SHORT_WEEKDAY);
    return `${weekday} ${dayOf(part)} ${part('hour')}:${part('minute')}`;
  });

/** What the zone is called, also where it is the machine's. */
export function createZoneNames(): (timeZone: string) => string {
  const nameOf = zonedText(DAY, (_part, zone) => zone);
  return (timeZone) => nameOf(0, timeZone);
}

/** The person's date and time, to the minute, so that it changes no more often than it must. */
export const createTimeText = (): ZonedText =>
  zonedText(
    DAY_AND_TIME,
    (part, zone) =>
      `Now: ${part('weekday')} ${dayOf(part)} ${part('hour')}:${part('minute')} (${zone})`,
  );

/** Weekday, date, time, offset and zone; undefined for an unknown zone. */
export function describeTime(atMs: number, timeZone: string): string | undefined {
  if (!isTimeZone(timeZone)) return undefined;
  const describe = zonedText(DAY_AND_TIME, (part, zone) => {
    const time = `${part('hour')}:${part('minute')}:${part('second')}`;
    return `${part('weekday')}, ${dayOf(part)} ${time} (${part('timeZoneName')}, ${timeZone || zone})`;
  });
  return describe(atMs, timeZone);
}

/** Where the machine's own clock runs when TZ names no zone that is known. */
export const UTC = 'UTC';

/** Undefined where the environment variable TZ names none that is known. */
export const machineZone = (): string | undefined =>
  Intl.DateTimeFormat().resolvedOptions().timeZone;

export function isTimeZone(name: string): boolean {
  if (name === '') return true;
  try {
    formatterOf(DAY, name);
    return true;
  } catch {
    return false;
  }
}

/** Making a formatter costs more than hundreds of its uses: the one of the last zone is kept. */
function zonedText(
  options: Intl.DateTimeFormatOptions,
  render: (part: PartOf, zone: string) => string,
): ZonedText {
  let last: { readonly timeZone: string; readonly textAt: (atMs: number) => string } | undefined;
  const inZone = (timeZone: string) => {
    const format = formatterOf(options, timeZone);
    const zone: string | undefined = format.resolvedOptions().timeZone;
    return (atMs: number) => {
      const parts = new Map(format.formatToParts(atMs).map(({ type, value }) => [type, value]));
      return render((type) => parts.get(type) ?? '', zone ?? UTC);
    };
  };
  return (atMs, timeZone) => {
    if (last?.timeZone !== timeZone) last = { timeZone, textAt: inZone(timeZone) };
    return last.textAt(atMs);
  };
}

function formatterOf(options: Intl.DateTimeFormatOptions, timeZone: string) {
  const zone = timeZone === '' ? {} : { timeZone };
  return new Intl.DateTimeFormat('en-u-ca-gregory-nu-latn', { ...options, ...zone });
}

function dayOf(part: PartOf): string {
  return `${part('year').padStart(4, '0')}-${part('month')}-${part('day')}`;
}

// From what a clock on the wall shows in a time zone to the moment it is: also around the hours that
// a zone skips or has twice.

const DAY_MS = 86_400_000;

type WallMoment =
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

// The calendar day of a moment in a time zone, and when it ends: also on days of 23 and 25 hours.

export type LocalDay = {
  /** `YYYY-MM-DD`. */
  readonly day: string;
  /** The first moment of the next day, epoch milliseconds. */
  readonly endsAt: number;
};

/** The day of a moment (epoch milliseconds); zones as in zone-time.ts. */
type LocalDays = (atMs: number, timeZone: string) => LocalDay;

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

// The hours in which a person is not to be disturbed by what the machine begins of its own accord.

export const HOURS_PATTERN = /^([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-3]):([0-5]\d)$/;

/** Minutes after midnight; where `to` is not after `from`, the span goes over midnight. */
export type Hours = { readonly from: number; readonly to: number };

/** `08:00-20:00`; undefined where it is not of that form. */
export function readHours(text: string): Hours | undefined {
  const match = HOURS_PATTERN.exec(text);
  if (match === null) return undefined;
  const [fromHour = 0, fromMinute = 0, toHour = 0, toMinute = 0] = match.slice(1).map(Number);
  return { from: fromHour * 60 + fromMinute, to: toHour * 60 + toMinute };
}

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
