// An answer with files as posts: its text, then its files as albums, each with its caption. A post knows how
// many messages it makes, so that a retry goes on behind the last of them. A file that Telegram does not take
// as a picture or a video goes out as a document.

import type { Receipt, SendContext } from '../../kernel/bus/bus.ts';
import { albumsOf, contentToSend } from '../../kernel/delivery/undelivered.ts';
import type { MediaStore } from '../../kernel/media/media.ts';
import type { OutboundAttachment } from '../../kernel/message/attachment.ts';
import type { NativeId } from '../../kernel/message/ids.ts';
import type { OutboundMessage } from '../../kernel/message/message.ts';
import { fieldsOf, integerOf, listOf } from '../../lib/json/json.ts';
import { parseMarkup } from '../../lib/markup/markup.ts';
import { splitMarkdown, truncateMarkup } from '../../lib/markup/split.ts';
import { type Run, runsText } from '../../lib/markup/writer.ts';
import { telegramThreadId, toNativeId } from './chats.ts';
import type { BotLink, FormFile } from './client.ts';
import { BotCallError } from './failures.ts';
import {
  followed,
  MESSAGE_UNITS,
  type PartsDeps,
  type PostPlace,
  REPEAT_MARK,
  sendParts,
  targetOf,
  withFallback,
} from './parts.ts';

type Post =
  | { readonly kind: 'text'; readonly markdown: string; readonly messages: number }
  | {
      readonly kind: 'files';
      readonly files: readonly OutboundAttachment[];
      readonly messages: number;
    };

/** @throws DeliveryError */
export async function sendPosts(
  message: OutboundMessage,
  context: SendContext,
  replyTo: number | undefined,
  deps: FilesDeps,
): Promise<Receipt> {
  const { attachments = [], ...rest } = message;
  if (attachments.length === 0) return sendParts(message, context, replyTo, deps);
  const sent: NativeId[] = [];
  let repeatsUnknown = context.repeatsUnknown;
  for (const [index, post] of postsOf(rest.markdown, attachments).entries()) {
    const before = context.sentParts.slice(sent.length, sent.length + post.messages);
    const isSent = before.length === post.messages || (post.kind === 'files' && before.length > 0);
    if (isSent) {
      sent.push(...before, ...(await padded(before, post, context)));
      continue;
    }
    const target = index === 0 ? replyTo : undefined;
    // The last part of a text is not the last of the answer.
    const partSent = (id: NativeId) => context.partSent(id);
    // The draft becomes the text of the answer, never a caption.
    const { draft: _draft, ...rested } = context;
    const isAnswer = index === 0 && post.kind === 'text';
    const from = isAnswer ? context : rested;
    const own = { ...from, sentParts: before, repeatsUnknown, partSent };
    const ids = await sendPost(post, rest, own, target, deps);
    repeatsUnknown = false;
    sent.push(...ids);
  }
  return { nativeIds: sent };
}

/**
 * An album of which not all ids were recorded stands in the chat whole. Their places are taken by one
 * that was, so that what is behind it keeps its own in every later try.
 */
async function padded(
  before: readonly NativeId[],
  { messages }: Post,
  { partSent }: SendContext,
): Promise<readonly NativeId[]> {
  const missing = before
    .slice(-1)
    .flatMap((last) => Array.from({ length: messages - before.length }, () => last));
  for (const id of missing) await partSent(id);
  return missing;
}

async function sendPost(
  post: Post,
  message: OutboundMessage,
  context: SendContext,
  replyTo: number | undefined,
  deps: FilesDeps,
): Promise<readonly NativeId[]> {
  if (post.kind === 'text') {
    const text = { ...message, markdown: post.markdown };
    return (await sendParts(text, context, replyTo, deps)).nativeIds;
  }
  const thread = telegramThreadId(message.chat);
  const place = { chat: deps.moves.address(message.chat), thread, replyTo };
  await context.requestBegins();
  const ids = await sendFiles(post.files, place, context, deps);
  for (const id of ids) await context.partSent(id);
  return ids;
}

