// The media store in a folder: `<2 hex>/<sha256>`, written atomically, with the content type
// detected
// from the first bytes. The modification time is the time of last use.

import { createHash, randomUUID } from 'node:crypto';
import { mkdir, open, readdir, readFile, rename, rm, stat, unlink, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { createLanes } from '../../lib/async.ts';
import { syncFolder, textIfThere, undefinedIfMissing, writeAtomic } from '../../lib/files/files.ts';
import { decodeMarked } from '../../lib/text/decode-text.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { LoadedImage } from '../../providers/seen-images.ts';
import type { UploadLimit } from '../../tools/files/chat-files.ts';
import type { BusStore } from '../bus/store/store.ts';
import { type Home, sharedMedia } from '../config/files/home.ts';
import type { LiveConfig } from '../config/files/live-config.ts';
import type { Kernel } from '../feature.ts';
import type { AccountName } from '../message/ids.ts';
import { type MediaId, mediaId } from '../message/ids.ts';
import {
  MediaError,
  type MediaOrigin,
  type MediaReader,
  type MediaStore,
  type PutOptions,
  type StoredMedia,
} from './media.ts';

/** Enough for archives whose type is in one of their first entries. */
export const HEAD_BYTES = 65_536;

const UNKNOWN = 'application/octet-stream';
/** Types detected by markup rather than by a byte signature. */
const MARKUP = /^(?:application\/xml|text\/.*|image\/svg\+xml)$/;
/** Controls that no text has; the escape is in coloured logs. */
const BINARY = /(?!\s)\p{Cc}/u;
const ESCAPE = '\u001b';

/** @param head the content, or its first `HEAD_BYTES` */
export async function contentTypeOf(head: Uint8Array): Promise<string> {
  if (head.length === 0) return UNKNOWN;
  // The byte order mark of UTF-16 looks like the start of an audio file.
  if (decodeMarked(head, true) !== undefined) return 'text/plain';
  // Loaded with the first file, so that a start does not wait for it.
  const { fileTypeFromBuffer } = await import('file-type');
  const found = await fileTypeFromBuffer(head).catch(() => undefined);
  if (found !== undefined && !MARKUP.test(found.mime)) {
    return found.mime.split(';', 1)[0]?.trim() ?? UNKNOWN;
  }
  return isText(head) ? 'text/plain' : UNKNOWN;
}

function isText(head: Uint8Array): boolean {
  try {
    // The cut may be inside a character, so the end is left open.
    const text = new TextDecoder('utf-8', { fatal: true }).decode(head, { stream: true });
    return !BINARY.test(text.replaceAll(ESCAPE, ''));
  } catch {
    return false;
  }
}

// The media store in a folder: `<2 hex>/<sha256>`, written to a temporary file and renamed, so that
// a name always stands for the whole content. The modification time is the time of last use.

type MediaFilesOptions = {
  /** Created if it does not exist. */
  readonly folder: string;
  readonly clock: Clock;
  /** Limit for all contents together. */
  maxBytes(): number;
  /** Contents that queued messages need; they are never deleted. */
  needed(): Promise<ReadonlySet<MediaId>>;
  /** Other processes may be writing into the folder. */
  readonly isShared?: boolean;
  /** Has every content before its id is known; the folder has copies. */
  readonly origin?: MediaOrigin;
  /** What several processes shared before there was an origin: moves there. */
  readonly former?: string;
};

/** A content this young may be about to be used by a message and is not deleted for room. */
const YOUNG_MS = 15 * 60_000;
const DAY_MS = 86_400_000;
/**
 * Use is recorded again after this time: retention counts in days. A copy is compared with its
 * origin again, where another process may have deleted it.
 */
const NOTE_USE_MS = 3_600_000;
/** Until a copy is compared again whose origin did not answer. */
const ASK_AGAIN_MS = 60_000;
/** Names the origin that has all contents of the folder. */
const MARK = 'origin';
const INCOMING = 'incoming';
const NAME = /^[0-9a-f]{64}$/;

/** Removes incomplete files of an earlier process. */
export async function openMediaFiles(options: MediaFilesOptions): Promise<MediaStore> {
  const incoming = join(options.folder, INCOMING);
  await mkdir(incoming, { recursive: true, mode: 0o700 });
  const before = options.isShared === true ? options.clock.now() - DAY_MS : LATER_THAN_ALL;
  for (const name of await readdir(incoming)) {
    const info = await stat(join(incoming, name)).catch(undefinedIfMissing);
    if (info !== undefined && info.mtimeMs < before) await rm(join(incoming, name), GONE_IS_FINE);
  }
  await handOver(options);
  return new MediaFiles(options, incoming);
}

/** An origin that is new to the folder gets what is in it. */
async function handOver({ folder, former, origin }: MediaFilesOptions): Promise<void> {
  const mark = join(folder, MARK);
  if (origin === undefined) return rm(mark, { force: true });
  if ((await textIfThere(mark)) !== origin.name) {
    for (const { id } of await contentsOf(folder)) await origin.keep(id, pathIn(folder, id));
    await writeAtomic(mark, origin.name);
  }
  if (former === undefined) return;
  for (const { id } of await contentsOf(former).catch(() => [])) {
    await origin.keep(id, pathIn(former, id));
    await rm(pathIn(former, id), { force: true });
  }
}

type Written = { readonly sha256: string; readonly sizeBytes: number; readonly head: Uint8Array };
type Kept = { readonly id: MediaId; readonly sizeBytes: number; readonly usedAt: number };

class MediaFiles implements MediaStore {
  readonly #options: MediaFilesOptions;
  readonly #incoming: string;
  /** Storing and deleting are serialised, so that the sum of sizes stays correct. */
  readonly #lane = createLanes();
  #usedBytes: number | undefined;

  constructor(options: MediaFilesOptions, incoming: string) {
    this.#options = options;
    this.#incoming = incoming;
  }

  async put(
    content: Uint8Array | AsyncIterable<Uint8Array>,
    options: PutOptions,
  ): Promise<StoredMedia> {
    const temporary = join(this.#incoming, randomUUID());
    try {
      const written = await writeContent(temporary, piecesOf(content), options);
      const mimeType = await contentTypeOf(written.head);
      const id = mediaId(written.sha256);
      await this.#options.origin?.keep(id, temporary);
      await this.#lane.run('', () => this.#take(temporary, id, written.sizeBytes));
      return { id, sizeBytes: written.sizeBytes, mimeType };
    } finally {
      await rm(temporary, { force: true });
    }
  }

  async read(id: MediaId): Promise<Uint8Array | undefined> {
    return this.#opened(id, (file) => file.readFile());
  }

  async stat(id: MediaId): Promise<StoredMedia | undefined> {
    return this.#opened(id, async (file, sizeBytes) => {
      const head = new Uint8Array(Math.min(sizeBytes, HEAD_BYTES));
      const { bytesRead } = await file.read(head, 0, head.length, 0);
      return { id, sizeBytes, mimeType: await contentTypeOf(head.subarray(0, bytesRead)) };
    });
  }

  remove(id: MediaId): Promise<boolean> {
    const { origin, needed } = this.#options;
    return this.#lane.run('', async () => {
      if (origin !== undefined) {
        if ((await needed()).has(id)) return false;
        await origin.remove(id);
      }
      await this.#remove((await this.#all()).filter((kept) => kept.id === id));
      return (await sizeOf(this.#pathOf(id))) === undefined;
    });
  }

  async sweep(unusedMs: number): Promise<number> {
    const { clock, origin, needed } = this.#options;
    const before = clock.now() - unusedMs;
    return origin === undefined ? this.#sweep(before) : origin.sweep(before, await needed());
  }

  async trim(): Promise<void> {
    const { clock, origin } = this.#options;
    if (origin !== undefined) await this.#sweep(clock.now() - NOTE_USE_MS);
  }

  #sweep(before: number): Promise<number> {
    return this.#lane.run('', async () => {
      const all = await this.#all();
      return this.#remove(all.filter(({ usedAt }) => usedAt < before));
    });
  }

  /** Whether it is in the folder now. */
  #fetched(id: MediaId, origin: MediaOrigin): Promise<boolean> {
    return this.#lane.run(id, async () => {
      if ((await sizeOf(this.#pathOf(id))) !== undefined) return true;
      const content = await origin.fetch(id);
      if (content === undefined) return false;
      const temporary = join(this.#incoming, randomUUID());
      try {
        const written = await writeContent(temporary, content, ANY_SIZE);
        if (written.sha256 !== id) {
          throw new MediaError('media_unavailable', `${origin.name} has another content as ${id}`);
        }
        await this.#lane.run('', () => this.#take(temporary, id, written.sizeBytes));
        return true;
      } finally {
        await rm(temporary, { force: true });
      }
    });
  }

  /** Undefined where the origin has it no more. */
  async #usedAt(id: MediaId, origin: MediaOrigin | undefined): Promise<number | undefined> {
    const now = this.#options.clock.now();
    if (origin === undefined) return now;
    try {
      return (await origin.use(id, this.#pathOf(id))) ? now : undefined;
    } catch (error) {
      if (!(error instanceof MediaError)) throw error;
      return now - NOTE_USE_MS + ASK_AGAIN_MS;
    }
  }

  /** Moves a written content to its name, unless it exists already. */
  async #take(temporary: string, id: MediaId, sizeBytes: number): Promise<void> {
    const path = this.#pathOf(id);
    const now = this.#options.clock.now() / 1000;
    if ((await sizeOf(path)) !== undefined) return utimes(path, now, now);
    await this.#makeRoom(sizeBytes);
    const used = await this.#used();
    const folder = join(this.#options.folder, id.slice(0, 2));
    const made = await mkdir(folder, { recursive: true, mode: 0o700 });
    await utimes(temporary, now, now);
    await rename(temporary, path);
    await syncFolder(folder);
    if (made !== undefined) await syncFolder(this.#options.folder);
    this.#usedBytes = used + sizeBytes;
  }

  /** @throws MediaError `media_full` */
  async #makeRoom(sizeBytes: number): Promise<void> {
    const limit = this.#options.maxBytes();
    const used = await this.#used();
    if (used + sizeBytes <= limit) return;
    const { origin, clock } = this.#options;
    // A copy is fetched again.
    const before = origin === undefined ? clock.now() - YOUNG_MS : LATER_THAN_ALL;
    const all = await this.#all();
    const old = all.filter(({ usedAt }) => usedAt < before).toSorted((a, b) => a.usedAt - b.usedAt);
    await this.#remove(old, used + sizeBytes - limit);
    if ((await this.#used()) + sizeBytes > limit) {
      throw new MediaError('media_full', `the media folder holds ${limit} bytes and is full`);
    }
  }

  /** Deletes in order until `enough` bytes are free, except what is needed. */
  async #remove(kept: readonly Kept[], enough = Number.POSITIVE_INFINITY): Promise<number> {
    if (kept.length === 0) return 0;
    const { origin, needed: neededIds } = this.#options;
    const needed = origin === undefined ? await neededIds() : NONE;
    let freed = 0;
    for (const { id, sizeBytes } of kept) {
      if (freed >= enough) break;
      if (needed.has(id)) continue;
      // A file that cannot be deleted must not stop the others.
      const isGone = await unlink(this.#pathOf(id)).then(
        () => true,
        () => false,
      );
      if (isGone) freed += sizeBytes;
    }
    if (this.#usedBytes !== undefined) this.#usedBytes -= freed;
    return freed;
  }

  async #used(): Promise<number> {
    this.#usedBytes ??= (await this.#all()).reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
    return this.#usedBytes;
  }

  #all(): Promise<readonly Kept[]> {
    return contentsOf(this.#options.folder);
  }

  async #opened<T>(
    id: MediaId,
    use: (file: Awaited<ReturnType<typeof open>>, sizeBytes: number) => Promise<T>,
  ): Promise<T | undefined> {
    if (!NAME.test(id)) return undefined;
    const { origin, clock } = this.#options;
    const opened = () => open(this.#pathOf(id), 'r').catch(undefinedIfMissing);
    let file = await opened();
    if (file === undefined && origin !== undefined) {
      file = (await this.#fetched(id, origin)) ? await opened() : undefined;
    }
    if (file === undefined) return undefined;
    try {
      const { size, mtimeMs } = await file.stat();
      if (clock.now() - mtimeMs > NOTE_USE_MS) {
        const at = await this.#usedAt(id, origin);
        if (at === undefined) {
          await this.#lane.run('', () => this.#remove([{ id, sizeBytes: size, usedAt: mtimeMs }]));
          return undefined;
        }
        await file.utimes(at / 1000, at / 1000);
      }
      return await use(file, size);
    } finally {
      await file.close();
    }
  }

  #pathOf(id: MediaId): string {
    return pathIn(this.#options.folder, id);
  }
}

async function contentsOf(folder: string): Promise<readonly Kept[]> {
  const kept: Kept[] = [];
  for (const part of await readdir(folder)) {
    if (!/^[0-9a-f]{2}$/.test(part)) continue;
    for (const name of await readdir(join(folder, part))) {
      if (!NAME.test(name)) continue;
      const info = await stat(join(folder, part, name)).catch(() => undefined);
      if (info === undefined) continue;
      kept.push({ id: mediaId(name), sizeBytes: info.size, usedAt: info.mtimeMs });
    }
  }
  return kept;
}

const LATER_THAN_ALL = Number.POSITIVE_INFINITY;
const GONE_IS_FINE = { recursive: true, force: true };
const ANY_SIZE = { maxBytes: Number.POSITIVE_INFINITY };
const NONE: ReadonlySet<MediaId> = new Set();

const pathIn = (folder: string, id: MediaId) => join(folder, id.slice(0, 2), id);

async function writeContent(
  path: string,
  pieces: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  { maxBytes, signal }: PutOptions,
): Promise<Written> {
  const hash = createHash('sha256');
  const head: Uint8Array[] = [];
  let sizeBytes = 0;
  const file = await open(path, 'wx', 0o600).catch(notKept);
  try {
    for await (const piece of pieces) {
      signal?.throwIfAborted();
      if (sizeBytes < HEAD_BYTES) head.push(piece.subarray(0, HEAD_BYTES - sizeBytes));
      sizeBytes += piece.length;
      if (sizeBytes > maxBytes) {
        throw new MediaError('media_too_large', `the content is larger than ${maxBytes} bytes`);
      }
      hash.update(piece);
      await file.writeFile(piece).catch(notKept);
    }
    await file.sync().catch(notKept);
  } finally {
    await file.close();
  }
  return { sha256: hash.digest('hex'), sizeBytes, head: Buffer.concat(head) };
}

const piecesOf = (content: Uint8Array | AsyncIterable<Uint8Array>) =>
  content instanceof Uint8Array ? [content] : content;

function notKept(cause: unknown): never {
  const isFull = cause instanceof Error && 'code' in cause && cause.code === 'ENOSPC';
  if (isFull) throw new MediaError('media_full', 'no space is left on the disk', cause);
  throw new MediaError('media_failed', 'the media folder cannot be written', cause);
}

const sizeOf = async (path: string) => (await stat(path).catch(undefinedIfMissing))?.size;

// Inspects a media store without owning it: nothing is written, deleted or counted as used, so it
// is safe beside a running gateway.

/** `folder`: of the store. */
export function createKeptMedia(folder: string): Pick<MediaStore, 'read' | 'stat'> {
  async function read(id: MediaId): Promise<Uint8Array | undefined> {
    return NAME.test(id) ? readFile(pathIn(folder, id)).catch(() => undefined) : undefined;
  }
  return {
    read,
    async stat(id) {
      const content = await read(id);
      if (content === undefined) return undefined;
      const mimeType = await contentTypeOf(content.subarray(0, HEAD_BYTES));
      return { id, sizeBytes: content.length, mimeType };
    },
  };
}

// The media of a home: where they are stored and for how long, what an account may send, and images
// as models get them.

/** @throws MediaError `media_unavailable` where a bucket that is new cannot be filled */
export async function openMedia(
  {
    live,
    clock,
    store,
    env,
  }: Pick<Kernel, 'live' | 'clock' | 'env'> & { readonly store: Pick<BusStore, 'neededMedia'> },
  home: Home,
): Promise<MediaStore> {
  const { path, media } = live.config.storage;
  const folder = {
    folder: home.media,
    clock,
    maxBytes: () => live.config.media.maxBytes,
    needed: async () => new Set(await store.neededMedia()),
  };
  if (media.kind === 'files') return openMediaFiles({ ...folder, isShared: path !== '' });
  const { openMediaOrigin } = await import('./bucket.ts');
  const origin = await openMediaOrigin(live.config, { env, clock });
  const former = path === '' ? {} : { former: sharedMedia(path) };
  return openMediaFiles({ ...folder, origin, ...former });
}

/** Retention of an unused content, milliseconds. */
export const keptUnusedMs = (live: LiveConfig): number => live.config.media.keepDays * DAY_MS;

/** Largest file that an account may send; undefined if it carries no files. */
export function maxFileBytes({ live, channels }: Pick<Kernel, 'live' | 'channels'>) {
  return (name: AccountName): UploadLimit | undefined => {
    const uploads = channels.get(name)?.attachments;
    if (uploads === undefined) return undefined;
    const { maxUploadBytes, isInOnePiece = false } = uploads;
    const eachBytes = Math.min(maxUploadBytes, live.config.media.maxFileBytes);
    return isInOnePiece ? { eachBytes, togetherBytes: maxUploadBytes } : { eachBytes };
  };
}

/** An image as it is sent to a model's vendor. */
export async function loadedImage(reader: MediaReader, id: MediaId): Promise<LoadedImage> {
  const reading = await reader.image(id);
  if (reading.kind === 'unreadable') return reading;
  const { kind, mimeType, content } = reading;
  return { kind, mimeType, base64: Buffer.from(content).toString('base64') };
}
