// Moments in a time zone: the calendar day, texts and wall-clock times. An empty zone is the
// machine's, and an unknown one throws RangeError unless noted otherwise.

/** A moment, epoch milliseconds, as text in the zone (an IANA name). */
type ZonedText = (atMs: number, timeZone: string) => string;

type Part = keyof ReturnType<typeof machineParts>;
type PartOf = (type: Part) => string;
type Render = (part: PartOf) => string;

const DAY = { year: 'numeric', month: '2-digit', day: '2-digit' } as const;
export const DAY_AND_TIME = {
  ...DAY,
  weekday: 'long',
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  hourCycle: 'h23',
  timeZoneName: 'longOffset',
} as const;
const WEEKDAY_NAMES = [
  'Sunday',
  'Monday',
  'Tuesday',
  'Wednesday',
  'Thursday',
  'Friday',
  'Saturday',
];
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
export function zonedText(options: Intl.DateTimeFormatOptions, render: Render): ZonedText {
  let last: { readonly timeZone: string; readonly textAt: (atMs: number) => string } | undefined;
  return (atMs, timeZone) => {
    if (last?.timeZone !== timeZone) {
      const textAt = timeZone === '' ? onMachine(render) : inZone(options, render, timeZone);
      last = { timeZone, textAt };
    }
    return last.textAt(atMs);
  };
}

/** Dates know the machine's zone themselves; the first formatter of Intl takes 10 ms and 8 MB. */
const onMachine = (render: Render) => (atMs: number) => {
  const parts = machineParts(new Date(atMs));
  return render((type) => parts[type]);
};

function inZone(options: Intl.DateTimeFormatOptions, render: Render, timeZone: string) {
  const format = formatterOf(options, timeZone);
  return (atMs: number) => {
    const parts = new Map<string, string>(
      format.formatToParts(atMs).map(({ type, value }) => [type, value]),
    );
    return render((type) => parts.get(type) ?? '');
  };
}

function machineParts(at: Date) {
  return {
    year: padded(at.getFullYear(), 4),
    month: padded(at.getMonth() + 1, 2),
    day: padded(at.getDate(), 2),
    weekday: WEEKDAY_NAMES[at.getDay()] ?? '',
    hour: padded(at.getHours(), 2),
    minute: padded(at.getMinutes(), 2),
    second: padded(at.getSeconds(), 2),
    timeZoneName: offsetName(-at.getTimezoneOffset()),
  };
}

/** `GMT+05:30`. */
function offsetName(minutes: number): string {
  const whole = Math.abs(minutes);
  const time = `${padded(Math.trunc(whole / 60), 2)}:${padded(whole % 60, 2)}`;
  return `GMT${minutes < 0 ? '-' : '+'}${time}`;
}

const formatterOf = (options: Intl.DateTimeFormatOptions, timeZone: string) =>
  new Intl.DateTimeFormat('en-u-ca-gregory-nu-latn', { ...options, timeZone });

export function dayOf(part: PartOf): string {
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
    // Near the end of the year 9999 one of them has no offset that can be read.
    .filter((at) => !Number.isNaN(at) && minuteText(at, timeZone) === wall);
  return found.length === 0 ? { kind: 'skipped' } : { kind: 'moment', at: Math.min(...found) };
}

/** Minutes after midnight in the zone. */
function minuteOfDay(atMs: number, timeZone: string): number {
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

function machineDay(atMs: number): LocalDay {
  const at = new Date(atMs);
  const [year, month, date] = [at.getFullYear(), at.getMonth(), at.getDate()];
  const parts = machineParts(at);
  return { day: dayOf((part) => parts[part]), endsAt: new Date(year, month, date + 1).getTime() };
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
