// Converts one event of Lark to what the bus stores: a message, a press of a button, a reaction, a
// withdrawal, or a record of why it is none. An event of any shape has a result; one that names no
// message gives undefined. open.feishu.cn/document/server-docs/im-v1/message/events/receive

import { plain } from '../../kernel/access/admission.ts';
import type { InboundEntry } from '../../kernel/bus/bus.ts';
import { textWithAttachments } from '../../kernel/message/attachment.ts';
import { type ChatId, chatId, nativeId } from '../../kernel/message/ids.ts';
import type { InboundMessage, PersonSender } from '../../kernel/message/message.ts';
import { emojiOf } from '../../kernel/message/message.ts';
import { RecentMap } from '../../lib/async.ts';
import { type Fields, fieldsOf, listOf, textOf } from '../../lib/json/json.ts';
import { entryOf, OURSELVES, personSender } from '../inbound-message.ts';
import { CHOICE_TOKEN } from '../local-channel.ts';
import { LarkCallError } from './failures.ts';
import {
  at,
  CARD,
  chatRef,
  contentOf,
  emojiOfLark,
  inboundId,
  isId,
  numberOf,
} from './rules/content.ts';
import type { Directory } from './uploads.ts';

export type InboundContext = {
  readonly appId: string;
  /** open_id of the bot. */
  readonly botId: string;
  readonly receivedAt: number;
  readonly directory: Directory;
};

/** Lark repeats an event for about seven hours: a time long before that is a clock error. */
const MAX_AGE_MS = 30 * 24 * 3_600_000;
/** Precedes text that its sender did not write: marks untrusted content for the model. */
const SHARED_NOTE = '[forwarded]\n';

export async function toEntry(
  event: unknown,
  context: InboundContext,
): Promise<InboundEntry | undefined> {
  const message = fieldsOf(at(event, 'message'));
  const id = textOf(message?.['message_id']);
  const chat = textOf(message?.['chat_id']);
  if (message === undefined || !isId(id) || !isId(chat)) return undefined;
  const type = textOf(message['message_type']) ?? 'unknown';
  const content = contentOf(type, textOf(message['content']) ?? '', id);
  const mentions = mentionsOf(message, context.botId);
  const gate = gateOf(event, content !== undefined);
  const known = gate === undefined ? context : { ...context, directory: NOBODY };
  const [sender, place, reply] = await Promise.all([
    senderOf(at(event, 'sender', 'sender_id'), known.directory),
    placeOf(message, chat, known),
    replyOf(message, chat, known),
  ]);
  const attachments = content?.attachments ?? [];
  const parsed: InboundMessage = {
    id: inboundId(chat, id),
    sender,
    ...place,
    addressing: addressingOf(place, mentions.isOurs, reply.isOurs),
    text: `${content?.isShared === true ? SHARED_NOTE : ''}${mentions.named(content?.text ?? '')}`,
    attachments: attachments.length === 0 ? undefined : attachments,
    ...reply.fields,
    sentAt: sentAt(message, context.receivedAt),
    receivedAt: context.receivedAt,
  };
  return entryOf(parsed, gate);
}

/** An impossible time is replaced by the time of receipt. */
function sentAt(message: Fields, receivedAt: number): number {
  const given = numberOf(message['create_time']) ?? receivedAt;
  return given > receivedAt - MAX_AGE_MS && given < receivedAt ? given : receivedAt;
}

/** The first reason for which the channel itself keeps a message from the agent. */
function gateOf(event: unknown, hasContent: boolean): string | undefined {
  if (at(event, 'sender', 'sender_type') !== 'user') return 'sender is a bot';
  return hasContent ? undefined : 'nothing to read';
}

const NOBODY: Directory = {
  nameOf: async () => undefined,
  chat: async () => undefined,
  noteDirect: () => undefined,
  message: async () => undefined,
};

