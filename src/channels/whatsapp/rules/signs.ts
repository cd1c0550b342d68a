// What a WhatsApp message does to an earlier one: it changes it, deletes it, or is a reaction to it. The
// sender names it by its id alone; whose it was is for whoever knows both.

import { emojiOf } from '../../../kernel/message/change.ts';
import { innerOf } from './content.ts';
import type { WhatsAppContent } from './message.ts';

export type WhatsAppSign =
  | { readonly kind: 'edited' | 'withdrawn'; readonly id: string }
  /** Without an emoji the reaction was taken back. */
  | { readonly kind: 'reacted'; readonly id: string; readonly emoji?: string };

/** `ProtocolMessage.Type` of WhatsApp's protocol. */
const REVOKE = 0;
/** A hostile message may be nested deeper than any reader. */
const MAX_DEPTH = 8;

/** Undefined for what stands for itself, and for a reaction by something that is no emoji. */
export function signOf(message: WhatsAppContent): WhatsAppSign | undefined {
  let content: WhatsAppContent | undefined = message;
  for (let depth = 0; depth < MAX_DEPTH && content !== undefined; depth += 1) {
    const sign = changeIn(content) ?? reactionIn(content);
    if (sign !== undefined) return sign;
    content = innerOf(content);
  }
  return undefined;
}

function changeIn({ protocolMessage }: WhatsAppContent): WhatsAppSign | undefined {
  const id = protocolMessage?.key?.id;
  if (!id) return undefined;
  if (protocolMessage?.editedMessage) return { kind: 'edited', id };
  return Number(protocolMessage?.type ?? REVOKE) === REVOKE ? { kind: 'withdrawn', id } : undefined;
}

function reactionIn({ reactionMessage }: WhatsAppContent): WhatsAppSign | undefined {
  const id = reactionMessage?.key?.id;
  if (!id) return undefined;
  if (!reactionMessage?.text) return { kind: 'reacted', id };
  const emoji = emojiOf(reactionMessage.text);
  return emoji === undefined ? undefined : { kind: 'reacted', id, emoji };
}
