// The text of a Telegram message as the model reads it: what was written, links with their
// addresses, and for everything that is not text a note that says what was sent.

import { type Fields, fieldsOf, integerOf, listOf, textOf } from '../../lib/json/json.ts';
import { isPicture } from './files.ts';

/** What a message says; undefined where it says nothing, as service messages and files of one’s own. */
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

/** Links whose address does not show get it in parentheses. */
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
  // Pieces joined once: however many entities come, the text is copied once.
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

/** Attachments that are text in themselves. */
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

/** One that is a picture comes along as such. */
function stickerNote(sticker: Fields): string | undefined {
  if (isPicture(sticker)) return undefined;
  const emoji = textOf(sticker['emoji']);
  return emoji === undefined ? 'a sticker' : `a sticker (${emoji})`;
}

/** Content that somebody else wrote, although the person sends it. */
const MADE_BY_OTHERS = ['contact', 'venue'];

/** Marks what is not the sender's own text; the mark makes it untrusted. */
function forwardNote(message: Fields): string | undefined {
  const bot = fieldsOf(message['via_bot']);
  if (bot !== undefined) return `[forwarded from ${nameOf(bot) ?? 'a bot'}, an inline bot]`;
  const origin = fieldsOf(message['forward_origin']);
  if (origin === undefined && message['forward_date'] === undefined) {
    return MADE_BY_OTHERS.some((kind) => message[kind] !== undefined) ? '[forwarded]' : undefined;
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
