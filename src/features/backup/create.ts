// Creates a back-up of a home, also beside its running gateway. The store and the ends of all
// session files are of one moment: while the store cannot be written, the files are measured; the
// copy is made afterwards, of the store as it was then and of the files up to where they ended.

import { createHash, randomBytes } from 'node:crypto';
import { type Dirent, existsSync, readdirSync, type Stats, statSync } from 'node:fs';
import {
  type FileHandle,
  lstat,
  mkdir,
  open,
  readdir,
  readlink,
  realpath,
  rm,
  stat,
  statfs,
} from 'node:fs/promises';
import { hostname } from 'node:os';
import { basename, join, resolve, sep } from 'node:path';
import { z } from 'zod';
import { holdStore, readStoreState, type StoreCounts } from '../../kernel/bus/store/store-copy.ts';
import { readRawConfig } from '../../kernel/config/files/config-file.ts';
import { type Home, programVersion } from '../../kernel/config/files/home.ts';
import { valueAt } from '../../kernel/config/json-paths.ts';
import { isAlive } from '../../kernel/home-state.ts';
import { ensureInstance } from '../../kernel/instance.ts';
import { parseName } from '../../kernel/sessions/rules/file.ts';
import { systemCode, textIfThere, writeAtomic } from '../../lib/files/files.ts';
import { parseJson } from '../../lib/json/json.ts';
import { t } from '../../lib/texts.ts';
import { type Place, placeError } from './places.ts';
import {
  CHUNK_BYTES,
  type Encryption,
  lockRepository,
  openHead,
  openWriter,
  type Snapshot,
  type Writer,
} from './repository.ts';

/** What is compared after a restore. */
export type Counts = StoreCounts & { readonly sessions: number };

/** The first line of a back-up's list of files. */
export type ListHead = {
  readonly counts: Counts;
  readonly epoch: number;
  readonly host: string;
  readonly root: string;
};

const part = z.tuple([z.string(), z.int(), z.int()]);
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
    /** Chunk, first byte in it and number of bytes. */
    parts: z.array(part),
    /** Identifies an unchanged file. */
    stamp: z.string(),
  }),
]);
export type Entry = Readonly<z.infer<typeof entryShape>>;
type FileEntry = Extract<Entry, { kind: 'file' }>;

export type CreateOptions = {
  readonly home: Home;
  readonly place: Place;
  /** Used for the first back-up in a place; the later ones there are encrypted in the same way. */
  readonly encrypt?: Encryption | undefined;
  readonly signal: AbortSignal;
  /** Bytes read so far. */
  readonly onProgress?: (bytes: number) => void;
};

export type Created = Pick<Snapshot, 'id' | 'at' | 'files' | 'bytes'> & {
  /** Added to the place, compressed. */
  readonly storedBytes: number;
  readonly counts: Counts;
};

/** What another program or a later start rebuilds, or what belongs to this copy alone. */
const LEFT_OUT = [
  /^index\.db/,
  /^state\.db\.snapshot/,
  /^media\/derived(\/|$)/,
  /^logs(\/|$)/,
  /^nanobot\.lock/,
  /^gateway\.json$/,
  /^instance\.json$/,
  /^sessions\/\.index(\/|$)/,
  /^backups\/(?![\w-]+\.key$)./,
  /^before-restore-[\w-]+(\/|$)/,
  /^\.restore(\/|$)/,
  /(^|\/)\.[^/]+\.[0-9a-f-]{36}\.tmp$/,
];

/** A copy of the store takes their place. */
const STORE_FILES = /^state\.db(-wal|-shm|-journal)?$/;

/** @throws NanobotError, or the error of the file system; nothing of it is listed then */
export async function createBackup(options: CreateOptions): Promise<Created> {
  const cleanup = new AsyncDisposableStack();
  try {
    return await create(options, cleanup);
  } finally {
    await cleanup.disposeAsync();
  }
}

