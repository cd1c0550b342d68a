// Writes the configuration: checked first, then replaced in one step, readable by its user alone.
// Also keeps the copies a person can go back to.

import { mkdir, readFile } from 'node:fs/promises';
import { configError, contentProblems } from '../core/config-check.ts';
import type { JsonObject } from '../core/config-json.ts';
import type { Environment } from '../core/environment.ts';
import { writeAtomic } from '../lib/files.ts';
import type { Home } from './home.ts';

const HOME_MODE = 0o700;

/** @throws ConfigError: what would not load is never written, masks of secrets included. */
export async function saveConfig(home: Home, raw: JsonObject, env: Environment): Promise<void> {
  const problems = contentProblems(raw, env);
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
  const backup = `${home.config}.v${from}`;
  const written = await unlessReadOnly(async () => {
    await writeAtomic(backup, original);
    await writeAtomic(home.config, textOf(raw));
  });
  return written
    ? [`the file as it was is kept at ${backup}`]
    : [`${home.config} cannot be written, so it stays as it was`];
}

function textOf(raw: JsonObject): string {
  return `${JSON.stringify(raw, undefined, 2)}\n`;
}

/** A configuration mounted read-only is no failure. True where the write went through. */
async function unlessReadOnly(write: () => Promise<void>): Promise<boolean> {
  try {
    await write();
    return true;
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code === 'EROFS' || code === 'EACCES' || code === 'EPERM') return false;
    throw error;
  }
}
