// Validates a skill from elsewhere before it is written: what is refused (cases X10, X17), and
// remarks for the person. Runs nothing of it.

import type { ReadEntry } from 'tar';
import { foldName, isProtected } from '../../lib/files/guarded-path.ts';
import { headOf, hiddenCharactersIn } from '../../lib/text/cut.ts';
import { t } from '../../lib/texts.ts';
import { readSkillFile, SKILL_FILE } from './index.ts';
import { isSkillName } from './rules/skill.ts';
import { SkillError } from './skills.ts';

export type PackedFile = {
  /** Relative to the skill's folder, separated by "/". */
  readonly path: string;
  readonly bytes: Uint8Array;
};

export type SkillPackage = { readonly name: string; readonly files: readonly PackedFile[] };

export type SkillReview = {
  readonly name: string;
  readonly description: string;
  readonly text: string;
  /** Its requirements and what deserves attention, one sentence each. */
  readonly remarks: readonly string[];
};

export const MAX_SKILL_FILES = 200;
export const MAX_FILE_BYTES = 1_000_000;
export const MAX_PACKAGE_BYTES = 5_000_000;
const MAX_SHOWN_CHARS = 80;
const MAX_PATH_CHARS = 200;
const MAX_DEPTH = 5;
const MAX_HOSTS = 10;
/** Names that are invalid on some system (Microsoft, "Naming Files, Paths, and Namespaces"). */
const RESERVED = /^(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)/i;
const ODD_NAME = /[\p{Cc}\p{Cf}<>:"|?*\\]|[. ]$|^ /u;
const PROGRAM =
  /\.(?:sh|bash|zsh|fish|py|js|mjs|cjs|ts|rb|pl|php|lua|ps1|bat|cmd|exe|jar|wasm|so|dll)$/i;
const HOST = /\bhttps?:\/\/([a-z0-9.-]+\.[a-z]{2,}|localhost|\d+(?:\.\d+){3})/gi;

/** @throws SkillError refused, with the file and the reason */
export async function reviewPackage({ name, files }: SkillPackage): Promise<SkillReview> {
  if (!isSkillName(name)) {
    throw refused(
      t`"${headOf(name, MAX_SHOWN_CHARS)}" is not a valid name of a skill; use lower-case letters, digits and single hyphens`,
    );
  }
  checkFiles(files);
  const main = files.find(({ path }) => path === SKILL_FILE);
  if (main === undefined) throw refused(t`it has no ${SKILL_FILE}`);
  const read = await readSkillFile(name, main.bytes);
  if (read.kind === 'broken') throw refused(read.problem);
  const { description, isAlways, needs } = read.manifest;
  const wants = [
    ...needs.bins.map((bin) => t`the program ${bin}`),
    ...needs.env.map((variable) => t`the environment variable ${variable}`),
  ];
  return {
    name,
    description,
    text: read.body,
    remarks: [
      ...(wants.length === 0 ? [] : [t`It needs ${wants.join(', ')}.`]),
      ...(isAlways ? [t`It asks to be in every prompt, not only when needed.`] : []),
      ...contentRemarks(files),
      ...(read.warnings ?? []),
    ],
  };
}

function checkFiles(files: readonly PackedFile[]): void {
  if (files.length > MAX_SKILL_FILES) {
    throw refused(t`it has ${files.length} files; at most ${MAX_SKILL_FILES} are allowed`);
  }
  const bytes = files.reduce((sum, file) => sum + file.bytes.length, 0);
  if (bytes > MAX_PACKAGE_BYTES) {
    throw refused(t`it has ${bytes} bytes; at most ${MAX_PACKAGE_BYTES} are allowed`);
  }
  const seen = new Set<string>();
  for (const file of files) {
    checkPath(file.path);
    const folded = file.path.split('/').map(foldName).join('/');
    if (seen.has(folded)) throw refused(t`two files are called ${file.path} on some systems`);
    seen.add(folded);
    if (file.bytes.length > MAX_FILE_BYTES) {
      throw refused(
        t`${file.path} has ${file.bytes.length} bytes; at most ${MAX_FILE_BYTES} are allowed`,
      );
    }
    const hidden = isText(file.bytes) ? hiddenCharactersIn(decode(file.bytes)) : undefined;
    if (hidden !== undefined) {
      throw refused(
        t`${file.path} contains invisible characters (${hidden}) and may contain text that you do not see`,
      );
    }
  }
}

/** @throws SkillError refused */
function checkPath(path: string): void {
  const names = path.split('/');
  const shown = JSON.stringify(headOf(path, MAX_PATH_CHARS));
  if (path.length > MAX_PATH_CHARS || names.length > MAX_DEPTH) {
    throw refused(t`the path ${shown} is too long or too deep`);
  }
  if (names.some((part) => part === '' || part === '.' || part === '..' || ODD_NAME.test(part))) {
    throw refused(t`the path ${shown} leads outside the folder or has invalid characters`);
  }
  if (names.some((part) => RESERVED.test(part)) || isProtected(names)) {
    throw refused(t`a file must not be called ${shown}`);
  }
}

function contentRemarks(files: readonly PackedFile[]): readonly string[] {
  const programs = files.filter(
    ({ path, bytes }) => PROGRAM.test(path) || startsLikeProgram(bytes),
  );
  const binaries = files.filter((file) => !programs.includes(file) && !isText(file.bytes));
  const texts = files.filter(({ bytes }) => isText(bytes)).map(({ bytes }) => decode(bytes));
  const hosts = [
    ...new Set(
      texts.flatMap((text) => [...text.matchAll(HOST)].map(([, host = '']) => host.toLowerCase())),
    ),
  ];
  const more = hosts.length > MAX_HOSTS ? t` and ${hosts.length - MAX_HOSTS} more` : '';
  return [
    ...(programs.length === 0
      ? []
      : [
          t`It contains programs: ${pathsOf(programs)}. They run only if the agent may run programs.`,
        ]),
    ...(binaries.length === 0 ? [] : [t`It contains binary files: ${pathsOf(binaries)}.`]),
    ...(hosts.length === 0
      ? []
      : [t`It mentions these hosts: ${hosts.slice(0, MAX_HOSTS).join(', ')}${more}.`]),
  ];
}

const pathsOf = (files: readonly PackedFile[]) => files.map(({ path }) => path).join(', ');

const startsLikeProgram = (bytes: Uint8Array) =>
  ['#!', '\x7fELF', 'MZ'].some((mark) =>
    Buffer.from(bytes.subarray(0, 4)).toString('latin1').startsWith(mark),
  );

const isText = (bytes: Uint8Array) => !bytes.includes(0);

const decode = (bytes: Uint8Array) => Buffer.from(bytes).toString('utf8');

const refused = (message: string) => new SkillError('refused', message);

// Unpacks a tar archive in memory (case X10): nothing is written, whatever an entry is called;
// links and devices outside the skill are ignored, within it they are refused.

/** Limits of a whole repository that contains a skill. */
const MAX_ENTRIES = 20_000;
const MAX_BYTES = 100_000_000;
const FILES = ['File', 'OldFile', 'ContiguousFile'];

type Unpacked = {
  readonly files: readonly PackedFile[];
  /** Paths of links and devices. */
  readonly others: readonly string[];
  /** Name of the folder that contains everything; empty where there is none. */
  readonly root: string;
};

/** @throws SkillError */
export async function unpack(archive: Uint8Array): Promise<Unpacked> {
  const { Parser } = await import('tar');
  const files: PackedFile[] = [];
  const others: string[] = [];
  let seen = 0;
  let bytes = 0;
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const parser = new Parser({
    strict: true,
    onReadEntry(entry: ReadEntry) {
      seen += 1;
      bytes += entry.size;
      if (seen > MAX_ENTRIES || bytes > MAX_BYTES) {
        reject(new SkillError('refused', t`the archive is too large`));
        return parser.abort(new Error('too large'));
      }
      if (entry.type !== 'Directory' && !FILES.includes(entry.type)) others.push(entry.path);
      if (!FILES.includes(entry.type)) return entry.resume();
      collect(entry, files);
    },
  });
  parser.on('end', resolve).on('abort', reject).on('error', reject);
  parser.end(Buffer.from(archive));
  try {
    await promise;
  } catch (cause) {
    if (cause instanceof SkillError) throw cause;
    throw new SkillError('bad_source', t`not a tar archive, or a damaged one`, { cause });
  }
  return withoutRoot(files, others);
}

/**
 * A file that is too large keeps only its name, so that it is refused if it belongs to the skill.
 */
function collect(entry: ReadEntry, files: PackedFile[]): void {
  const { path } = entry;
  if (entry.size > MAX_FILE_BYTES) {
    files.push({ path, bytes: new Uint8Array(MAX_FILE_BYTES + 1) });
    entry.resume();
    return;
  }
  const chunks: Buffer[] = [];
  entry.on('data', (chunk) => chunks.push(Buffer.from(chunk)));
  entry.on('end', () => files.push({ path, bytes: Buffer.concat(chunks) }));
}

/** Archives of repositories contain one folder, named after the version. */
function withoutRoot(files: readonly PackedFile[], others: readonly string[]): Unpacked {
  const [first = ''] = files[0]?.path.split('/') ?? [];
  const prefix = `${first}/`;
  const isWrapped = files.length > 0 && files.every(({ path }) => path.startsWith(prefix));
  if (!isWrapped) return { files, others, root: '' };
  return {
    files: files.map(({ path, bytes }) => ({ path: path.slice(prefix.length), bytes })),
    others: others.map((path) => (path.startsWith(prefix) ? path.slice(prefix.length) : path)),
    root: first,
  };
}
