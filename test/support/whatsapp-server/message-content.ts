// What a decrypted message says to the person who reads it, and the messages that persons write.

import { randomBytes } from 'node:crypto';
import { getContentType, normalizeMessageContent, proto } from '@whiskeysockets/baileys';

export type Content =
  | { readonly kind: 'text'; readonly text: string; readonly message: proto.IMessage }
  | { readonly kind: 'edit'; readonly of: string; readonly text: string }
  | { readonly kind: 'revoke'; readonly of: string }
  /** Nothing that a person would see, such as a sender key. */
  | { readonly kind: 'nothing' };

export function contentOf(message: proto.IMessage): Content {
  const content = normalizeMessageContent(message);
  const protocol = content?.protocolMessage;
  if (protocol !== undefined && protocol !== null) {
    const of = protocol.key?.id ?? '';
    switch (protocol.type) {
      case proto.Message.ProtocolMessage.Type.REVOKE:
        return { kind: 'revoke', of };
      case proto.Message.ProtocolMessage.Type.MESSAGE_EDIT:
        return { kind: 'edit', of, text: textOf(protocol.editedMessage ?? {}) ?? '' };
      default:
        return { kind: 'nothing' };
    }
  }
  const text = content === undefined ? undefined : textOf(content);
  return text === undefined || content === undefined
    ? { kind: 'nothing' }
    : { kind: 'text', text, message: content };
}

/** A caption where there is one; media without one show as their kind, like `[imageMessage]`. */
function textOf(message: proto.IMessage): string | undefined {
  const content = normalizeMessageContent(message) ?? {};
  const written =
    content.conversation ??
    content.extendedTextMessage?.text ??
    content.imageMessage?.caption ??
    content.videoMessage?.caption ??
    content.documentMessage?.caption;
  if (written !== undefined && written !== null) return written;
  const type = getContentType(content);
  return type === undefined || type === 'senderKeyDistributionMessage' ? undefined : `[${type}]`;
}

export type Quote = {
  readonly id: string;
  readonly text: string;
  /** Jid of who wrote the quoted message. */
  readonly author: string;
};

/** A text as a phone of today sends it, with the secret that every message carries. */
export function textMessage(
  text: string,
  quote?: Quote,
  mentionedJid: readonly string[] = [],
): proto.IMessage {
  const messageContextInfo = { messageSecret: randomBytes(32) };
  if (quote === undefined && mentionedJid.length === 0) {
    return { conversation: text, messageContextInfo };
  }
  const contextInfo = {
    ...(quote === undefined
      ? {}
      : {
          stanzaId: quote.id,
          participant: quote.author,
          quotedMessage: { conversation: quote.text },
        }),
    ...(mentionedJid.length === 0 ? {} : { mentionedJid: [...mentionedJid] }),
  };
  return { extendedTextMessage: { text, contextInfo }, messageContextInfo };
}

/** Shaped like those of phones; the linked device's own begin with `3EB0`. */
export const newMessageId = () => `3A${randomBytes(9).toString('hex').toUpperCase()}`;
