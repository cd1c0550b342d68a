// Creates a back-up of a home, also beside its running gateway. The store and the ends of all
// session files are of one moment: while the store cannot be written, the files are measured; the
// copy is made afterwards, of the store as it was then and of the files up to where they ended.

import { randomBytes } from 'node:crypto';
import { type Dirent, existsSync, readdirSync, statSync } from 'node:fs';
import { lstat, mkdir, readdir, readlink, realpath, rm, stat } from 'node:fs/promises';
import { homedir, hostname } from 'node:os';
import { basename, join, resolve, sep } from 'node:path';
import { holdStore, readStoreState } from '../../kernel/bus/store/store-copy.ts';
import { readRawConfig } from '../../kernel/config/files/config-file.ts';
import { type Home, programVersion } from '../../kernel/config/files/home.ts';
import { type JsonObject, valueAt } from '../../kernel/config/json-paths.ts';
import { isAlive } from '../../kernel/home-state.ts';
import { ensureInstance } from '../../kernel/instance.ts';
import { parseName } from '../../kernel/sessions/rules/file.ts';
import { textIfThere, undefinedIfMissing, writeAtomic } from '../../lib/files/files.ts';
import { parseJson } from '../../lib/json/json.ts';
import { t } from '../../lib/texts.ts';
import {
  type Counts,
  type Entry,
  entryShape,
  type FileEnd,
  type FileEntry,
  type Found,
  type ListHead,
  Packer,
} from './pack.ts';
import { type Place, requireRoom } from './places.ts';
import {
  CHUNK_BYTES,
  type Encryption,
  lockRepository,
  openHead,
  openWriter,
  type Snapshot,
  type Writer,
} from './repository.ts';

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

/** Chunks that are compressed and written at once; a stream takes one after the other. */
const IN_FLIGHT = 3;

/** What another program or a later start rebuilds, or what belongs to this copy alone. */
const LEFT_OUT = [
  /^index\.db/,
  /^state\.db\.(snapshot|migrating|before-postgres)/,
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
  await using cleanup = new AsyncDisposableStack();
  return await create(options, cleanup);
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
  const packer = new Packer({
    ...{ writer, known: await knownFiles(cache, writer.known), startedAt: at.getTime() },
    ...{ inFlight: place.isStream ? 1 : IN_FLIGHT, signal, onProgress: options.onProgress },
  });
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
  const { counts } = moment;
  const first: ListHead = { counts, epoch: instance.epoch, host: hostname(), root };
  const id = `${at.toISOString().replace(/[-:.]/g, '')}-${randomBytes(3).toString('hex')}`;
  const text = [first, ...list].map((line) => `${JSON.stringify(line)}\n`).join('');
  const written = await writeList(writer, Buffer.from(text));
  const files = list.filter(({ kind }) => kind === 'file').length;
  const facts = { id, at: at.toISOString(), home: instance.id, program: programVersion() };
  await writer.publish({ ...facts, files, bytes: packer.bytes, list: [...written] }, [
    ...written,
    ...packer.used,
  ]);
  if (!place.isStream) await writeAtomic(cache, text);
  return { id, at: facts.at, files, bytes: packer.bytes, storedBytes: writer.storedBytes, counts };
}

