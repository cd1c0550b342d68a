// Walking below a folder so that no link can lead out of it, not even one that is put there in the
// same moment: each step opens a name relative to the handle of the folder before (by
// /proc/self/fd, Node has no openat), and none follows links. Where there is no /proc, macOS
// refuses links anywhere in a path by itself, and the real path is compared after opening.

import { constants, existsSync, type Stats } from 'node:fs';
import { type FileHandle, lstat, mkdir, open, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { GuardedFileError } from './guarded-path.ts';

/** An open folder below the guarded one. Closing the handle is the caller's. */
export interface GuardedFolder {
  readonly handle: FileHandle;
  readonly byHandle: boolean;
  /** A path that reaches the entry through the open handle where the system allows it. */
  at(name: string): string;
  /** The folder itself, for listing. */
  readonly here: string;
}

const HANDLES = '/proc/self/fd';
/** O_NOFOLLOW_ANY of macOS, sys/fcntl.h; not among Node's constants. */
const NOFOLLOW_ANY = process.platform === 'darwin' ? 0x2000_0000 : 0;
export const NOFOLLOW = constants.O_NOFOLLOW | NOFOLLOW_ANY;
const FOLDER = constants.O_RDONLY | constants.O_DIRECTORY | NOFOLLOW;

export function hasHandlePaths(): boolean {
  return existsSync(HANDLES);
}

function wrap(handle: FileHandle, realPath: string, byHandle: boolean): GuardedFolder {
  const here = byHandle ? `${HANDLES}/${handle.fd}` : realPath;
  return {
    handle,
    byHandle,
    here,
    at: (name) => `${here}/${name}`,
  };
}

export type WalkOptions = {
  readonly create: boolean;
  readonly byHandle: boolean;
  /** Folders that may not be entered, by device and inode. */
  readonly forbidden: readonly Pick<Stats, 'dev' | 'ino'>[];
};

/** @throws GuardedFileError link, not_found, not_a_folder, protected */
export async function openFolder(
  realRoot: string,
  names: readonly string[],
  options: WalkOptions,
): Promise<GuardedFolder> {
  let path = realRoot;
  let folder = await openStep(path, path, options);
  for (const name of names) {
    const parent = folder;
    path = join(path, name);
    try {
      if (options.create) await mkdir(parent.at(name), { mode: 0o700 }).catch(ignoreExisting);
      folder = await openStep(parent.at(name), path, options);
    } finally {
      await parent.handle.close();
    }
  }
  return folder;
}

async function openStep(
  path: string,
  realPath: string,
  options: WalkOptions,
): Promise<GuardedFolder> {
  const handle = await open(path, FOLDER).catch((cause: unknown) => explain(path, cause));
  try {
    const info = await handle.stat();
    if (options.forbidden.some((other) => other.ino === info.ino && other.dev === info.dev)) {
      throw new GuardedFileError('protected', 'this folder is protected');
    }
    await recheck(realPath, options);
    return wrap(handle, realPath, options.byHandle);
  } catch (error) {
    await handle.close();
    throw error;
  }
}

/** Without handle paths: what was opened must lie where its path says. */
async function recheck(realPath: string, options: WalkOptions): Promise<void> {
  if (options.byHandle) return;
  if ((await realpath(realPath)) !== realPath) throw linked();
}

export const linked = () =>
  new GuardedFileError('link', 'the path leads over a link; links are not followed');

/** Turns a failed open into the reason a person can act on. */
export async function explain(path: string, cause: unknown): Promise<never> {
  const info = await lstat(path).catch(() => undefined);
  if (info?.isSymbolicLink()) throw linked();
  const code = cause instanceof Error && 'code' in cause ? cause.code : undefined;
  if (code === 'ENOENT') throw new GuardedFileError('not_found', 'there is no such path');
  if (code === 'ENOTDIR') {
    throw new GuardedFileError('not_a_folder', 'a part of the path is not a folder', { cause });
  }
  if (code === 'ENOSPC' || code === 'EDQUOT') {
    throw new GuardedFileError('no_space', 'the disk is full', { cause });
  }
  throw new GuardedFileError('no_permission', `the path cannot be opened (${code})`, { cause });
}

function ignoreExisting(error: unknown): undefined {
  if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return undefined;
  throw error;
}
