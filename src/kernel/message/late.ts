// Marks what is late: an answer names its question, a message that waited shows when it was sent.

import { type Offered, omissionMarker } from '../../agent/rules/context-marks.ts';
import { repairThread } from '../../agent/rules/thread-repair.ts';
import { t } from '../../lib/texts.ts';
import { createMinuteText, createWeekdayText } from '../../lib/time/zone-time.ts';
import type { TurnId } from './ids.ts';
import type { ModelMessage, TranscriptEntry, UserEntry } from './transcript.ts';
import { firstWords, verbatim } from './untrusted.ts';

/** An answer is late after this time, and so is a message when the model sees it. */
export const LATE_MS = 10 * 60_000;
/** No platform keeps a message longer; an older date is wrong. */
const OLDEST_MS = 30 * 86_400_000;

/** The question as a late answer names it. */
export type Question = {
  /** When it was sent, epoch milliseconds. */
  readonly at: number;
  readonly excerpt: string;
  /** Of the person who asked, if known. */
  readonly timeZone?: string;
};

type Dated = { readonly sentAt: number; readonly receivedAt: number };

/** When a message was sent, as far as its platform can be trusted. */
export function saidAt({ sentAt, receivedAt }: Dated): number {
  return sentAt > receivedAt || receivedAt - sentAt > OLDEST_MS ? receivedAt : sentAt;
}

export function isLate(at: number, now: number): boolean {
  return now - at > LATE_MS;
}

export function questionOf(message: Dated & { readonly text: string }): Question {
  return { at: saidAt(message), excerpt: firstWords(message.text) };
}

/** The text before a late answer; `isQuoted`: the platform shows the question itself. */
export function lateNote(question: Question, now: number, zone: string, isQuoted: boolean): string {
  const when = whenText(question.at, now, question.timeZone ?? zone);
  const asked = t`You asked ${when}:`;
  if (isQuoted || question.excerpt === '') return asked;
  return `${asked}\n> ${verbatim(question.excerpt)}`;
}

/** `[sent at 14:03]` before a message that waited; undefined if it did not. */
export function sentNote(message: Dated, now: number, zone: string): string | undefined {
  const at = saidAt(message);
  return isLate(at, now) ? `[sent ${whenText(at, now, zone)}]` : undefined;
}

/** `at 14:03`, with the day if it is another one. */
export function whenText(at: number, now: number, zone: string): string {
  const textOf = createMinuteText();
  const [day = '', minute = ''] = textOf(at, zone).split(' ');
  const [today] = textOf(now, zone).split(' ');
  return day === today ? t`at ${minute}` : t`on ${day} at ${minute}`;
}

// Times of messages for the model. A message is shown with the time of its own record, which is the
// same in every later call: a current time before the conversation would invalidate the provider's
// prompt cache of all of it every minute (ADR 0013).

/** A moment, epoch milliseconds, as text. */
export type TimeStamp = (atMs: number) => string;

const MINUTE_MS = 60_000;
const MAX_ZONES = 20;
const MAX_MINUTES = 1000;

/** Stamps like `[Sat 2026-11-21 14:03]` in a zone; cached, because each call needs all of them. */
export function createTimeStamps(): (timeZone: string) => TimeStamp {
  const textOf = createWeekdayText();
  const zones = new Map<string, Map<number, string>>();
  return (timeZone) => {
    const known = zones.get(timeZone);
    const kept = known ?? new Map<number, string>();
    if (known === undefined && zones.size >= MAX_ZONES) zones.clear();
    zones.set(timeZone, kept);
    return (atMs) => {
      const minute = Math.floor(atMs / MINUTE_MS);
      const found = kept.get(minute);
      if (found !== undefined) return found;
      const stamp = `[${textOf(atMs, timeZone)}]`;
      if (kept.size >= MAX_MINUTES) kept.clear();
      kept.set(minute, stamp);
      return stamp;
    };
  };
}

/** One line before the first message of a turn, and before later ones of another minute. */
export function withTimes(
  entries: readonly TranscriptEntry[],
  stampOf: TimeStamp,
): readonly TranscriptEntry[] {
  let last: { readonly turnId: TurnId; readonly stamp: string } | undefined;
  return entries.map((entry) => {
    if (entry.role !== 'user' || isEmpty(entry)) return entry;
    const stamp = stampOf(entry.at);
    const { turnId } = entry;
    if (turnId === last?.turnId && stamp === last.stamp) return entry;
    last = { turnId, stamp };
    return { ...entry, text: `${stamp}\n${entry.text}`.trimEnd() };
  });
}

const isEmpty = ({ text, media = [] }: UserEntry) => text.trim() === '' && media.length === 0;

// Converts entries of a conversation to messages for a model: with times, a marker for omitted
// ones, and repaired. The turn selects the entries.

type ShownHow = {
  readonly turnId: TurnId;
  readonly stampOf: TimeStamp;
  /** Messages omitted because of the size of the window. */
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
