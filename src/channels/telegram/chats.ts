// Telegram's ids, and its groups: whether a message addresses the bot, and which ids a group had
// before it became a supergroup. A message id includes the bot, because another bot of the same
// account counts its messages from 1 again.

import { howToList, plain } from '../../kernel/access/admission.ts';
import {
  type AccountId,
  channelName,
  type MessageId,
  messageId,
  type NativeId,
  nativeId,
} from '../../kernel/message/ids.ts';
import type { ChatRef, InboundMessage } from '../../kernel/message/message.ts';
import { type Fields, fieldsOf, integerOf, listOf, textOf } from '../../lib/json/json.ts';
import { t } from '../../lib/texts.ts';
import type { ChannelHost } from '../channel.ts';
import { nameOf } from './content.ts';

export const TELEGRAM = channelName('telegram');

/** The number before the colon; a token without one names no bot. */
export function botIdOf(token: string): number {
  return Number(/^(\d+):/.exec(token)?.[1] ?? 0);
}

export type Bot = { readonly account: AccountId; readonly botId: number };

export function inboundId(bot: Bot, chat: number, message: number, edit?: number): MessageId {
  const suffix = edit === undefined ? '' : `~${edit}`;
  return messageId(`${TELEGRAM}:${bot.account}:${chat}:${message}@${bot.botId}${suffix}`);
}

/** A press of a button below this message of the bot; `query` is Telegram's id of the press. */
export function pressId(bot: Bot, chat: number, message: number, query: string): MessageId {
  return messageId(`${inboundId(bot, chat, message)}~press.${query}`);
}

/** A reaction to this message of the bot, reported by that update. */
export function reactionId(bot: Bot, chat: number, message: number, update: number): MessageId {
  return messageId(`${inboundId(bot, chat, message)}~reaction.${update}`);
}

/** For updates that carry no message. */
export function updateId(bot: Bot, update: number): MessageId {
  return messageId(`${TELEGRAM}:${bot.account}:update:${update}@${bot.botId}`);
}

/** Telegram's number of a message, if this bot received it in this chat. */
export function telegramMessageId(
  id: MessageId | undefined,
  bot: Bot,
  chat: number,
): number | undefined {
  const place = placeOfMessage(id, bot);
  return place?.chat === chat ? place.message : undefined;
}

/** The place of a message that this bot received. */
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

/** A draft that continues in a second message has the ids of both and is used as one. */
export const joinedDraft = (...messages: readonly NativeId[]): NativeId =>
  nativeId(messages.join('+'));
export const draftMessages = (draft: NativeId): readonly NativeId[] =>
  draft.split('+').map(nativeId);

/** The topic of a forum; undefined in its general topic and everywhere else. */
export const telegramThreadId = ({ thread }: ChatRef): number | undefined =>
  thread === undefined ? undefined : Number(thread);

/** Groups, supergroups and channels have negative ids. */
export const isGroupId = (chat: number): boolean => chat < 0;

// Whether a message in a group mentions the bot, answers it, or has a command for it. Pure.

export type BotNames = {
  readonly botId: number;
  /** Without `@`; undefined until Telegram has reported it. */
  readonly username: string | undefined;
};

const COMMAND = /^\/[a-z0-9_]+(?:@([a-z0-9_]+))?(?=\s|$)/i;

export function addressingOf(fields: Fields, bot: BotNames): InboundMessage['addressing'] {
  const text = textOf(fields['text']) ?? textOf(fields['caption']) ?? '';
  const command = COMMAND.exec(text.trimStart());
  // A group may have several bots: a command is for the one it names.
  if (command !== null) return isOurName(command[1], bot) ? 'mention' : 'ambient';
  const entities = [...listOf(fields['entities']), ...listOf(fields['caption_entities'])];
  if (entities.some((entity) => isMention(fieldsOf(entity), text, bot))) return 'mention';
  const original = answeredBy(fields);
  const author = integerOf(fieldsOf(original?.['from'])?.['id']);
  return author === bot.botId ? 'reply' : 'ambient';
}

/** The message this one answers. In a topic every message appears to answer the topic's first. */
export function answeredBy(fields: Fields): Fields | undefined {
  const original = fieldsOf(fields['reply_to_message']);
  return original?.['forum_topic_created'] === undefined ? original : undefined;
}

function isMention(entity: Fields | undefined, text: string, bot: BotNames): boolean {
  if (entity?.['type'] === 'text_mention') {
    return integerOf(fieldsOf(entity['user'])?.['id']) === bot.botId;
  }
  const offset = integerOf(entity?.['offset']);
  const length = integerOf(entity?.['length']);
  if (entity?.['type'] !== 'mention' || offset === undefined || length === undefined) return false;
  return isOurName(text.slice(offset + 1, offset + length), bot);
}

