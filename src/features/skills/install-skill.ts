// Adds a reviewed skill to the workspace in one step, and removes one. Its hashes are stored first:
// a crash in between leaves hashes without a skill, never a skill without hashes.

import { randomUUID } from 'node:crypto';
import { lstat, mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { syncFolder } from '../../lib/files/files.ts';
import type { GuardedFiles } from '../../lib/files/guarded-files.ts';
import type { SafeFetch } from '../../lib/net/safe-fetch.ts';
import { t } from '../../lib/texts.ts';
import { SKILL_FILE } from './index.ts';
import {
  MAX_FILE_BYTES,
  MAX_PACKAGE_BYTES,
  MAX_SKILL_FILES,
  type PackedFile,
  type SkillPackage,
  unpack,
} from './package.ts';
import { isSkillName } from './rules/skill.ts';
import {
  archiveOf,
  listSkillFiles,
  type RepositoryPlace,
  SkillError,
  type SkillPin,
  type SkillPinRows,
  sha256,
} from './skills.ts';

const FOLDER_MODE = 0o700;
/** Files of a skill are not executable. */
const FILE_MODE = 0o600;

export type InstallDeps = {
  /** The skills folder of the workspace. */
  readonly folder: string;
  readonly pins: SkillPinRows;
  readonly files: GuardedFiles;
  readonly now: () => Date;
};

/** @throws SkillError exists */
export async function installSkill(
  skill: FoundSkill,
  { replace }: { readonly replace: boolean },
  { folder, pins, now }: InstallDeps,
): Promise<void> {
  const target = join(folder, skill.name);
  const isThere = (await lstat(target).catch(() => undefined)) !== undefined;
  if (isThere && !replace) {
    const message = t`the skill ${skill.name} already exists; use --replace to replace it`;
    throw new SkillError('exists', message);
  }
  const staged = join(folder, `.${skill.name}.${randomUUID()}`);
  try {
    await mkdir(staged, { recursive: true, mode: FOLDER_MODE });
    for (const { path, bytes } of skill.files) {
      const file = join(staged, path);
      await mkdir(dirname(file), { recursive: true, mode: FOLDER_MODE });
      await writeFile(file, bytes, { flag: 'wx', mode: FILE_MODE, flush: true });
    }
    await pins.set(skill.name, pinOf(skill, now()));
    await putInPlace(staged, target, isThere);
  } finally {
    await rm(staged, { recursive: true, force: true });
  }
  await syncFolder(folder);
}

async function putInPlace(staged: string, target: string, isThere: boolean): Promise<void> {
  if (!isThere) return rename(staged, target);
  const old = `${staged}.old`;
  await rename(target, old);
  await rename(staged, target);
  await rm(old, { recursive: true, force: true });
}

function pinOf({ source, files }: FoundSkill, at: Date): SkillPin {
  return {
    source,
    addedAt: at.toISOString(),
    files: Object.fromEntries(files.map(({ path, bytes }) => [path, sha256(bytes)])),
  };
}

/** @throws SkillError unknown */
export async function removeSkill(name: string, { folder, pins }: InstallDeps): Promise<void> {
  const target = await existingSkill(name, folder);
  const gone = join(folder, `.${name}.${randomUUID()}`);
  await rename(target, gone);
  await pins.set(name, undefined);
  await rm(gone, { recursive: true, force: true });
}

/**
 * Stores the hashes of the current files; returns the files that had changed.
 * @throws SkillError
 */
export async function acceptSkill(
  name: string,
  { folder, pins, files, now }: InstallDeps,
): Promise<readonly string[]> {
  await existingSkill(name, folder);
  const before = (await pins.all()).get(name);
  const hashes: Record<string, string> = {};
  for (const path of await listSkillFiles(files, folder, name)) {
    hashes[path] = sha256(
      await files.read(folder, `${name}/${path}`, { maxBytes: MAX_FILE_BYTES }),
    );
  }
  const source = before?.source ?? folder;
  await pins.set(name, { source, addedAt: now().toISOString(), files: hashes });
  const old = before?.files ?? {};
  return Object.keys({ ...old, ...hashes }).filter((path) => old[path] !== hashes[path]);
}

export async function existingSkill(name: string, folder: string): Promise<string> {
  const target = join(folder, name);
  const info = isSkillName(name) ? await lstat(target).catch(() => undefined) : undefined;
  if (info?.isDirectory() === true) return target;
  throw new SkillError(
    'unknown',
    t`the workspace has no skill "${name}"; list skills: nanobot skills list`,
  );
}

// Reads a skill from a folder, an archive, or a repository on a known host. Everything is read into
// memory within limits; links and devices are refused, nothing is run.

const MAX_ARCHIVE_BYTES = 50_000_000;
const FETCH_TIMEOUT_MS = 60_000;
const ARCHIVE = /\.(?:tar|tar\.gz|tgz)$/i;
const IGNORED = new Set(['.git', '.DS_Store']);

export type FoundSkill = SkillPackage & {
  /** As stored with the skill. */
  readonly source: string;
};

/**
 * `where`: a path, the address of a tar archive, `owner/repository[/folder][#ref]` at GitHub, or
 * the address of such a folder in a browser.
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
      t`cannot find ${where}; give a folder, a .tar.gz file or its URL, or owner/repository/folder`,
    );
  }
  return fromArchive(await download(place, safeFetch, signal), place);
}

/** `source`: the name of the archive. @throws SkillError */
export const findInArchive = (archive: Uint8Array, source: string): Promise<FoundSkill> =>
  fromArchive(archive, { source, folder: '' });

async function readBounded(path: string, bytes: number): Promise<Uint8Array> {
  if (!ARCHIVE.test(path)) {
    throw new SkillError(
      'bad_source',
      t`${path} is a file; give the folder of the skill, or a .tar.gz file`,
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
      throw new SkillError('bad_source', t`cannot download ${source}: ${why}`, { cause });
    },
  );
  if (status === 200) return body;
  const why = status === 404 ? t`not found, or private` : t`the server answered ${status}`;
  throw new SkillError('bad_source', t`cannot download ${source}: ${why}`);
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

/** The skill in `folder`, or the only one there is. `whole`: the name of a skill at the root. */
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
      tops.length === 0 ? t`no ${SKILL_FILE}` : t`${tops.length} skills; choose one: ${names}`;
    throw new SkillError('bad_source', t`${whole.source} has ${why}`);
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
    t`${JSON.stringify(path)} is a link or not a regular file; a skill may contain only files`,
  );

const tooLarge = (path: string) =>
  new SkillError('refused', t`${JSON.stringify(path)} is too large, or makes the skill too large`);

const tooMany = () =>
  new SkillError('refused', t`more than ${MAX_SKILL_FILES} files; give the folder of the skill`);
