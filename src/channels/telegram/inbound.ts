// One Telegram update to what the bus stores: a message for the agent, or a record of why it is
// none. Pure, and never throws: an update of any shape gets an answer, so that the next one is read.

import type { InboundEntry } from '../../bus/bus.ts';
import { chatId, userId } from '../../core/ids.ts';
import type { InboundMessage, PersonSender, Quote } from '../../core/message.ts';
import { contentOf, nameOf } from './content.ts';
import { type Fields, fieldsOf, integerOf, textOf } from './fields.ts';
import { type Bot, inboundId, TELEGRAM, updateId } from './ids.ts';

export type InboundContext = Bot & { readonly receivedAt: number };

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
  if (message === undefined) {
    const kind = Object.keys(fields).find((key) => key !== 'update_id') ?? 'nothing';
    return blank(id, context, `update of kind ${kind.slice(0, 40)}`);
  }
  const parsed = parseMessage(message, context, edited === message);
  return parsed ?? blank(id, context, 'message without chat, sender or id');
}

function parseMessage(
  fields: Fields,
  context: InboundContext,
  isEdit: boolean,
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
  const edit = isEdit ? (integerOf(fields['edit_date']) ?? 0) : undefined;
  const gate = gateFor(fields, chat, isEdit, text);
  const message: InboundMessage = {
    id: inboundId(context, chatNumber, number, edit),
    chat: { channel: TELEGRAM, account: context.account, chat: chatId(String(chatNumber)) },
    sender: senderOf(isOnBehalf ? undefined : from),
    addressing: chat['type'] === 'private' ? 'direct' : 'ambient',
    text: text ?? '',
    ...replyOf(fields, chatNumber, context),
    sentAt: (integerOf(fields['date']) ?? context.receivedAt / 1000) * 1000,
    receivedAt: context.receivedAt,
  };
  return gate === undefined ? { kind: 'queue', message } : { kind: 'record', message, gate };
}

/** The first reason for which the channel itself keeps a message from the agent. */
function gateFor(
  fields: Fields,
  chat: Fields,
  isEdit: boolean,
  text: string | undefined,
): string | undefined {
  if (chat['type'] !== 'private') return 'not a private chat';
  if (fields['sender_chat'] !== undefined) return 'sent in the name of a chat';
  if (fieldsOf(fields['from'])?.['is_bot'] === true) return 'sender is a bot';
  if (isEdit) return 'edited';
  return text === undefined ? 'nothing to read' : undefined;
}

function senderOf(from: Fields | undefined): PersonSender {
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

function replyOf(
  fields: Fields,
  chatNumber: number,
  context: InboundContext,
): Pick<InboundMessage, 'quoted' | 'replyTo'> {
  const original = fieldsOf(fields['reply_to_message']);
  const number = integerOf(original?.['message_id']);
  const chosen = textOf(fieldsOf(fields['quote'])?.['text']);
  const text = chosen ?? (original === undefined ? undefined : contentOf(original));
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
