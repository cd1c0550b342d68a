// A moment in words that leave nothing to guess: weekday, date, time, offset and zone.

/** Undefined for an unknown zone; the empty one is the machine's. */
export function describeTime(atMs: number, timeZone: string): string | undefined {
  const formatter = zonedFormatter(timeZone);
  if (formatter === undefined) return undefined;
  const parts = new Map(formatter.formatToParts(atMs).map((part) => [part.type, part.value]));
  const part = (type: Intl.DateTimeFormatPartTypes) => parts.get(type) ?? '';
  const date = `${part('year')}-${part('month')}-${part('day')}`;
  const time = `${part('hour')}:${part('minute')}:${part('second')}`;
  const zone = timeZone === '' ? formatter.resolvedOptions().timeZone : timeZone;
  return `${part('weekday')}, ${date} ${time} (${part('timeZoneName')}, ${zone})`;
}

function zonedFormatter(timeZone: string): Intl.DateTimeFormat | undefined {
  try {
    return new Intl.DateTimeFormat('en-u-ca-gregory-nu-latn', {
      weekday: 'long',
      year: 'numeric',
      month: '2-digit',
      day: '2-digit',
      hour: '2-digit',
      minute: '2-digit',
      second: '2-digit',
      hourCycle: 'h23',
      timeZoneName: 'longOffset',
      ...(timeZone === '' ? {} : { timeZone }),
    });
  } catch {
    return undefined;
  }
}
