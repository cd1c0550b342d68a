// One Telegram update to what the bus stores: a message for the agent, or a record of why it is
// none. Pure, and never throws: an update of any shape gets an answer, so that the next one is read.

import type { InboundEntry } from '../../kernel/bus/bus.ts';
import { textWithAttachments } from '../../kernel/message/attachment.ts';
import { chatId, nativeId, threadId } from '../../kernel/message/ids.ts';
import type { InboundMessage, Quote } from '../../kernel/message/message.ts';
import { type Fields, fieldsOf, integerOf, textOf } from '../../lib/json/json.ts';
import { type Press, pressOf } from './choices.ts';
import { contentOf, nameOf } from './content.ts';
import { attachmentsOf } from './files.ts';
import { addressingOf, answeredBy, type BotNames, isGroup } from './groups.ts';
import { type Bot, inboundId, pressId, reactionId, TELEGRAM, updateId } from './ids.ts';
import { reactionOf, type TelegramReaction } from './reactions.ts';
import { type SenderRules, senderChatOf, senderGate, senderOf } from './senders.ts';

export type InboundContext = Bot &
  BotNames &
  SenderRules & {
    readonly receivedAt: number;
    /** All ids of a group, the one its conversation is named by first. */
    namesOf(chat: number): readonly [number, ...number[]];
  };

/** Who wrote what the bot itself sent, in a quote. */
const OURSELVES = 'you';

/** `update_id`, or undefined where the update has none to speak of. */
export function updateIdOf(update: unknown): number | undefined {
  return integerOf(fieldsOf(update)?.['update_id']);
}

/** @returns undefined for something that is not even an update with an id */
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
    ...(edit !== undefined ? { amends: { id: original, kind: 'edited' } } : {}),
    ...(attachments.length === 0 ? {} : { attachments }),
    ...replyOf(fields, chatNumber, context),
    sentAt: (integerOf(fields['date']) ?? context.receivedAt / 1000) * 1000,
    receivedAt: context.receivedAt,
  };
  return gate === undefined ? { kind: 'queue', message } : { kind: 'record', message, gate };
}

/** Meant for the bot wherever it is; a message too old for Telegram to show has lost its labels. */
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
  const gate = from['is_bot'] === true ? 'sender is a bot' : undefined;
  return gate === undefined ? { kind: 'queue', message } : { kind: 'record', message, gate };
}

/** Nothing tells in which topic it is: the one of the message that was reacted to. */
function parseReaction(
  update: number,
  { chat, message, emoji, from }: TelegramReaction,
  context: InboundContext,
): InboundEntry | undefined {
  const chatNumber = integerOf(chat['id']);
  if (chatNumber === undefined || integerOf(from['id']) === undefined) return undefined;
  const place = placeOf({}, chat, chatNumber, context);
  const to = nativeId(String(message));
  return {
    kind: 'queue',
    message: {
      id: reactionId(context, chatNumber, message, update),
      sender: senderOf(from),
      ...place,
      addressing: place.group === undefined ? place.addressing : 'reply',
      text: '',
      reaction: emoji === undefined ? { to } : { to, emoji },
      sentAt: context.receivedAt,
      receivedAt: context.receivedAt,
    },
  };
}

/** A topic is a conversation of its own, a group that moved keeps the name it had. */
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
  const title = textOf(chat['title']);
  const thread =
    fields['is_topic_message'] === true ? integerOf(fields['message_thread_id']) : undefined;
  return {
    chat: {
      ...ref,
      chat: chatId(String(name)),
      ...(thread === undefined ? {} : { thread: threadId(String(thread)) }),
    },
    addressing: addressingOf(fields, context),
    group: { ids: [chatId(String(name)), ...ids], ...(title === undefined ? {} : { title }) },
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
  const text = chosen ?? (original === undefined ? undefined : saidIn(original));
  const author = fieldsOf(original?.['from']);
  const isOurs = author !== undefined && integerOf(author['id']) === context.botId;
  const name = isOurs ? OURSELVES : author === undefined ? undefined : nameOf(author);
  const quoted: Quote | undefined =
    text === undefined ? undefined : { text, ...(name === undefined ? {} : { author: name }) };
  return {
    ...(quoted === undefined ? {} : { quoted }),
    ...(number === undefined ? {} : { replyTo: inboundId(context, chatNumber, number) }),
  };
}

/** What a message that is quoted said, with what came beside it in words. */
function saidIn(original: Fields): string | undefined {
  const attachments = attachmentsOf(original);
  const text = contentOf(original);
  return attachments.length === 0 ? text : textWithAttachments({ text: text ?? '', attachments });
}

/** A record of an update that holds no message we could name. */
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
  return { kind: 'record', message, gate };
}
