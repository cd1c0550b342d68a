// Files of an answer as Telegram messages: as albums where they go together, with the caption below
// where it fits. What Telegram does not take as a picture or a film goes out as a document.

import type { SendContext } from '../../kernel/bus/bus.ts';
import type { MediaStore } from '../../kernel/media/media.ts';
import type { OutboundAttachment } from '../../kernel/message/attachment.ts';
import { DeliveryError, NEVER } from '../../kernel/message/errors.ts';
import type { NativeId } from '../../kernel/message/ids.ts';
import { fieldsOf, integerOf, listOf } from '../../lib/json/json.ts';
import { parseMarkup } from '../../lib/markup/markup.ts';
import { truncateMarkup } from '../../lib/markup/split.ts';
import { type Run, runsText } from '../../lib/markup/writer.ts';
import type { BotLink, FormFile } from './client.ts';
import { BotCallError, isTopicGone, migratedTo, toDeliveryError } from './failures.ts';
import { toNativeId } from './ids.ts';
import { type PartsDeps, REPEAT_MARK, withFallback } from './parts.ts';

/** Longest caption, UTF-16 units, and largest photo (Bot API, sendPhoto). */
export const CAPTION_UNITS = 1024;
const MAX_PHOTO_BYTES = 10_000_000;
/** Most in one album (Bot API, sendMediaGroup). */
export const ALBUM_SIZE = 10;

export type FilesDeps = PartsDeps & Pick<BotLink, 'upload'> & { media(): MediaStore | undefined };

export type FilePlace = {
  readonly chat: number;
  readonly thread: number | undefined;
  readonly replyTo: number | undefined;
};

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
  place: FilePlace,
  { signal, repeatsUnknown }: Pick<SendContext, 'signal' | 'repeatsUnknown'>,
  deps: FilesDeps,
): Promise<readonly NativeId[]> {
  const kept = await Promise.all(files.map((file) => opened(file, deps.media())));
  const sendables = repeatsUnknown ? marked(kept) : kept;
  return followed(place, deps, (at) => {
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
  const content = await media?.read(file.media);
  if (content === undefined) {
    throw new DeliveryError('a file of the answer is not in the media store any more', {
      certainty: 'not_sent',
      remedy: NEVER,
      code: 'media_gone',
    });
  }
  const hasCaption = file.caption !== undefined && !isLongCaption(file.caption);
  return { file, content, caption: hasCaption ? runsOf(file.caption ?? '', CAPTION_UNITS) : [] };
}

/** A group that moved is followed; a topic that is gone is left for its group. */
async function followed<T>(
  place: FilePlace,
  deps: FilesDeps,
  call: (place: FilePlace) => Promise<T>,
): Promise<T> {
  try {
    return await call(place);
  } catch (error) {
    const to = migratedTo(error);
    if (to !== undefined && to !== place.chat) {
      await deps.moves.note({ from: place.chat, to });
      return followed({ ...place, chat: to, replyTo: undefined }, deps, call);
    }
    if (place.thread !== undefined && isTopicGone(error)) {
      return followed({ ...place, thread: undefined }, deps, call);
    }
    throw error instanceof BotCallError ? toDeliveryError(error, false) : error;
  }
}

async function sendOne(
  { file, content, caption }: Sendable,
  place: FilePlace,
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
  place: FilePlace,
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

const targetOf = ({ chat, thread, replyTo }: FilePlace) => ({
  chat_id: chat,
  message_thread_id: thread,
  ...(replyTo === undefined
    ? {}
    : { reply_parameters: { message_id: replyTo, allow_sending_without_reply: true } }),
});

function idsOf(result: unknown): readonly NativeId[] {
  const messages = Array.isArray(result) ? listOf(result) : [result];
  const ids = messages.map((message) => integerOf(fieldsOf(message)?.['message_id']));
  return ids.filter((id) => id !== undefined).map(toNativeId);
}