/** `open_id` is of this app, `union_id` of all apps of the developer; names are chosen freely. */
export async function senderOf(
  ids: unknown,
  directory: Pick<Directory, 'nameOf'>,
): Promise<PersonSender> {
  const open = textOf(at(ids, 'open_id'));
  const union = textOf(at(ids, 'union_id'));
  const id = [open, union].find(isId);
  const name = isId(open) ? await directory.nameOf(open) : undefined;
  return personSender(id, name, isId(union) && union !== id ? [union] : []);
}

export type Place = Pick<InboundMessage, 'chat' | 'group'>;

async function placeOf(
  message: Fields,
  chat: string,
  { directory }: Pick<InboundContext, 'directory'>,
): Promise<Place> {
  const thread = textOf(message['thread_id']);
  const ref = chatRef(chat, isId(thread) ? thread : undefined);
  if (message['chat_type'] === 'p2p') {
    directory.noteDirect(chat);
    return { chat: ref };
  }
  return { chat: ref, group: groupOf(chat, (await directory.chat(chat))?.title) };
}

/**
 * The kind of a chat that an event names without it. A press in a private chat must not count as
 * one in a group, nor the reverse.
 * @throws LarkCallError if Lark does not tell the kind: the event comes again, or the person
 * presses again.
 */
async function placeNamed(
  chat: string,
  thread: string | undefined,
  directory: Pick<Directory, 'chat'>,
): Promise<Place> {
  const info = await directory.chat(chat);
  if (info === undefined) {
    const reason = 'it does not say what kind of chat it is';
    throw new LarkCallError({ kind: 'unanswered', reason });
  }
  const ref = chatRef(chat, thread);
  return { chat: ref, group: info.isGroup ? groupOf(chat, info.title) : undefined };
}

const groupOf = (chat: string, title: string | undefined): Place['group'] => ({
  ids: [chatId(chat)],
  title,
});

function addressingOf(
  place: Place,
  isMentioned: boolean,
  isReply: boolean,
): InboundMessage['addressing'] {
  if (place.group === undefined) return 'direct';
  if (isMentioned) return 'mention';
  return isReply ? 'reply' : 'ambient';
}

/** In a thread every message appears to answer the thread's first. */
async function replyOf(message: Fields, chat: string, context: InboundContext) {
  const parent = textOf(message['parent_id']);
  const isThreadRoot = message['thread_id'] !== undefined && parent === message['root_id'];
  if (!isId(parent) || isThreadRoot) return { isOurs: false, fields: {} };
  const replyTo = inboundId(chat, parent);
  const original = await context.directory.message(parent);
  if (original === undefined || textOf(original['chat_id']) !== chat) {
    return { isOurs: false, fields: { replyTo } };
  }
  const isOurs = isFromUs(original, context.appId);
  const text = saidIn(original, parent, context.botId, isOurs);
  const author = isOurs ? OURSELVES : await authorOf(original, context.directory);
  const sentAs = isOurs ? nativeId(parent) : undefined;
  const quoted = text === undefined ? undefined : { text, author, sentAs };
  return { isOurs, fields: { quoted, replyTo } };
}

/** Whether a message as the API returns it was sent by this app. */
const isFromUs = (message: Fields, appId: string): boolean =>
  at(message, 'sender', 'sender_type') === 'app' && at(message, 'sender', 'id') === appId;

function saidIn(original: Fields, id: string, botId: string, isOurs: boolean): string | undefined {
  const json = textOf(at(original, 'body', 'content')) ?? '';
  const content = contentOf(textOf(original['msg_type']) ?? 'unknown', json, id);
  if (content === undefined) return undefined;
  const text = mentionsOf(original, botId).named(textWithAttachments(content));
  // Our own texts are sent as cards.
  return isOurs && text.startsWith(CARD) ? text.slice(CARD.length).trim() : text;
}

