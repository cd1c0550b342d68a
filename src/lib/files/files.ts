// Files that survive a crash: atomic replacement (written beside, synced, renamed), cheap change
// checks, and the daily log file.

import { randomUUID } from 'node:crypto';
import { appendFileSync, constants, lstatSync, mkdirSync } from 'node:fs';
import { access, mkdir, open, readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { basename, delimiter, dirname, join } from 'node:path';
import type { DestinationStream } from 'pino';
import type { Clock } from '../time/clock.ts';

/** Replaces the file in one step. `mode` defaults to 0600. */
export async function writeAtomic(
  path: string,
  content: string | Uint8Array,
  mode = 0o600,
): Promise<void> {
  const temporary = join(dirname(path), `.${basename(path)}.${randomUUID()}.tmp`);
  try {
    const file = await open(temporary, 'wx', mode);
    try {
      await file.writeFile(content);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw named(error, path);
  }
  await syncFolder(dirname(path));
}

/** The error of an open file, which the system reports without a name. */
const named = (error: unknown, path: string): unknown =>
  error instanceof Error && !('path' in error) ? Object.assign(error, { path }) : error;

/** The text of a file; undefined if it does not exist. */
export async function textIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return undefined;
    throw named(error, path);
  }
}

/** Whether this user has this access to the path. `mode`: of `constants` of node:fs. */
export const isPermitted = (path: string, mode: number): Promise<boolean> =>
  access(path, mode).then(
    () => true,
    () => false,
  );

/** Finds the program: by its path, or the first of this name on the PATH of the environment. */
export async function isOnPath(
  program: string,
  env: Readonly<Record<string, string | undefined>>,
): Promise<boolean> {
  const folders = (env['PATH'] ?? '').split(delimiter).filter((folder) => folder !== '');
  const paths = program.includes('/') ? [program] : folders.map((folder) => join(folder, program));
  const found = await Promise.all(paths.map((path) => isPermitted(path, constants.X_OK)));
  return found.includes(true);
}

/** The code of a system error, e.g. ENOENT. */
export const systemCode = (error: unknown): unknown =>
  error instanceof Error && 'code' in error ? error.code : undefined;

/** For `catch`: what is not there becomes undefined, any other error is rethrown. */
export function undefinedIfMissing(error: unknown): undefined {
  if (systemCode(error) === 'ENOENT') return undefined;
  throw error;
}

/**
 * Creates a folder that a person named, with those above it, for this user alone. The recursive
 * mkdir of Node never ends on a file system without new folders, like /proc.
 */
export async function makeFolder(path: string): Promise<void> {
  const isThere = async () => (await stat(path).catch(undefinedIfMissing))?.isDirectory();
  if (await isThere()) return;
  if (dirname(path) !== path) await makeFolder(dirname(path));
  try {
    await mkdir(path, { mode: 0o700 });
  } catch (error) {
    // Something else may have made it meanwhile.
    if (systemCode(error) === 'EEXIST' && (await isThere())) return;
    if (systemCode(error) !== 'ENOENT') throw error;
    const message = `EROFS: no folder can be created here, mkdir '${path}'`;
    throw Object.assign(new Error(message, { cause: error }), {
      ...{ code: 'EROFS', path, syscall: 'mkdir' },
    });
  }
}

/** Makes a rename or a new file in the folder durable. */
export async function syncFolder(path: string): Promise<void> {
  await using folder = await open(path, 'r');
  try {
    await folder.sync();
  } catch (error) {
    throw named(error, path);
  }
}

// Whether a file is still the one that was read. Checked without the thread pool: the kernel
// answers from memory in microseconds, and every turn checks about a dozen files.

/**
 * Changes whenever the file does, including when it is replaced; undefined if it is no regular
 * file.
 */
export function fileStamp(path: string): string | undefined {
  try {
    const info = lstatSync(path, { bigint: true, throwIfNoEntry: false });
    return info?.isFile() === true ? `${info.ino} ${info.size} ${info.mtimeNs}` : undefined;
  } catch {
    return undefined;
  }
}

// The log as one file a day, `nanobot.YYYY-MM-DD.log`, mode 0600; old ones are deleted at the
// change of day. Lines of the same moment are written together.

type LogFileOptions = {
  readonly folder: string;
  readonly clock: Clock;
  keepDays(): number;
  /** Runs what writes the lines. */
  later(write: () => void): void;
};

const DAY_MS = 86_400_000;
const FILE_NAME = /^nanobot\.(\d{4}-\d{2}-\d{2})\.log$/;
/** While nothing can be written. */
const MAX_WAITING_CHARS = 1_000_000;

export function openLogFile(options: LogFileOptions): DestinationStream {
  const { folder, clock, later } = options;
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  let day = dayOf(clock.now());
  let lines = '';
  let isDue = false;
  function write() {
    isDue = false;
    try {
      appendFileSync(pathOf(folder, day), lines, { mode: 0o600 });
      lines = '';
    } catch {
      // E.g. a full disk: written with the next line.
      lines = lines.slice(-MAX_WAITING_CHARS);
    }
  }
  void deleteOld(options, day);
  return {
    write(line) {
      const today = dayOf(clock.now());
      if (today !== day) {
        write();
        day = today;
        void deleteOld(options, day);
      }
      lines += line;
      if (!isDue) later(write);
      isDue = true;
    },
  };
}

const dayOf = (now: number) => new Date(now).toISOString().slice(0, 10);
const pathOf = (folder: string, day: string) => join(folder, `nanobot.${day}.log`);

async function deleteOld(options: LogFileOptions, today: string): Promise<void> {
  const oldest = dayOf(Date.parse(today) - options.keepDays() * DAY_MS);
  const names = await readdir(options.folder).catch((): string[] => []);
  for (const name of names) {
    const day = FILE_NAME.exec(name)?.[1];
    if (day !== undefined && day < oldest) await rm(join(options.folder, name), { force: true });
  }
}
