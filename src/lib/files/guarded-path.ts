// Paths that untrusted callers may use: checked as text, then walked below an open folder so that
// no link can lead out of it.

import { constants, existsSync, type Stats } from 'node:fs';
import { type FileHandle, lstat, mkdir, open, realpath } from 'node:fs/promises';
import { join } from 'node:path';

export type GuardReason =
  | 'malformed'
  | 'outside'
  | 'protected'
  | 'link'
  | 'hard_link'
  | 'not_found'
  | 'not_a_file'
  | 'not_a_folder'
  | 'too_large'
  | 'no_permission'
  | 'no_space';

/** A refused or impossible access. `message` is suitable for the model and for people. */
export class GuardedFileError extends Error {
  override readonly name = 'GuardedFileError';
  readonly reason: GuardReason;
  constructor(reason: GuardReason, message: string, options: { readonly cause?: unknown } = {}) {
    super(message, options);
    this.reason = reason;
  }
}

const MAX_PATH_CHARS = 4096;
const MAX_NAME_BYTES = 255;
/** Control characters, and those that display a name in another order than it is spelled. */
const DECEPTIVE = /[\p{Cc}\u202A-\u202E\u2066-\u2069]/u;
const IGNORABLE = /\p{Default_Ignorable_Code_Point}/gu;

const PROTECTED_NAMES = new Set([
  '.ssh',
  '.gnupg',
  '.aws',
  '.azure',
  '.kube',
  '.docker',
  '.netrc',
  '.npmrc',
  '.pypirc',
  '.pgpass',
  '.git-credentials',
  '.env',
  '.nanobot',
  'id_rsa',
  'id_dsa',
  'id_ecdsa',
  'id_ed25519',
]);
const PROTECTED_ENDINGS = ['.pem', '.key', '.p12', '.pfx', '.kdbx'];
/** Files that git itself executes. */
const PROTECTED_IN_GIT = new Set(['hooks', 'config', 'modules']);

/**
 * The names of a path below the folder; empty for the folder itself. Relative paths start at the
 * folder, absolute ones must be inside it; `roots` are its spellings.
 * @throws GuardedFileError malformed, outside, protected
 */
export function guardedNames(path: string, roots: readonly string[]): readonly string[] {
  if (path.length > MAX_PATH_CHARS || !path.isWellFormed() || DECEPTIVE.test(path)) {
    throw new GuardedFileError('malformed', 'the path is too long or has forbidden characters');
  }
  if (path.includes('\\')) {
    throw new GuardedFileError('malformed', 'separate folders with "/", not with "\\"');
  }
  const names = resolveDots(relativeTo(path.trim(), roots));
  if (names.some((name) => Buffer.byteLength(name) > MAX_NAME_BYTES)) {
    throw new GuardedFileError('malformed', 'a name in the path is too long');
  }
  if (isProtected(names)) {
    throw new GuardedFileError('protected', 'this path is protected: it may hold secrets');
  }
  return names;
}

const outside = () =>
  new GuardedFileError('outside', 'the path leads out of the workspace; use a path relative to it');

function relativeTo(path: string, roots: readonly string[]): string {
  if (path === '~' || path.startsWith('~/')) throw outside();
  if (!path.startsWith('/')) return path;
  const root = roots.find((candidate) => path === candidate || path.startsWith(`${candidate}/`));
  if (root === undefined) throw outside();
  return path.slice(root.length);
}

/** `..` may be resolved as text because links are never followed. */
function resolveDots(path: string): readonly string[] {
  const names: string[] = [];
  for (const name of path.split('/')) {
    if (name === '' || name === '.') continue;
    if (name !== '..') names.push(name);
    else if (names.pop() === undefined) throw outside();
  }
  return names;
}

/** Whether a path leads to something that is neither shown nor opened. */
export function isProtected(names: readonly string[]): boolean {
  const folded = names.map(foldName);
  return folded.some((name, index) => {
    if (PROTECTED_NAMES.has(name) || name.startsWith('.env.')) return true;
    if (PROTECTED_ENDINGS.some((ending) => name.endsWith(ending))) return true;
    return folded[index - 1] === '.git' && PROTECTED_IN_GIT.has(name);
  });
}

/** One spelling for names that some file systems treat as the same. */
export function foldName(name: string): string {
  return name
    .normalize('NFKC')
    .replace(IGNORABLE, '')
    .toLowerCase()
    .replace(/[. ]+$/, '');
}

// Walks below a folder so that no link can lead out of it, not even one created at the same moment:
// each step opens a name relative to the handle of the folder before (by /proc/self/fd, because
// Node has no openat), and none follows links. Without /proc, macOS itself refuses links anywhere
// in a path, and the real path is compared after opening.

/** An open folder below the guarded one. The caller closes the handle. */
export interface GuardedFolder {
  readonly handle: FileHandle;
  readonly byHandle: boolean;
  /** A path that reaches the entry through the open handle if the system supports it. */
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

type WalkOptions = {
  readonly create: boolean;
  readonly byHandle: boolean;
  /** Folders that must not be entered, by device and inode. */
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

/** Without handle paths: the opened folder must be where its path says. */
async function recheck(realPath: string, options: WalkOptions): Promise<void> {
  if (options.byHandle) return;
  if ((await realpath(realPath)) !== realPath) throw linked();
}

export const linked = () =>
  new GuardedFileError('link', 'the path leads over a link; links are not followed');

/** Turns a failed open into an error with a reason for people. */
export async function explain(path: string, cause: unknown): Promise<never> {
  const info = await lstat(path).catch(() => undefined);
  if (info?.isSymbolicLink()) throw linked();
  const code = cause instanceof Error && 'code' in cause ? cause.code : undefined;
  // Not of the file system.
  if (code === undefined) throw cause;
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
