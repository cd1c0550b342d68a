// Converts one Telegram update to what the bus stores: a message for the agent, or a record of why
// it is none. The pictures of an album become one message. An update of any shape has a result, so
// that the next one is read.

import type { InboundEntry } from '../../kernel/bus/bus.ts';
import { chatId, nativeId, threadId } from '../../kernel/message/ids.ts';
import type { InboundMessage } from '../../kernel/message/message.ts';
import { type Fields, fieldsOf, integerOf, textOf } from '../../lib/json/json.ts';
import { entryOf, OURSELVES, saidIn } from '../inbound-message.ts';
import {
  addressingOf,
  answeredBy,
  type Bot,
  type BotNames,
  inboundId,
  isGroup,
  pressId,
  reactionId,
  TELEGRAM,
  updateId,
} from './chats.ts';
import { type Press, pressOf, reactionOf, type TelegramReaction } from './choices.ts';
import {
  attachmentsOf,
  contentOf,
  nameOf,
  type SenderRules,
  senderChatOf,
  senderGate,
  senderOf,
} from './content.ts';

export type InboundContext = Bot &
  BotNames &
  SenderRules & {
    readonly receivedAt: number;
    /** All ids of a group; the first names its conversation. */
    namesOf(chat: number): readonly [number, ...number[]];
  };

/** `update_id`, or undefined if the update has no usable one. */
export function updateIdOf(update: unknown): number | undefined {
  return integerOf(fieldsOf(update)?.['update_id']);
}

/** @returns undefined for a value that is not an update with an id */
export function toEntry(update: unknown, context: InboundContext): InboundEntry | undefined {
  const id = updateIdOf(update);
  const fields = fieldsOf(update);
  if (id === undefined || fields === undefined) return undefined;
  const edited = fieldsOf(fields['edited_message']);
  const message = fieldsOf(fields['message']) ?? edited;
  const press = pressOf(update);
  const pressed = press === undefined ? undefined : parsePress(press, context);
  if (pressed !== undefined) return pressed;
  const reaction = reactionOf(update);
  const reacted = reaction === undefined ? undefined : parseReaction(id, reaction, context);
  if (reacted !== undefined) return reacted;
  if (message === undefined) {
    const kind = Object.keys(fields).find((key) => key !== 'update_id') ?? 'nothing';
    return blank(id, context, `update of kind ${kind.slice(0, 40)}`);
  }
  const parsed = parseMessage(message, context, edited === message ? id : undefined);
  return parsed ?? blank(id, context, 'message without chat, sender or id');
}

function parseMessage(
  fields: Fields,
  context: InboundContext,
  /** The update that changed it. */
  edit: number | undefined,
): InboundEntry | undefined {
  const chat = fieldsOf(fields['chat']);
  const chatNumber = integerOf(chat?.['id']);
  const number = integerOf(fields['message_id']);
  const from = fieldsOf(fields['from']);
  const fromNumber = integerOf(from?.['id']);
  if (chat === undefined || chatNumber === undefined || number === undefined) return undefined;
  const isOnBehalf = fields['sender_chat'] !== undefined;
  if (!isOnBehalf && (from === undefined || fromNumber === undefined)) return undefined;
  const text = contentOf(fields);
  const attachments = attachmentsOf(fields);
  const hasContent = text !== undefined || attachments.length > 0;
  const isMoved = edit !== undefined && fields['location'] !== undefined;
  const gate = gateFor(chat, isMoved, hasContent) ?? senderGate(fields, context);
  const original = inboundId(context, chatNumber, number);
  const message: InboundMessage = {
    id: inboundId(context, chatNumber, number, edit),
    sender: isOnBehalf ? senderChatOf(fields, context) : senderOf(from),
    ...placeOf(fields, chat, chatNumber, context),
    text: text ?? '',
    amends: edit === undefined ? undefined : { id: original, kind: 'edited' },
    attachments: attachments.length === 0 ? undefined : attachments,
    ...replyOf(fields, chatNumber, context),
    sentAt: (integerOf(fields['date']) ?? context.receivedAt / 1000) * 1000,
    receivedAt: context.receivedAt,
  };
  return entryOf(message, gate);
}

