// What comes late says so: an answer names its question, a message that waited says when it was sent.

import { type Offered, omissionMarker } from '../../agent/rules/context-marks.ts';
import { repairThread } from '../../agent/rules/thread-repair.ts';
import { createMinuteText, createWeekdayText } from '../../lib/time/zone-time.ts';
import type { TurnId } from './ids.ts';
import type { ModelMessage, TranscriptEntry, UserEntry } from './transcript.ts';
import { firstWords, verbatim } from './untrusted.ts';

/** An answer after that is late, and so is a message the model sees after that. */
export const LATE_MS = 10 * 60_000;
/** No platform keeps a message longer; what claims to be older was dated wrongly. */
const OLDEST_MS = 30 * 86_400_000;

/** What an answer answers, as it is named where the answer comes late. */
export type Question = {
  /** When it was sent, epoch milliseconds. */
  readonly at: number;
  readonly excerpt: string;
  /** Of whoever asked, where that is known. */
  readonly timeZone?: string;
};

type Dated = { readonly sentAt: number; readonly receivedAt: number };

/** When a message was sent, as far as its platform can be believed. */
export function saidAt({ sentAt, receivedAt }: Dated): number {
  return sentAt > receivedAt || receivedAt - sentAt > OLDEST_MS ? receivedAt : sentAt;
}

export function isLate(at: number, now: number): boolean {
  return now - at > LATE_MS;
}

export function questionOf(message: Dated & { readonly text: string }): Question {
  return { at: saidAt(message), excerpt: firstWords(message.text) };
}

/** The words before a late answer; `isQuoted`: the platform shows the question itself. */
export function lateNote(question: Question, now: number, zone: string, isQuoted: boolean): string {
  const when = whenText(question.at, now, question.timeZone ?? zone);
  const asked = `You asked ${when}:`;
  if (isQuoted || question.excerpt === '') return asked;
  return `${asked}\n> ${verbatim(question.excerpt)}`;
}

/** `[sent at 14:03]` before a message that waited; undefined where it did not. */
export function sentNote(message: Dated, now: number, zone: string): string | undefined {
  const at = saidAt(message);
  return isLate(at, now) ? `[sent ${whenText(at, now, zone)}]` : undefined;
}

/** `at 14:03`, with the day where that is another one. */
export function whenText(at: number, now: number, zone: string): string {
  const textOf = createMinuteText();
  const [day = '', minute = ''] = textOf(at, zone).split(' ');
  const [today] = textOf(now, zone).split(' ');
  return day === today ? `at ${minute}` : `on ${day} at ${minute}`;
}

// When each message came, as the model reads it. A message is shown with the time of its own record,
// which is the same in every later call: a time of day in front of the conversation would cost the
// provider's prompt cache of the whole of it with each new minute (ADR 0013).

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

// Entries of a conversation as the messages a model is shown: with times, a marker for what is left
// out, and repaired. Which entries these are is the turn's business.

type ShownHow = {
  readonly turnId: TurnId;
  readonly stampOf: TimeStamp;
  /** Messages that were left out for the size of the window. */
  readonly omitted: number;
  /** Tools of the call. */
  readonly offered: Offered;
};

export function shownMessages(
  entries: readonly TranscriptEntry[],
  { turnId, stampOf, omitted, offered }: ShownHow,
): readonly ModelMessage[] {
  const shown = withTimes(entries, stampOf);
  if (omitted === 0) return repairThread(shown, offered);
  const text = omissionMarker(omitted, "to fit the model's context window", offered);
  const marker: TranscriptEntry = { role: 'user', turnId, text, at: 0 };
  const behind = shown.findIndex(({ role }) => role !== 'summary');
  return repairThread(shown.toSpliced(Math.max(0, behind), 0, marker), offered);
}
