// Uploads and downloads: a file is uploaded first and then sent by its key; a received file is
// fetched by its message and key. open.feishu.cn/document/server-docs/im-v1/image/create,
// .../file/create, .../message-resource/get

import { contentToSend } from '../../kernel/delivery/undelivered.ts';
import type { MediaStore } from '../../kernel/media/media.ts';
import type { OutboundAttachment } from '../../kernel/message/attachment.ts';
import { RecentMap } from '../../lib/async.ts';
import { type Fields, fieldsOf, listOf, textOf } from '../../lib/json/json.ts';
import { t } from '../../lib/texts.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { AttachmentError } from '../channel.ts';
import type { LarkApi } from './api.ts';
import type { Body } from './cards.ts';
import { LarkCallError, remedyFor } from './failures.ts';
import { at, isId } from './rules/content.ts';

/** Largest file and largest picture that Lark accepts. */
export const MAX_UPLOAD_BYTES = 30_000_000;
const MAX_IMAGE_BYTES = 10_000_000;
const IMAGES = /^image\/(?:png|jpeg|webp|gif|bmp)$/;
/** 30 MB over a slow connection. */
const TRANSFER_DEADLINE_MS = 4 * 60_000;

export type Uploads = ReturnType<typeof createUploads>;

export function createUploads(api: LarkApi, media: () => MediaStore | undefined) {
  async function put(path: string, data: Readonly<Record<string, unknown>>, signal: AbortSignal) {
    const call = { method: 'POST', path, data, isForm: true, signal } as const;
    return at(await api.call({ ...call, timeoutMs: TRANSFER_DEADLINE_MS }), 'data');
  }

  return {
    /** @throws LarkCallError, DeliveryError */
    async upload(file: OutboundAttachment, signal: AbortSignal): Promise<Body> {
      const bytes = Buffer.from(await contentToSend(file, media()));
      const kind = kindOf(file, bytes);
      if (kind.msgType === 'image') {
        const data = await put('im/v1/images', { image_type: 'message', image: bytes }, signal);
        return bodyOf('image', 'image_key', at(data, 'image_key'));
      }
      const fields = { file_type: kind.fileType, file_name: file.name, file: bytes };
      const data = await put('im/v1/files', fields, signal);
      return bodyOf(kind.msgType, 'file_key', at(data, 'file_key'));
    },
  };
}

function bodyOf(msgType: Body['msg_type'], name: string, key: unknown): Body {
  if (textOf(key) === undefined) {
    throw new LarkCallError({ kind: 'unanswered', reason: t`it names no file` });
  }
  return { msg_type: msgType, content: JSON.stringify({ [name]: key }) };
}

type Kind =
  | { readonly msgType: 'image' }
  | { readonly msgType: 'audio' | 'media' | 'file'; readonly fileType: 'opus' | 'mp4' | 'stream' };

/** Lark plays only Opus and MP4; everything else is a file. */
function kindOf({ kind, mimeType, sizeBytes }: OutboundAttachment, bytes: Buffer): Kind {
  if (kind === 'image' && IMAGES.test(mimeType) && sizeBytes <= MAX_IMAGE_BYTES) {
    return { msgType: 'image' };
  }
  if ((kind === 'voice' || kind === 'audio') && isOpus(bytes)) {
    return { msgType: 'audio', fileType: 'opus' };
  }
  if (kind === 'video' && mimeType === 'video/mp4') return { msgType: 'media', fileType: 'mp4' };
  return { msgType: 'file', fileType: 'stream' };
}

/** The codec's name is in the first page of the container (RFC 7845, 5.1). */
const isOpus = (bytes: Buffer) =>
  bytes.subarray(0, 4).toString('latin1') === 'OggS' && bytes.subarray(0, 100).includes('OpusHead');

/** Waits as long as Lark asks; the caller then tries again. @throws AttachmentError */
export async function* fetchResource(
  ref: string,
  signal: AbortSignal,
  { api, clock }: { readonly api: LarkApi; readonly clock: Clock },
): AsyncGenerator<Uint8Array> {
  const [message, key, type] = ref.split('/');
  if (!isId(message) || !isId(key) || (type !== 'image' && type !== 'file')) {
    throw failed(t`Lark does not say where it is`, true);
  }
  try {
    const path = `im/v1/messages/${message}/resources/${key}`;
    const timeoutMs = TRANSFER_DEADLINE_MS;
    const body = await api.download({ method: 'GET', path, params: { type }, timeoutMs, signal });
    for await (const piece of body) yield piece as Uint8Array;
  } catch (error) {
    if (!(error instanceof LarkCallError)) throw failed(t`the connection to Lark broke`, false);
    const remedy = remedyFor(error.failure);
    if (remedy.kind === 'after') await clock.sleep(remedy.delayMs, signal);
    throw explained(error, remedy.kind === 'never');
  }
}

