// Binds a command to the files it stands on: by place, inode and content. An owner's yes is for these;
// what runs are copies of what was compared, so that nobody can exchange them in between (case X06).

import { createHash } from 'node:crypto';
import { constants, createReadStream } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { ToolError } from '../../kernel/message/errors.ts';
import { isWithin } from './paths.ts';
import type { Program, ProgramPlaces } from './programs.ts';
import type { Confinement } from './sandbox.ts';

export type SealedFile = {
  readonly path: string;
  readonly inode: string;
  /** SHA-256, hexadecimal. */
  readonly hash: string;
};

export type Replaced = Confinement['replaced'][number];

const INTERPRETER_NAMES =
  /^(?:[abdkz]?sh|bash|dash|fish|busybox|node(?:js)?|deno|bun|pypy[\d.]*|python[\d.]*|perl[\d.]*|ruby[\d.]*|php[\d.]*|lua[\d.]*|tclsh[\d.]*|[gmn]?awk|sed|Rscript|g?make|java|env|nice|nohup|setsid|stdbuf|time|timeout|xargs)$/;
/** Larger ones are data, not programs. */
const MAX_COPIED_BYTES = 20_000_000;

/** The program, and the files of the workspace that an interpreter is given. */
export async function sealOf(
  program: Program,
  args: readonly string[],
  { cwd, workspace }: Pick<ProgramPlaces, 'cwd' | 'workspace'>,
): Promise<readonly SealedFile[]> {
  const given = INTERPRETER_NAMES.test(basename(program.called)) ? args : [];
  const paths = given.map((arg) => resolve(cwd, arg)).filter((path) => isWithin(path, workspace));
  const files = program.file === undefined ? paths : [program.file, ...paths];
  const sealed = await Promise.all([...new Set(files)].map(sealedFile));
  return sealed.filter((file) => file !== undefined);
}

async function sealedFile(path: string): Promise<SealedFile | undefined> {
  const info = await stat(path, { bigint: true }).catch(() => undefined);
  if (info === undefined || !info.isFile()) return undefined;
  return { path, inode: `${info.dev}:${info.ino}`, hash: await hashOf(path) };
}

async function hashOf(path: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(path), hash);
  return hash.digest('hex');
}

/** `image`: what the programs come from, where that is not this machine. */
export function sealText(files: readonly SealedFile[], image: string | undefined): string {
  const lines = files.map(({ path, inode, hash }) => `${path} ${inode} sha256:${hash}`);
  return [...(image === undefined ? [] : [`image ${image}`]), ...lines].join('\n');
}

/**
 * Copies those of the workspace, which anybody may change: the first is the one that is run and is
 * seen as its copy, with the hash of the copy; others are data, only compared.
 */
export async function allowedCopies(
  files: readonly SealedFile[],
  workspace: string,
  folder: string,
): Promise<{ readonly files: readonly SealedFile[]; readonly replaced: readonly Replaced[] }> {
  const first = files.findIndex(({ path }) => isWithin(path, workspace));
  const script = files[first];
  if (script === undefined) return { files, replaced: [] };
  const by = join(folder, 'allowed');
  const copied = await copyOf(script, by);
  return {
    files: files.map((file, index) => (index === first ? copied : file)),
    replaced: [{ path: script.path, by }],
  };
}

async function copyOf(file: SealedFile, to: string): Promise<SealedFile> {
  const source = await open(file.path, constants.O_RDONLY | constants.O_NOFOLLOW).catch(() => {
    throw new ToolError('blocked', 'the file to be run is a link, or gone');
  });
  try {
    const { size, mode } = await source.stat();
    if (size > MAX_COPIED_BYTES) return file;
    const content = await source.readFile();
    const copy = await open(to, 'wx', mode & 0o700);
    await copy.writeFile(content).finally(() => copy.close());
    return { ...file, hash: createHash('sha256').update(content).digest('hex') };
  } finally {
    await source.close();
  }
}
