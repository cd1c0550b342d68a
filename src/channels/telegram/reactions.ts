// Reactions: what people think of messages of ours, and the sign we set on theirs while we work. Pure
// but for the call that sets it.

import type { TelegramConfig } from '../../kernel/config/config.ts';
import { emojiOf } from '../../kernel/message/change.ts';
import type { MessageId } from '../../kernel/message/ids.ts';
import { type Fields, fieldsOf, integerOf, listOf, textOf } from '../../lib/json/json.ts';
import type { Reactions } from '../channel.ts';
import type { BotApi } from './client.ts';
import { BotCallError, toDeliveryError } from './failures.ts';
import type { GroupMoves } from './groups.ts';
import { type Bot, placeOfMessage } from './ids.ts';
import { TELEGRAM_REACTIONS } from './rules/reactions.ts';

export type TelegramReaction = {
  readonly chat: Fields;
  readonly message: number;
  readonly from: Fields;
  /** Undefined where they took theirs back. */
  readonly emoji: string | undefined;
};

/** Undefined where a chat reacted, or by something that is no emoji. */
export function reactionOf(update: unknown): TelegramReaction | undefined {
  const change = fieldsOf(fieldsOf(update)?.['message_reaction']);
  const chat = fieldsOf(change?.['chat']);
  const from = fieldsOf(change?.['user']);
  const message = integerOf(change?.['message_id']);
  if (chat === undefined || from === undefined || message === undefined) return undefined;
  const now = listOf(change?.['new_reaction']);
  const emoji = now
    .map((one) => emojiOf(textOf(fieldsOf(one)?.['emoji'])))
    .findLast((one) => one !== undefined);
  if (now.length > 0 && emoji === undefined) return undefined;
  return { chat, message, from, emoji };
}

/** A bot sets one reaction of Telegram's list on a message (Bot API, setMessageReaction). */
export function createReactions(
  api: BotApi,
  bot: Bot,
  moves: Pick<GroupMoves, 'names'>,
  acknowledgement: TelegramConfig['ackReaction'],
): Reactions {
  return {
    ...(acknowledgement === '' ? {} : { acknowledgement }),
    async react(to: MessageId, emoji, signal) {
      const place = placeOfMessage(to, bot);
      if (place === undefined) return;
      const sign = TELEGRAM_REACTIONS.find((one) => one === emoji);
      const reaction = sign === undefined ? [] : [{ type: 'emoji', emoji: sign } as const];
      const today = moves.names(place.chat).at(-1) ?? place.chat;
      const target = { chat_id: today, message_id: place.message };
      try {
        await api.setMessageReaction({ ...target, reaction }, signal);
      } catch (error) {
        throw error instanceof BotCallError ? toDeliveryError(error, true) : error;
      }
    },
  };
}