/** Codes of im-v1/message-resource/get. */
const TOO_LARGE = 234037;
const CHAT_RESTRICTED = 234038;

function explained({ failure }: LarkCallError, isFinal: boolean): AttachmentError {
  const code = failure.kind === 'refused' ? failure.code : undefined;
  if (code === TOO_LARGE) return failed(t`it is larger than the 100 MB Lark lets apps fetch`, true);
  if (code === CHAT_RESTRICTED) return failed(t`its chat does not let files be copied`, true);
  return isFinal
    ? failed(t`Lark does not allow this app to fetch it`, true)
    : failed(t`Lark did not deliver it`, false);
}

const failed = (reason: string, isFinal: boolean) =>
  new AttachmentError('lark_file', reason, { isFinal });

// Data that events leave out: the names of senders, the titles of groups, the message that is
// answered. Requested once with a short deadline, in parallel with the delivery; without a response
// the message goes on without it.

type ChatInfo = { readonly isGroup: boolean; readonly title?: string | undefined };

export type Directory = ReturnType<typeof createDirectory>;

/** Lark waits three seconds for the receipt of an event, and storing takes time too. */
const DEADLINE_MS = 1200;
const LIFETIME_MS = 6 * 3_600_000;
/**
 * After a missing permission or an API that does not answer, pauses requests instead of repeating
 * them at every message.
 */
const RETRY_MS = 60_000;
const MAX_KNOWN = 2000;

export function createDirectory(api: LarkApi, clock: Clock) {
  const names = createCache<string>(clock);
  const chats = createCache<ChatInfo>(clock);

  async function ask(path: string, params: Readonly<Record<string, string>> = {}) {
    try {
      const signal = AbortSignal.timeout(DEADLINE_MS);
      return fieldsOf(at(await api.call({ method: 'GET', path, params, signal }), 'data'));
    } catch (error) {
      if (error instanceof LarkCallError) return undefined;
      throw error;
    }
  }

  return {
    /** Undefined if not available now. */
    nameOf: (openId: string): Promise<string | undefined> =>
      names.get(openId, async () => {
        if (!isId(openId)) return undefined;
        const data = await ask(`contact/v3/users/${openId}`, { user_id_type: 'open_id' });
        return textOf(at(data, 'user', 'name'));
      }),
    chat: (chatId: string): Promise<ChatInfo | undefined> =>
      chats.get(chatId, async () => {
        const data = isId(chatId) ? await ask(`im/v1/chats/${chatId}`) : undefined;
        if (data === undefined) return undefined;
        return { isGroup: data['chat_mode'] !== 'p2p', title: textOf(data['name']) };
      }),
    /** Saves a request: an event showed that this is a private chat with the bot. */
    noteDirect: (chatId: string) => chats.put(chatId, { isGroup: false }),
    /** A message as the API returns it; undefined if it is deleted or not available now. */
    async message(messageId: string): Promise<Fields | undefined> {
      if (!isId(messageId)) return undefined;
      // Without the parameter Lark returns a placeholder in place of a card.
      const params = { card_msg_content_type: 'user_card_content' };
      const data = await ask(`im/v1/messages/${messageId}`, params);
      return fieldsOf(listOf(data?.['items'])[0]);
    },
  };
}

function createCache<T>(clock: Clock) {
  const known = new RecentMap<string, { readonly value: Promise<T | undefined>; until: number }>(
    MAX_KNOWN,
  );
  const keep = (key: string, value: Promise<T | undefined>) => {
    const entry = { value, until: clock.now() + LIFETIME_MS };
    known.set(key, entry);
    return entry;
  };
  return {
    put: (key: string, value: T) => void keep(key, Promise.resolve(value)),
    get(key: string, find: () => Promise<T | undefined>): Promise<T | undefined> {
      const kept = known.get(key);
      if (kept !== undefined && kept.until > clock.now()) return kept.value;
      const value = find();
      const entry = keep(key, value);
      return value.then(
        (found) => {
          if (found === undefined) entry.until = clock.now() + RETRY_MS;
          return found;
        },
        (error: unknown) => {
          known.delete(key);
          throw error;
        },
      );
    },
  };
}
