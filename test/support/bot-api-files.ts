// Files at the simulated Telegram: what people sent, by the ids and paths a bot gets for it, and what
// the bot sends. Limits are those of the Bot API's "Sending files" and getFile.

import { isRecord } from './bot-api-buttons.ts';
import type { SentFile } from './bot-api-contract.ts';
import { entitiesOf } from './bot-api-groups.ts';
import { type Entity, parseHtml } from './bot-api-html.ts';
import type { SeenFile } from './bot-api-ledger.ts';
import {
  type Answer,
  asMessage,
  flooded,
  isAnswer,
  type Method,
  ok,
  type Payload,
  refuse,
  targetOf,
  threadOf,
  type World,
} from './bot-api-methods.ts';

const MAX_DOWNLOAD_BYTES = 20_000_000;
const MAX_UPLOAD_BYTES = 50_000_000;
const MAX_PHOTO_BYTES = 10_000_000;
const CAPTION_UNITS = 1024;

type Kept = { readonly size: number; readonly content: Buffer | undefined };

export class Files {
  readonly #kept = new Map<string, Kept>();
  readonly #paths = new Map<string, string>();

  add(content: Buffer | { readonly size: number }): string {
    const id = `file-${this.#kept.size + 1}`;
    this.#kept.set(
      id,
      Buffer.isBuffer(content)
        ? { size: content.length, content }
        : { size: content.size, content: undefined },
    );
    return id;
  }

  find(id: string): Kept | undefined {
    return this.#kept.get(id);
  }

  /** A new one for each time it is asked for. */
  path(id: string): string {
    const path = `files/${this.#paths.size + 1}.bin`;
    this.#paths.set(path, id);
    return path;
  }

  download(path: string): Buffer | undefined {
    return this.#kept.get(this.#paths.get(path) ?? '')?.content;
  }

  expirePaths(): void {
    for (const path of this.#paths.keys()) this.#paths.set(path, '');
  }
}

/** The fields of a message that carries the file. */
export function fileFields({ field, content, caption, extra }: SentFile, files: Files) {
  const size = Buffer.isBuffer(content) ? content.length : content.size;
  const file = { file_id: files.add(content), file_unique_id: 'u', file_size: size, ...extra };
  const small = { file_id: files.add(Buffer.from('small')), width: 90, height: 90 };
  const entities = entitiesOf(caption ?? '');
  return {
    [field]: field === 'photo' ? [small, { width: 1280, height: 960, ...file }] : file,
    ...(caption === undefined ? {} : { caption }),
    ...(entities.length === 0 ? {} : { caption_entities: entities }),
  };
}

const COMMON = ['chat_id', 'message_thread_id', 'caption', 'parse_mode', 'reply_parameters'];
const FIELDS = {
  sendPhoto: 'photo',
  sendVideo: 'video',
  sendAnimation: 'animation',
  sendAudio: 'audio',
  sendVoice: 'voice',
  sendVideoNote: 'video_note',
  sendDocument: 'document',
} as const;

const SENDING = Object.entries(FIELDS).map(([name, field]): [string, Method] => [
  name,
  {
    params: [...COMMON, 'reply_markup', field],
    run: (payload, world) => sendOne(field, payload, world),
  },
]);

export const FILE_METHODS: Readonly<Record<string, Method>> = {
  ...Object.fromEntries(SENDING),
  sendMediaGroup: {
    params: ['chat_id', 'message_thread_id', 'media', 'reply_parameters', ...attachNames()],
    run: sendGroup,
  },
  getFile: { params: ['file_id'], run: getFile },
};

function attachNames(): readonly string[] {
  return Array.from({ length: 10 }, (_, index) => `file${index}`);
}

