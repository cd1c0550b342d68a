// What comes late says so: an answer names its question, a message that waited says when it was sent.

import { createMinuteText } from '../../lib/time/zone-time.ts';
import { firstWords, verbatim } from './stranger-words.ts';

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
