// Where a skill comes from: a folder, an archive, or a repository at one of the usual hosts. All of it
// is read into memory, in bounds; links and devices are refused, nothing is run.

import { lstat, readdir, readFile, stat } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import type { SafeFetch } from '../../lib/net/safe-fetch.ts';
import { SKILL_FILE } from './catalog.ts';
import {
  MAX_FILE_BYTES,
  MAX_PACKAGE_BYTES,
  MAX_SKILL_FILES,
  type PackedFile,
  type SkillPackage,
} from './package.ts';
import { archiveOf, type RepositoryPlace } from './repository.ts';
import { SkillError } from './skills.ts';
import { unpack } from './unpack.ts';

const MAX_ARCHIVE_BYTES = 50_000_000;
const FETCH_TIMEOUT_MS = 60_000;
const ARCHIVE = /\.(?:tar|tar\.gz|tgz)$/i;
const IGNORED = new Set(['.git', '.DS_Store']);

export type FoundSkill = SkillPackage & {
  /** As it is kept with the skill. */
  readonly source: string;
};

/**
 * `where`: a path, the address of a tar archive, `owner/repository[/folder][#ref]` at GitHub, or the
 * address of such a folder in a browser.
 * @throws SkillError
 */
export async function findSkill(
  where: string,
  safeFetch: SafeFetch,
  signal: AbortSignal,
): Promise<FoundSkill> {
  const info = await stat(where).catch(() => undefined);
  if (info?.isDirectory()) return fromFolder(resolve(where));
  if (info?.isFile()) {
    return fromArchive(await readBounded(where, info.size), { source: resolve(where), folder: '' });
  }
  const place = archiveOf(where);
  if (place === undefined) {
    throw new SkillError(
      'bad_source',
      `${where} is no folder, no archive and no repository; name a path, owner/repository/folder, or an address of a .tar.gz`,
    );
  }
  return fromArchive(await download(place, safeFetch, signal), place);
}

async function readBounded(path: string, bytes: number): Promise<Uint8Array> {
  if (!ARCHIVE.test(path)) {
    throw new SkillError(
      'bad_source',
      `${path} is a file; name the folder of the skill, or a .tar.gz`,
    );
  }
  if (bytes > MAX_ARCHIVE_BYTES) throw tooLarge(path);
  return readFile(path);
}

async function download(
  { url, source }: RepositoryPlace,
  safeFetch: SafeFetch,
  signal: AbortSignal,
): Promise<Uint8Array> {
  const options = { signal, maxBytes: MAX_ARCHIVE_BYTES, maxDecompressedBytes: MAX_ARCHIVE_BYTES };
  const { status, body } = await safeFetch(url, { ...options, timeoutMs: FETCH_TIMEOUT_MS }).catch(
    (cause: unknown) => {
      signal.throwIfAborted();
      const why = cause instanceof Error ? cause.message : 'unreachable';
      throw new SkillError('bad_source', `${source} could not be fetched: ${why}`, { cause });
    },
  );
  if (status === 200) return body;
  const why = status === 404 ? 'not there, or private' : `the server answered ${status}`;
  throw new SkillError('bad_source', `${source} could not be fetched: ${why}`);
}

async function fromFolder(root: string): Promise<FoundSkill> {
  const files: PackedFile[] = [];
  let bytes = 0;
  const walk = async (below: string): Promise<void> => {
    for (const name of (await readdir(join(root, below))).sort()) {
      if (IGNORED.has(name)) continue;
      const path = below === '' ? name : `${below}/${name}`;
      const info = await lstat(join(root, path));
      if (info.isDirectory()) {
        await walk(path);
        continue;
      }
      if (!info.isFile()) throw notPlain(path);
      bytes += info.size;
      if (info.size > MAX_FILE_BYTES || bytes > MAX_PACKAGE_BYTES) throw tooLarge(path);
      if (files.length >= MAX_SKILL_FILES) throw tooMany();
      files.push({ path, bytes: await readFile(join(root, path)) });
    }
  };
  await walk('');
  return chosen(files, '', { name: basename(root), source: root });
}

async function fromArchive(
  archive: Uint8Array,
  { source, folder }: Pick<RepositoryPlace, 'source' | 'folder'>,
): Promise<FoundSkill> {
  const { files, others, root } = await unpack(archive);
  const found = chosen(files, folder, { name: root, source });
  const link = others.find((path) => path.startsWith(found.top));
  if (link !== undefined) throw notPlain(link);
  return found;
}

/** The skill in `folder`, or the only one there is. `whole`: what a skill at the very top is called. */
function chosen(
  files: readonly PackedFile[],
  folder: string,
  whole: { readonly name: string; readonly source: string },
): FoundSkill & { readonly top: string } {
  const tops = files
    .filter(({ path }) => path === SKILL_FILE || path.endsWith(`/${SKILL_FILE}`))
    .map(({ path }) => path.slice(0, -SKILL_FILE.length - 1))
    .filter((top) => folder === '' || top === folder || top.startsWith(`${folder}/`));
  const top = tops.includes(folder) ? folder : tops.length === 1 ? tops[0] : undefined;
  if (top === undefined) {
    const names = tops.slice(0, 40).join(', ');
    const why =
      tops.length === 0
        ? `no ${SKILL_FILE} in it`
        : `${tops.length} skills in it, name one: ${names}`;
    throw new SkillError('bad_source', `${whole.source} has ${why}`);
  }
  const prefix = top === '' ? '' : `${top}/`;
  return {
    top: prefix,
    name: top === '' ? whole.name : basename(top),
    source: whole.source,
    files: files
      .filter(({ path }) => path.startsWith(prefix))
      .map(({ path, bytes }) => ({ path: path.slice(prefix.length), bytes })),
  };
}

const notPlain = (path: string) =>
  new SkillError(
    'refused',
    `${JSON.stringify(path)} is a link or no plain file; a skill has files only`,
  );

const tooLarge = (path: string) =>
  new SkillError('refused', `${JSON.stringify(path)} is too large, or with it the whole is`);

const tooMany = () =>
  new SkillError('refused', `more than ${MAX_SKILL_FILES} files; name the folder of the skill`);
