// A turn's answers as what is to be sent.

import type { Turn, TurnResult } from '../bus/bus.ts';
import type { OutboundDraft } from '../core/message.ts';

/** The first answer completes the turn's live draft. */
export function resultOf(
  turn: Turn,
  throughSeq: number,
  answers: readonly string[],
  replyTo: OutboundDraft['replyTo'],
): TurnResult {
  const outbound = answers.map((markdown, index) => ({
    chat: turn.chat,
    markdown,
    ...(replyTo === undefined ? {} : { replyTo }),
    ...(index === 0 ? { finalizes: turn.id } : {}),
  }));
  return { throughSeq, outbound };
}