function postsOf(markdown: string, attachments: readonly OutboundAttachment[]): readonly Post[] {
  const text = (words: string): readonly Post[] => {
    const messages = splitMarkdown(words, MESSAGE_UNITS).length;
    return messages === 0 ? [] : [{ kind: 'text', markdown: words, messages }];
  };
  const files = albumsOf(attachments, albumGroupOf, ALBUM_SIZE).flatMap(
    (album): readonly Post[] => {
      const captions = album.flatMap(({ caption }) =>
        isLongCaption(caption) ? [caption ?? ''] : [],
      );
      const post: Post = { kind: 'files', files: album, messages: album.length };
      return [post, ...captions.flatMap(text)];
    },
  );
  return [...text(markdown), ...files];
}

// Files of an answer as Telegram messages: as albums where they go together, with the caption below
// where it fits. What Telegram does not take as a picture or a film goes out as a document.

/** Longest caption, UTF-16 units, and largest photo (Bot API, sendPhoto). */
export const CAPTION_UNITS = 1024;
const MAX_PHOTO_BYTES = 10_000_000;
/** Most in one album (Bot API, sendMediaGroup). */
export const ALBUM_SIZE = 10;

export type FilesDeps = PartsDeps & Pick<BotLink, 'upload'> & { media(): MediaStore | undefined };

type Sendable = {
  readonly file: OutboundAttachment;
  readonly content: Uint8Array;
  readonly caption: readonly Run[];
};

/** The kind of file as the Bot API calls it; the method is `send` and that. */
type ApiKind = 'photo' | 'video' | 'video_note' | 'audio' | 'voice' | 'document';
const METHODS: Readonly<Record<ApiKind, string>> = {
  photo: 'sendPhoto',
  video: 'sendVideo',
  video_note: 'sendVideoNote',
  audio: 'sendAudio',
  voice: 'sendVoice',
  document: 'sendDocument',
};

function apiKindOf({ kind, mimeType, sizeBytes }: OutboundAttachment): ApiKind {
  if (kind === 'image') return sizeBytes > MAX_PHOTO_BYTES ? 'document' : 'photo';
  // Players of Telegram take MP3 and M4A (Bot API, sendAudio), anything else is a file there.
  if (kind === 'audio') return /^audio\/(?:mpeg|mp4|x-m4a)$/.test(mimeType) ? 'audio' : 'document';
  if (kind === 'sticker') return 'document';
  return kind;
}

/** Pictures and films stand together in an album, documents and music each with their like. */
export function albumGroupOf(file: OutboundAttachment): string | undefined {
  const kind = apiKindOf(file);
  if (kind === 'voice' || kind === 'video_note') return undefined;
  return kind === 'video' ? 'photo' : kind;
}

/** A caption that is too long for Telegram goes out as a text behind its file. */
export const isLongCaption = (caption: string | undefined): boolean =>
  caption !== undefined &&
  runsText(runsOf(caption, Number.POSITIVE_INFINITY)).length > CAPTION_UNITS;

const runsOf = (markdown: string, units: number) => truncateMarkup(parseMarkup(markdown), units);

/**
 * Sends one file, or several as one album.
 * @returns the ids of all messages that came of it
 * @throws DeliveryError
 */
export async function sendFiles(
  files: readonly OutboundAttachment[],
  place: PostPlace,
  { signal, repeatsUnknown }: Pick<SendContext, 'signal' | 'repeatsUnknown'>,
  deps: FilesDeps,
): Promise<readonly NativeId[]> {
  const kept = await Promise.all(files.map((file) => opened(file, deps.media())));
  const sendables = repeatsUnknown ? marked(kept) : kept;
  return followed(place, deps.moves, (at) => {
    const [first, second] = sendables;
    if (first === undefined) return Promise.resolve([]);
    return second === undefined
      ? sendOne(first, at, signal, deps)
      : sendAlbum(sendables, at, signal, deps);
  });
}

