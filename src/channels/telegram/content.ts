// The content of a Telegram message: its text with the addresses of links, a note for everything
// that is not text, its files and how they are fetched, and its sender, who is identified by
// numeric ids alone.

import {
  type Attachment,
  type AttachmentContent,
  type AttachmentKind,
  sizeWords,
} from '../../kernel/message/attachment.ts';
import type { PersonSender } from '../../kernel/message/message.ts';
import { type Fields, fieldsOf, integerOf, listOf, textOf } from '../../lib/json/json.ts';
import { AttachmentError } from '../channel.ts';
import { personSender } from '../inbound-message.ts';
import type { BotLink } from './client.ts';
import { BotCallError } from './client.ts';

/** The text of a message; undefined if it has none, as service messages and plain files. */
export function contentOf(message: Fields): string | undefined {
  const written = writtenText(message);
  const note = mediaNote(message);
  const parts = [forwardNote(message), note, written].filter((part) => part !== undefined);
  return parts.length === 0 ? undefined : parts.join('\n');
}

function writtenText(message: Fields): string | undefined {
  const text = textOf(message['text']);
  if (text !== undefined) return withAddresses(text, listOf(message['entities']));
  const caption = textOf(message['caption']);
  return caption === undefined
    ? undefined
    : withAddresses(caption, listOf(message['caption_entities']));
}

/** Adds the address in parentheses to links that do not show it. */
function withAddresses(text: string, entities: readonly unknown[]): string {
  const links = entities.flatMap((entity) => {
    const fields = fieldsOf(entity);
    const url = textOf(fields?.['url']);
    const offset = integerOf(fields?.['offset']);
    const length = integerOf(fields?.['length']);
    if (url === undefined || offset === undefined || length === undefined) return [];
    const end = offset + length;
    const isLink = fields?.['type'] === 'text_link' && offset >= 0 && length > 0;
    return isLink && end <= text.length ? [{ end, url }] : [];
  });
  // Pieces are joined once: the text is copied once, however many entities come.
  const pieces: string[] = [];
  let start = 0;
  for (const { end, url } of links.toSorted((one, other) => one.end - other.end)) {
    pieces.push(text.slice(start, end), ` (${url})`);
    start = end;
  }
  return [...pieces, text.slice(start)].join('').toWellFormed();
}

const UNREADABLE: Readonly<Record<string, string>> = {
  story: 'a story',
  paid_media: 'paid media',
  game: 'a game',
  invoice: 'an invoice',
  checklist: 'a checklist',
};

function mediaNote(message: Fields): string | undefined {
  const readable = readableNote(message);
  if (readable !== undefined) return `[${readable}]`;
  const kind = Object.keys(UNREADABLE).find((name) => message[name] !== undefined);
  return kind === undefined ? undefined : `[sent ${UNREADABLE[kind]}, which I cannot open]`;
}

/** Attachments that consist of text. */
function readableNote(message: Fields): string | undefined {
  const venue = fieldsOf(message['venue']);
  const location = fieldsOf(venue?.['location']) ?? fieldsOf(message['location']);
  if (location !== undefined) {
    const name = [textOf(venue?.['title']), textOf(venue?.['address'])].filter(Boolean).join(', ');
    const point = `${Number(location['latitude'])}, ${Number(location['longitude'])}`;
    return name === '' ? `location: ${point}` : `place: ${name} (${point})`;
  }
  const contact = fieldsOf(message['contact']);
  if (contact !== undefined) {
    return `contact: ${nameOf(contact)}, ${textOf(contact['phone_number']) ?? 'no number'}`;
  }
  const poll = fieldsOf(message['poll']);
  if (poll !== undefined) {
    const options = listOf(poll['options']).map((option) => textOf(fieldsOf(option)?.['text']));
    return `poll: ${textOf(poll['question']) ?? ''} ${options.filter(Boolean).join(' / ')}`;
  }
  const sticker = fieldsOf(message['sticker']);
  if (sticker !== undefined) return stickerNote(sticker);
  const dice = fieldsOf(message['dice']);
  return dice === undefined
    ? undefined
    : `dice ${textOf(dice['emoji']) ?? ''}: ${Number(dice['value'])}`;
}

/** A sticker that is a picture is carried as an attachment. */
function stickerNote(sticker: Fields): string | undefined {
  if (isPicture(sticker)) return undefined;
  const emoji = textOf(sticker['emoji']);
  return emoji === undefined ? 'a sticker' : `a sticker (${emoji})`;
}

/** Content that somebody else wrote although the person sends it. */
const MADE_BY_INLINE_BOT = ['contact', 'venue'];

/** Marks text that the sender did not write; the mark makes it untrusted content. */
function forwardNote(message: Fields): string | undefined {
  const bot = fieldsOf(message['via_bot']);
  if (bot !== undefined) return `[forwarded from ${nameOf(bot) ?? 'a bot'}, an inline bot]`;
  const origin = fieldsOf(message['forward_origin']);
  if (origin === undefined && message['forward_date'] === undefined) {
    return MADE_BY_INLINE_BOT.some((kind) => message[kind] !== undefined)
      ? '[forwarded]'
      : undefined;
  }
  const user = fieldsOf(origin?.['sender_user']);
  const chat = fieldsOf(origin?.['sender_chat']) ?? fieldsOf(origin?.['chat']);
  const name =
    (user === undefined ? undefined : nameOf(user)) ??
    textOf(origin?.['sender_user_name']) ??
    textOf(chat?.['title']);
  return name === undefined ? '[forwarded]' : `[forwarded from ${name}]`;
}

