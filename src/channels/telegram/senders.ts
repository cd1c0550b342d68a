// Who an update says did something: known by numeric ids alone, because names are chosen freely. Pure.

import { userId } from '../../kernel/message/ids.ts';
import type { PersonSender } from '../../kernel/message/message.ts';
import { type Fields, fieldsOf, integerOf, textOf } from '../../lib/json/json.ts';
import { nameOf } from './content.ts';

export type SenderRules = {
  /** Ids of chats in whose name people may write: a group for its hidden admins, a channel. */
  readonly senderChats: readonly string[];
};

/** In the name of a chat anybody may write whom its admins let: that chat is listed or refused. */
export function senderGate(fields: Fields, { senderChats }: SenderRules): string | undefined {
  const onBehalf = fields['sender_chat'];
  if (onBehalf === undefined) {
    return fieldsOf(fields['from'])?.['is_bot'] === true ? 'sender is a bot' : undefined;
  }
  const id = integerOf(fieldsOf(onBehalf)?.['id']);
  const isListed = id !== undefined && senderChats.includes(String(id));
  return isListed ? undefined : 'sent in the name of a chat';
}

/** Known by the chat's id, which is never a person's: a hidden admin is nobody in particular. */
export function senderChatOf(fields: Fields, context: SenderRules): PersonSender {
  const chat = fieldsOf(fields['sender_chat']);
  const id = integerOf(chat?.['id']);
  const isListed = id !== undefined && context.senderChats.includes(String(id));
  if (!isListed) return senderOf(undefined);
  const name = textOf(chat?.['title']);
  return {
    kind: 'person',
    id: userId(String(id)),
    ...(name === undefined ? {} : { name }),
    verified: 'verified',
  };
}

export function senderOf(from: Fields | undefined): PersonSender {
  const id = integerOf(from?.['id']);
  if (from === undefined || id === undefined) {
    return { kind: 'person', id: userId('unknown'), verified: 'unverified' };
  }
  const name = nameOf(from);
  return {
    kind: 'person',
    id: userId(String(id)),
    ...(name === undefined ? {} : { name }),
    verified: 'verified',
  };
}
