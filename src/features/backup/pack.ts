// What a back-up says of each file, and how content becomes chunks and files again: a large file has its
// own ones, so that they are the same after an addition; small files and ends of large ones share some.

import { createHash } from 'node:crypto';
import type { Stats } from 'node:fs';
import { chmod, type FileHandle, mkdir, open, symlink, utimes } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import type { StoreCounts } from '../../kernel/bus/store/store-copy.ts';
import { undefinedIfMissing } from '../../lib/files/files.ts';
import { parseJson } from '../../lib/json/json.ts';
import { t } from '../../lib/texts.ts';
import type { Place } from './places.ts';
import {
  CHUNK_BYTES,
  damaged,
  openReader,
  type Reader,
  type Snapshot,
  type Unlock,
  type Writer,
} from './repository.ts';

/** What is compared after a restore. */
export type Counts = StoreCounts & { readonly sessions: number };

/** The first line of a back-up's list of files. */
export const listHeadShape = z.object({
  counts: z.object({
    messages: z.int(),
    sessions: z.int(),
    rows: z.record(z.string(), z.int()),
  }),
  epoch: z.int(),
  host: z.string(),
  root: z.string(),
});
export type ListHead = Readonly<z.infer<typeof listHeadShape>>;

/** Chunk, first byte in it and number of bytes. */
const partShape = z.tuple([z.string(), z.int(), z.int()]);
type Part = z.infer<typeof partShape>;

export const entryShape = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('folder'), path: z.string(), mode: z.int() }),
  z.object({ kind: z.literal('link'), path: z.string(), to: z.string() }),
  z.object({
    kind: z.literal('file'),
    path: z.string(),
    mode: z.int(),
    size: z.int(),
    modified: z.number(),
    hash: z.string(),
    parts: z.array(partShape),
    /** Identifies an unchanged file. */
    stamp: z.string(),
  }),
]);
export type Entry = Readonly<z.infer<typeof entryShape>>;
export type FileEntry = Extract<Entry, { kind: 'file' }>;

export type Found = {
  /** In the back-up, relative to the home. */
  readonly path: string;
  readonly from: string;
  readonly info: Stats;
  readonly link?: string;
  readonly isStore?: boolean;
};

/** `ino`: 0 for a file that is not there yet. */
export type FileEnd = { readonly bytes: number; readonly ino: number };

type PackOptions = {
  readonly writer: Writer;
  /** The files of the previous back-up, by path. */
  readonly known: ReadonlyMap<string, FileEntry>;
  /** Epoch milliseconds. */
  readonly startedAt: number;
  /** Chunks that are compressed and written at once. */
  readonly inFlight: number;
  readonly signal: AbortSignal;
  /** Bytes read so far. */
  readonly onProgress?: ((bytes: number) => void) | undefined;
};

/** A file that changed so recently may change again without a new time. */
const SAME_TIME_MS = 2000;
const MODE_BITS = 0o777;

export class Packer {
  readonly #options: PackOptions;
  readonly #running = new Set<Promise<void>>();
  #failure: unknown;
  #pack = Buffer.alloc(CHUNK_BYTES);
  #packed = 0;
  /** Of the files in the pack, which has no name yet. */
  #waiting: Part[] = [];
  readonly used = new Set<string>();
  /** The inodes of the files that were added. */
  readonly numbers = new Set<number>();
  bytes = 0;

  constructor(options: PackOptions) {
    this.#options = options;
  }

  /** Undefined if the file is not there any more. */
  async add(found: Found, end: FileEnd | undefined): Promise<Entry | undefined> {
    const { path, info, link } = found;
    if (link !== undefined) return { kind: 'link', path, to: link };
    if (info.isDirectory()) return { kind: 'folder', path, mode: info.mode & MODE_BITS };
    await using file = await open(found.from, 'r').catch(undefinedIfMissing);
    if (file === undefined) return undefined;
    return await this.#addFile(found, file, end);
  }

  async #addFile({ path, isStore }: Found, file: FileHandle, end: FileEnd | undefined) {
    const info = await file.stat();
    this.numbers.add(info.ino);
    // A file that was written anew since is as it is now; nothing is known of its earlier end.
    const isSame = end !== undefined && end.ino === info.ino && end.bytes <= info.size;
    const size = isSame ? end.bytes : info.size;
    const stamp = isStore === true ? '' : `${info.ino} ${size} ${info.mtimeMs}`;
    const { startedAt, known } = this.#options;
    const before = known.get(path);
    const mode = info.mode & MODE_BITS;
    const isOld = startedAt - info.mtimeMs > SAME_TIME_MS;
    if (before !== undefined && before.stamp === stamp && stamp !== '' && isOld) {
      this.#count(before.size);
      return { ...before, parts: this.#again(before), mode };
    }
    const content = await this.#content(file, size, before);
    return { kind: 'file' as const, path, mode, modified: info.mtimeMs, stamp, ...content };
  }