/** A display name: first and last name, else the user name. */
export function nameOf(person: Fields): string | undefined {
  const names = [textOf(person['first_name']), textOf(person['last_name'])].filter(Boolean);
  return names.length > 0 ? names.join(' ') : textOf(person['username']);
}

// Files sent by Telegram: how a message describes them, and how they are fetched.

/** A bot can download files of up to 20 MB (Bot API, getFile). */
const MAX_DOWNLOAD_BYTES = 20_000_000;

/** In order of precedence: an animation also comes as a document. */
const KINDS: Readonly<Record<string, AttachmentKind>> = {
  voice: 'voice',
  audio: 'audio',
  video: 'video',
  video_note: 'video_note',
  animation: 'video',
  document: 'document',
};

/** The message's files; a message has at most one, several come as an album. */
export function attachmentsOf(message: Fields): readonly Attachment[] {
  const photo = fieldsOf(largestOf(listOf(message['photo'])));
  if (photo !== undefined) return attachment('image', photo);
  const sticker = fieldsOf(message['sticker']);
  if (sticker !== undefined) return isPicture(sticker) ? attachment('sticker', sticker) : [];
  for (const [field, kind] of Object.entries(KINDS)) {
    const file = fieldsOf(message[field]);
    if (file !== undefined) return attachment(kind, file);
  }
  return [];
}

/** Animated stickers are represented by their emoji. */
export const isPicture = (sticker: Fields): boolean =>
  sticker['is_animated'] !== true && sticker['is_video'] !== true;

/** Telegram lists a photo in several sizes. */
function largestOf(sizes: readonly unknown[]): unknown {
  const area = (size: unknown) =>
    (integerOf(fieldsOf(size)?.['width']) ?? 0) * (integerOf(fieldsOf(size)?.['height']) ?? 0);
  return sizes.toSorted((a, b) => area(b) - area(a))[0];
}

function attachment(kind: AttachmentKind, file: Fields): readonly [Attachment] {
  const sizeBytes = integerOf(file['file_size']);
  const seconds = integerOf(file['duration']);
  return [
    {
      ...{ kind, sizeBytes },
      name: textOf(file['file_name']) ?? textOf(file['emoji']),
      mimeType: textOf(file['mime_type']),
      durationMs: seconds && seconds * 1000,
      content: fileContentOf(textOf(file['file_id']), sizeBytes),
    },
  ];
}

function fileContentOf(ref: string | undefined, sizeBytes = 0): AttachmentContent {
  if (ref === undefined) return { kind: 'unread', reason: 'Telegram does not say where it is' };
  return sizeBytes > MAX_DOWNLOAD_BYTES
    ? { kind: 'unread', reason: tooLarge(sizeBytes) }
    : { kind: 'remote', ref };
}

const tooLarge = (sizeBytes?: number) =>
  `${sizeBytes === undefined ? 'it is' : `its ${sizeWords(sizeBytes)} are`} more than the ` +
  `${sizeWords(MAX_DOWNLOAD_BYTES)} that Telegram lets a bot download`;

/** A path is valid for an hour (Bot API, File), so each try requests a new one. */
export async function* fetchFile(
  ref: string,
  signal: AbortSignal,
  { api, file }: Pick<BotLink, 'api' | 'file'>,
): AsyncGenerator<Uint8Array> {
  try {
    const { file_path: path } = await api.getFile({ file_id: ref }, signal);
    if (path === undefined || !isRelative(path)) throw failed('it has no path', true);
    const response = await file(encodeURI(path), signal);
    for await (const piece of response) yield piece as Uint8Array;
  } catch (error) {
    throw error instanceof BotCallError ? explained(error) : error;
  }
}

/** A self-hosted server may name a file of its machine. */
const isRelative = (path: string) => !path.startsWith('/') && !path.split('/').includes('..');

function explained({ failure }: BotCallError): AttachmentError {
  if (failure.kind !== 'refused') return failed('Telegram did not deliver it', false);
  if (/file is too big/i.test(failure.description)) return failed(tooLarge(), true);
  const isBusy = failure.code === 429 || failure.code >= 500 || failure.code === 404;
  const isUnavailable = /temporarily unavailable/i.test(failure.description);
  return failed('Telegram no longer has it', !isBusy && !isUnavailable);
}

const failed = (reason: string, isFinal: boolean) =>
  new AttachmentError('telegram_file', reason, { isFinal });

// The sender of an update: identified by numeric ids alone, because names are chosen freely. Pure.

export type SenderRules = {
  /** Ids of chats in whose name people may write: a group for its hidden admins, a channel. */
  readonly senderChats: readonly string[];
};

/** A chat's admins decide who may write in its name: the chat is on the list or refused. */
export function senderGate(fields: Fields, { senderChats }: SenderRules): string | undefined {
  const onBehalf = fields['sender_chat'];
  if (onBehalf === undefined) {
    return fieldsOf(fields['from'])?.['is_bot'] === true ? 'sender is a bot' : undefined;
  }
  const id = integerOf(fieldsOf(onBehalf)?.['id']);
  const isListed = id !== undefined && senderChats.includes(String(id));
  return isListed ? undefined : 'sent in the name of a chat';
}

/** Identified by the chat's id, which is never a person's: a hidden admin is anonymous. */
export function senderChatOf(fields: Fields, context: SenderRules): PersonSender {
  const chat = fieldsOf(fields['sender_chat']);
  const id = integerOf(chat?.['id']);
  const isListed = id !== undefined && context.senderChats.includes(String(id));
  return isListed ? personSender(String(id), textOf(chat?.['title'])) : personSender(undefined);
}

export function senderOf(from: Fields | undefined): PersonSender {
  const id = integerOf(from?.['id']);
  if (from === undefined || id === undefined) return personSender(undefined);
  return personSender(String(id), nameOf(from));
}
