// What is said of drafts: to the model when it asks, to the conversation when it is decided, to the
// owner when it is too late.

import { messageId } from '../../kernel/message/ids.ts';
import type { InboundMessage } from '../../kernel/message/message.ts';
import { verbatim } from '../../kernel/message/untrusted.ts';
import { MAX_SHOWN_CHARS } from '../approvals/rules/approval-text.ts';
import type { Draft } from './draft-rows.ts';
import { recipientsOf } from './rules/letter.ts';

export const DRAFT_TEXTS = {
  TOO_LONG:
    `An owner has to see this before it goes out, and it is longer than the ${MAX_SHOWN_CHARS} ` +
    'characters they can be shown. Nothing was sent. Make it shorter.',
  TOO_MANY: 'Too many drafts wait for an owner already. Nothing was sent.',
  TOO_MANY_NEW: 'Five new addresses were written to within a day, which is all. Nothing was sent.',
  NOT_KNOWN: 'This draft is not known any more; nothing is sent.',
  TOO_LATE: 'It was decided before.',
  TOO_LONG_NOW:
    `That is longer than the ${MAX_SHOWN_CHARS} characters I can show whole. Send a shorter text, ` +
    'or /cancel to leave it as it was.',
  expired: (name: string, hours: number) =>
    `Nobody answered within ${hours} hours: the draft for ${verbatim(name)} is dropped, nothing was sent.`,
} as const;

/** In words. */
export function whoGets({ name, letter }: Draft): string {
  const [, ...cc] = recipientsOf(letter);
  return cc.length === 0 ? name : `${name}, with copies to ${cc.join(', ')}`;
}

export const alwaysSent = (to: string, days: number) =>
  `Sent. What goes to ${verbatim(to)}, and to nobody else, goes out from this conversation without you seeing it first, for ${days === 1 ? 'one day' : `${days} days`}, while it holds no words of others. /approvals takes it back.`;

/** For the model, at once. */
export function toldOf(draft: Draft): string {
  const { state } = draft;
  const name = whoGets(draft);
  if (state === 'sent') return `Sent to ${name}. Do not send it again.`;
  if (state === 'dropped' || state === 'expired') {
    return `Not sent to ${name}: an owner did not want it. Do not try again.`;
  }
  return (
    `Not sent yet: shown to the owner as a draft for ${name}. What comes of it reaches you as a ` +
    'message. Do not write it again or send it another way; say that it waits for their Send.'
  );
}

/** The message that tells the conversation what came of its letter, with the rights it had. */
export function outcomeOf(draft: Draft, now: number): InboundMessage {
  const { id, turn, rights, isTainted, state } = draft;
  const { chat, session, person, paidBy, replyTo } = turn;
  return {
    id: messageId(`draft/${id}/${state}`),
    chat,
    session,
    sender: {
      ...{ kind: 'system', source: 'draft', rights, person },
      ...(paidBy === undefined ? {} : { paidBy }),
      ...(isTainted ? { isTainted } : {}),
    },
    addressing: 'direct',
    ...(replyTo === undefined ? {} : { replyTo }),
    text: outcomeText(draft),
    sentAt: now,
    receivedAt: now,
  };
}

function outcomeText(draft: Draft): string {
  const { state, editedBy } = draft;
  const name = whoGets(draft);
  if (state === 'sent') {
    const how = editedBy === undefined ? 'as you wrote it' : 'after they had looked at the words';
    return `[An owner sent the draft for ${name}, ${how}. Do not send it again. Go on with what you were asked.]`;
  }
  const why = state === 'dropped' ? 'An owner dropped' : 'No owner answered in time to';
  return `[${why} the draft for ${name}. Nothing was sent. Do not write it again unless you are asked to.]`;
}