async function create(options: CreateOptions, cleanup: AsyncDisposableStack): Promise<Created> {
  const { home, place, encrypt, signal } = options;
  const at = new Date();
  const instance = await ensureInstance(home);
  await mkdir(home.backups, { recursive: true, mode: 0o700 });
  const lock = place.isStream ? undefined : await lockRepository(place, 'create', signal);
  if (lock !== undefined) cleanup.use(lock);
  const head = await openHead(place, encrypt);
  const nameKey = head.recipient === undefined ? '' : await nameKeyOf(home, head.id);
  const writer = await openWriter(place, head, nameKey);
  const moment = cleanup.use(await holdMoment(home));
  const storeCopy = await moment.copyStore(signal);
  const cache = join(home.backups, `${head.id}.files`);
  const packer = new Packer(writer, await knownFiles(cache, writer.known), at.getTime(), options);
  const root = await realpath(home.root);
  const list: Entry[] = [];
  const add = async (found: Found, end: FileEnd | undefined) => {
    signal.throwIfAborted();
    const entry = await packer.add(found, end);
    if (entry !== undefined) list.push(entry);
  };
  for await (const found of homeFiles(home, place)) await add(found, moment.ends.get(found.path));
  for (const [found, end] of movedFiles(home, moment.ends, packer.numbers)) await add(found, end);
  if (storeCopy !== undefined) {
    const info = await stat(storeCopy);
    await add({ path: 'state.db', from: storeCopy, info, isStore: true }, undefined);
  }
  await packer.flush();
  const first: ListHead = {
    counts: moment.counts,
    epoch: instance.epoch,
    host: hostname(),
    root,
  };
  const id = `${at.toISOString().replace(/[-:.]/g, '')}-${randomBytes(3).toString('hex')}`;
  const text = [first, ...list].map((line) => `${JSON.stringify(line)}\n`).join('');
  const written = await packer.list(Buffer.from(text));
  const files = list.filter(({ kind }) => kind === 'file').length;
  const facts = { id, at: at.toISOString(), home: instance.id, program: programVersion() };
  await writer.publish({ ...facts, files, bytes: packer.bytes, list: [...written] }, [
    ...written,
    ...packer.used,
  ]);
  if (!place.isStream) await writeAtomic(cache, text);
  const { bytes } = packer;
  return { id, at: facts.at, files, bytes, storedBytes: writer.storedBytes, counts: first.counts };
}

/** Names of chunks say nothing to who has only the repository. */
async function nameKeyOf(home: Home, repository: string): Promise<string> {
  const path = join(home.backups, `${repository}.key`);
  const known = await textIfThere(path);
  if (known !== undefined) return known.trim();
  const made = randomBytes(32).toString('hex');
  await writeAtomic(path, `${made}\n`);
  return made;
}

/** The files of the previous back-up whose chunks are all still there. */
async function knownFiles(
  cache: string,
  chunks: ReadonlySet<string>,
): Promise<ReadonlyMap<string, FileEntry>> {
  const files = new Map<string, FileEntry>();
  const text = (await textIfThere(cache)) ?? '';
  for (const line of text.split('\n')) {
    const entry = entryShape.safeParse(parseJson(line)).data;
    if (entry?.kind === 'file' && entry.parts.every(([chunk]) => chunks.has(chunk))) {
      files.set(entry.path, entry);
    }
  }
  return files;
}

// The moment of the back-up.

type Moment = AsyncDisposable & {
  readonly counts: Counts;
  /** Where files ended that only grow, by their path. */
  readonly ends: ReadonlyMap<string, FileEnd>;
  /** Copies the store as it was at the moment; undefined if there is none. */
  copyStore(signal: AbortSignal): Promise<string | undefined>;
};

/** `ino`: 0 for a file that is not there yet. */
type FileEnd = { readonly bytes: number; readonly ino: number };

const SPARE_BYTES = 64_000_000;
const DAY_MS = 86_400_000;
const MEGABYTE = 1_000_000;

async function holdMoment(home: Home): Promise<Moment> {
  await removeLeftovers(home);
  const ends = new Map<string, FileEnd>();
  if (!existsSync(home.state)) {
    measure(home, new Map(), ends);
    const counts = { messages: 0, sessions: sessionCount(ends.keys()), rows: {} };
    return { counts, ends, copyStore: async () => undefined, async [Symbol.asyncDispose]() {} };
  }
  const copy = join(home.backups, `state-${process.pid}-${randomBytes(4).toString('hex')}.tmp`);
  const store = holdStore(home.state, (journalEnds) => measure(home, journalEnds, ends));
  return {
    counts: { ...store.counts, sessions: sessionCount(ends.keys()) },
    ends,
    async copyStore(signal) {
      await requireRoom(home);
      await writeAtomic(copy, '');
      await store.copyTo(copy, () => signal.throwIfAborted());
      return copy;
    },
    async [Symbol.asyncDispose]() {
      store[Symbol.dispose]();
      for (const end of ['', '-journal', '-wal', '-shm']) await rm(copy + end, { force: true });
    },
  };
}