/** The names of its chunks, in order. */
async function writeList(writer: Writer, text: Buffer): Promise<readonly string[]> {
  const names: string[] = [];
  for (let at = 0; at < text.length; at += CHUNK_BYTES) {
    names.push(await writer.put(text.subarray(at, at + CHUNK_BYTES)));
  }
  return names;
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

const DAY_MS = 86_400_000;

async function holdMoment(home: Home): Promise<Moment> {
  await removeLeftovers(home);
  const ends = new Map<string, FileEnd>();
  const fix = (journalEnds: ReadonlyMap<string, number>) => measure(home, journalEnds, ends);
  const store = existsSync(home.state) ? holdStore(home.state, fix) : undefined;
  if (store === undefined) fix(new Map());
  const copy = join(home.backups, `state-${process.pid}-${randomBytes(4).toString('hex')}.tmp`);
  return {
    counts: { messages: 0, rows: {}, ...store?.counts, sessions: sessionCount(ends.keys()) },
    ends,
    async copyStore(signal) {
      if (store === undefined) return undefined;
      const { size } = await stat(home.state);
      await requireRoom(home.backups, size, t`a copy of the store`);
      await writeAtomic(copy, '');
      await store.copyTo(copy, () => signal.throwIfAborted());
      return copy;
    },
    async [Symbol.asyncDispose]() {
      store?.[Symbol.dispose]();
      for (const end of ['', '-journal', '-wal', '-shm']) await rm(copy + end, { force: true });
    },
  };
}

/** Copies of the store that a killed back-up left. */
async function removeLeftovers({ backups }: Home): Promise<void> {
  for (const name of await readdir(backups)) {
    const pid = /^state-(\d+)-.*\.tmp/.exec(name)?.[1];
    if (pid === undefined) continue;
    const path = join(backups, name);
    const info = await stat(path).catch(undefinedIfMissing);
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
  for (const [file, bytes] of journalEnds) ends.set(`sessions/${file}`, { bytes, ino: 0 });
  for (const { path, info } of growingFiles(home)) {
    // Whether a row is in its file already is not known; its place and length are.
    ends.set(path, { bytes: ends.get(path)?.bytes ?? info.size, ino: info.ino });
  }
}

function* growingFiles(home: Home): Generator<Found, void, void> {
  for (const folder of GROWING) {
    for (const name of namesIn(join(home.root, folder))) {
      const path = folder === '' ? name : `${folder}/${name}`;
      const from = join(home.root, path);
      const info = statSync(from, { throwIfNoEntry: false });
      if (info?.isFile()) yield { path, from, info };
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

async function* homeFiles(home: Home, place: Place): AsyncGenerator<Found, void, void> {
  const skipped = resolve(place.name);
  const raw = await readRawConfig(home).catch(() => ({}));
  const workspace = outsideWorkspace(home, raw);
  const isInBucket = valueAt(raw, 'storage.media.kind') === 's3';
  for await (const found of below(home.root, '', skipped)) {
    const { path } = found;
    const isStore = STORE_FILES.test(path);
    const isReplaced = workspace !== undefined && /^workspace(\/|$)/.test(path);
    const isCopy = isInBucket && /^media(\/|$)/.test(path);
    if (!isStore && !isReplaced && !isCopy) yield found;
  }
  if (workspace === undefined) return;
  const info = await stat(workspace).catch(() => undefined);
  if (info?.isDirectory() !== true) return;
  yield { path: 'workspace', from: workspace, info };
  yield* below(workspace, 'workspace', skipped);
}

/** A configured workspace outside the home is kept as if it were in it. */
function outsideWorkspace(home: Home, raw: JsonObject): string | undefined {
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
    return undefinedIfMissing(error);
  }
  const names = entries.map(({ name }) => name).sort();
  for (const name of names) {
    const from = join(folder, name);
    const path = prefix === '' ? name : `${prefix}/${name}`;
    if (from === skipped || isSkipped(path)) continue;
    // In the workspace links belong to what people and programs keep there.
    const isWorkspace = path.startsWith('workspace/');
    const info = await (isWorkspace ? lstat(from) : stat(from)).catch(undefinedIfMissing);
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
  for (const found of growingFiles(home)) {
    const end = missing.get(found.info.ino);
    if (end === undefined || isLeftOut(found.path)) continue;
    missing.delete(end.ino);
    yield [found, end];
  }
}

const isSkipped = (path: string) => LEFT_OUT.some((pattern) => pattern.test(path));
const isLeftOut = (path: string) => STORE_FILES.test(path) || isSkipped(path);
