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
