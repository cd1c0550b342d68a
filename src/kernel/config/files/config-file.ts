// Loads the configuration of a home: all of it or nothing. Problems are reported at once, with
// path, line and remedy; a configuration that loaded is kept as the last good copy.

import { readFile, stat } from 'node:fs/promises';
import { homedir } from 'node:os';
import { resolve } from 'node:path';
import { makeFolder, systemCode, textIfThere, writeAtomic } from '../../../lib/files/files.ts';
import { t } from '../../../lib/texts.ts';
import { ConfigError, type ConfigProblem } from '../../message/errors.ts';
import {
  type CheckedConfig,
  type ConfigOverrides,
  checkConfig,
  configError,
  contentProblems,
} from '../check.ts';
import { CONFIG_VERSION, type Config } from '../config.ts';
import { type Environment, variableOf } from '../environment.ts';
import { type JsonObject, type JsonValue, readJson } from '../json.ts';
import { valueAt, withValue } from '../json-paths.ts';
import { migrateConfig } from '../migration.ts';
import { keepVersion } from './config-history.ts';
import { type Home, readMadeToken } from './home.ts';
import { findSecrets, findSecretsIn } from './secret-sources.ts';

export type LoadedConfig = {
  /**
   * Every default filled in, every `${NAME}`, secret and the token resolved, the workspace
   * absolute.
   */
  readonly config: Config;
  /** As written, references unresolved; `config set` changes this. */
  readonly raw: JsonObject;
  readonly path: string;
  /** Of the file when it was read. */
  readonly stamp: string | undefined;
  /** What was changed to migrate an older file. */
  readonly notes: readonly string[];
  /** The gateway's token is the one that the home generated, because none is configured. */
  readonly hasMadeToken: boolean;
  /** Overrides the file as long as this process lives. */
  readonly overrides: ConfigOverrides;
};

/** A home without a file has the defaults. @throws ConfigError with every problem found. */
export async function loadConfig(
  home: Home,
  env: Environment,
  given: ConfigOverrides = {},
): Promise<LoadedConfig> {
  const stamp = await stampOf(home.config);
  const written = await textIfThere(home.config);
  const text = written ?? EMPTY;
  const overrides = { ...tokenOverride(text, env), ...given };
  const checked = checkConfig(text, env, overrides, await findSecretsIn(text, env, home));
  if (written === undefined) return { ...(await loaded(home, checked, overrides)), stamp };
  const notes = [...checked.notes];
  if (checked.migratedFrom !== undefined) {
    notes.push(...(await keepMigrated(home, text, checked.migratedFrom, checked.raw)));
  }
  await keepLastGood(home, checked.raw);
  return { ...(await loaded(home, { ...checked, notes }, overrides)), stamp };
}

/** Changes whenever the file does, including when it is replaced; undefined if there is none. */
export async function stampOf(path: string): Promise<string | undefined> {
  const info = await stat(path, { bigint: true }).catch(() => undefined);
  return info === undefined ? undefined : `${info.ino} ${info.size} ${info.mtimeNs}`;
}

/**
 * Reads the configuration in a file, anywhere, for the workspace of this home; writes nothing.
 * @throws ConfigError, or the error of the file system
 */
export async function readConfig(
  path: string,
  env: Environment,
  home: Home,
  overrides: ConfigOverrides,
): Promise<Config> {
  const text = await readFile(path, 'utf8');
  const checked = checkConfig(text, env, overrides, await findSecretsIn(text, env, home));
  return (await loaded(home, checked, overrides)).config;
}

/**
 * The configuration, or if its file is invalid while a gateway runs, the last valid one with the
 * current problems. @throws ConfigError
 */
export async function configInForce(
  home: Home,
  env: Environment,
  isRunning: boolean,
): Promise<{ readonly config: Config; readonly problems: readonly ConfigProblem[] }> {
  try {
    return { config: (await loadConfig(home, env)).config, problems: [] };
  } catch (error) {
    if (!isRunning || !(error instanceof ConfigError)) throw error;
    const last = await readFile(home.lastGoodConfig, 'utf8').catch(() => undefined);
    if (last === undefined) throw error;
    const overrides = tokenOverride(last, env);
    const config = await readConfig(home.lastGoodConfig, env, home, overrides);
    return { config, problems: error.problems };
  }
}

/** Problems of a file, anywhere; undefined if there are none. Writes nothing. */
export async function validateConfigFile(
  path: string,
  env: Environment,
  home: Home,
): Promise<ConfigError | undefined> {
  const text = await readFile(path, 'utf8');
  try {
    const secrets = await findSecretsIn(text, env, home);
    checkConfig(text, env, tokenOverride(text, env), secrets);
    return undefined;
  } catch (error) {
    if (error instanceof ConfigError) return error;
    throw error;
  }
}

/** A container gets its token by the environment; a configured one takes precedence. */
function tokenOverride(text: string, env: Environment): ConfigOverrides {
  const token = env['NANOBOT_GATEWAY_TOKEN'] ?? '';
  const written = valueAt(readJson(text).value, 'gateway.token') ?? '';
  return token === '' || written !== '' ? {} : { 'gateway.token': token };
}

