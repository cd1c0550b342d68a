// Which paths may be touched at all, decided by their text: inside the folder, and nothing that
// holds secrets or that other programs run. What stands on the disk is checked in guarded-files.ts.

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

/** An access that was refused or is not possible. `message` is fit for the model and for people. */
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
/** Control characters, and those that make a name read in another order than it is spelled. */
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
/** What git itself executes. */
const PROTECTED_IN_GIT = new Set(['hooks', 'config', 'modules']);

/**
 * The names below the folder that a path leads through; empty for the folder itself. Relative
 * paths begin at the folder, absolute ones must lie in it; `roots` are its spellings.
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

/** `..` may be taken by text alone because links are never followed. */
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

/** One spelling for names that some file system takes for the same. */
export function foldName(name: string): string {
  return name
    .normalize('NFKC')
    .replace(IGNORABLE, '')
    .toLowerCase()
    .replace(/[. ]+$/, '');
}
