// Which entries of a transcript a turn is shown. A message that is recorded more than once, because a
// process died before its turn was over, is asked only where it is answered.

import type { MessageId, TurnId } from '../../kernel/message/ids.ts';
import type { TranscriptEntry, UserEntry } from '../../kernel/message/transcript.ts';

/**
 * Highest sequence number that the model was shown in a turn, going by its answers; 0 where it has
 * not answered. An answer takes up every message it was shown, so these are never asked again.
 */
export function shownThrough(own: readonly TranscriptEntry[]): number {
  const shown = own.map((entry) => (entry.role === 'assistant' ? (entry.throughSeq ?? 0) : 0));
  return Math.max(0, ...shown);
}

/**
 * A conversation without the messages that no turn took up: recorded, but the process died before
 * the model had answered. The bus gives them to another turn, or has set them aside; either way
 * they are not this turn's to answer. An entry without its place is of an older program, and kept.
 */
export function takenUp(window: readonly TranscriptEntry[]): readonly TranscriptEntry[] {
  const through = new Map<TurnId, number>();
  for (const entry of window) {
    if (!('throughSeq' in entry) || entry.throughSeq === undefined) continue;
    through.set(entry.turnId, Math.max(entry.throughSeq, through.get(entry.turnId) ?? 0));
  }
  return window.filter(
    (entry) =>
      entry.role !== 'user' ||
      entry.messageId === undefined ||
      entry.seq === undefined ||
      entry.seq <= (through.get(entry.turnId) ?? 0),
  );
}

/**
 * `history` is what was taken up so far and may hold entries of this turn; `own` is what the store recorded of it, maybe with
 * messages that an earlier try had and this one leaves to the next turn. `asked`: what this try has.
 */
export function threadView(
  history: readonly TranscriptEntry[],
  own: readonly TranscriptEntry[],
  { turnId, asked }: { readonly turnId: TurnId; readonly asked: ReadonlySet<MessageId> },
): readonly TranscriptEntry[] {
  const through = shownThrough(own);
  const isShown = ({ seq }: UserEntry) => seq !== undefined && seq <= through;
  const seen = new Set(asked);
  const answeredLater = new Set<MessageId>();
  const before: TranscriptEntry[] = [];
  for (const entry of history.toReversed()) {
    const isOwn = 'turnId' in entry && entry.turnId === turnId;
    if (entry.role === 'user' && entry.messageId !== undefined && (!isOwn || isShown(entry))) {
      if (seen.has(entry.messageId)) continue;
      seen.add(entry.messageId);
      if (!isOwn) answeredLater.add(entry.messageId);
    }
    if (!isOwn) before.push(entry);
  }
  const isOfThisTry = (entry: TranscriptEntry) =>
    entry.role !== 'user' ||
    entry.messageId === undefined ||
    asked.has(entry.messageId) ||
    (isShown(entry) && !answeredLater.has(entry.messageId));
  return [...before.reverse(), ...own.filter(isOfThisTry)];
}
