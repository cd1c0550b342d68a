// Writes the configuration: checked first, then replaced in one step, readable by its user alone.
// Also keeps the copies a person can go back to.

import { mkdir, readFile } from 'node:fs/promises';
import { systemCode, textIfThere, writeAtomic } from '../../../lib/files/files.ts';
import type { ConfigProblem } from '../../message/errors.ts';
import { configError, contentProblems } from '../check.ts';
import { CONFIG_VERSION } from '../config.ts';
import type { Environment } from '../environment.ts';
import { type JsonObject, readJson } from '../json.ts';
import { migrateConfig } from '../migration.ts';
import type { Home } from './home.ts';
import { findSecrets } from './secret-sources.ts';

const HOME_MODE = 0o700;
/** What counts where there is no file. */
export const EMPTY = JSON.stringify({ version: CONFIG_VERSION });

/**
 * The configuration as written; where there is none, an empty one. An older file is migrated, and
 * kept as it was beside it. @throws ConfigError
 */
export async function readRawConfig(home: Home): Promise<JsonObject> {
  const text = (await textIfThere(home.config)) ?? EMPTY;
  const migrated = migrateConfig(readJson(text).value);
  if (migrated.from !== undefined) await writeAtomic(backupPath(home, migrated.from), text);
  return migrated.raw;
}

/**
 * Replaces the configuration. What would not load is never written, masks of secrets included; only
 * problems that stood in the file before may stay, so that they can be mended one by one.
 * @throws ConfigError with the new problems
 */
export async function saveConfig(home: Home, raw: JsonObject, env: Environment): Promise<void> {
  const problemsOf = async (one: JsonObject) =>
    contentProblems(one, env, await findSecrets(one, env, home));
  const known = (await problemsOf(await readRawConfig(home))).map(nameOf);
  const problems = (await problemsOf(raw)).filter((one) => !known.includes(nameOf(one)));
  if (problems.length > 0) throw configError(problems);
  await mkdir(home.root, { recursive: true, mode: HOME_MODE });
  await writeAtomic(home.config, textOf(raw));
}

/** Remembers a configuration that loaded, unless that copy is there already. */
export async function keepLastGood(home: Home, raw: JsonObject): Promise<void> {
  const text = textOf(raw);
  const known = await readFile(home.lastGoodConfig, 'utf8').catch(() => undefined);
  if (known === text) return;
  await unlessReadOnly(() => writeAtomic(home.lastGoodConfig, text));
}

/** Replaces an older file by its migrated form; the original stays beside it. Returns notes. */
export async function keepMigrated(
  home: Home,
  original: string,
  from: number,
  raw: JsonObject,
): Promise<readonly string[]> {
  const backup = backupPath(home, from);
  const written = await unlessReadOnly(async () => {
    await writeAtomic(backup, original);
    await writeAtomic(home.config, textOf(raw));
  });
  return written
    ? [`the file as it was is kept at ${backup}`]
    : [`${home.config} cannot be written, so it stays as it was`];
}

const backupPath = (home: Home, version: number) => `${home.config}.v${version}`;
const nameOf = ({ path, problem }: ConfigProblem) => `${path}: ${problem}`;

function textOf(raw: JsonObject): string {
  return `${JSON.stringify(raw, undefined, 2)}\n`;
}

/** A configuration mounted read-only is no failure. True where the write went through. */
async function unlessReadOnly(write: () => Promise<void>): Promise<boolean> {
  try {
    await write();
    return true;
  } catch (error) {
    if (['EROFS', 'EACCES', 'EPERM'].includes(String(systemCode(error)))) return false;
    throw error;
  }
}