const isOurName = (name: string | undefined, { username }: BotNames) =>
  name !== undefined && name.toLowerCase() === username?.toLowerCase();

// What Telegram reports about groups, evaluated before their messages: a group has a new id, or
// somebody added the bot. Pure.

/** The group's new id: both the old group and the new one report it. */
export function moveOf(update: unknown): Move | undefined {
  const message = fieldsOf(fieldsOf(update)?.['message']);
  const chat = fieldsOf(message?.['chat']);
  const here = integerOf(chat?.['id']);
  if (message === undefined || here === undefined) return undefined;
  const title = textOf(chat?.['title']);
  const to = integerOf(message['migrate_to_chat_id']);
  if (to !== undefined) return { from: here, to, title };
  const from = integerOf(message['migrate_from_chat_id']);
  return from === undefined ? undefined : { from, to: here, title };
}

export type Joined = { readonly chat: number; readonly text: string };

/** Somebody added the bot to a group; `text` is for the owner. */
export function joinedOf(update: unknown): Joined | undefined {
  const change = fieldsOf(fieldsOf(update)?.['my_chat_member']);
  const chat = fieldsOf(change?.['chat']);
  const id = integerOf(chat?.['id']);
  if (change === undefined || chat === undefined || id === undefined || !isGroup(chat)) return;
  const [before, after] = [change['old_chat_member'], change['new_chat_member']].map(isMember);
  if (before || !after) return undefined;
  const from = fieldsOf(change['from']);
  const by = plain((from === undefined ? undefined : nameOf(from)) ?? t`Somebody`);
  const title = plain(textOf(chat['title']) ?? 'a group');
  const text = t`${by} added me to the Telegram group ${title} (${id}). I do not write there. `;
  return { chat: id, text: text + howToList(TELEGRAM, String(id)) };
}

export const isGroup = (chat: Fields): boolean =>
  chat['type'] === 'group' || chat['type'] === 'supergroup';

function isMember(value: unknown): boolean {
  const member = fieldsOf(value);
  const status = member?.['status'];
  if (status === 'restricted') return member?.['is_member'] === true;
  return status === 'member' || status === 'administrator' || status === 'creator';
}

// Groups that became supergroups: Telegram gives them a new id, while the conversation, the allow
// list and everything else keep the old name. Durable, and reported to the owner.

const MOVED = 'moved:';
/** A group moves once; a longer chain is a loop. */
const MAX_STEPS = 8;

export type Move = {
  readonly from: number;
  readonly to: number;
  readonly title?: string | undefined;
};

export type GroupMoves = ReturnType<typeof createGroupMoves>;

export function createGroupMoves() {
  const moves = new Map<number, number>();
  let host: ChannelHost | undefined;

  /** The chat and the ids it got later, in order. */
  function onwards(chat: number): readonly number[] {
    const ids = [chat];
    for (let step = 0; step < MAX_STEPS; step += 1) {
      const next = moves.get(ids.at(-1) ?? chat);
      if (next === undefined || ids.includes(next)) break;
      ids.push(next);
    }
    return ids;
  }

  function firstName(chat: number): number {
    let name = chat;
    for (let step = 0; step < MAX_STEPS; step += 1) {
      const earlier = [...moves].find(([, to]) => to === name)?.[0];
      if (earlier === undefined || earlier === chat) break;
      name = earlier;
    }
    return name;
  }

  return {
    /** Reads the stored moves; until then only those recorded since are known. */
    async load(givenHost: ChannelHost): Promise<void> {
      host = givenHost;
      for (const { key, value } of await host.state.list(MOVED)) {
        moves.set(Number(key.slice(MOVED.length)), Number(value));
      }
    },

    /** Durable once resolved, if `load` was called before. */
    async note({ from, to, title }: Move): Promise<void> {
      if (from === to || moves.get(from) === to) return;
      moves.set(from, to);
      await host?.state.set(`${MOVED}${from}`, String(to));
      host?.log.info(t`telegram group has a new id`, { from, to });
      const name = title === undefined ? '' : ` (${plain(title)})`;
      host?.tell(
        t`The Telegram group ${from}${name} became a supergroup with the id ${to}. Its ` +
          t`conversation continues, and both ids count as listed.`,
      );
    },

    /** Telegram's current id of the chat. */
    address: (chat: ChatRef) => onwards(Number(chat.chat)).at(-1) ?? Number(chat.chat),

    /** All ids of the chat; the first names the conversation. */
    names(chat: number): readonly [number, ...number[]] {
      const [first = chat, ...others] = onwards(firstName(chat));
      return [first, ...others];
    },
  };
}
