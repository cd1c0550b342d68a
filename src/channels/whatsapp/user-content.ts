// Tells what a person said or did from what clients tell each other: keys, votes, history.

import type { proto } from '@whiskeysockets/baileys';
import { isSilentKind } from '../../core/whatsapp/kinds.ts';
import { signOf } from '../../core/whatsapp/signs.ts';

/** Ephemeral, view once, with caption, edited: WhatsApp nests three at most. */
const MAX_WRAPPERS = 8;

/** What the sender's own other device sent carries the message one level deeper. */
export function messageOf(message: proto.IMessage): proto.IMessage {
  return message.deviceSentMessage?.message ?? message;
}

/**
 * A message of a kind this version does not know counts as content: it is for whoever answers to say
 * that it could not be read.
 */
export function isUserContent(message: proto.IMessage, wrappers = 0): boolean {
  const parts = Object.entries(message).filter(([, value]) => value != null);
  if (parts.length === 0) return true;
  return parts.some(([kind, value]) => {
    if (kind === 'protocolMessage' && message.protocolMessage?.editedMessage != null) return true;
    if (kind === 'protocolMessage' || kind === 'reactionMessage') {
      return signOf(message) !== undefined;
    }
    if (isSilentKind(kind)) return false;
    const wrapped = wrappedIn(value);
    return (
      wrapped === undefined || (wrappers < MAX_WRAPPERS && isUserContent(wrapped, wrappers + 1))
    );
  });
}

function wrappedIn(value: unknown): proto.IMessage | undefined {
  const isWrapper = typeof value === 'object' && value !== null && 'message' in value;
  return isWrapper && typeof value.message === 'object' ? (value.message ?? undefined) : undefined;
}
