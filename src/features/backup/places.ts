// Where back-ups are kept: a folder, a bucket of an S3 service, or one tar file. All of them hold
// the same names; what is written under a name is there completely or not at all.

import { createWriteStream, type Dirent, type WriteStream } from 'node:fs';
import {
  type FileHandle,
  open,
  opendir,
  readFile,
  rename,
  rm,
  stat,
  statfs,
} from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import type { Writable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import type { Environment } from '../../kernel/config/environment.ts';
import { NanobotError } from '../../kernel/message/errors.ts';
import { makeFolder, syncFolder, systemCode, writeAtomic } from '../../lib/files/files.ts';
import type { S3Settings } from '../../lib/net/s3.ts';
import { t } from '../../lib/texts.ts';

export type Stored = {
  readonly key: string;
  /** When it was written, epoch milliseconds, by the clock of the place. */
  readonly at: number;
};

export interface Place extends AsyncDisposable {
  /** For people; contains no secret. */
  readonly name: string;
  /** Contains one back-up, written from its start to its end. */
  readonly isStream: boolean;
  /** Undefined if it is not there. */
  read(key: string): Promise<Uint8Array | undefined>;
  /** Resolves when it is durable. */
  write(key: string, content: Uint8Array): Promise<void>;
  /** Everything below the folder. */
  list(folder: string): AsyncIterable<Stored>;
  remove(key: string): Promise<void>;
  /** The current time by the clock of `Stored.at`. */
  now(): Promise<number>;
  /** Publishes a stream that is complete. */
  finish(): Promise<void>;
}

export type PlaceOptions = {
  readonly env: Environment;
  readonly s3: S3Settings;
  /** The proxy setting for connections to other machines. */
  readonly proxy: string;
  /** Standard output or input, for the place `-`. */
  readonly stream?: Writable;
};

/** Other programs need some too. */
const SPARE_BYTES = 64_000_000;
const MEGABYTE = 1_000_000;

export const placeError = (code: string, message: string, cause?: unknown) =>
  new NanobotError(code, message, { cause });

/** @param what in words, for people. @throws NanobotError */
export async function requireRoom(folder: string, bytes: number, what: string): Promise<void> {
  const disk = await statfs(folder);
  const free = disk.bavail * disk.bsize;
  const needed = bytes + SPARE_BYTES;
  if (free >= needed) return;
  const mb = (count: number) => Math.ceil(count / MEGABYTE);
  throw placeError(
    'disk_full',
    t`${folder} needs ${mb(needed)} MB for ${what}, and ${mb(free)} MB are free. ` +
      t`Free disk space and try again.`,
  );
}

const FULL = ['ENOSPC', 'EDQUOT'];

/** Runs what writes to the file or folder of this name. @throws NanobotError where the disk refuses */
export async function writing<Result>(name: string, run: () => Promise<Result>): Promise<Result> {
  try {
    return await run();
  } catch (error) {
    if (!(error instanceof Error && 'syscall' in error)) throw error;
    if (FULL.includes(String(systemCode(error)))) {
      throw placeError(
        'disk_full',
        t`the disk of ${name} is full. Free disk space and try again; what was complete is kept.`,
        error,
      );
    }
    const path = 'path' in error ? String(error.path) : '';
    if (!path.startsWith(name) && !name.startsWith(`${path}/`)) throw error;
    throw placeError(
      'backup_place',
      t`${name} cannot be written: ${error.message}. Name another place.`,
      error,
    );
  }
}

/** The place to write to. @param to a folder, `s3://bucket/prefix`, a file `*.tar`, or `-` */
export async function openPlace(to: string, options: PlaceOptions): Promise<Place> {
  if (to.startsWith('s3://')) return bucketPlace(to, options);
  if (to === '-') {
    if (options.stream === undefined) throw placeError('backup_place', t`"-" cannot be used here`);
    return tarWriter(options.stream, t`standard output`);
  }
  return to.endsWith('.tar') ? tarFileWriter(resolve(to)) : folderPlace(resolve(to));
}

/** The place to read from. @param from as above, but a file instead of `-` */
export async function readPlace(from: string, options: PlaceOptions): Promise<Place> {
  if (from.startsWith('s3://')) return bucketPlace(from, options);
  const path = resolve(from);
  const info = await stat(path).catch(() => undefined);
  if (info === undefined) {
    throw placeError('backup_place', t`there are no back-ups in ${path}: it does not exist`);
  }
  return info.isDirectory() ? folderPlace(path) : tarReader(path);
}

// A folder.

function folderPlace(root: string): Place {
  const made = new Set<string>();
  const pathOf = (key: string) => join(root, key);
  return {
    name: root,
    isStream: false,
    async read(key) {
      try {
        return await readFile(pathOf(key));
      } catch (error) {
        if (systemCode(error) === 'ENOENT') return undefined;
        throw error;
      }
    },
    write: (key, content) =>
      writing(root, async () => {
        const path = pathOf(key);
        const folder = dirname(path);
        if (!made.has(folder)) await makeFolder(folder);
        made.add(folder);
        await writeAtomic(path, content);
      }),
    list: (folder) => filesBelow(root, folder),
    remove: (key) => rm(pathOf(key), { force: true }),
    now: async () => Date.now(),
    finish: async () => undefined,
    [Symbol.asyncDispose]: async () => undefined,
  };
}

async function* filesBelow(root: string, folder: string): AsyncGenerator<Stored, void, void> {
  let entries: AsyncIterable<Dirent>;
  try {
    entries = await opendir(join(root, folder));
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return;
    throw error;
  }
  for await (const entry of entries) {
    const key = `${folder}/${entry.name}`;
    if (entry.isDirectory()) yield* filesBelow(root, key);
    else if (entry.isFile()) {
      const info = await stat(join(root, key)).catch(() => undefined);
      if (info !== undefined) yield { key, at: info.mtimeMs };
    }
  }
}

// One file in the format of tar: it is written from its start to its end, and read at any place.

const BLOCK = 512;
const MTIME_UNIT_MS = 1000;
const FILE_MODE = 0o600;

/** A file as it stands in an archive. */
export async function tarEntry(path: string, content: Uint8Array, now = Date.now()) {
  const { Header } = await import('tar');
  const header = new Header({ path, size: content.length, mode: FILE_MODE, type: 'File' });
  header.mtime = new Date(Math.floor(now / MTIME_UNIT_MS) * MTIME_UNIT_MS);
  header.encode();
  const padding = (BLOCK - (content.length % BLOCK)) % BLOCK;
  return Buffer.concat([header.block ?? Buffer.alloc(0), content, Buffer.alloc(padding)]);
}

/** Behind the last entry. */
export const TAR_END = Buffer.alloc(2 * BLOCK);

async function tarWriter(stream: Writable, name: string): Promise<Place> {
  let failure: Error | undefined;
  stream.on('error', (error) => {
    failure ??= error;
  });
  const put = (bytes: Uint8Array) =>
    new Promise<void>((done, fail) => {
      if (failure !== undefined) return fail(failure);
      stream.write(bytes, (error) => (error ? fail(error) : done()));
    });
  return {
    name,
    isStream: true,
    read: async () => undefined,
    write: async (key, content) => put(await tarEntry(key, content)),
    async *list() {},
    remove: async () => undefined,
    now: async () => Date.now(),
    finish: () => put(TAR_END),
    [Symbol.asyncDispose]: async () => undefined,
  };
}

/** Takes its name when it is complete. */
async function tarFileWriter(path: string): Promise<Place> {
  const temporary = `${path}.partial`;
  const file = await writing(path, async () => {
    await makeFolder(dirname(path));
    return open(temporary, 'w', FILE_MODE);
  });
  const stream: WriteStream = createWriteStream(temporary, { fd: file, autoClose: false });
  const place = await tarWriter(stream, path);
  return {
    ...place,
    write: (key, content) => writing(path, () => place.write(key, content)),
    finish: () =>
      writing(path, async () => {
        await place.finish();
        await file.sync();
        await rename(temporary, path);
        // What failed must not look like a back-up that is complete.
        await syncFolder(dirname(path)).catch(async (error: unknown) => {
          await rm(path, { force: true });
          throw error;
        });
      }),
    async [Symbol.asyncDispose]() {
      stream.destroy();
      await file.close().catch(() => undefined);
      await rm(temporary, { force: true });
    },
  };
}

async function tarReader(path: string): Promise<Place> {
  const file = await open(path, 'r');
  let entries: ReadonlyMap<string, TarEntry>;
  try {
    entries = await tarEntries(file, path);
  } catch (error) {
    await file.close();
    throw error;
  }
  const readOnly = async () => {
    throw placeError('backup_place', t`${path} contains one back-up and cannot be changed`);
  };
  return {
    name: path,
    isStream: true,
    async read(key) {
      const entry = entries.get(key);
      if (entry === undefined) return undefined;
      const { bytesRead, buffer } = await file.read(
        Buffer.alloc(entry.size),
        0,
        entry.size,
        entry.at,
      );
      if (bytesRead < entry.size) throw cutShort(path);
      return buffer;
    },
    async *list(folder) {
      for (const key of entries.keys()) if (key.startsWith(`${folder}/`)) yield { key, at: 0 };
    },
    write: readOnly,
    remove: readOnly,
    finish: readOnly,
    now: async () => Date.now(),
    [Symbol.asyncDispose]: () => file.close(),
  };
}

type TarEntry = { readonly at: number; readonly size: number };

async function tarEntries(file: FileHandle, path: string): Promise<ReadonlyMap<string, TarEntry>> {
  const { Header } = await import('tar');
  const entries = new Map<string, TarEntry>();
  for (let at = 0; ; ) {
    const { bytesRead, buffer } = await file.read(Buffer.alloc(BLOCK), 0, BLOCK, at);
    if (bytesRead < BLOCK) throw cutShort(path);
    const header = new Header(buffer);
    if (header.nullBlock) return entries;
    if (!header.cksumValid || header.path === undefined || header.size === undefined) {
      throw placeError('backup_damaged', t`${path} is not a back-up, or is damaged`);
    }
    entries.set(header.path, { at: at + BLOCK, size: header.size });
    at += BLOCK + Math.ceil(header.size / BLOCK) * BLOCK;
  }
}

const cutShort = (path: string) =>
  placeError('backup_damaged', t`${path} is incomplete: its end is missing. Transfer it again.`);

// A bucket.

async function bucketPlace(to: string, { env, s3, proxy }: PlaceOptions): Promise<Place> {
  const [, bucket = '', prefix = ''] = /^s3:\/\/([^/]+)\/?(.*?)\/*$/.exec(to) ?? [];
  if (bucket === '') {
    throw placeError('backup_place', t`"${to}" names no bucket. Write s3://bucket/prefix.`);
  }
  const { openBucket, S3Error } = await import('../../lib/net/s3.ts');
  const failed = (error: unknown): never => {
    throw error instanceof S3Error ? placeError('backup_place', error.message, error) : error;
  };
  const options = { bucket, prefix, s3, env, proxy, field: 'backup.s3' };
  const opened = await openBucket(options).catch(failed);
  return {
    name: to,
    isStream: false,
    async read(key) {
      const content = await opened.get(key).catch(failed);
      return content === undefined ? undefined : buffer(content);
    },
    write: (key, content) => opened.put(key, content).catch(failed),
    async *list(folder) {
      try {
        yield* opened.list(`${folder}/`);
      } catch (error) {
        failed(error);
      }
    },
    remove: (key) => opened.remove(key).catch(failed),
    now: () => opened.now().catch(failed),
    finish: async () => undefined,
    [Symbol.asyncDispose]: async () => undefined,
  };
}
