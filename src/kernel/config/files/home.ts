// Where the state of a user lives: one folder, `~/.nanobot` unless NANOBOT_HOME moves it.

import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { writeAtomic } from '../../../lib/files/files.ts';

export type Home = {
  readonly root: string;
  readonly config: string;
  /** The last configuration that loaded, kept for a person to go back to. */
  readonly lastGoodConfig: string;
  readonly workspace: string;
  readonly state: string;
  readonly sessions: string;
  /** Full-text index; made anew from the files where it is missing. */
  readonly index: string;
  /** Files that came and went with messages. */
  readonly media: string;
  readonly logs: string;
  /** The gateway's token where the configuration has none. */
  readonly token: string;
  /** Held by the running gateway through a kernel lock. */
  readonly lock: string;
  /** Who the running gateway is: process id, address. */
  readonly runtime: string;
  /** A line for every model call. */
  readonly metrics: string;
  /** What a router decided, where that is wanted. */
  readonly traces: string;
  /** What was done with effects. */
  readonly audit: string;
  /** What skills from elsewhere were when they were added. */
  readonly skillPins: string;
  readonly history: string;
  /** Results of evaluations. */
  readonly eval: string;
  /** agents/ and prompts/ of the supervisor, beside those that come with the program. */
  readonly agents: string;
};

export function homeOf(env: Readonly<Record<string, string | undefined>>): Home {
  const root = resolve(env['NANOBOT_HOME'] || join(homedir(), '.nanobot'));
  return {
    root,
    config: join(root, 'config.json'),
    lastGoodConfig: join(root, 'config.last-good.json'),
    workspace: join(root, 'workspace'),
    state: join(root, 'state.db'),
    sessions: join(root, 'sessions'),
    index: join(root, 'index.db'),
    media: join(root, 'media'),
    logs: join(root, 'logs'),
    token: join(root, 'gateway-token'),
    lock: join(root, 'nanobot.lock'),
    runtime: join(root, 'gateway.json'),
    metrics: join(root, 'metrics.jsonl'),
    traces: join(root, 'traces'),
    audit: join(root, 'audit.jsonl'),
    skillPins: join(root, 'skills.json'),
    history: join(root, 'history'),
    eval: join(root, 'eval'),
    agents: join(root, 'config'),
  };
}

// The gateway's token where a person configured none: made at the first start and kept in a file of
// its own, so that the configuration can be shown and copied without it.

const TOKEN_BYTES = 32;

/** Empty where none was made yet. */
export async function readMadeToken(home: Home): Promise<string> {
  try {
    return (await readFile(home.token, 'utf8')).trim();
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return '';
    throw error;
  }
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
