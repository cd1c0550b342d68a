// WhatsApp's ids in our terms. The sender of a message chooses its id, so it only counts together with
// the chat and the author.

import {
  type ChatId,
  channelName,
  chatId,
  DEFAULT_ACCOUNT,
  type MessageId,
  messageId,
} from '../../core/ids.ts';

export const WHATSAPP = channelName('whatsapp');

/** The chat of the account's owner with themself, and the owner as an author. */
export const SELF = 'self';
export const SELF_CHAT: ChatId = chatId(SELF);

/** `whatsapp:default:<chat>/<id>/<author>`; the author is a person's chat or `self`. */
export function whatsappMessageId(chat: string, id: string, author: string): MessageId {
  const name = encodeURIComponent(id.toWellFormed());
  return messageId(`${WHATSAPP}:${DEFAULT_ACCOUNT}:${chat}/${name}/${author}`);
}

/** What makes a message's id. */
export type WhatsAppName = {
  readonly chat: ChatId;
  readonly id: string;
  /** The chat of whoever wrote it. */
  readonly author: ChatId;
};

/** Undefined for an id that is not of this door. */
export function whatsappNameOf(message: MessageId): WhatsAppName | undefined {
  const prefix = `${WHATSAPP}:${DEFAULT_ACCOUNT}:`;
  if (!message.startsWith(prefix)) return undefined;
  const [chat, id, author, ...more] = message.slice(prefix.length).split('/');
  if (!chat || !id || !author || more.length > 0) return undefined;
  return { chat: chatId(chat), id: decodeURIComponent(id), author: chatId(author) };
}
