// Where the state of a user lives: one folder, `~/.nanobot` unless NANOBOT_HOME moves it.

import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { findPackageJSON } from 'node:module';
import { homedir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { textIfThere, writeAtomic } from '../../../lib/files/files.ts';

/** Names of the files and folders below the root. */
const NAMES = {
  config: 'config.json',
  /** The last configuration that loaded, kept for a person to go back to. */
  lastGoodConfig: 'config.last-good.json',
  workspace: 'workspace',
  state: 'state.db',
  sessions: 'sessions',
  /** Full-text index; made anew from the files where it is missing. */
  index: 'index.db',
  /** Files that came and went with messages. */
  media: 'media',
  logs: 'logs',
  /** The gateway's token where the configuration has none. */
  token: 'gateway-token',
  /** Held by the running gateway through a kernel lock. */
  lock: 'nanobot.lock',
  /** Who the running gateway is: process id, address. */
  runtime: 'gateway.json',
  /** A line for every model call. */
  metrics: 'metrics.jsonl',
  /** What a router decided, where that is wanted. */
  traces: 'traces',
  /** What was done with effects. */
  audit: 'audit.jsonl',
  /** What skills from elsewhere were when they were added. */
  skillPins: 'skills.json',
  history: 'history',
  /** Results of evaluations. */
  eval: 'eval',
  /** agents/ and prompts/ of the supervisor, beside those that come with the program. */
  agents: 'config',
};

/** Their paths. */
export type Home = { readonly root: string } & { readonly [Name in keyof typeof NAMES]: string };

export function homeOf(env: Readonly<Record<string, string | undefined>>): Home {
  const root = resolve(env['NANOBOT_HOME'] || join(homedir(), '.nanobot'));
  const paths = Object.entries(NAMES).map(([name, file]) => [name, join(root, file)]);
  return { root, ...Object.fromEntries(paths) };
}

// The gateway's token where a person configured none: made at the first start and kept in a file of
// its own, so that the configuration can be shown and copied without it.

const TOKEN_BYTES = 32;

/** Empty where none was made yet. */
export async function readMadeToken(home: Home): Promise<string> {
  return ((await textIfThere(home.token)) ?? '').trim();
}

/** Makes the token where there is none; true where it was made now. */
export async function ensureMadeToken(home: Home): Promise<boolean> {
  if ((await readMadeToken(home)) !== '') return false;
  await renewMadeToken(home);
  return true;
}

/** Replaces the token by another one. */
export async function renewMadeToken(home: Home): Promise<string> {
  const token = randomBytes(TOKEN_BYTES).toString('base64url');
  await writeAtomic(home.token, `${token}\n`);
  return token;
}

// Where the files that come with the program lie: in the folder of package.json, in a checkout as in a package.

const PACKAGE_ROOT = dirname(findPackageJSON(import.meta.url) ?? '');

export const WORKSPACE_TEMPLATE = join(PACKAGE_ROOT, 'workspace');
export const SHIPPED_SKILLS = join(PACKAGE_ROOT, 'skills');
/** agents/ and prompts/ of the supervisor. */
export const SHIPPED_AGENTS = join(PACKAGE_ROOT, 'config');
export const CONFIG_SCHEMA_FILE = join(PACKAGE_ROOT, 'config', 'config.schema.json');

export function programVersion(): string {
  const manifest: unknown = JSON.parse(readFileSync(join(PACKAGE_ROOT, 'package.json'), 'utf8'));
  const named = typeof manifest === 'object' && manifest !== null && 'version' in manifest;
  return named ? String(manifest.version) : '';
}
