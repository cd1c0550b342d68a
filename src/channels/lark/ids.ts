// Lark's ids in our terms: chats `oc_...`, messages `om_...`, threads `omt_...`, people `ou_...` (of
// this app) and `on_...` (of the developer). Every message id is good for all of Lark.

import {
  channelName,
  chatId,
  DEFAULT_ACCOUNT,
  type MessageId,
  messageId,
  threadId,
} from '../../kernel/message/ids.ts';
import type { ChatRef } from '../../kernel/message/message.ts';

export const LARK = channelName('lark');

const ID = /^[A-Za-z0-9_.=-]{1,120}$/;

/** Ids become parts of addresses: nothing else may get through. */
export const isId = (text: string | undefined): text is string =>
  text !== undefined && ID.test(text) && !/^\.+$/.test(text);

export function chatRef(chat: string, thread: string | undefined): ChatRef {
  return {
    channel: LARK,
    account: DEFAULT_ACCOUNT,
    chat: chatId(chat),
    ...(thread === undefined ? {} : { thread: threadId(thread) }),
  };
}

export function inboundId(chat: string, message: string, suffix = ''): MessageId {
  return messageId(`${LARK}:${DEFAULT_ACCOUNT}:${chat}:${message}${suffix}`);
}

/** Lark's id of a message that came from there. */
export function larkMessageId(id: MessageId | undefined): string | undefined {
  const [channel, , , message] = (id ?? '').split(':');
  const bare = message?.split('~')[0];
  return channel === LARK && isId(bare) ? bare : undefined;
}