async function authorOf(original: Fields, directory: Directory): Promise<string | undefined> {
  const id = textOf(at(original, 'sender', 'id'));
  return at(original, 'sender', 'id_type') === 'open_id' && isId(id)
    ? directory.nameOf(id)
    : undefined;
}

// Mentions: Lark writes `@_user_1` into the text and lists beside it who that is. Pure.

export function mentionsOf(message: Fields, botId: string) {
  const mentioned = listOf(message['mentions']).flatMap((mention) => {
    const fields = fieldsOf(mention);
    const key = textOf(fields?.['key']);
    if (key === undefined) return [];
    // In events an object of ids, in fetched messages a text.
    const id = textOf(at(fields?.['id'], 'open_id')) ?? textOf(fields?.['id']);
    return [{ key, isOurs: id === botId, name: `@${nameIn(fields)}` }];
  });
  const all = [{ key: '@_all', isOurs: false, name: '@all' }, ...mentioned];
  const names = new Map(all.map(({ key, name }) => [key, name]));
  const isOwn = new Set(all.filter((one) => one.isOurs).map(({ key }) => key));
  return {
    /** The bot is among them. */
    isOurs: isOwn.size > 0,
    /** The text with names in place of the keys; without the bot's own name at the start. */
    named(text: string): string {
      const lead = keyAt(text.trimStart(), names);
      const rest = lead !== undefined && isOwn.has(lead) ? text.trimStart().slice(lead.length) : '';
      // A text that consists only of the bot's name keeps it.
      return (rest.trim() === '' ? text : rest.trimStart()).replace(KEY, (found) => {
        const key = keyAt(found, names);
        if (key === undefined) return found;
        return `${names.get(key)}${found.slice(key.length)}`;
      });
    },
  };
}

/** People choose their names, which become part of the message text: reduced to one short line. */
const nameIn = (mention: Fields | undefined) =>
  plain(textOf(mention?.['name']) ?? '') || 'somebody';

const KEY = /@_(?:all|user_\d{1,6})/g;

/** The longest key that starts the text: a digit of the text may follow `@_user_1`. */
function keyAt(text: string, names: ReadonlyMap<string, string>): string | undefined {
  const found = /^@_(?:all|user_\d{1,6})/.exec(text)?.[0] ?? '';
  for (let end = found.length; end > 0; end -= 1) {
    if (names.has(found.slice(0, end))) return found.slice(0, end);
  }
  return undefined;
}

// Events about another message: a button below a message of the agent was pressed, it got a
// reaction, or a person recalled a message. Each is converted to what the bus stores, or undefined.

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
  if (token === undefined || !CHOICE_TOKEN.test(token)) return undefined;
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
  return entryOf(message, undefined);
}

/** The event names no chat: it is that of the message, which must be the agent's. */
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
  const message: InboundMessage = {
    id: inboundId(chat, id, `~reaction.${eventId}`),
    sender,
    ...place,
    addressing: place.group === undefined ? 'direct' : 'reply',
    text: '',
    reaction: { to: nativeId(id), emoji: isTakenBack ? undefined : emoji },
    sentAt: receivedAt,
    receivedAt,
  };
  return entryOf(message, undefined);
}

/** The event does not name the author: only recent messages can be withdrawn. */
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
  return entryOf(message, undefined);
}

const MAX_RECENT = 1000;

type RecentMessages = ReturnType<typeof createRecentMessages>;

/** Who wrote recent messages, without their text. In memory: lost at a restart. */
export function createRecentMessages() {
  const messages = new RecentMap<string, InboundMessage>(MAX_RECENT);
  return {
    note(message: InboundMessage): void {
      const { heard: _talk, quoted: _quote, attachments: _files, ...rest } = message;
      messages.set(nativeOf(message.id, message.chat.chat), { ...rest, text: '' });
    },
    /** By Lark's id. */
    find: (id: string) => messages.get(id),
  };
}

const nativeOf = (id: string, chat: ChatId) => id.slice(id.indexOf(`:${chat}:`) + chat.length + 2);
