// Telegram's ids in our terms. A message id names the bot too: another bot of the same account
// counts its messages from 1 again, and they must not look like ones already seen.

import {
  type AccountId,
  channelName,
  type MessageId,
  messageId,
  type NativeId,
  nativeId,
} from '../../core/ids.ts';
import type { ChatRef } from '../../core/message.ts';

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

/** For updates that carry no message. */
export function updateId(bot: Bot, update: number): MessageId {
  return messageId(`${TELEGRAM}:${bot.account}:update:${update}@${bot.botId}`);
}

/** Telegram's number of a message we received, when this bot received it. */
export function telegramMessageId(id: MessageId | undefined, bot: Bot): number | undefined {
  const match = /:(\d+)@(\d+)$/.exec(id ?? '');
  return match === null || Number(match[2]) !== bot.botId ? undefined : Number(match[1]);
}

export const toNativeId = (telegramId: number): NativeId => nativeId(String(telegramId));
export const fromNativeId = (id: NativeId): number => Number(id);
export const telegramChatId = (chat: ChatRef): number => Number(chat.chat);
