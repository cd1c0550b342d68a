// Files of one folder for callers that are not trusted with paths (case X08): links are never
// followed, only regular files are opened, sizes are capped, replacement is atomic. Changes of one
// file are serialised.

import { randomUUID } from 'node:crypto';
import { constants, type Stats } from 'node:fs';
import {
  type FileHandle,
  lstat,
  open,
  opendir,
  realpath,
  rename,
  rm,
  stat,
} from 'node:fs/promises';
import { createLanes } from '../async.ts';
import {
  explain,
  foldName,
  GuardedFileError,
  type GuardedFolder,
  guardedNames,
  hasHandlePaths,
  isProtected,
  linked,
  NOFOLLOW,
  openFolder,
} from './guarded-path.ts';

export type GuardedEntry = {
  readonly name: string;
  readonly kind: 'file' | 'folder' | 'link' | 'other';
  /** Size of a file, bytes. */
  readonly bytes: number;
  /** Epoch milliseconds. */
  readonly modifiedAt: number;
};

type GuardedListing = {
  /** Sorted by name. */
  readonly entries: readonly GuardedEntry[];
  /** Number of entries left out because the folder has too many. */
  readonly omitted: number;
  /** Number of protected entries, which are not shown. */
  readonly hidden: number;
};

const OPEN_TO_READ = constants.O_RDONLY | NOFOLLOW | constants.O_NONBLOCK | constants.O_NOCTTY;
const OPEN_NEW = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | NOFOLLOW;
const PIECE_BYTES = 65_536;
const NEW_FILE_MODE = 0o600;
/** Names read from a folder; the rest is only counted. */
const MAX_SCANNED_ENTRIES = 20_000;

type ReadLimits = {
  readonly maxBytes: number;
  /** A file with further names, possibly outside, is refused. */
  readonly onlyName?: boolean;
};

async function readEntry(
  folder: GuardedFolder,
  name: string,
  { maxBytes, onlyName = false }: ReadLimits,
): Promise<Buffer> {
  mustBeFile(await statEntry(folder, name));
  const path = folder.at(name);
  await using file = await open(path, OPEN_TO_READ).catch((cause: unknown) => explain(path, cause));
  const info = mustBeFile(await file.stat());
  if (onlyName && info.nlink > 1) {
    throw new GuardedFileError('hard_link', 'the file has further names (hard links)');
  }
  if (info.size > maxBytes) throw tooLarge(info.size, maxBytes);
  if (!folder.byHandle) await mustStandAt(path, info);
  return await readUpTo(file, info.size, maxBytes);
}

/** Writes a temporary file, then replaces in one step; keeps the mode of an existing file. */
async function replaceEntry(
  folder: GuardedFolder,
  name: string,
  content: string | AsyncIterable<Uint8Array>,
  place: (rename: () => Promise<void>) => Promise<void>,
): Promise<'created' | 'replaced'> {
  const before = await statEntry(folder, name).catch(undefinedIfMissing);
  if (before !== undefined && mustBeFile(before).nlink > 1) {
    throw new GuardedFileError('hard_link', 'the file has further names (hard links)');
  }
  const mode = before === undefined ? NEW_FILE_MODE : before.mode & 0o777;
  const temporary = folder.at(`.nanobot-${randomUUID()}.tmp`);
  try {
    await writeNew(temporary, content, mode);
    await place(() => rename(temporary, folder.at(name)));
  } catch (cause) {
    await rm(temporary, { force: true });
    await explain(folder.at(name), cause);
  }
  await folder.handle.sync();
  return before === undefined ? 'created' : 'replaced';
}

async function writeNew(
  path: string,
  content: string | AsyncIterable<Uint8Array>,
  mode: number,
): Promise<void> {
  await using file = await open(path, OPEN_NEW, mode);
  await file.writeFile(content);
  await file.sync();
}

async function statEntry(folder: GuardedFolder, name: string): Promise<Stats> {
  const path = folder.at(name);
  const info = await lstat(path).catch((cause: unknown) => explain(path, cause));
  if (info.isSymbolicLink()) throw linked();
  return info;
}

function mustBeFile(info: Stats): Stats {
  if (info.isFile()) return info;
  const what = info.isDirectory() ? 'a folder' : 'a special file';
  throw new GuardedFileError('not_a_file', `this is ${what}, not a file`);
}

async function mustStandAt(path: string, opened: Stats): Promise<void> {
  const info = await lstat(path);
  if (info.ino !== opened.ino || info.dev !== opened.dev) throw linked();
}

const tooLarge = (bytes: number, maxBytes: number) =>
  new GuardedFileError(
    'too_large',
    `the file has ${bytes.toLocaleString('en-US')} bytes; the limit is ${maxBytes.toLocaleString('en-US')}`,
  );

/** A file may grow while it is read, and one in /proc is larger than its stated size. */
async function readUpTo(file: FileHandle, size: number, maxBytes: number): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let total = 0;
  for (;;) {
    const room = Buffer.allocUnsafe(pieces.length === 0 ? size + 1 : PIECE_BYTES);
    const { bytesRead } = await file.read(room, 0, room.length);
    if (bytesRead === 0) return Buffer.concat(pieces, total);
    total += bytesRead;
    if (total > maxBytes) throw tooLarge(total, maxBytes);
    pieces.push(room.subarray(0, bytesRead));
  }
}

