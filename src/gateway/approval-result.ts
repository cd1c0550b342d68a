// What became of a call that an owner decided about, as the message that begins a turn and in words for
// the model.

import { messageId } from '../core/ids.ts';
import type { InboundMessage } from '../core/message.ts';
import type { Approval, ApprovalState } from './approval-book.ts';

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

export const LOST = '[A call that an owner allowed is not known any more. Nothing was done.]';

export function resultText(tool: string, state: ApprovalState): string {
  if (state.kind !== 'done') {
    return `[An owner allowed ${tool}. The process stopped while it ran: outcome unknown. It is not run again; find out how far it came.]`;
  }
  const how = state.status === 'ok' ? 'It was run once' : 'It was run once and failed';
  return `[An owner allowed ${tool}. ${how}; this is its result. Go on with what you were asked.]\n${state.text}`;
}