/** Addressed to the bot everywhere; a message too old for Telegram to show has lost its labels. */
function parsePress(press: Press, context: InboundContext): InboundEntry | undefined {
  const { from, below } = press;
  const chat = fieldsOf(below['chat']);
  const chatNumber = integerOf(chat?.['id']);
  const number = integerOf(below['message_id']);
  if (chat === undefined || chatNumber === undefined || number === undefined) return undefined;
  if (integerOf(from['id']) === undefined) return undefined;
  const message: InboundMessage = {
    id: pressId(context, chatNumber, number, press.queryId),
    sender: senderOf(from),
    ...placeOf(below, chat, chatNumber, context),
    addressing: 'direct',
    text: press.label ?? '',
    press: press.token,
    sentAt: context.receivedAt,
    receivedAt: context.receivedAt,
  };
  return entryOf(message, from['is_bot'] === true ? 'sender is a bot' : undefined);
}

/** The update does not name the topic: it is that of the message with the reaction. */
function parseReaction(
  update: number,
  { chat, message, emoji, from }: TelegramReaction,
  context: InboundContext,
): InboundEntry | undefined {
  const chatNumber = integerOf(chat['id']);
  if (chatNumber === undefined || integerOf(from['id']) === undefined) return undefined;
  const place = placeOf({}, chat, chatNumber, context);
  const reacted: InboundMessage = {
    id: reactionId(context, chatNumber, message, update),
    sender: senderOf(from),
    ...place,
    addressing: place.group === undefined ? place.addressing : 'reply',
    text: '',
    reaction: { to: nativeId(String(message)), emoji },
    sentAt: context.receivedAt,
    receivedAt: context.receivedAt,
  };
  return entryOf(reacted, undefined);
}

/** A topic is a conversation of its own; a group that moved keeps its name. */
function placeOf(
  fields: Fields,
  chat: Fields,
  chatNumber: number,
  context: InboundContext,
): Pick<InboundMessage, 'chat' | 'addressing' | 'group'> {
  const ref = { channel: TELEGRAM, account: context.account };
  if (chat['type'] === 'private') {
    return { chat: { ...ref, chat: chatId(String(chatNumber)) }, addressing: 'direct' };
  }
  if (!isGroup(chat)) {
    return { chat: { ...ref, chat: chatId(String(chatNumber)) }, addressing: 'ambient' };
  }
  const [name, ...others] = context.namesOf(chatNumber);
  const ids = others.map((id) => chatId(String(id)));
  const thread =
    fields['is_topic_message'] === true ? integerOf(fields['message_thread_id']) : undefined;
  const chatName = chatId(String(name));
  const topic = thread === undefined ? undefined : threadId(String(thread));
  return {
    chat: { ...ref, chat: chatName, thread: topic },
    addressing: addressingOf(fields, context),
    group: { ids: [chatName, ...ids], title: textOf(chat['title']) },
  };
}

/** The first reason for which the channel itself keeps a message from the agent. */
function gateFor(chat: Fields, isMoved: boolean, hasContent: boolean): string | undefined {
  if (chat['type'] !== 'private' && !isGroup(chat)) return 'neither a private chat nor a group';
  if (isMoved) return 'a live location that moved';
  return hasContent ? undefined : 'nothing to read';
}

function replyOf(
  fields: Fields,
  chatNumber: number,
  context: InboundContext,
): Pick<InboundMessage, 'quoted' | 'replyTo'> {
  const original = answeredBy(fields);
  const number = integerOf(original?.['message_id']);
  const chosen = textOf(fieldsOf(fields['quote'])?.['text']);
  const said = original && saidIn(contentOf(original), attachmentsOf(original));
  const text = chosen ?? said;
  const author = fieldsOf(original?.['from']);
  const isOurs = author !== undefined && integerOf(author['id']) === context.botId;
  const name = isOurs ? OURSELVES : author && nameOf(author);
  const sentAs = isOurs ? nativeId(String(number)) : undefined;
  return {
    quoted: text === undefined ? undefined : { text, author: name, sentAs },
    replyTo: number === undefined ? undefined : inboundId(context, chatNumber, number),
  };
}

