// Telegram's ids in our terms. A message id names the bot too: another bot of the same account
// counts its messages from 1 again, and they must not look like ones already seen.

import {
  type AccountId,
  channelName,
  type MessageId,
  messageId,
  type NativeId,
  nativeId,
} from '../../kernel/message/ids.ts';
import type { ChatRef } from '../../kernel/message/message.ts';

export const TELEGRAM = channelName('telegram');

/** The number in front of the colon; a token without one names no bot. */
export function botIdOf(token: string): number {
  return Number(/^(\d+):/.exec(token)?.[1] ?? 0);
}

export type Bot = { readonly account: AccountId; readonly botId: number };

export function inboundId(bot: Bot, chat: number, message: number, edit?: number): MessageId {
  const suffix = edit === undefined ? '' : `~${edit}`;
  return messageId(`${TELEGRAM}:${bot.account}:${chat}:${message}@${bot.botId}${suffix}`);
}

/** A press of a button below this message of ours; `query` is Telegram's id of it. */
export function pressId(bot: Bot, chat: number, message: number, query: string): MessageId {
  return messageId(`${inboundId(bot, chat, message)}~press.${query}`);
}

/** A reaction to this message of ours, told by that update. */
export function reactionId(bot: Bot, chat: number, message: number, update: number): MessageId {
  return messageId(`${inboundId(bot, chat, message)}~reaction.${update}`);
}

/** For updates that carry no message. */
export function updateId(bot: Bot, update: number): MessageId {
  return messageId(`${TELEGRAM}:${bot.account}:update:${update}@${bot.botId}`);
}

/** Telegram's number of a message in this chat, when this bot received it there. */
export function telegramMessageId(
  id: MessageId | undefined,
  bot: Bot,
  chat: number,
): number | undefined {
  const place = placeOfMessage(id, bot);
  return place?.chat === chat ? place.message : undefined;
}

/** Where a message stands that this bot received. */
export function placeOfMessage(
  id: MessageId | undefined,
  bot: Bot,
): { readonly chat: number; readonly message: number } | undefined {
  const [, chat, number, receiver] = /:(-?\d+):(\d+)@(\d+)$/.exec(id ?? '') ?? [];
  if (Number(receiver) !== bot.botId) return undefined;
  return { chat: Number(chat), message: Number(number) };
}

export const toNativeId = (telegramId: number): NativeId => nativeId(String(telegramId));
export const fromNativeId = (id: NativeId): number => Number(id);

/** A draft that goes on in a second message has the ids of both, and is used as one. */
export const joinedDraft = (...messages: readonly NativeId[]): NativeId =>
  nativeId(messages.join('+'));
export const draftMessages = (draft: NativeId): readonly NativeId[] =>
  draft.split('+').map(nativeId);

/** The topic of a forum; undefined in its general one and everywhere else. */
export const telegramThreadId = ({ thread }: ChatRef): number | undefined =>
  thread === undefined ? undefined : Number(thread);

/** Groups, supergroups and channels have negative ids. */
export const isGroupId = (chat: number): boolean => chat < 0;
