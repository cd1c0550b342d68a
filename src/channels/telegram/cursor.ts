// The place in Telegram's stream of updates, and when it may be used: after a week without updates
// the next id is random (Bot API, "Update"), and an old offset would throw new updates away.

import { fieldsOf, integerOf, parseJson } from '../../lib/json/json.ts';

export type Place = {
  readonly botId: number;
  readonly lastUpdateId: number;
  /** Epoch milliseconds at which that update was stored. */
  readonly at: number;
};

/** A day less than Telegram's week. */
const STALE_MS = 6 * 24 * 3600 * 1000;

export function writePlace(place: Place): string {
  return JSON.stringify({ bot: place.botId, update: place.lastUpdateId, at: place.at });
}

/** The stored place, when it is this bot's. */
export function readPlace(value: string | undefined, botId: number): Place | undefined {
  const fields = value === undefined ? undefined : fieldsOf(parseJson(value));
  const lastUpdateId = integerOf(fields?.['update']);
  const at = integerOf(fields?.['at']);
  if (lastUpdateId === undefined || at === undefined || fields?.['bot'] !== botId) return undefined;
  return { botId, lastUpdateId, at };
}

/** The offset to ask with; undefined asks for everything not yet confirmed. */
export function offsetAfter(place: Place | undefined, now: number): number | undefined {
  return place === undefined || now - place.at > STALE_MS ? undefined : place.lastUpdateId + 1;
}