/** A record of an update without a message that can be identified. */
function blank(update: number, context: InboundContext, gate: string): InboundEntry {
  const message: InboundMessage = {
    id: updateId(context, update),
    chat: { channel: TELEGRAM, account: context.account, chat: chatId('none') },
    sender: senderOf(undefined),
    addressing: 'ambient',
    text: '',
    sentAt: context.receivedAt,
    receivedAt: context.receivedAt,
  };
  return entryOf(message, gate);
}

// Albums: Telegram delivers each picture as a message of its own, marked with the album's id. Here
// they become one message, and updates stay unconfirmed until an album is complete. Pure.

/** How long the rest of an album is waited for, milliseconds. */
export const ALBUM_WAIT_MS = 700;
/** Most items of an album (Bot API, sendMediaGroup): one of this size is complete. */
const ALBUM_SIZE = 10;
const RANK = { direct: 3, mention: 2, reply: 1, ambient: 0 } as const;

/** Chat, sender and id of the album an update belongs to. */
function albumOf(update: unknown): string | undefined {
  const message = fieldsOf(fieldsOf(update)?.['message']);
  const album = textOf(message?.['media_group_id']);
  const chat = integerOf(fieldsOf(message?.['chat'])?.['id']);
  const sender = fieldsOf(message?.['from'])?.['id'] ?? fieldsOf(message?.['sender_chat'])?.['id'];
  return album === undefined ? undefined : `${chat}:${sender}:${album}`;
}

/** Albums that may be incomplete, and how many of their updates are there. */
export type OpenAlbums = { readonly keys: string; readonly count: number };

/**
 * The updates before albums that may be incomplete; `open` are those albums. An album that did not
 * grow since it was `seen` is complete.
 */
export function wholeUpdates(
  updates: readonly unknown[],
  seen: OpenAlbums | undefined,
): { readonly whole: readonly unknown[]; readonly open: OpenAlbums | undefined } {
  const late = updates.slice(-ALBUM_SIZE).map(albumOf);
  const albums = new Set(late.filter((key) => key !== undefined));
  if (albums.size === 0) return { whole: updates, open: undefined };
  const isOpen = (update: unknown) => albums.has(albumOf(update) ?? '');
  const count = updates.filter(isOpen).length;
  const keys = [...albums].join(' ');
  const isWhole = seen?.keys === keys && seen.count === count;
  if (isWhole) return { whole: updates, open: undefined };
  return { whole: updates.slice(0, updates.findIndex(isOpen)), open: { keys, count } };
}

/** `entries[n]` is made of `updates[n]`; those of one album become one, in place of the first. */
export function joinAlbums(
  updates: readonly unknown[],
  entries: readonly (InboundEntry | undefined)[],
): readonly InboundEntry[] {
  const joined: InboundEntry[] = [];
  const places = new Map<string, number>();
  for (const [index, entry] of entries.entries()) {
    if (entry === undefined) continue;
    const key = entry.kind === 'queue' ? albumOf(updates[index]) : undefined;
    const place = key === undefined ? undefined : places.get(key);
    const before = place === undefined ? undefined : joined[place];
    if (place !== undefined && before !== undefined) {
      joined[place] = { kind: 'queue', message: together(before.message, entry.message) };
      continue;
    }
    if (key !== undefined) places.set(key, joined.length);
    joined.push(entry);
  }
  return joined;
}

/** A caption applies to the whole album: in a group one mention addresses all of it. */
function together(first: InboundMessage, next: InboundMessage): InboundMessage {
  const isStronger = RANK[next.addressing] > RANK[first.addressing];
  return {
    ...first,
    addressing: isStronger ? next.addressing : first.addressing,
    text: [first.text, next.text].filter((text) => text !== '').join('\n'),
    attachments: [...(first.attachments ?? []), ...(next.attachments ?? [])],
  };
}
