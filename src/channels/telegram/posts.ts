// Sends an answer as Telegram messages: its text in parts, then its files as albums with their
// captions, with a durable mark after each message, so that a failure in the middle repeats nothing
// and leaves nothing out. A file that Telegram refuses as a picture or a video is sent as a
// document.

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
import { pauseBetweenParts, REPEAT_MARK } from '../api-calls.ts';
import { draftMessages, telegramThreadId, toNativeId } from './chats.ts';
import { keyboardOf } from './choices.ts';
import type { BotLink, FormFile } from './client.ts';
import { BotCallError } from './client.ts';
import {
  followed,
  MESSAGE_UNITS,
  PART_PAUSE_MS,
  type PartsDeps,
  type PostPlace,
  sendText,
  targetOf,
  withFallback,
} from './parts.ts';

/** Content of one message, or of the messages of one album. */
type Unit =
  | {
      readonly kind: 'text';
      readonly runs: readonly Run[];
      readonly choices: OutboundMessage['choices'];
      readonly messages: 1;
    }
  | {
      readonly kind: 'files';
      readonly files: readonly OutboundAttachment[];
      readonly messages: number;
    };

/** Texts that are sent at once; then one a second. */
const TEXTS_AT_ONCE = 2;

/** @throws DeliveryError */
export async function sendPosts(
  message: OutboundMessage,
  context: SendContext,
  replyTo: number | undefined,
  deps: FilesDeps,
): Promise<Receipt> {
  const { signal, partSent } = context;
  const units = unitsOf(message);
  const isText = message.attachments === undefined || message.attachments.length === 0;
  // A draft becomes the text of the answer, never a caption.
  const hasDraft = context.draft !== undefined && units[0]?.kind === 'text';
  const drafts = hasDraft ? draftMessages(context.draft) : [];
  const sent: NativeId[] = [];
  let isRepeat = context.repeatsUnknown;
  let texts = 0;
  for (const [index, unit] of units.entries()) {
    const before = context.sentParts.slice(sent.length, sent.length + unit.messages);
    if (before.length > 0) {
      sent.push(...before, ...(await padded(before, unit.messages, context)));
      continue;
    }
    const chat = deps.moves.address(message.chat);
    const thread = telegramThreadId(message.chat);
    const place = { chat, thread, replyTo: index === 0 ? replyTo : undefined };
    if (unit.kind === 'files') {
      texts = 0;
      await context.requestBegins();
      const ids = await sendFiles(unit.files, place, { signal, isRepeat }, deps);
      for (const id of ids) await partSent(id);
      sent.push(...ids);
    } else {
      if (texts >= TEXTS_AT_ONCE) await pauseBetweenParts(PART_PAUSE_MS, signal, deps.clock);
      texts += 1;
      const marks = isRepeat ? [REPEAT_MARK] : [];
      const keyboard = keyboardOf(unit.choices);
      // The second message of a draft directly follows the first, or it is out of order.
      const isInPlace = index === 0 || sent[index - 1] === drafts[index - 1];
      const draft = isInPlace ? drafts[index] : undefined;
      const post = { ...place, runs: unit.runs, marks, keyboard, signal };
      const id = await sendText(post, draft, context, deps);
      // The last part of the text is not the last of an answer with files.
      await partSent(id, isText && index === units.length - 1);
      sent.push(id);
    }
    isRepeat = false;
  }
  return { nativeIds: sent };
}

/**
 * An album with some unrecorded ids is complete in the chat. A recorded id fills the missing
 * places, so that later messages keep theirs in every retry.
 */
async function padded(
  before: readonly NativeId[],
  messages: number,
  { partSent }: SendContext,
): Promise<readonly NativeId[]> {
  const missing = before
    .slice(-1)
    .flatMap((last) => Array.from({ length: messages - before.length }, () => last));
  for (const id of missing) await partSent(id);
  return missing;
}

function unitsOf({ markdown, attachments = [], choices }: OutboundMessage): readonly Unit[] {
  const text = (words: string): readonly Unit[] => {
    const parts = splitMarkdown(words, MESSAGE_UNITS);
    return parts.map(({ runs }, index) => {
      const isLast = index === parts.length - 1;
      return { kind: 'text', runs, choices: isLast ? choices : undefined, messages: 1 };
    });
  };
  const files = albumsOf(attachments, albumGroupOf, ALBUM_SIZE).flatMap((album) => [
    { kind: 'files', files: album, messages: album.length } as const,
    ...album.flatMap(({ caption = '' }) => (isLongCaption(caption) ? text(caption) : [])),
  ]);
  return [...text(markdown), ...files];
}