function getFile(payload: Payload, { files }: World): Answer {
  const id = String(payload['file_id']);
  const file = files.find(id);
  if (file === undefined)
    return refuse(400, 'wrong file_id or the file is temporarily unavailable');
  if (file.size > MAX_DOWNLOAD_BYTES) return refuse(400, 'file is too big');
  return ok({ file_id: id, file_unique_id: 'u', file_size: file.size, file_path: files.path(id) });
}

type Caption = { readonly text: string; readonly entities: readonly Entity[] };

function captionOf(fields: Payload): Caption | Answer {
  const source = String(fields['caption'] ?? '');
  const parsed =
    fields['parse_mode'] === 'HTML'
      ? parseHtml(source)
      : { ok: true as const, text: source, entities: [] };
  if (!parsed.ok) return { ok: false, error_code: 400, description: parsed.description };
  if (parsed.text.length > CAPTION_UNITS) return refuse(400, 'message caption is too long');
  return { text: parsed.text, entities: parsed.entities };
}

function fileOf(kind: string, value: unknown): SeenFile | Answer {
  if (!isRecord(value) || !Buffer.isBuffer(value['content'])) {
    return refuse(400, `there is no ${kind} in the request`);
  }
  const content = value['content'];
  if (content.length === 0) return refuse(400, 'file must be non-empty');
  if (content.length > MAX_UPLOAD_BYTES) {
    return { ok: false, error_code: 413, description: 'Request Entity Too Large' };
  }
  const isPicture =
    content[0] === 0x89 || content[0] === 0xff || content.subarray(8, 12).toString() === 'WEBP';
  if (kind === 'photo' && content.length > MAX_PHOTO_BYTES)
    return refuse(400, 'too big for a photo');
  if (kind === 'photo' && !isPicture) return refuse(400, 'IMAGE_PROCESS_FAILED');
  return { kind, name: String(value['name']), mimeType: String(value['mimeType']), content };
}

function sendOne(kind: string, payload: Payload, world: World): Answer {
  const target = targetOf(payload, world);
  if (isAnswer(target)) return target;
  const caption = captionOf(payload);
  if (isAnswer(caption)) return caption;
  const file = fileOf(kind, payload[kind]);
  if (isAnswer(file)) return file;
  const limited = flooded(target.id, world);
  if (limited !== undefined) return limited;
  return ok(add(payload, target.id, caption, file, world));
}

function sendGroup(payload: Payload, world: World): Answer {
  const target = targetOf(payload, world);
  if (isAnswer(target)) return target;
  const media: unknown = payload['media'];
  if (!Array.isArray(media) || media.length < 2 || media.length > 10) {
    return refuse(400, 'wrong number of messages in the album');
  }
  const items: { caption: Caption; file: SeenFile }[] = [];
  for (const item of media as Payload[]) {
    const name = String(item['media']).replace(/^attach:\/\//, '');
    const caption = captionOf(item);
    if (isAnswer(caption)) return caption;
    const file = fileOf(String(item['type']), payload[name]);
    if (isAnswer(file)) return file;
    items.push({ caption, file });
  }
  const kinds = new Set(items.map(({ file }) => (file.kind === 'video' ? 'photo' : file.kind)));
  if (kinds.size > 1) return refuse(400, 'these kinds cannot stand in one album');
  const limited = flooded(target.id, world);
  if (limited !== undefined) return limited;
  const album = `bot-${world.ledger.takeMessageId()}`;
  return ok(items.map(({ caption, file }) => add(payload, target.id, caption, file, world, album)));
}

function add(
  payload: Payload,
  chat: number,
  caption: Caption,
  file: SeenFile,
  world: World,
  album?: string,
) {
  const reply = payload['reply_parameters'];
  const seen = world.ledger.add(chat, {
    ...caption,
    source: caption.text,
    from: 'bot',
    parseMode: undefined,
    replyTo: isRecord(reply) ? Number(reply['message_id']) : undefined,
    thread: threadOf(payload),
    file,
    album,
  });
  return asMessage(chat, seen.id, seen.text, world);
}
