// The names of time zones, and texts that contain them. An empty zone is the machine's.

import { realpathSync } from 'node:fs';
import { DAY_AND_TIME, dayOf, isTimeZone, zonedText } from './zone-time.ts';

/** The zone of the machine's clock when TZ names no known zone. */
const UTC = 'UTC';
const COMMON_ZONE =
  /^(?:Africa|America|Antarctica|Asia|Atlantic|Australia|Europe|Indian|Pacific)\/[A-Z]/;

/**
 * Undefined if the environment variable TZ names no known zone. The first formatter of Intl takes 10 ms
 * and 8 MB: it is asked for rare names alone.
 */
const machineZone = (): string | undefined =>
  linkedZone() ?? Intl.DateTimeFormat().resolvedOptions().timeZone;

/** What the file of the machine's zone links to. */
function linkedZone(): string | undefined {
  if (process.env['TZ'] !== undefined) return undefined;
  try {
    const [, name] = /\/zoneinfo\/(.+)$/.exec(realpathSync('/etc/localtime')) ?? [];
    if (name === 'Etc/UTC') return UTC;
    return name !== undefined && COMMON_ZONE.test(name) ? name : undefined;
  } catch {
    return undefined;
  }
}

/** The zone that `configured` is computed in. */
export const zoneInForce = (configured: string): string => configured || machineZone() || UTC;

/** Whether TZ names no zone, and no other one is configured. */
export const isZoneUnknown = (tz: string, configured: string): boolean =>
  configured === '' && tz !== '' && machineZone() === undefined;

/** As `zoneInForce`; looks up the machine's once. */
export function createZoneNames(): (timeZone: string) => string {
  let machine: string | undefined;
  return (timeZone) => {
    if (timeZone !== '') return timeZone;
    machine ??= zoneInForce('');
    return machine;
  };
}

/** The person's date and time, to the minute, so that it rarely changes. */
export function createTimeText(): (atMs: number, timeZone: string) => string {
  const nameOf = createZoneNames();
  const textOf = zonedText(
    DAY_AND_TIME,
    (part) => `Now: ${part('weekday')} ${dayOf(part)} ${part('hour')}:${part('minute')}`,
  );
  return (atMs, timeZone) => `${textOf(atMs, timeZone)} (${nameOf(timeZone)})`;
}

/** Weekday, date, time, offset and zone; undefined for an unknown zone. */
export function describeTime(atMs: number, timeZone: string): string | undefined {
  if (!isTimeZone(timeZone)) return undefined;
  const describe = zonedText(DAY_AND_TIME, (part) => {
    const time = `${part('hour')}:${part('minute')}:${part('second')}`;
    return `${part('weekday')}, ${dayOf(part)} ${time} (${part('timeZoneName')}, ${zoneInForce(timeZone)})`;
  });
  return describe(atMs, timeZone);
}
