// Events that are about another message: a button below one of ours was pressed, one of ours got a
// reaction, somebody took back what they wrote. Each to what the bus stores, or undefined.

import type { InboundEntry } from '../../kernel/bus/bus.ts';
import { emojiOf } from '../../kernel/message/change.ts';
import { type ChatId, nativeId } from '../../kernel/message/ids.ts';
import type { InboundMessage } from '../../kernel/message/message.ts';
import { textOf } from '../../lib/json/json.ts';
import { at } from './content.ts';
import { inboundId, isId } from './ids.ts';
import { type InboundContext, isFromUs, placeNamed, senderOf } from './inbound.ts';
import { emojiOfLark } from './rules/reactions.ts';

const TOKEN = /^[A-Za-z0-9_-]{1,48}$/;

/** open.feishu.cn/document/uAjLw4CM/ukzMukzMukzM/feishu-cards/card-callback-communication */
export async function toPress(
  event: unknown,
  { directory, receivedAt }: InboundContext,
): Promise<InboundEntry | undefined> {
  const value = at(event, 'action', 'value');
  const token = textOf(at(value, 'token'));
  const card = textOf(at(event, 'context', 'open_message_id'));
  const chat = textOf(at(event, 'context', 'open_chat_id'));
  const eventId = textOf(at(event, 'event_id'));
  if (token === undefined || !TOKEN.test(token)) return undefined;
  if (!isId(card) || !isId(chat) || !isId(eventId)) return undefined;
  const thread = textOf(at(value, 'thread'));
  const [sender, place] = await Promise.all([
    senderOf(at(event, 'operator'), directory),
    placeNamed(chat, isId(thread) ? thread : undefined, directory),
  ]);
  const message: InboundMessage = {
    id: inboundId(chat, card, `~press.${eventId}`),
    sender,
    ...place,
    addressing: 'direct',
    text: textOf(at(value, 'label')) ?? '',
    press: token,
    sentAt: receivedAt,
    receivedAt,
  };
  return { kind: 'queue', message };
}

/** The event names no chat: it is the one of the message, which has to be ours. */
export async function toReaction(
  event: unknown,
  isTakenBack: boolean,
  { directory, receivedAt, appId }: InboundContext,
): Promise<InboundEntry | undefined> {
  const id = textOf(at(event, 'message_id'));
  const eventId = textOf(at(event, 'event_id'));
  const emoji = emojiOf(emojiOfLark(textOf(at(event, 'reaction_type', 'emoji_type')) ?? ''));
  const isPerson = at(event, 'operator_type') === 'user';
  if (!isPerson || emoji === undefined || !isId(id) || !isId(eventId)) return undefined;
  const original = await directory.message(id);
  const chat = textOf(original?.['chat_id']);
  if (original === undefined || !isFromUs(original, appId) || !isId(chat)) return undefined;
  const thread = textOf(original['thread_id']);
  const [sender, place] = await Promise.all([
    senderOf(at(event, 'user_id'), directory),
    placeNamed(chat, isId(thread) ? thread : undefined, directory),
  ]);
  const to = nativeId(id);
  const message: InboundMessage = {
    id: inboundId(chat, id, `~reaction.${eventId}`),
    sender,
    ...place,
    addressing: place.group === undefined ? 'direct' : 'reply',
    text: '',
    reaction: isTakenBack ? { to } : { to, emoji },
    sentAt: receivedAt,
    receivedAt,
  };
  return { kind: 'queue', message };
}

/** The event does not say who wrote it: only what came lately can be taken back. */
export function toWithdrawal(
  event: unknown,
  recent: RecentMessages,
  receivedAt: number,
): InboundEntry | undefined {
  const id = textOf(at(event, 'message_id'));
  const earlier = id === undefined ? undefined : recent.find(id);
  if (earlier === undefined || at(event, 'recall_type') !== 'message_owner') return undefined;
  const { replyTo: _answered, quoted: _quote, attachments: _files, ...rest } = earlier;
  const message: InboundMessage = {
    ...rest,
    id: inboundId(earlier.chat.chat, id ?? '', '~withdrawn'),
    text: '',
    amends: { id: earlier.id, kind: 'withdrawn' },
    receivedAt,
  };
  return { kind: 'queue', message };
}

const MAX_RECENT = 1000;

export type RecentMessages = {
  note(message: InboundMessage): void;
  /** By Lark's id. */
  find(id: string): InboundMessage | undefined;
};

/** Who wrote what came lately, without what they wrote. In memory: a restart forgets it. */
export function createRecentMessages(): RecentMessages {
  const messages = new Map<string, InboundMessage>();
  return {
    note(message) {
      const { heard: _talk, quoted: _quote, attachments: _files, ...rest } = message;
      messages.set(nativeOf(message.id, message.chat.chat), { ...rest, text: '' });
      const [oldest] = messages.keys();
      if (messages.size > MAX_RECENT && oldest !== undefined) messages.delete(oldest);
    },
    find: (id) => messages.get(id),
  };
}

const nativeOf = (id: string, chat: ChatId) => id.slice(id.indexOf(`:${chat}:`) + chat.length + 2);
