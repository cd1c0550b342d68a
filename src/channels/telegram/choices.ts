// Buttons below messages of the bot, and reactions. A press is an update of its own; its outcome is
// shown at the button. The gateway decides what a token means and who may press.

import type { InlineKeyboardMarkup } from 'grammy/types';
import type { MessageId } from '../../kernel/message/ids.ts';
import type { Choice } from '../../kernel/message/message.ts';
import { emojiOf, toastOf } from '../../kernel/message/message.ts';
import { type Fields, fieldsOf, integerOf, listOf, textOf } from '../../lib/json/json.ts';
import { buttonRows } from '../api-calls.ts';
import type { ChannelHost, Reactions } from '../channel.ts';
import { CHOICE_TOKEN } from '../local-channel.ts';
import { type Bot, type GroupMoves, placeOfMessage } from './chats.ts';
import type { BotApi } from './client.ts';
import { BotCallError, toDeliveryError } from './client.ts';
import { TELEGRAM_REACTIONS, type TelegramConfig } from './settings.ts';

const QUERY_ID = /^\w{1,64}$/;

export type Keyboard = InlineKeyboardMarkup;

/** `callback_data` holds 1 to 64 bytes (Bot API, InlineKeyboardButton); our tokens are shorter. */
export function keyboardOf(choices: readonly Choice[] | undefined): Keyboard | undefined {
  if (choices === undefined || choices.length === 0) return undefined;
  const buttonOf = ({ label, token }: Choice) => ({ text: label, callback_data: token });
  return { inline_keyboard: buttonRows(choices, buttonOf) };
}

export type Press = NonNullable<ReturnType<typeof pressOf>>;

/** The press that an update reports; undefined if it is none of a button of this bot. */
export function pressOf(update: unknown) {
  const query = fieldsOf(fieldsOf(update)?.['callback_query']);
  const queryId = queryIdOf(update);
  const token = textOf(query?.['data']);
  const from = fieldsOf(query?.['from']);
  const below = fieldsOf(query?.['message']);
  if (queryId === undefined || token === undefined || !CHOICE_TOKEN.test(token)) return undefined;
  if (from === undefined || below === undefined) return undefined;
  // The label is undefined if Telegram no longer shows the message because it is old.
  return { queryId, token, label: labelOf(below, token), from, below };
}

function queryIdOf(update: unknown): string | undefined {
  const id = textOf(fieldsOf(fieldsOf(update)?.['callback_query'])?.['id']);
  return id !== undefined && QUERY_ID.test(id) ? id : undefined;
}

function labelOf(message: Fields, token: string): string | undefined {
  const rows = listOf(fieldsOf(message['reply_markup'])?.['inline_keyboard']);
  const buttons = rows.flatMap((row) => listOf(row)).map((button) => fieldsOf(button));
  const pressed = buttons.find((button) => button?.['callback_data'] === token);
  return textOf(pressed?.['text']);
}

type PressDeps = Pick<ChannelHost, 'clock' | 'log'> & {
  readonly api: BotApi;
  readonly signal: AbortSignal;
};

/** A button is released after this time, whatever the state of the press. */
const WAIT_MS = 3000;

/**
 * The presses of some updates, each answered once. `idOf(n)`: the message that `updates[n]` became.
 * Best effort: the app stops waiting by itself.
 */
export function openPresses(
  updates: readonly unknown[],
  idOf: (index: number) => MessageId | undefined,
  { api, clock, log, signal }: PressDeps,
) {
  const waiting = new Map<string, MessageId | undefined>();
  for (const [index, update] of updates.entries()) {
    const query = queryIdOf(update);
    if (query !== undefined) waiting.set(query, idOf(index));
  }

  async function answer(callback_query_id: string, text: string) {
    waiting.delete(callback_query_id);
    const words = text === '' ? {} : { text };
    await api
      .answerCallbackQuery({ callback_query_id, ...words }, signal)
      .catch((error: unknown) => {
        if (!(error instanceof BotCallError)) throw error;
        if (!signal.aborted) log.info('telegram button not released', { error });
      });
  }

  const release = () => {
    for (const query of [...waiting.keys()]) void answer(query, '');
  };
  const late = waiting.size === 0 ? undefined : clock.timer(WAIT_MS, release);

  return {
    /** Shows an outcome at the button and releases it in the person's app. */
    show(press: MessageId, markdown: string): void {
      const [query] = [...waiting].find(([, id]) => id === press) ?? [];
      if (query !== undefined) void answer(query, toastOf(markdown));
    },
    /** Releases those without an outcome. */
    release(): void {
      late?.[Symbol.dispose]();
      release();
    },
  };
}

// Reactions: people's reactions to messages of the bot, and the bot's own reaction on theirs while
// the agent works. Pure but for the call that sets it.

export type TelegramReaction = NonNullable<ReturnType<typeof reactionOf>>;

/** Undefined if a chat reacted, or the reaction is no emoji; without an emoji it was removed. */
export function reactionOf(update: unknown) {
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
        throw toDeliveryError(error, true);
      }
    },
  };
}
