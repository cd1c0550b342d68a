// Converts Lark's values: ids, the content of a message with its files, rich text, and the names of
// reactions. Content of any shape has a result, in time linear in its length.
// open.feishu.cn/document/server-docs/im-v1/message-content-description/message_content

import type { Attachment, AttachmentKind } from '../../../kernel/message/attachment.ts';
import {
  channelName,
  chatId,
  DEFAULT_ACCOUNT,
  type MessageId,
  messageId,
  threadId,
} from '../../../kernel/message/ids.ts';
import type { ChatRef } from '../../../kernel/message/message.ts';
import { type Fields, fieldsOf, listOf, parseJson, textOf } from '../../../lib/json/json.ts';
import { LARK_ACKNOWLEDGEMENTS } from '../settings.ts';

export type Content = {
  /** Keys of mentions are still in it. */
  readonly text: string;
  readonly attachments: readonly Attachment[];
  /** The sender forwards it: somebody else wrote it. */
  readonly isShared?: true;
};

/** Undefined for what is not a person's message. */
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
  const durationMs = numberOf(content['duration']);
  return {
    kind,
    name: textOf(content['file_name']),
    durationMs: durationMs !== undefined && durationMs >= 0 ? durationMs : undefined,
    content: isId(key)
      ? { kind: 'remote', ref: fileRef(message, key, kind) }
      : { kind: 'unread', reason: 'Lark does not say where it is' },
  };
}

/** The API distinguishes pictures from all other files. */
const fileRef = (message: string, key: string, kind: AttachmentKind) =>
  `${message}/${key}/${kind === 'image' ? 'image' : 'file'}`;

/** A text for content that is no file. */
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

/** Prefix of the text of a card. */
export const CARD = '[card]';
/** Lark's placeholder for a card that it considers the client too old for. */
const PLACEHOLDERS =
  /请升级至最新版本客户端，以查看内容|Please upgrade to the latest version of (?:the client|Lark|Feishu)[^.\n]*\.?/g;
const MAX_DEPTH = 16;
const INSIDE = ['header', 'body', 'elements', 'fields', 'columns', 'actions'] as const;

/** A card of JSON 2.0 is delivered beside its fallback. */
function cardContent(content: Fields): string {
  const sent = fieldsOf(parseJson(textOf(content['user_dsl']) ?? ''));
  const words = cardText(sent ?? content)
    .replace(PLACEHOLDERS, '')
    .trim();
  return words === '' ? 'whose text Lark does not show' : words;
}

/** The texts of a card in order. */
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

