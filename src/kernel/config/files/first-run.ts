// Creates the home on a first start and keeps it private on every other one. Nothing that a person
// wrote is ever replaced.

import { existsSync } from 'node:fs';
import { chmod, constants, copyFile, mkdir, readdir, readFile, stat } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { makeFolder, textIfThere, writeAtomic } from '../../../lib/files/files.ts';
import { isContained } from '../../../lib/process-group.ts';
import { t } from '../../../lib/texts.ts';
import { assertUsable } from '../../instance.ts';
import { NanobotError } from '../../message/errors.ts';
import type { ConfigOverrides } from '../check.ts';
import { CONFIG_VERSION } from '../config.ts';
import type { Environment } from '../environment.ts';
import { type LoadedConfig, loadConfig } from './config-file.ts';
import {
  CONFIG_SCHEMA_FILE,
  ensureMadeToken,
  type Home,
  isShared,
  WORKSPACE_TEMPLATE,
} from './home.ts';

const PRIVATE_FOLDER = 0o700;
const PRIVATE_FILE = 0o600;
const OTHERS = 0o077;
const SCHEMA_NAME = 'config.schema.json';

export type OpenedHome = {
  readonly loaded: LoadedConfig;
  /** The home did not exist before. */
  readonly created: boolean;
  /** Notes for a person: what was created, made private or migrated. */
  readonly notes: readonly string[];
};

/**
 * Opens the home, created if it is missing, with its configuration and workspace.
 * @throws ConfigError, or NanobotError if others can read the home and that cannot be changed, if it
 * moved elsewhere, or if a restore into it was interrupted.
 */
export async function openHome(
  home: Home,
  env: Environment,
  overrides: ConfigOverrides = {},
): Promise<OpenedHome> {
  await assertUsable(home);
  const created = (await textIfThere(home.config)) === undefined;
  // With PostgreSQL there is no state.db; the lock stays from the first start on.
  const isFirstStart = !existsSync(home.state) && !existsSync(home.lock) && !isShared(home);
  const tightened = await ensureHome(home, env);
  const loaded = await loadConfig(home, env, overrides);
  const copied = await ensureWorkspace(loaded.config.agents.defaults.workspace, isFirstStart);
  return { loaded, created, notes: [...tightened, ...loaded.notes, ...copied] };
}

/** Folders, a minimal configuration and the schema that editors read beside it. */
async function ensureHome(home: Home, env: Environment): Promise<readonly string[]> {
  for (const folder of [home.root, home.sessions, home.logs, dirname(home.audit)]) {
    await makeFolder(folder);
  }
  const notes = [...(await makePrivate(home.root, PRIVATE_FOLDER, env))];
  if (!existsSync(home.config)) {
    await writeAtomic(home.config, minimalConfig());
    notes.push(t`created ${home.config}`);
  } else {
    notes.push(...(await makePrivate(home.config, PRIVATE_FILE, env)));
  }
  if (await ensureMadeToken(home)) notes.push(t`created ${home.token}`);
  else notes.push(...(await makePrivate(home.token, PRIVATE_FILE, env)));
  await keepSchema(join(home.root, SCHEMA_NAME));
  return notes;
}

/**
 * Copies the template if there is no workspace yet. On the first start a non-empty folder gets what
 * is missing; later a missing file is one that a person deleted.
 */
async function ensureWorkspace(path: string, isFirstStart: boolean): Promise<readonly string[]> {
  await makeFolder(path);
  const isEmpty = (await readdir(path)).length === 0;
  if (!isEmpty && !isFirstStart) return [];
  const template = await readdir(WORKSPACE_TEMPLATE, { recursive: true, withFileTypes: true });
  const files = template.filter((entry) => entry.isFile());
  const added = await Promise.all(
    files.map(({ parentPath, name }) => addMissing(path, join(parentPath, name), isEmpty)),
  );
  const count = added.filter(Boolean).length;
  if (isEmpty) return [t`created the workspace ${path}`];
  return count === 0 ? [] : [t`added ${count} missing template files to the workspace ${path}`];
}

/** Returns whether it was added; existing files are never replaced. */
async function addMissing(path: string, file: string, isRequired: boolean): Promise<boolean> {
  const target = join(path, relative(WORKSPACE_TEMPLATE, file));
  try {
    await mkdir(dirname(target), { recursive: true });
    await copyFile(file, target, constants.COPYFILE_EXCL);
    return true;
  } catch (error) {
    // A folder that a person provided may be read-only, or have a file where the template has a
    // folder.
    if (isRequired) throw error;
    return false;
  }
}

async function makePrivate(
  path: string,
  mode: number,
  env: Environment,
): Promise<readonly string[]> {
  const found = (await stat(path)).mode & 0o777;
  if (process.platform === 'win32' || (found & OTHERS) === 0) return [];
  try {
    await chmod(path, mode);
  } catch (error) {
    // A volume belongs to the engine that mounts it, and is accessed through its group.
    if (isContained(env)) return [];
    throw new NanobotError(
      'home_exposed',
      t`other users can read ${path}, and this user may not change that. As its owner run: chmod ${mode.toString(8)} ${path}. Or set NANOBOT_HOME to another folder`,
      { cause: error },
    );
  }
  return [t`made ${path} private; other users could read it`];
}

async function keepSchema(path: string): Promise<void> {
  const schema = await readFile(CONFIG_SCHEMA_FILE, 'utf8');
  const known = await readFile(path, 'utf8').catch(() => undefined);
  if (known !== schema) await writeAtomic(path, schema);
}

function minimalConfig(): string {
  const config = { $schema: `./${SCHEMA_NAME}`, version: CONFIG_VERSION };
  return `${JSON.stringify(config, undefined, 2)}\n`;
}
