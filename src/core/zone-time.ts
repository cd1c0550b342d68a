// Moments in a time zone: the calendar day, and words that leave nothing to guess. Everywhere the
// empty zone is the machine's, and an unknown one throws RangeError unless said otherwise.

/** A moment, epoch milliseconds, as the zone (an IANA name) sees it. */
export type ZonedText = (atMs: number, timeZone: string) => string;

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