/** Literal markup characters are numeric entities (Lark: "Rich text", special characters). */
const decoded = (text: string) =>
  text
    .replaceAll('\u200b', '')
    .replace(/&#(\d{1,6});/g, (_all, code: string) => String.fromCodePoint(Number(code)));

// Reads the fields of Lark's events and responses.

/** Lark writes times and numbers as text in most places. */
export function numberOf(value: unknown): number | undefined {
  const number = typeof value === 'string' && value !== '' ? Number(value) : value;
  return typeof number === 'number' && Number.isFinite(number) ? number : undefined;
}

/** The value at a path of names. */
export function at(value: unknown, ...path: readonly string[]): unknown {
  return path.reduce<unknown>((inside, name) => fieldsOf(inside)?.[name], value);
}

// Rich text (`post`) as the model reads it, with its pictures and videos.

type PostPart = { readonly kind: 'image' | 'media'; readonly key: string };

type PostContent = { readonly text: string; readonly files: readonly PostPart[] };

/** Events contain the post itself; some responses contain it by language. */
function postContent(content: Fields): PostContent {
  const inLanguage = Object.values(content)
    .map(fieldsOf)
    .find((one) => one?.['content']);
  const post = Array.isArray(content['content']) ? content : (inLanguage ?? content);
  const paragraphs = listOf(post['content']).map((line) => listOf(line).map(fieldsOf));
  const title = textOf(post['title']);
  const lines = paragraphs.map((line) => line.map((tag) => tagText(tag)).join(''));
  const text = [...(title === undefined ? [] : [`**${title}**`]), ...lines].join('\n').trim();
  return { text, files: paragraphs.flat().flatMap(fileIn) };
}

function fileIn(tag: Fields | undefined): readonly PostPart[] {
  const image = textOf(tag?.['image_key']);
  const file = textOf(tag?.['file_key']);
  if (tag?.['tag'] === 'img' && image !== undefined) return [{ kind: 'image', key: image }];
  return tag?.['tag'] === 'media' && file !== undefined ? [{ kind: 'media', key: file }] : [];
}

function tagText(tag: Fields | undefined): string {
  const text = textOf(tag?.['text']) ?? '';
  switch (tag?.['tag']) {
    case 'text':
      return styled(text, listOf(tag['style']));
    case 'a':
      return linkText(text, textOf(tag['href']));
    case 'at':
      // A key of the message's mentions, which are resolved later.
      return textOf(tag['user_id'])?.startsWith('@_')
        ? String(tag['user_id'])
        : `@${textOf(tag['user_name']) ?? 'somebody'}`;
    case 'emotion':
      return `:${textOf(tag['emoji_type']) ?? 'emoji'}:`;
    case 'code_block':
      return `\`\`\`${textOf(tag['language'])?.toLowerCase() ?? ''}\n${text.trimEnd()}\n\`\`\``;
    case 'hr':
      return '---';
    default:
      return text;
  }
}

const linkText = (text: string, href: string | undefined) =>
  href === undefined || href === text ? text : `[${text}](${href})`;

const MARKS = new Map<unknown, string>([
  ['bold', '**'],
  ['italic', '*'],
  ['lineThrough', '~~'],
]);

function styled(text: string, styles: readonly unknown[]): string {
  const core = text.trim();
  if (core === '') return text;
  const marks = [...new Set(styles)].flatMap((style) => MARKS.get(style) ?? []);
  const inside = marks.reduce((done, mark) => `${mark}${done}${mark}`, core);
  return text.replace(core, () => inside);
}

// Lark's ids: chats `oc_...`, messages `om_...`, threads `omt_...`, people `ou_...` (of this app)
// and `on_...` (of the developer). A message id is valid in all of Lark.

export const LARK = channelName('lark');

const ID = /^[A-Za-z0-9_.=-]{1,120}$/;

/** Ids become parts of URLs: nothing else may pass. */
export const isId = (text: string | undefined): text is string =>
  text !== undefined && ID.test(text) && !/^\.+$/.test(text);

export function chatRef(chat: string, thread: string | undefined): ChatRef {
  return {
    channel: LARK,
    account: DEFAULT_ACCOUNT,
    chat: chatId(chat),
    thread: thread === undefined ? undefined : threadId(thread),
  };
}

export function inboundId(chat: string, message: string, suffix = ''): MessageId {
  return messageId(`${LARK}:${DEFAULT_ACCOUNT}:${chat}:${message}${suffix}`);
}

/** Lark's id of a message received from Lark. */
export function larkMessageId(id: MessageId | undefined): string | undefined {
  const [channel, , , message] = (id ?? '').split(':');
  const bare = message?.split('~')[0];
  return channel === LARK && isId(bare) ? bare : undefined;
}

// Lark's names of reactions: those that correspond to an emoji, and those that may be set while the
// agent works. open.feishu.cn/document/server-docs/im-v1/message-reaction/emojis-introduce

const EMOJI: ReadonlyMap<string, string> = new Map(
  `THUMBSUP 👍, JIAYI 👍, ThumbsDown 👎, MinusOne 👎, OK 👌, DONE ✅, CheckMark ✅, Yes ✅,
   CrossMark ❌, No ❌, HEART ❤️, LOVE 😍, FINGERHEART 🫰, HEARTBROKEN 💔, SMILE 🙂, JOYFUL 😄,
   LAUGH 😄, LOL 😂, WINK 😉, BLUSH 😊, KISS 😘, THINKING 🤔, WOW 😮, SHOCKED 😱, FROWN 🙁,
   CRY 😢, SOB 😭, TEARS 😢, ANGRY 😡, FACEPALM 🤦, SPEECHLESS 😶, SLEEP 😴, SICK 🤒,
   APPLAUSE 👏, CLAP 👏, PRAISE 🙌, SALUTE 🫡, WAVE 👋, SHAKE 🤝, HIGHFIVE 🙌, HUG 🤗, MUSCLE 💪,
   FISTBUMP 👊, PARTY 🎉, Fire 🔥, Hundred 💯, Trophy 🏆, ROSE 🌹, BEER 🍺, Coffee ☕, CAKE 🎂,
   GIFT 🎁, POOP 💩, SKULL 💀`
    .split(/,\s+/)
    .map((pair) => pair.split(' ') as [string, string]),
);

/** Undefined for a reaction of Lark's own without an emoji. */
export const emojiOfLark = (name: string): string | undefined => EMOJI.get(name);

/** The name of a reaction that may be set: a name itself, or the one of an emoji. */
export function larkReaction(sign: string): string | undefined {
  const known: readonly string[] = LARK_ACKNOWLEDGEMENTS;
  if (known.includes(sign)) return sign;
  return [...EMOJI].find(([, emoji]) => emoji === sign)?.[0];
}