async function listFolder(
  folder: GuardedFolder,
  names: readonly string[],
  maxEntries: number,
): Promise<GuardedListing> {
  const found: string[] = [];
  let seen = 0;
  for await (const entry of await opendir(folder.here)) {
    seen += 1;
    if (found.length < MAX_SCANNED_ENTRIES) found.push(entry.name);
  }
  const visible = found.filter((name) => !isProtected([...names, name])).sort();
  const shown = visible.slice(0, maxEntries);
  return {
    entries: await Promise.all(shown.map((name) => describeEntry(folder, name))),
    omitted: visible.length - shown.length + (seen - found.length),
    hidden: found.length - visible.length,
  };
}

async function describeEntry(folder: GuardedFolder, name: string): Promise<GuardedEntry> {
  const info = await lstat(folder.at(name)).catch(() => undefined);
  const bytes = info?.isFile() ? info.size : 0;
  return { name, kind: kindOf(info), bytes, modifiedAt: info?.mtimeMs ?? 0 };
}

function kindOf(info: Stats | undefined): GuardedEntry['kind'] {
  if (info?.isFile()) return 'file';
  if (info?.isDirectory()) return 'folder';
  return info?.isSymbolicLink() ? 'link' : 'other';
}

export function undefinedIfMissing(error: unknown): undefined {
  if (error instanceof GuardedFileError && error.reason === 'not_found') return undefined;
  throw error;
}

/** `root` is the folder, `path` the caller's path in it. @throws GuardedFileError */
export type GuardedFiles = Pick<FolderGuard, keyof FolderGuard>;

/**
 * Runs while no other process does; `confirm` fails where that may not be so any more, because this
 * one stood still for too long.
 */
export type Exclusively = <T>(work: (confirm: () => Promise<void>) => Promise<T>) => Promise<T>;

type GuardOptions = {
  /** Folders that stay closed even if the guarded folder contains them. */
  readonly forbidden?: readonly string[];
  /** Where other processes change the same files; absent: they do not. */
  readonly exclusively?: Exclusively | undefined;
};

export const createGuardedFiles = (options: GuardOptions = {}): GuardedFiles =>
  new FolderGuard(options);

type Place = { readonly root: string; readonly names: readonly string[] };

class FolderGuard {
  readonly #forbidden: readonly string[];
  readonly #byHandle = hasHandlePaths();
  readonly #lanes = createLanes();
  readonly #exclusively: Exclusively;

  constructor({
    forbidden = [],
    exclusively = (work) => work(async () => undefined),
  }: GuardOptions) {
    this.#forbidden = forbidden;
    this.#exclusively = exclusively;
  }

  async read(root: string, path: string, limits: ReadLimits): Promise<Buffer> {
    return this.#read(await locate(root, path), limits);
  }

  /** Creates missing folders. Returns whether the file is new. */
  async write(
    root: string,
    path: string,
    content: string | AsyncIterable<Uint8Array>,
  ): Promise<'created' | 'replaced'> {
    const place = await locate(root, path);
    const inPlace = (rename: () => Promise<void>) => this.#exclusively(rename);
    return this.#lanes.run(laneOf(place), () => this.#write(place, content, inPlace));
  }

  /**
   * Reads, changes and writes without another change in between; undefined: the file does not
   * exist.
   */
  async update(
    root: string,
    path: string,
    change: (content: Buffer | undefined) => string | undefined | Promise<string | undefined>,
    limits: { readonly maxBytes: number },
  ): Promise<void> {
    const place = await locate(root, path);
    const work = async (confirm: () => Promise<void>) => {
      const before = await this.#read(place, limits).catch(undefinedIfMissing);
      const content = await change(before);
      if (content === undefined) return;
      await this.#write(place, content, async (rename) => {
        await confirm();
        await rename();
      });
    };
    await this.#lanes.run(laneOf(place), () => this.#exclusively(work));
  }

  async list(
    root: string,
    path: string,
    limits: { readonly maxEntries: number },
  ): Promise<GuardedListing> {
    const { root: realRoot, names } = await locate(root, path);
    return this.#inFolder(realRoot, names, false, (folder) =>
      listFolder(folder, names, limits.maxEntries),
    );
  }

  /** Keeps the folder open while the task works in it. */
  async #inFolder<T>(
    root: string,
    names: readonly string[],
    create: boolean,
    task: (folder: GuardedFolder) => Promise<T>,
  ): Promise<T> {
    const found = this.#forbidden.map((path) => stat(path).catch(() => undefined));
    const forbidden = (await Promise.all(found)).filter((info) => info !== undefined);
    const folder = await openFolder(root, names, { create, byHandle: this.#byHandle, forbidden });
    try {
      return await task(folder);
    } finally {
      await folder.handle.close();
    }
  }

  #read(place: Place, limits: ReadLimits): Promise<Buffer> {
    const { name, folders } = splitLast(place);
    return this.#inFolder(place.root, folders, false, (folder) => readEntry(folder, name, limits));
  }

  #write(
    place: Place,
    content: string | AsyncIterable<Uint8Array>,
    inPlace: (rename: () => Promise<void>) => Promise<void>,
  ): Promise<'created' | 'replaced'> {
    const { name, folders } = splitLast(place);
    return this.#inFolder(place.root, folders, true, (folder) =>
      replaceEntry(folder, name, content, inPlace),
    );
  }
}

async function locate(root: string, path: string): Promise<Place> {
  const real = await realpath(root).catch((cause: unknown) => explain(root, cause));
  return { root: real, names: guardedNames(path, [root, real]) };
}

const laneOf = (place: Place) => [place.root, ...place.names.map(foldName)].join('/');

function splitLast(place: Place) {
  const name = place.names.at(-1);
  if (name === undefined) throw new GuardedFileError('not_a_file', 'this is the workspace itself');
  return { name, folders: place.names.slice(0, -1) };
}