async function loaded(
  home: Home,
  checked: CheckedConfig,
  overrides: ConfigOverrides,
): Promise<Omit<LoadedConfig, 'stamp'>> {
  const { config, raw, notes } = checked;
  const workspace = workspacePath(home, config.agents.defaults.workspace);
  const hasMadeToken = config.gateway.token === '';
  const token = hasMadeToken ? await readMadeToken(home) : config.gateway.token;
  return {
    config: {
      ...config,
      agents: { ...config.agents, defaults: { ...config.agents.defaults, workspace } },
      gateway: { ...config.gateway, token },
    },
    raw,
    path: home.config,
    notes,
    hasMadeToken,
    overrides,
  };
}

function workspacePath(home: Home, written: string): string {
  if (written === '') return home.workspace;
  return resolve(home.root, written.replace(/^~(?=$|[/\\])/, homedir()));
}

// Writes the configuration: checked first, then replaced in one step, readable by its user alone.
// Also keeps copies for a person to go back to.

/** The configuration when there is no file. */
export const EMPTY = JSON.stringify({ version: CONFIG_VERSION });

/**
 * The configuration as written; empty if there is none. An older file is migrated, and the original
 * kept beside it. @throws ConfigError
 */
export async function readRawConfig(home: Home): Promise<JsonObject> {
  const text = (await textIfThere(home.config)) ?? EMPTY;
  const migrated = migrateConfig(readJson(text).value);
  if (migrated.from !== undefined) await writeAtomic(backupPath(home, migrated.from), text);
  return migrated.raw;
}

/**
 * Replaces the configuration. An invalid one is never written, nor masks of secrets; only problems
 * that were in the file before may stay, so that they can be fixed one by one.
 * @throws ConfigError with the new problems
 */
export async function saveConfig(home: Home, raw: JsonObject, env: Environment): Promise<void> {
  const problems = await newProblems(home, raw, env);
  if (problems.length > 0) throw configError(problems);
  await makeFolder(home.root);
  await keepVersion(home);
  await writeAtomic(home.config, textOf(raw));
  await keepVersion(home);
}

/**
 * The configuration with these settings, by dotted path.
 * @throws ConfigError where a variable of the environment takes precedence over one of them
 */
export function withSettings(
  raw: JsonObject,
  settings: Readonly<Record<string, JsonValue>>,
  env: Environment,
): JsonObject {
  const problems = Object.entries(settings).flatMap(([path, value]) => {
    const name = variableOf(path, env);
    if (name === undefined || env[name] === textOfValue(value)) return [];
    return {
      path,
      problem: t`the environment variable ${name} sets it and takes precedence over the file`,
      remedy: t`Change or unset the variable where the gateway is started.`,
    };
  });
  if (problems.length > 0) throw configError(problems);
  return Object.entries(settings).reduce(
    (changed, [path, value]) => withValue(changed, path, value),
    raw,
  );
}

const textOfValue = (value: JsonValue) =>
  typeof value === 'string' ? value : JSON.stringify(value);

/** What keeps a configuration from replacing that of the file. */
export async function newProblems(
  home: Home,
  raw: JsonObject,
  env: Environment,
): Promise<readonly ConfigProblem[]> {
  const problemsOf = async (one: JsonObject) =>
    contentProblems(one, env, await findSecrets(one, env, home));
  const problems = await problemsOf(raw);
  if (problems.length === 0) return [];
  const known = (await problemsOf(await readRawConfig(home))).map(nameOf);
  return problems.filter((one) => !known.includes(nameOf(one)));
}

/** Stores a configuration that loaded, unless that copy exists already. */
async function keepLastGood(home: Home, raw: JsonObject): Promise<void> {
  const text = textOf(raw);
  const known = await readFile(home.lastGoodConfig, 'utf8').catch(() => undefined);
  if (known === text) return;
  await unlessReadOnly(async () => {
    await keepVersion(home);
    await writeAtomic(home.lastGoodConfig, text);
  });
}

/** Replaces an older file by its migrated form; the original stays beside it. Returns notes. */
async function keepMigrated(
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
    ? [t`saved the previous file as ${backup}`]
    : [t`cannot write ${home.config}; it was not changed`];
}

const backupPath = (home: Home, version: number) => `${home.config}.v${version}`;
const nameOf = ({ path, problem }: ConfigProblem) => `${path}: ${problem}`;

function textOf(raw: JsonObject): string {
  return `${JSON.stringify(raw, undefined, 2)}\n`;
}

/** A read-only configuration is no failure. True if the write succeeded. */
async function unlessReadOnly(write: () => Promise<void>): Promise<boolean> {
  try {
    await write();
    return true;
  } catch (error) {
    if (['EROFS', 'EACCES', 'EPERM'].includes(String(systemCode(error)))) return false;
    throw error;
  }
}
