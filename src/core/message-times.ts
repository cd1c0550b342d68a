// When each message came, as the model reads it. A message is shown with the time of its own record,
// which is the same in every later call: a time of day in front of the conversation would cost the
// provider's prompt cache of the whole of it with each new minute (ADR 0013).

import type { TranscriptEntry, UserEntry } from './transcript.ts';
import { createWeekdayText } from './zone-time.ts';

/** In words, of a moment in epoch milliseconds. */
export type TimeStamp = (atMs: number) => string;

const MINUTE_MS = 60_000;
const MAX_KEPT = 5000;

/** Stamps like `[Sat 2026-11-21 14:03]` in a zone; those it made are kept, since each call needs all. */
export function createTimeStamps(): (timeZone: string) => TimeStamp {
  const textOf = createWeekdayText();
  const kept = new Map<string, string>();
  return (timeZone) => (atMs) => {
    const key = `${Math.floor(atMs / MINUTE_MS)} ${timeZone}`;
    const found = kept.get(key);
    if (found !== undefined) return found;
    const stamp = `[${textOf(atMs, timeZone)}]`;
    if (kept.size >= MAX_KEPT) kept.clear();
    kept.set(key, stamp);
    return stamp;
  };
}

/** One line before the first message of a turn, and before later ones of another minute. */
export function withTimes(
  entries: readonly TranscriptEntry[],
  stampOf: TimeStamp,
): readonly TranscriptEntry[] {
  let last = '';
  return entries.map((entry) => {
    if (entry.role !== 'user' || isEmpty(entry)) return entry;
    const stamp = stampOf(entry.at);
    const place = `${entry.turnId} ${stamp}`;
    if (place === last) return entry;
    last = place;
    return { ...entry, text: `${stamp}\n${entry.text}`.trimEnd() };
  });
}

const isEmpty = ({ text, media = [] }: UserEntry) => text.trim() === '' && media.length === 0;