/** Longest caption, UTF-16 units, and largest photo (Bot API, sendPhoto). */
const CAPTION_UNITS = 1024;
const MAX_PHOTO_BYTES = 10_000_000;
/** Most in one album (Bot API, sendMediaGroup). */
const ALBUM_SIZE = 10;

type FilesDeps = PartsDeps & Pick<BotLink, 'upload'> & { media(): MediaStore | undefined };

type Sendable = {
  readonly file: OutboundAttachment;
  readonly content: Uint8Array;
  readonly caption: readonly Run[];
};

/** The kind of file in the Bot API; the method is `send` plus this name. */
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
  // Telegram's player supports MP3 and M4A (Bot API, sendAudio); other audio is a file.
  if (kind === 'audio') return /^audio\/(?:mpeg|mp4|x-m4a)$/.test(mimeType) ? 'audio' : 'document';
  if (kind === 'sticker') return 'document';
  return kind;
}

/** Pictures and videos share an album; documents and music only with their own kind. */
function albumGroupOf(file: OutboundAttachment): string | undefined {
  const kind = apiKindOf(file);
  if (kind === 'voice' || kind === 'video_note') return undefined;
  return kind === 'video' ? 'photo' : kind;
}

/** A caption too long for Telegram is sent as a text after its file. */
const isLongCaption = (caption: string): boolean =>
  runsText(runsOf(caption, Number.POSITIVE_INFINITY)).length > CAPTION_UNITS;

const runsOf = (markdown: string, units: number) => truncateMarkup(parseMarkup(markdown), units);

/**
 * Sends one file, or several as one album.
 * @returns the ids of all resulting messages
 * @throws DeliveryError
 */
async function sendFiles(
  files: readonly OutboundAttachment[],
  place: PostPlace,
  { signal, isRepeat }: { readonly signal: AbortSignal; readonly isRepeat: boolean },
  deps: FilesDeps,
): Promise<readonly NativeId[]> {
  const kept = await Promise.all(files.map((file) => opened(file, deps.media())));
  const sendables = isRepeat ? marked(kept) : kept;
  const [first] = sendables;
  if (first === undefined) return [];
  return followed(place, deps.moves, async (at) => {
    const send = (isDocument: boolean) =>
      captioned(first.caption, deps, (caption) => {
        const kindOf = (file: OutboundAttachment) => (isDocument ? 'document' : apiKindOf(file));
        const { method, fields, forms } =
          sendables.length === 1
            ? single(first, kindOf, caption)
            : album(sendables, kindOf, caption);
        return deps.upload(method, { ...targetOf(at), ...fields }, forms, signal);
      });
    const kind = apiKindOf(first.file);
    return idsOf(await send(false).catch((error) => asDocument(error, kind, () => send(true))));
  });
}

type KindOf = (file: OutboundAttachment) => ApiKind;

function single({ file, content }: Sendable, kindOf: KindOf, caption: CaptionBody) {
  const kind = kindOf(file);
  const fields = kind === 'video_note' ? {} : caption;
  return { method: METHODS[kind], fields, forms: [formFile(kind, file, content)] };
}

function album(sendables: readonly Sendable[], kindOf: KindOf, caption: CaptionBody) {
  const media = sendables.map(({ file }, index) => ({
    type: kindOf(file),
    media: `attach://file${index}`,
    ...(index === 0 ? caption : {}),
  }));
  const forms = sendables.map(({ file, content }, index) =>
    formFile(`file${index}`, file, content),
  );
  return { method: 'sendMediaGroup', fields: { media }, forms };
}

/** It is unknown whether an earlier try arrived; the first caption says so if there is room. */
function marked(sendables: readonly Sendable[]): readonly Sendable[] {
  const [first, ...rest] = sendables;
  if (first === undefined) return sendables;
  const caption = [{ text: REPEAT_MARK, styles: [] }, ...first.caption];
  return runsText(caption).length > CAPTION_UNITS ? sendables : [{ ...first, caption }, ...rest];
}

async function opened(file: OutboundAttachment, media: MediaStore | undefined): Promise<Sendable> {
  const content = await contentToSend(file, media);
  const { caption = '' } = file;
  return { file, content, caption: isLongCaption(caption) ? [] : runsOf(caption, CAPTION_UNITS) };
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

/** Telegram inspects pictures and videos before it accepts them. */
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
