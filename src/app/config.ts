// Loads the configuration of a home: all of it or nothing. What is wrong is said at once, with path,
// line and remedy; what loaded is kept as the last good copy.

import { readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { resolve } from 'node:path';
import type { Config } from '../core/config.ts';
import { CONFIG_VERSION } from '../core/config.ts';
import { type CheckedConfig, checkConfig } from '../core/config-check.ts';
import type { JsonObject } from '../core/config-json.ts';
import type { Environment } from '../core/environment.ts';
import { keepLastGood, keepMigrated } from './config-store.ts';
import type { Home } from './home.ts';

export type LoadedConfig = {
  /** Every default filled in, every `${NAME}` resolved, the workspace absolute. */
  readonly config: Config;
  /** As written, references unresolved; what `config set` changes. */
  readonly raw: JsonObject;
  readonly path: string;
  /** What was changed to bring an older file up to date. */
  readonly notes: readonly string[];
};

/** A home without a file has the defaults. @throws ConfigError with every problem found. */
export async function loadConfig(home: Home, env: Environment): Promise<LoadedConfig> {
  const text = await readConfigText(home);
  if (text === undefined) return loaded(home, checkConfig(EMPTY, env));
  const checked = checkConfig(text, env);
  const notes = [...checked.notes];
  if (checked.migratedFrom !== undefined) {
    notes.push(...(await keepMigrated(home, text, checked.migratedFrom, checked.raw)));
  }
  await keepLastGood(home, checked.raw);
  return loaded(home, { ...checked, notes });
}

/** The file's text; undefined where there is none yet. */
export async function readConfigText(home: Home): Promise<string | undefined> {
  try {
    return await readFile(home.config, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
}

const EMPTY = JSON.stringify({ version: CONFIG_VERSION });

function loaded(home: Home, checked: CheckedConfig): LoadedConfig {
  const { config, raw, notes } = checked;
  const workspace = workspacePath(home, config.agents.defaults.workspace);
  return {
    config: { ...config, agents: { defaults: { ...config.agents.defaults, workspace } } },
    raw,
    path: home.config,
    notes,
  };
}

function workspacePath(home: Home, written: string): string {
  if (written === '') return home.workspace;
  return resolve(home.root, written.replace(/^~(?=$|[/\\])/, homedir()));
}