/** Nobody knows whether an earlier try arrived, and the first caption says so, where there is room. */
function marked(sendables: readonly Sendable[]): readonly Sendable[] {
  const [first, ...rest] = sendables;
  if (first === undefined) return sendables;
  const caption = [{ text: REPEAT_MARK, styles: [] }, ...first.caption];
  return runsText(caption).length > CAPTION_UNITS ? sendables : [{ ...first, caption }, ...rest];
}

async function opened(file: OutboundAttachment, media: MediaStore | undefined): Promise<Sendable> {
  const content = await contentToSend(file, media);
  const hasCaption = file.caption !== undefined && !isLongCaption(file.caption);
  return { file, content, caption: hasCaption ? runsOf(file.caption ?? '', CAPTION_UNITS) : [] };
}

async function sendOne(
  { file, content, caption }: Sendable,
  place: PostPlace,
  signal: AbortSignal,
  deps: FilesDeps,
): Promise<readonly NativeId[]> {
  const send = (kind: ApiKind) =>
    captioned(caption, deps, (body) =>
      deps.upload(
        METHODS[kind],
        { ...targetOf(place), ...(kind === 'video_note' ? {} : body) },
        [formFile(kind, file, content)],
        signal,
      ),
    );
  const kind = apiKindOf(file);
  return idsOf(await send(kind).catch((error) => asDocument(error, kind, () => send('document'))));
}

async function sendAlbum(
  sendables: readonly Sendable[],
  place: PostPlace,
  signal: AbortSignal,
  deps: FilesDeps,
): Promise<readonly NativeId[]> {
  const forms = sendables.map(({ file, content }, index) =>
    formFile(`file${index}`, file, content),
  );
  const [first] = sendables;
  const sendAs = (isDocument: boolean) =>
    captioned(first?.caption ?? [], deps, (body) => {
      const media = sendables.map(({ file }, index) => ({
        type: isDocument ? 'document' : apiKindOf(file),
        media: `attach://file${index}`,
        ...(index === 0 ? body : {}),
      }));
      return deps.upload('sendMediaGroup', { ...targetOf(place), media }, forms, signal);
    });
  const kind = first === undefined ? 'document' : apiKindOf(first.file);
  return idsOf(await sendAs(false).catch((error) => asDocument(error, kind, () => sendAs(true))));
}

type CaptionBody = { readonly caption?: string; readonly parse_mode?: 'HTML' };

function captioned<T>(
  caption: readonly Run[],
  { log }: FilesDeps,
  call: (body: CaptionBody) => Promise<T>,
): Promise<T> {
  if (runsText(caption).trim() === '') return call({});
  return withFallback(caption, log(), ({ text, ...mode }) => call({ caption: text, ...mode }));
}

const UNSUITABLE =
  /IMAGE_PROCESS_FAILED|PHOTO_|too big for a photo|wrong type|VIDEO_|AUDIO_|VOICE_/i;

/** Telegram looks into pictures and films before it takes them. */
function asDocument<T>(error: unknown, kind: ApiKind, send: () => Promise<T>): Promise<T> {
  const failure = error instanceof BotCallError ? error.failure : undefined;
  const isRefused = failure?.kind === 'refused' && failure.code === 400;
  if (kind === 'document' || !isRefused || !UNSUITABLE.test(failure.description)) throw error;
  return send();
}

const formFile = (field: string, file: OutboundAttachment, content: Uint8Array): FormFile => ({
  ...{ field, content },
  name: file.name,
  mimeType: file.mimeType,
});

function idsOf(result: unknown): readonly NativeId[] {
  const messages = Array.isArray(result) ? listOf(result) : [result];
  const ids = messages.map((message) => integerOf(fieldsOf(message)?.['message_id']));
  return ids.filter((id) => id !== undefined).map(toNativeId);
}
