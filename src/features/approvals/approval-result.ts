// What became of a call that an owner decided about, as the message that begins a turn and in words for
// the model.

import type { AskedOwner } from '../../agent/agent.ts';
import { messageId } from '../../kernel/message/ids.ts';
import type { InboundMessage } from '../../kernel/message/message.ts';
import type { Approval, ApprovalState } from './approval-rows.ts';
import { MAX_SHOWN_CHARS } from './rules/approval-text.ts';

const MINUTES = 15;

export const APPROVAL_TEXTS = {
  /** A question is good so long. */
  MINUTES,
  ASKED:
    `Not run yet: an owner is asked to allow it, within ${MINUTES} minutes. What comes of it ` +
    'reaches you as a message. Do not call it again or try another way; say that you wait for a yes.',
  TOO_LONG:
    `Error (permission): an owner has to allow this call, and it is longer than the ${MAX_SHOWN_CHARS} ` +
    'characters they can be shown. Nothing was done. Make it smaller or do it in parts.',
  TOO_MANY:
    'Error (permission): an owner has to allow this call, and too many wait for a yes already. ' +
    'Nothing was done.',
  NOT_ALLOWED: 'Error (permission): an owner did not allow this call. Nothing was done.',
  LOST: '[A call that an owner allowed is not known any more. Nothing was done.]',
  ENDED: 'What asked for it was ended meanwhile; nothing is done.',
} as const;

/** Its text is the name of the call, until the turn that takes it up asks for the result. */
export function resultMessage(approval: Approval, now: number): InboundMessage {
  const { id, chat, session, rights, person, paidBy, replyTo, isTainted } = approval;
  return {
    id: messageId(`approval/${id}`),
    chat,
    session,
    sender: {
      ...{ kind: 'system', source: 'approval', rights, person },
      ...(paidBy === undefined ? {} : { paidBy }),
      ...(isTainted ? { isTainted } : {}),
    },
    addressing: 'direct',
    ...(replyTo === undefined ? {} : { replyTo }),
    text: id,
    sentAt: now,
    receivedAt: now,
  };
}

export function resultText(tool: string, state: ApprovalState): string {
  if (state.kind !== 'done') {
    return `[An owner allowed ${tool}. The process stopped while it ran: outcome unknown. It is not run again; find out how far it came.]`;
  }
  const how = state.status === 'ok' ? 'It was run once' : 'It was run once and failed';
  return `[An owner allowed ${tool}. ${how}; this is its result. Go on with what you were asked.]\n${state.text}`;
}

/** A call that was asked about before. */
export function told({ kind }: ApprovalState): AskedOwner {
  return kind === 'denied' || kind === 'expired'
    ? { text: APPROVAL_TEXTS.NOT_ALLOWED, isWaiting: false }
    : { text: APPROVAL_TEXTS.ASKED, isWaiting: true };
}
