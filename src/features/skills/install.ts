// Puts a reviewed skill into the workspace in one step, and takes one out. What was looked at is pinned
// first: a kill in between leaves a pin without a skill, never a skill without its pin.

import { randomUUID } from 'node:crypto';
import { lstat, mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { syncFolder } from '../../lib/files/files.ts';
import type { GuardedFiles } from '../../lib/files/guarded-files.ts';
import { MAX_FILE_BYTES } from './package.ts';
import { type PinBook, type SkillPin, sha256 } from './pins.ts';
import { listSkillFiles } from './repository.ts';
import { isSkillName } from './rules/skill.ts';
import { SkillError } from './skills.ts';
import type { FoundSkill } from './source.ts';

const FOLDER_MODE = 0o700;
/** No file of a skill is a program to the system. */
const FILE_MODE = 0o600;

export type InstallDeps = {
  /** The workspace's folder of skills. */
  readonly folder: string;
  readonly pins: PinBook;
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
    const message = `there is a skill ${skill.name} already; add --replace to put this one in its place`;
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

/** Pins a skill as it stands now; the files that are not as they were pinned. @throws SkillError */
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
    `the workspace has no skill "${name}"; "nanobot skills list" has them`,
  );
}
