// What a Lark message holds, for the model: its text, a note in words for what is no text, and the files
// that can be fetched. Pure; content of any shape gets an answer, in work that grows with its length.
// open.feishu.cn/document/server-docs/im-v1/message-content-description/message_content

import type { Attachment, AttachmentKind } from '../../kernel/message/attachment.ts';
import { type Fields, fieldsOf, listOf, parseJson, textOf } from '../../lib/json/json.ts';
import { isId } from './ids.ts';
import { postContent } from './post-text.ts';

export type Content = {
  /** Keys of mentions are still in it. */
  readonly text: string;
  readonly attachments: readonly Attachment[];
  /** Its sender passes it on: somebody else wrote it. */
  readonly isShared?: true;
};

/** Undefined for what nobody says. */
export function contentOf(type: string, json: string, message: string): Content | undefined {
  const content = fieldsOf(parseJson(json)) ?? {};
  const found = readable(type, content, message);
  if (found !== undefined || type === 'system') return found;
  return { text: '[sent a message that I cannot read]', attachments: [] };
}

/** Cards of other apps, groups, events, tasks and polls: the sender did not write their text. */
const SHARED: readonly string[] = [
  ...['interactive', 'merge_forward', 'share_chat', 'todo', 'vote', 'video_chat'],
  ...['share_calendar_event', 'calendar', 'general_calendar'],
];

function readable(type: string, content: Fields, message: string): Content | undefined {
  if (type === 'post') {
    const { text, files } = postContent(content);
    const attachments = files.map(({ kind, key }) =>
      attachment(message, kind === 'image' ? 'image' : 'video', key, {}),
    );
    return text === '' && attachments.length === 0 ? undefined : { text, attachments };
  }
  const file = fileOf(type, content, message);
  if (file !== undefined) return { text: '', attachments: [file] };
  const text = type === 'text' ? textOf(content['text']) : noteOf(type, content);
  if (text === undefined) return undefined;
  return { text, attachments: [], ...(SHARED.includes(type) ? { isShared: true } : {}) };
}

const FILES: Readonly<Record<string, AttachmentKind>> = {
  image: 'image',
  file: 'document',
  audio: 'voice',
  media: 'video',
};

function fileOf(type: string, content: Fields, message: string): Attachment | undefined {
  const kind = Object.hasOwn(FILES, type) ? FILES[type] : undefined;
  const key = textOf(content[kind === 'image' ? 'image_key' : 'file_key']);
  return kind === undefined || key === undefined
    ? undefined
    : attachment(message, kind, key, content);
}

function attachment(
  message: string,
  kind: AttachmentKind,
  key: string,
  content: Fields,
): Attachment {
  const name = textOf(content['file_name']);
  const durationMs = numberOf(content['duration']);
  return {
    kind,
    ...(name === undefined ? {} : { name }),
    ...(durationMs === undefined || durationMs < 0 ? {} : { durationMs }),
    content: isId(key)
      ? { kind: 'remote', ref: fileRef(message, key, kind) }
      : { kind: 'unread', reason: 'Lark does not say where it is' },
  };
}

/** Lark wants to know whether a resource is a picture; everything else is a file. */
const fileRef = (message: string, key: string, kind: AttachmentKind) =>
  `${message}/${key}/${kind === 'image' ? 'image' : 'file'}`;

/** What is no file, in words. */
function noteOf(type: string, content: Fields): string | undefined {
  const words = (...names: readonly string[]) =>
    names.map((name) => textOf(content[name])).find((text) => text !== undefined) ?? '';
  switch (type) {
    case 'location':
      return `[place: ${words('name')} (${words('latitude')}, ${words('longitude')})]`;
    case 'share_chat':
      return `[shared the group ${words('chat_name', 'chat_id')}]`;
    case 'share_user':
      return '[shared a contact]';
    case 'share_calendar_event':
    case 'calendar':
    case 'general_calendar':
      return `[calendar event: ${words('summary')}, ${timeOf(content['start_time'])}]`;
    case 'todo':
      return `[task: ${postContent(fieldsOf(content['summary']) ?? {}).text}]`;
    case 'vote':
      return `[poll: ${words('topic')} ${listOf(content['options'])
        .flatMap((one) => textOf(one) ?? [])
        .join(' / ')}]`;
    case 'video_chat':
      return `[video call: ${words('topic')}]`;
    case 'interactive':
      return `${CARD} ${cardContent(content)}`.trim();
    case 'sticker':
      return '[sent a sticker]';
    case 'folder':
      return `[sent the folder ${words('file_name')}, which I cannot open]`;
    case 'merge_forward':
      return '[several messages forwarded together, which I cannot open]';
    case 'system':
      return undefined;
    default:
      return `[sent something of kind ${type.replace(/[^\w ]/g, '').slice(0, 40)}, which I cannot open]`;
  }
}

function timeOf(value: unknown): string {
  const ms = numberOf(value);
  return ms === undefined || Math.abs(ms) > 8e15 ? 'no time given' : new Date(ms).toISOString();
}

/** How the words of a card begin. */
export const CARD = '[card]';
/** What Lark writes in place of a card that the program it asks is thought too old for. */
const PLACEHOLDERS =
  /请升级至最新版本客户端，以查看内容|Please upgrade to the latest version of (?:the client|Lark|Feishu)[^.\n]*\.?/g;
const MAX_DEPTH = 16;
const INSIDE = ['header', 'body', 'elements', 'fields', 'columns', 'actions'] as const;

/** A card of JSON 2.0 stands beside what is shown in place of it. */
function cardContent(content: Fields): string {
  const sent = fieldsOf(parseJson(textOf(content['user_dsl']) ?? ''));
  const words = cardText(sent ?? content)
    .replace(PLACEHOLDERS, '')
    .trim();
  return words === '' ? 'whose words Lark does not show' : words;
}

/** The words of a card, in their order. */
function cardText(value: unknown, depth = 0): string {
  if (depth > MAX_DEPTH) return '';
  if (Array.isArray(value)) {
    return value
      .map((one) => cardText(one, depth + 1))
      .filter(Boolean)
      .join(' ');
  }
  const fields = fieldsOf(value);
  if (fields === undefined) return '';
  const own = [fields['title'], fields['text'], fields['content']].flatMap((one) =>
    typeof one === 'string' ? [decoded(one)] : [cardText(one, depth + 1)],
  );
  const inside = INSIDE.map((name) => cardText(fields[name], depth + 1));
  return [...own, ...inside].filter(Boolean).join(' ').toWellFormed();
}

/** Marks that are meant as text stand in a card as numbers (Lark: "Rich text", special characters). */
const decoded = (text: string) =>
  text
    .replaceAll('\u200b', '')
    .replace(/&#(\d{1,6});/g, (_all, code: string) => String.fromCodePoint(Number(code)));

// What is Lark's own about the fields of its events and answers.

/** Lark writes times and numbers as text in most places. */
export function numberOf(value: unknown): number | undefined {
  const number = typeof value === 'string' && value !== '' ? Number(value) : value;
  return typeof number === 'number' && Number.isFinite(number) ? number : undefined;
}

/** The value behind a path of names. */
export function at(value: unknown, ...path: readonly string[]): unknown {
  return path.reduce<unknown>((inside, name) => fieldsOf(inside)?.[name], value);
}
