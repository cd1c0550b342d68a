// Where the state of a user is: one folder, `~/.nanobot` unless NANOBOT_HOME moves it.

import { randomBytes, randomUUID } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { findPackageJSON } from 'node:module';
import { homedir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { textIfThere, writeAtomic } from '../../../lib/files/files.ts';
import { type Environment, withVariables } from '../environment.ts';
import { isJsonObject, type JsonObject, readJson } from '../json.ts';
import { valueAt } from '../json-paths.ts';

/** Names of the files and folders below the root. */
const NAMES = {
  config: 'config.json',
  /** The last configuration that loaded, kept for a person to go back to. */
  lastGoodConfig: 'config.last-good.json',
  /** Earlier versions of the configuration. */
  configHistory: 'config.history',
  workspace: 'workspace',
  state: 'state.db',
  sessions: 'sessions',
  /** Full-text index; rebuilt from the files if it is missing. */
  index: 'index.db',
  /** Files of inbound and outbound messages. */
  media: 'media',
  logs: 'logs',
  /** The gateway's token if the configuration has none. */
  token: 'gateway-token',
  /** Held by the running gateway through a kernel lock. */
  lock: 'nanobot.lock',
  /** Data of the running gateway: process id, address. */
  runtime: 'gateway.json',
  /** One line for every model call. */
  metrics: 'metrics.jsonl',
  /** The decisions of a router, if enabled. */
  traces: 'traces',
  /** Everything done with effects. */
  audit: 'audit.jsonl',
  /** The content of installed skills when they were added. */
  skillPins: 'skills.json',
  /** Which skills are switched off or always in use. */
  skillChoices: 'skill-choices.json',
  /** The newest version in the registry, as last asked for. */
  newest: 'newest-version.json',
  /** The update of the program that is under way, or the last one. */
  update: 'update.json',
  /** Files that an update may migrate, as they were before it. */
  beforeUpdate: '.before-update',
  history: 'history',
  /** Results of evaluations. */
  eval: 'eval',
  /** agents/ and prompts/ of the supervisor, beside those of the program. */
  agents: 'config',
  /** Which of several copies of a home this is. */
  instance: 'instance.json',
  /** What is known about the back-ups of this home. */
  backups: 'backups',
  /** Being restored into this home. */
  restoring: '.restore',
};

/** Their paths. */
export type Home = { readonly root: string } & { readonly [Name in keyof typeof NAMES]: string };

export function homeOf(env: Readonly<Record<string, string | undefined>>): Home {
  const root = resolve(env['NANOBOT_HOME'] || join(homedir(), '.nanobot'));
  const paths = Object.entries(NAMES).map(([name, file]) => [name, join(root, file)]);
  return { root, ...Object.fromEntries(paths) };
}

/**
 * With the folders that several processes share in place of its own (storage.path), read by itself,
 * because commands find them beside a configuration that is invalid elsewhere.
 */
export function withSharedFiles(home: Home, env: Environment): Home {
  const config = withVariables(configOf(home), env);
  const shared = valueAt(config, 'storage.path');
  if (typeof shared !== 'string' || shared === '') return home;
  // Copies of a bucket's objects are in each home.
  const media = valueAt(config, 'storage.media.kind') === 's3' ? [] : (['media'] as const);
  const names = ['workspace', 'sessions', 'token', ...media] as const;
  const folders = Object.fromEntries(names.map((name) => [name, join(shared, NAMES[name])]));
  return { ...home, ...folders, audit: join(shared, 'audit', ownName(home), NAMES.audit) };
}

/** Of the audit chain of this home, among those of the others. */
function ownName(home: Home): string {
  const path = join(home.root, 'process-id');
  try {
    writeFileSync(path, `${randomUUID()}\n`, { flag: 'wx', mode: 0o600 });
  } catch {
    // There is one, or the home cannot be written, which is reported elsewhere.
  }
  try {
    return readFileSync(path, 'utf8').trim();
  } catch {
    return 'unknown';
  }
}

export const isShared = (home: Home) => home.sessions !== join(home.root, NAMES.sessions);

/** In the folder that several processes share. */
export const sharedMedia = (path: string) => join(path, NAMES.media);

function configOf(home: Home): JsonObject {
  try {
    const { value } = readJson(readFileSync(home.config, 'utf8'));
    return isJsonObject(value) ? value : {};
  } catch {
    return {};
  }
}

// The gateway's token if a person configured none: generated at the first start and kept in a file
// of its own, so that the configuration can be shown and copied without it.

const TOKEN_BYTES = 32;

/** Empty if none was generated yet. */
export async function readMadeToken(home: Home): Promise<string> {
  return ((await textIfThere(home.token)) ?? '').trim();
}

/** Generates the token if there is none; true if it was generated now. */
export async function ensureMadeToken(home: Home): Promise<boolean> {
  if ((await readMadeToken(home)) !== '') return false;
  if (!isShared(home)) {
    await renewMadeToken(home);
    return true;
  }
  // Another process may make one at the same moment.
  const made = writeFile(home.token, newToken(), { flag: 'wx', mode: 0o600 });
  return made.then(() => true).catch(() => false);
}

const newToken = () => `${randomBytes(TOKEN_BYTES).toString('base64url')}\n`;

/** Replaces the token by a new one. */
export async function renewMadeToken(home: Home): Promise<string> {
  const token = newToken();
  await writeAtomic(home.token, token);
  return token.trim();
}

// Where the files of the program are: in the folder of package.json, in a checkout as in a package.

export const PACKAGE_ROOT = dirname(findPackageJSON(import.meta.url) ?? '');

export const WORKSPACE_TEMPLATE = join(PACKAGE_ROOT, 'workspace');
export const SHIPPED_SKILLS = join(PACKAGE_ROOT, 'skills');
/** agents/ and prompts/ of the supervisor. */
export const SHIPPED_AGENTS = join(PACKAGE_ROOT, 'config');
/** Starts the program that runs now. */
export const PROGRAM = join(PACKAGE_ROOT, 'bin', 'nanobot.js');
export const CONFIG_SCHEMA_FILE = join(PACKAGE_ROOT, 'config', 'config.schema.json');

export const programVersion = (): string => fromManifest('version');
/** As the registry knows it. */
export const programName = (): string => fromManifest('name');

function fromManifest(field: string): string {
  const manifest: unknown = JSON.parse(readFileSync(join(PACKAGE_ROOT, 'package.json'), 'utf8'));
  const value = typeof manifest === 'object' && manifest !== null && Reflect.get(manifest, field);
  return typeof value === 'string' ? value : '';
}
