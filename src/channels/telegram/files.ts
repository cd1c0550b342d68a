// Files people send by Telegram: what a message says of them, and how they are fetched.

import type {
  Attachment,
  AttachmentContent,
  AttachmentKind,
} from '../../kernel/message/attachment.ts';
import { sizeWords } from '../../kernel/message/attachment.ts';
import { type Fields, fieldsOf, integerOf, listOf, textOf } from '../../lib/json/json.ts';
import { AttachmentError } from '../channel.ts';
import type { BotLink } from './client.ts';
import { BotCallError } from './failures.ts';

/** A bot can download files of up to 20 MB (Bot API, getFile). */
const MAX_DOWNLOAD_BYTES = 20_000_000;

/** In the order in which they are looked for: an animation also comes as a document. */
const KINDS: Readonly<Record<string, AttachmentKind>> = {
  voice: 'voice',
  audio: 'audio',
  video: 'video',
  video_note: 'video_note',
  animation: 'video',
  document: 'document',
};

/** What the message carries; a message has at most one file, several come as an album. */
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

/** A sticker that moves is told by its emoji. */
export const isPicture = (sticker: Fields): boolean =>
  sticker['is_animated'] !== true && sticker['is_video'] !== true;

/** Telegram lists a photo in several sizes. */
function largestOf(sizes: readonly unknown[]): unknown {
  const area = (size: unknown) =>
    (integerOf(fieldsOf(size)?.['width']) ?? 0) * (integerOf(fieldsOf(size)?.['height']) ?? 0);
  return sizes.toSorted((a, b) => area(b) - area(a))[0];
}

function attachment(kind: AttachmentKind, file: Fields): readonly [Attachment] {
  const name = textOf(file['file_name']) ?? textOf(file['emoji']);
  const mimeType = textOf(file['mime_type']);
  const sizeBytes = integerOf(file['file_size']);
  const seconds = integerOf(file['duration']);
  return [
    {
      kind,
      ...(name === undefined ? {} : { name }),
      ...(mimeType === undefined ? {} : { mimeType }),
      ...(sizeBytes === undefined ? {} : { sizeBytes }),
      ...(seconds === undefined ? {} : { durationMs: seconds * 1000 }),
      content: contentOf(textOf(file['file_id']), sizeBytes),
    },
  ];
}

function contentOf(ref: string | undefined, sizeBytes = 0): AttachmentContent {
  if (ref === undefined) return { kind: 'unread', reason: 'Telegram does not say where it is' };
  return sizeBytes > MAX_DOWNLOAD_BYTES
    ? { kind: 'unread', reason: tooLarge(sizeBytes) }
    : { kind: 'remote', ref };
}

const tooLarge = (sizeBytes?: number) =>
  `${sizeBytes === undefined ? 'it is' : `its ${sizeWords(sizeBytes)} are`} more than the ` +
  `${sizeWords(MAX_DOWNLOAD_BYTES)} that Telegram lets a bot download`;

/** A path holds for an hour (Bot API, File), so each try asks for a fresh one. */
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

/** A server of one's own may name a file of its machine. */
const isRelative = (path: string) => !path.startsWith('/') && !path.split('/').includes('..');

function explained({ failure }: BotCallError): AttachmentError {
  if (failure.kind !== 'refused') return failed('Telegram did not hand it over', false);
  if (/file is too big/i.test(failure.description)) return failed(tooLarge(), true);
  const isBusy = failure.code === 429 || failure.code >= 500 || failure.code === 404;
  const isUnavailable = /temporarily unavailable/i.test(failure.description);
  return failed('Telegram does not have it any more', !isBusy && !isUnavailable);
}

const failed = (reason: string, isFinal: boolean) =>
  new AttachmentError('telegram_file', reason, { isFinal });
