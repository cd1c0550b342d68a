// Entries of a conversation as the messages a model is shown: with times, a marker for what is left
// out, and repaired. Which entries these are is the turn's business.

import { type Offered, omissionMarker } from './context-marks.ts';
import type { TurnId } from './ids.ts';
import { type TimeStamp, withTimes } from './message-times.ts';
import { repairThread } from './thread-repair.ts';
import type { ModelMessage, TranscriptEntry } from './transcript.ts';

export type ShownHow = {
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
