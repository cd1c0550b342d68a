// Moments in a time zone: the calendar day, texts and wall-clock times. An empty zone is the
// machine's, and an unknown one throws RangeError unless noted otherwise.

/** A moment, epoch milliseconds, as text in the zone (an IANA name). */
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

/** The name of the zone, including the machine's. */
export function createZoneNames(): (timeZone: string) => string {
  const nameOf = zonedText(DAY, (_part, zone) => zone);
  return (timeZone) => nameOf(0, timeZone);
}

/** The person's date and time, to the minute, so that it rarely changes. */
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

/** The zone of the machine's clock when TZ names no known zone. */
const UTC = 'UTC';

/** Undefined if the environment variable TZ names no known zone. */
const machineZone = (): string | undefined => Intl.DateTimeFormat().resolvedOptions().timeZone;

/** The zone that `configured` is computed in; empty: that of the machine. */
export const zoneInForce = (configured: string): string => configured || machineZone() || UTC;

/**
 * Whether TZ names no zone, and no other one is configured. Loading the date formatters with all zones
 * takes 6 MB, so they are used only where it names one.
 */
export const isZoneUnknown = (tz: string, configured: string): boolean =>
  configured === '' && tz !== '' && machineZone() === undefined;

export function isTimeZone(name: string): boolean {
  if (name === '') return true;
  try {
    formatterOf(DAY, name);
    return true;
  } catch {
    return false;
  }
}

/** Creating a formatter costs more than hundreds of uses: the one of the last zone is kept. */
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

// Converts wall-clock time in a zone to a moment, including hours that a zone skips or repeats.

const DAY_MS = 86_400_000;

type WallMoment =
  /** Epoch milliseconds; the first of two if the zone repeats the minute. */
  | { readonly kind: 'moment'; readonly at: number }
  /** The zone's clock skips it. */
  | { readonly kind: 'skipped' }
  /** Not a valid day or time. */
  | { readonly kind: 'unknown' };

/** `wall`: `YYYY-MM-DD HH:MM`. @throws RangeError for an unknown zone */
export function wallMoment(wall: string, timeZone: string): WallMoment {
  const asUtc = Date.parse(`${wall.replace(' ', 'T')}:00Z`);
  const isDay = !Number.isNaN(asUtc) && new Date(asUtc).toISOString().startsWith(wall.slice(0, 10));
  if (!isDay) return { kind: 'unknown' };
  const minuteText = createMinuteText();
  const offsetAt = (at: number) => shownAsUtc(minuteText(at, timeZone)) - at;
  // A zone changes at most once in two days, so one of the two is valid.
  const found = [asUtc - DAY_MS, asUtc + DAY_MS]
    .map((near) => asUtc - offsetAt(near))
    .filter((at) => minuteText(at, timeZone) === wall);
  return found.length === 0 ? { kind: 'skipped' } : { kind: 'moment', at: Math.min(...found) };
}

/** Minutes after midnight in the zone. */
export function minuteOfDay(atMs: number, timeZone: string): number {
  const [hour = 0, minute = 0] = createMinuteText()(atMs, timeZone)
    .slice(-5)
    .split(':')
    .map(Number);
  return hour * 60 + minute;
}

const shownAsUtc = (text: string) => Date.parse(`${text.replace(' ', 'T')}:00Z`);

// The calendar day of a moment in a time zone, and its end: also on days of 23 and 25 hours.

export type LocalDay = {
  /** `YYYY-MM-DD`. */
  readonly day: string;
  /** The first moment of the next day, epoch milliseconds. */
  readonly endsAt: number;
};

/** The day of a moment (epoch milliseconds); zones as in zone-time.ts. */
type LocalDays = (atMs: number, timeZone: string) => LocalDay;

/** Longer than any day in any zone. */
const LONGEST_DAY_MS = 27 * 3_600_000;
/** Zones change at whole minutes. */
const STEP_MS = 60_000;

/** Caches the day of the last call. */
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

/** Dates know the machine's zone themselves; the first formatter of Intl takes 6 MB. */
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

// Hours of the day.

export const HOURS_PATTERN = /^([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-3]):([0-5]\d)$/;

export const WEEKDAYS: readonly string[] = ['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun'];

const DAY_NAME = `(?:${WEEKDAYS.join('|')})`;
const SPAN = `(?:${DAY_NAME}(?:-${DAY_NAME})? )?${HOURS_PATTERN.source.slice(1, -1).replaceAll('(', '(?:')}`;
/** Quiet hours in their canonical spelling: `22:00-07:00`, `Sun-Thu 22:00-07:00, Fri-Sat 23:30-09:00`. */
export const QUIET_PATTERN = new RegExp(`^${SPAN}(?:, ${SPAN})*$`);

/** Minutes after midnight; if `to` is not after `from`, the span includes midnight. */
export type Hours = { readonly from: number; readonly to: number };

/** `08:00-20:00`; undefined for another form. */
export function readHours(text: string): Hours | undefined {
  const match = HOURS_PATTERN.exec(text);
  if (match === null) return undefined;
  const [fromHour = 0, fromMinute = 0, toHour = 0, toMinute = 0] = match.slice(1).map(Number);
  return { from: fromHour * 60 + fromMinute, to: toHour * 60 + toMinute };
}

/** `hours` as `08:00-22:00`. */
export function isWithinHours(nowMs: number, hours: string, timeZone: string): boolean {
  const read = readHours(hours);
  return read !== undefined && isInside(minuteOfDay(nowMs, timeZone), read);
}

function isInside(minute: number, { from, to }: Hours): boolean {
  return from < to ? minute >= from && minute < to : minute >= from || minute < to;
}