async function requireRoom({ state, backups }: Home): Promise<void> {
  const { size } = await stat(state);
  const disk = await statfs(backups);
  const free = disk.bavail * disk.bsize;
  const needed = size + SPARE_BYTES;
  if (free >= needed) return;
  const mb = (bytes: number) => Math.ceil(bytes / MEGABYTE);
  throw placeError(
    'disk_full',
    t`${backups} needs ${mb(needed)} MB for a copy of the store, and ${mb(free)} MB are free. ` +
      t`Free disk space and try again.`,
  );
}

/** Copies of the store that a killed back-up left. */
async function removeLeftovers({ backups }: Home): Promise<void> {
  for (const name of await readdir(backups)) {
    const pid = /^state-(\d+)-.*\.tmp/.exec(name)?.[1];
    if (pid === undefined) continue;
    const path = join(backups, name);
    const info = await stat(path).catch(orMissing);
    const isOld = info !== undefined && Date.now() - info.mtimeMs > DAY_MS;
    if (isOld || !isAlive(Number(pid))) await rm(path, { force: true });
  }
}

/** Folders of files that only grow, and are renamed or deleted as a whole. */
const GROWING = ['', 'sessions', 'sessions/archive'];

/** Without the thread pool: meanwhile nobody can write to the store. */
function measure(
  home: Home,
  journalEnds: ReadonlyMap<string, number>,
  ends: Map<string, FileEnd>,
): void {
  for (const file of journalEnds.keys()) {
    ends.set(`sessions/${file}`, { bytes: journalEnds.get(file) ?? 0, ino: 0 });
  }
  for (const folder of GROWING) {
    for (const name of namesIn(join(home.root, folder))) {
      const path = folder === '' ? name : `${folder}/${name}`;
      const info = statSync(join(home.root, path), { throwIfNoEntry: false });
      if (info?.isFile() !== true) continue;
      // Whether a row is in its file already is not known; its place and length are.
      ends.set(path, { bytes: ends.get(path)?.bytes ?? info.size, ino: info.ino });
    }
  }
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

/** @param files relative to the home */
function sessionCount(files: Iterable<string>): number {
  const stems = new Set<string>();
  for (const file of files) {
    const name = file.startsWith('sessions/') ? parseName(basename(file)) : undefined;
    if (name !== undefined) stems.add(name.stem);
  }
  return stems.size;
}

/** @throws StoreError */
export function countHome(home: Home): Counts {
  const { counts, journalEnds } = readStoreState(home.state);
  const ends = new Map<string, FileEnd>();
  measure(home, journalEnds, ends);
  return { ...counts, sessions: sessionCount(ends.keys()) };
}

// The files of a home.

type Found = {
  /** In the back-up, relative to the home. */
  readonly path: string;
  readonly from: string;
  readonly info: Stats;
  readonly link?: string;
  readonly isStore?: boolean;
};

async function* homeFiles(home: Home, place: Place): AsyncGenerator<Found, void, void> {
  const skipped = resolve(place.name);
  const workspace = await outsideWorkspace(home);
  for await (const found of below(home.root, '', skipped)) {
    const { path } = found;
    const isStore = STORE_FILES.test(path);
    const isReplaced = workspace !== undefined && /^workspace(\/|$)/.test(path);
    if (!isStore && !isReplaced) yield found;
  }
  if (workspace === undefined) return;
  const info = await stat(workspace).catch(() => undefined);
  if (info?.isDirectory() !== true) return;
  yield { path: 'workspace', from: workspace, info };
  yield* below(workspace, 'workspace', skipped);
}

/** A configured workspace outside the home is kept as if it were in it. */
async function outsideWorkspace(home: Home): Promise<string | undefined> {
  const { homedir } = await import('node:os');
  const raw = await readRawConfig(home).catch(() => ({}));
  const written = valueAt(raw, 'agents.defaults.workspace');
  if (typeof written !== 'string' || written === '') return undefined;
  const path = resolve(home.root, written.replace(/^~(?=$|[/\\])/, homedir()));
  return path === home.workspace || path.startsWith(home.root + sep) ? undefined : path;
}

async function* below(
  folder: string,
  prefix: string,
  skipped: string,
): AsyncGenerator<Found, void, void> {
  let entries: readonly Dirent[];
  try {
    entries = await readdir(folder, { withFileTypes: true });
  } catch (error) {
    if (isMissing(error)) return;
    throw error;
  }
  const names = entries.map(({ name }) => name).sort();
  for (const name of names) {
    const from = join(folder, name);
    const path = prefix === '' ? name : `${prefix}/${name}`;
    if (from === skipped || isSkipped(path)) continue;
    // In the workspace links belong to what people and programs keep there.
    const isWorkspace = path.startsWith('workspace/');
    const info = await (isWorkspace ? lstat(from) : stat(from)).catch(orMissing);
    if (info === undefined) continue;
    if (info.isSymbolicLink()) yield { path, from, info, link: await readlink(from) };
    else if (info.isFile()) yield { path, from, info };
    else if (info.isDirectory()) {
      yield { path, from, info };
      yield* below(from, path, skipped);
    }
  }
}

/** Files that got another name while the folders were read. */
function* movedFiles(
  home: Home,
  ends: ReadonlyMap<string, FileEnd>,
  added: ReadonlySet<number>,
): Generator<readonly [Found, FileEnd], void, void> {
  const missing = new Map(
    [...ends]
      .filter(([path, { ino }]) => ino !== 0 && !added.has(ino) && !isLeftOut(path))
      .map(([, end]) => [end.ino, end]),
  );
  if (missing.size === 0) return;
  for (const folder of GROWING) {
    for (const name of namesIn(join(home.root, folder))) {
      const path = folder === '' ? name : `${folder}/${name}`;
      const from = join(home.root, path);
      const info = statSync(from, { throwIfNoEntry: false });
      const end = missing.get(info?.ino ?? 0);
      if (info === undefined || end === undefined || isLeftOut(path)) continue;
      missing.delete(end.ino);
      yield [{ path, from, info }, end];
    }
  }
}

const isSkipped = (path: string) => LEFT_OUT.some((pattern) => pattern.test(path));
const isLeftOut = (path: string) => STORE_FILES.test(path) || isSkipped(path);

const isMissing = (error: unknown) => systemCode(error) === 'ENOENT';

function orMissing(error: unknown): undefined {
  if (isMissing(error)) return undefined;
  throw error;
}

// Content becomes chunks: a large file its own ones, so that it has the same after an addition;
// small files and ends of large ones share some.

/** A file that changed so recently may change again without a new time. */
const SAME_TIME_MS = 2000;
const MODE_BITS = 0o777;
/** Chunks that are compressed and written at once. */
const IN_FLIGHT = 3;

class Packer {
  readonly #writer: Writer;
  readonly #known: ReadonlyMap<string, FileEntry>;
  readonly #startedAt: number;
  readonly #options: CreateOptions;
  readonly #running = new Set<Promise<void>>();
  readonly used = new Set<string>();
  /** Of the files that were added. */
  readonly numbers = new Set<number>();
  #failure: unknown;
  #pack = Buffer.alloc(CHUNK_BYTES);
  #packed = 0;
  /** Entries whose bytes are in the pack, which has no name yet. */
  #waiting: ((name: string) => void)[] = [];
  bytes = 0;

  constructor(
    writer: Writer,
    known: ReadonlyMap<string, FileEntry>,
    startedAt: number,
    options: CreateOptions,
  ) {
    this.#writer = writer;
    this.#known = known;
    this.#startedAt = startedAt;
    this.#options = options;
  }

  /** Undefined if the file is not there any more. */
  async add(found: Found, end: FileEnd | undefined): Promise<Entry | undefined> {
    const { path, info, link } = found;
    const mode = info.mode & MODE_BITS;
    if (link !== undefined) return { kind: 'link', path, to: link };
    if (info.isDirectory()) return { kind: 'folder', path, mode };
    const file = await open(found.from, 'r').catch(orMissing);
    if (file === undefined) return undefined;
    try {
      return await this.#addFile(found, file, end);
    } finally {
      await file.close();
    }
  }

  async #addFile({ path, isStore }: Found, file: FileHandle, end: FileEnd | undefined) {
    const info = await file.stat();
    this.numbers.add(info.ino);
    // A file that was written anew since is as it is now; nothing is known of its earlier end.
    const isSame = end !== undefined && end.ino === info.ino && end.bytes <= info.size;
    const size = isSame ? end.bytes : info.size;
    const stamp = isStore === true ? '' : `${info.ino} ${size} ${info.mtimeMs}`;
    const known = this.#known.get(path);
    const mode = info.mode & MODE_BITS;
    const isOld = this.#startedAt - info.mtimeMs > SAME_TIME_MS;
    if (known !== undefined && known.stamp === stamp && stamp !== '' && isOld) {
      for (const [chunk] of known.parts) this.used.add(chunk);
      this.#count(known.size);
      return { ...known, mode };
    }
    return {
      ...(await this.#content(file, size, known)),
      path,
      mode,
      modified: info.mtimeMs,
      stamp,
    };
  }

  #count(bytes: number): void {
    this.bytes += bytes;
    this.#options.onProgress?.(this.bytes);
  }

  async #content(file: FileHandle, size: number, known: FileEntry | undefined) {
    const hash = createHash('sha256');
    const parts: [string, number, number][] = [];
    let tail: Buffer = Buffer.alloc(0);
    let done = 0;
    while (done < size) {
      this.#options.signal.throwIfAborted();
      const content = await readFully(file, Math.min(CHUNK_BYTES, size - done), done);
      hash.update(content);
      done += content.length;
      this.#count(content.length);
      if (content.length === CHUNK_BYTES) {
        const each: [string, number, number] = ['', 0, CHUNK_BYTES];
        parts.push(each);
        await this.#put(content, (name) => {
          each[0] = name;
        });
      } else {
        tail = content;
        if (content.length === 0) break;
      }
    }
    const digest = hash.digest('hex');
    if (known !== undefined && known.hash === digest && known.size === done) {
      for (const [chunk] of known.parts) this.used.add(chunk);
      return { kind: 'file' as const, size: done, hash: digest, parts: known.parts };
    }
    if (tail.length > 0) parts.push(await this.#share(tail));
    return { kind: 'file' as const, size: done, hash: digest, parts };
  }

  /** The name of the chunk is filled in once it is full. */
  async #share(content: Buffer): Promise<[string, number, number]> {
    if (this.#packed + content.length > CHUNK_BYTES) await this.flush(false);
    const shared: [string, number, number] = ['', this.#packed, content.length];
    content.copy(this.#pack, this.#packed);
    this.#packed += content.length;
    this.#waiting.push((name) => {
      shared[0] = name;
    });
    return shared;
  }

  async flush(isLast = true): Promise<void> {
    if (this.#packed > 0) {
      const waiting = this.#waiting;
      const content = this.#pack.subarray(0, this.#packed);
      this.#waiting = [];
      this.#pack = Buffer.alloc(CHUNK_BYTES);
      this.#packed = 0;
      await this.#put(content, (name) => {
        for (const fill of waiting) fill(name);
      });
    }
    if (isLast) await this.#settled(0);
  }

  /** Resolves when there is room for the next chunk. */
  async #put(content: Uint8Array, named: (name: string) => void): Promise<void> {
    const running = this.#writer
      .put(content)
      .then((name) => {
        this.used.add(name);
        named(name);
      })
      .catch((error: unknown) => {
        this.#failure ??= error;
      })
      .finally(() => this.#running.delete(running));
    this.#running.add(running);
    const limit = this.#options.place.isStream ? 1 : IN_FLIGHT;
    await this.#settled(limit - 1);
  }

  async #settled(atMost: number): Promise<void> {
    while (this.#running.size > atMost) await Promise.race(this.#running);
    if (this.#failure !== undefined) throw this.#failure;
  }

  /** The names of its chunks, in order. */
  async list(text: Buffer): Promise<readonly string[]> {
    const names: string[] = [];
    for (let at = 0; at < text.length; at += CHUNK_BYTES) {
      names.push(await this.#writer.put(text.subarray(at, at + CHUNK_BYTES)));
    }
    return names;
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
