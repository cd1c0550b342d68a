// Which entries of a transcript a turn is shown. A message that is recorded more than once, because a
// process died before its turn was over, is asked only where it is answered.

import type { MessageId, TurnId } from './ids.ts';
import type { TranscriptEntry } from './transcript.ts';

/**
 * `history` may hold entries of this turn; `own` is what the store recorded of it, maybe with
 * messages that an earlier try had and this one leaves to the next turn. `asked`: what this try has.
 */
export function threadView(
  history: readonly TranscriptEntry[],
  own: readonly TranscriptEntry[],
  { turnId, asked }: { readonly turnId: TurnId; readonly asked: ReadonlySet<MessageId> },
): readonly TranscriptEntry[] {
  const seen = new Set(asked);
  const before: TranscriptEntry[] = [];
  for (const entry of history.toReversed()) {
    if ('turnId' in entry && entry.turnId === turnId) continue;
    if (entry.role === 'user' && entry.messageId !== undefined) {
      if (seen.has(entry.messageId)) continue;
      seen.add(entry.messageId);
    }
    before.push(entry);
  }
  const isAsked = (entry: TranscriptEntry) =>
    entry.role !== 'user' || entry.messageId === undefined || asked.has(entry.messageId);
  return [...before.reverse(), ...own.filter(isAsked)];
}
