// Until when something is put off, in a person's time zone.

import { createMinuteText } from './zone-time.ts';

const DAY_MS = 86_400_000;
const MORNING = 9;

/** 9:00 of the next calendar day in the zone, epoch milliseconds; an hour the clock skips comes later. */
export function tomorrowMorning(nowMs: number, timeZone: string): number {
  const minuteText = createMinuteText();
  /** What the zone's clock shows, as if it were UTC. */
  const shown = (atMs: number) => Date.parse(`${minuteText(atMs, timeZone).replace(' ', 'T')}:00Z`);
  const today = Math.floor(shown(nowMs) / DAY_MS) * DAY_MS;
  const wanted = today + DAY_MS + MORNING * 3_600_000;
  // The offset may change in between, so it is taken again at the moment found first.
  const first = wanted - (shown(nowMs) - Math.floor(nowMs / 60_000) * 60_000);
  return first + (wanted - shown(first));
}