  #count(bytes: number): void {
    this.bytes += bytes;
    this.#options.onProgress?.(this.bytes);
  }

  #again({ parts }: FileEntry) {
    for (const [chunk] of parts) this.used.add(chunk);
    return parts;
  }

  async #content(file: FileHandle, bytes: number, before: FileEntry | undefined) {
    const digest = createHash('sha256');
    const parts: Part[] = [];
    let tail: Buffer = Buffer.alloc(0);
    let size = 0;
    while (size < bytes && tail.length === 0) {
      this.#options.signal.throwIfAborted();
      const content = await readFully(file, Math.min(CHUNK_BYTES, bytes - size), size);
      // It was cut since.
      if (content.length === 0) break;
      digest.update(content);
      size += content.length;
      this.#count(content.length);
      if (content.length < CHUNK_BYTES) tail = content;
      else {
        const part: Part = ['', 0, CHUNK_BYTES];
        parts.push(part);
        await this.#put(content, [part]);
      }
    }
    const hash = digest.digest('hex');
    if (before?.hash === hash) return { size, hash, parts: this.#again(before) };
    if (tail.length > 0) parts.push(await this.#share(tail));
    return { size, hash, parts };
  }

  async #share(content: Buffer): Promise<Part> {
    if (this.#packed + content.length > CHUNK_BYTES) await this.#endPack();
    const shared: Part = ['', this.#packed, content.length];
    content.copy(this.#pack, this.#packed);
    this.#packed += content.length;
    this.#waiting.push(shared);
    return shared;
  }

  async #endPack(): Promise<void> {
    const [waiting, content] = [this.#waiting, this.#pack.subarray(0, this.#packed)];
    this.#waiting = [];
    this.#pack = Buffer.alloc(CHUNK_BYTES);
    this.#packed = 0;
    await this.#put(content, waiting);
  }

  /** Resolves when there is room for the next chunk; the parts get its name when it is written. */
  async #put(content: Uint8Array, parts: readonly Part[]): Promise<void> {
    const running = this.#options.writer
      .put(content)
      .then((name) => {
        this.used.add(name);
        for (const part of parts) part[0] = name;
      })
      .catch((error: unknown) => {
        this.#failure ??= error;
      })
      .finally(() => this.#running.delete(running));
    this.#running.add(running);
    await this.#settled(this.#options.inFlight - 1);
  }

  async #settled(atMost: number): Promise<void> {
    while (this.#running.size > atMost) await Promise.race(this.#running);
    if (this.#failure !== undefined) throw this.#failure;
  }

  /** Afterwards all entries are complete. */
  async flush(): Promise<void> {
    if (this.#packed > 0) await this.#endPack();
    await this.#settled(0);
  }
}

async function readFully(file: FileHandle, length: number, at: number): Promise<Buffer> {
  const content = Buffer.alloc(length);
  for (let filled = 0; filled < length; ) {
    const { bytesRead } = await file.read(content, filled, length - filled, at + filled);
    if (bytesRead === 0) return content.subarray(0, filled);
    filled += bytesRead;
  }
  return content;
}

// And files again.

async function readList(reader: Reader, place: Place, snapshot: Snapshot) {
  const parts: Uint8Array[] = [];
  for (const name of snapshot.list) parts.push(await reader.chunk(name));
  const [first = '', ...lines] = Buffer.concat(parts).toString().split('\n');
  const head = listHeadShape.safeParse(parseJson(first));
  if (!head.success) throw damaged(place, t`its list of files cannot be read`);
  const entries = lines
    .filter((line) => line !== '')
    .map((line) => {
      const entry = entryShape.safeParse(parseJson(line));
      if (!entry.success) throw damaged(place, t`its list of files cannot be read`);
      if (!isInside(entry.data.path)) throw damaged(place, t`it names a file outside the home`);
      return entry.data;
    });
  return { head: head.data, entries };
}

const isInside = (path: string) =>
  !path.startsWith('/') && path.split('/').every((name) => !['', '.', '..'].includes(name));

const MS_PER_S = 1000;
const FOLDER_MODE = 0o700;
const FILE_MODE = 0o600;

export type UnpackOptions = {
  readonly place: Place;
  readonly unlock: Unlock;
  readonly signal: AbortSignal;
  readonly onProgress?: ((bytes: number) => void) | undefined;
};

/** Writes the files of the back-up into an empty folder. */
export async function unpack(
  folder: string,
  snapshot: Snapshot,
  options: UnpackOptions,
): Promise<ListHead> {
  const { place, unlock, signal } = options;
  const reader = await openReader(place, unlock);
  const { head, entries } = await readList(reader, place, snapshot);
  let bytes = 0;
  // Links last: nothing is written through one that somebody put into the list.
  const isLink = ({ kind }: Entry) => kind === 'link';
  for (const entry of [...entries.filter((one) => !isLink(one)), ...entries.filter(isLink)]) {
    signal.throwIfAborted();
    await writeEntry(folder, entry, reader, place);
    if (entry.kind === 'file') bytes += entry.size;
    options.onProgress?.(bytes);
  }
  // A folder may be read-only, so it gets its mode when its files are there.
  for (const entry of entries.toReversed()) {
    if (entry.kind === 'folder') await chmod(join(folder, entry.path), entry.mode);
  }
  return head;
}

async function writeEntry(folder: string, entry: Entry, reader: Reader, place: Place) {
  const path = join(folder, entry.path);
  if (entry.kind === 'folder') {
    await mkdir(path, { recursive: true, mode: FOLDER_MODE });
    return;
  }
  await mkdir(dirname(path), { recursive: true, mode: FOLDER_MODE });
  if (entry.kind === 'link') return symlink(entry.to, path);
  const hash = createHash('sha256');
  const file = await open(path, 'wx', FILE_MODE);
  try {
    for (const [name, start, length] of entry.parts) {
      const content = (await reader.chunk(name)).subarray(start, start + length);
      hash.update(content);
      await file.writeFile(content);
    }
    if (hash.digest('hex') !== entry.hash) {
      throw damaged(place, t`${entry.path} is not as it was written`);
    }
    await file.chmod(entry.mode);
    await file.sync();
  } finally {
    await file.close();
  }
  await utimes(path, entry.modified / MS_PER_S, entry.modified / MS_PER_S);
}
