// Checks of the machine: Node, permissions of the home, time zone, disk space.

import { existsSync } from 'node:fs';
import { chmod, constants, stat, statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Environment } from '../../kernel/config/environment.ts';
import type { Home } from '../../kernel/config/files/home.ts';
import { isPermitted } from '../../lib/files/files.ts';
import { isContained } from '../../lib/process-group.ts';
import { t } from '../../lib/texts.ts';
import { machineZone } from '../../lib/time/zone-time.ts';
import type { Terminal } from '../terminal.ts';

const MINIMUM_NODE_MAJOR = 24;
const OTHERS = 0o077;
const PRIVATE_FOLDER = 0o700;
const PRIVATE_FILE = 0o600;
const MIN_FREE_BYTES = 100_000_000;
const LOW_FREE_BYTES = 1_000_000_000;
const MEGABYTE = 1_000_000;

export function checkNode(version: string): Finding {
  const isNew = Number.parseInt(version, 10) >= MINIMUM_NODE_MAJOR;
  if (isNew) return ok('node', t`Node ${version}`);
  return fail(
    'node',
    t`Node ${version} is too old`,
    t`Install Node ${MINIMUM_NODE_MAJOR} or newer.`,
  );
}

/** The home, and its files with secrets or conversations, must be readable by their user alone. */
export async function checkPermissions({ home, env }: Terminal): Promise<readonly Finding[]> {
  const folders = [home.root, home.sessions, home.logs];
  const own = [home.config, home.lastGoodConfig, home.state, home.token, home.history];
  const files = [...own, home.metrics, home.audit];
  const findings = [
    ...(await Promise.all(folders.map((path) => checkPrivate(path, PRIVATE_FOLDER, env)))),
    ...(await Promise.all(files.map((path) => checkPrivate(path, PRIVATE_FILE, env)))),
  ].flat();
  return findings.length > 0 ? findings : [ok('permissions', privacyText(home))];
}

const privacyText = ({ root }: Home) =>
  t`${root} ${existsSync(root) ? 'is' : t`will be`} private to this user`;

async function checkPrivate(
  path: string,
  mode: number,
  env: Environment,
): Promise<readonly Finding[]> {
  const found = await stat(path).catch(() => undefined);
  if (found === undefined || process.platform === 'win32' || (found.mode & OTHERS) === 0) return [];
  const isOurs = found.uid === process.getuid?.();
  // A volume belongs to the container engine that mounts it; access is by its group.
  if (!isOurs && isContained(env)) return [];
  const remedy = t`Run: nanobot doctor --fix, or: chmod ${mode.toString(8)} ${path}`;
  const finding = fail('permissions', t`other users can read ${path}`, remedy);
  return [{ ...finding, fix: () => chmod(path, mode) }];
}

/** Whether this user can write there; for a missing home, in its nearest existing parent. */
export async function checkHome({ root }: Home): Promise<readonly Finding[]> {
  const isThere = existsSync(root);
  const base = isThere ? root : nearestAbove(root);
  const remedy = t`Give it to the user who runs nanobot (chown), or set NANOBOT_HOME to another folder.`;
  if (!(await stat(base)).isDirectory()) {
    return [fail('home', t`${base} is a file, not a folder`, remedy)];
  }
  if (await isPermitted(base, constants.W_OK | constants.X_OK)) return [];
  const text = isThere ? t`cannot write to ${root}` : t`cannot create ${root} in ${base}`;
  return [fail('home', text, remedy)];
}

function nearestAbove(path: string): string {
  const above = dirname(path);
  return existsSync(above) || above === path ? above : nearestAbove(above);
}

/** @param written `sessions.timeZone`, which takes precedence */
export function checkTimeZone({ env }: Pick<Terminal, 'env'>, written: string): readonly Finding[] {
  const { TZ = '' } = env;
  // Loading the date formatters with all zones takes 6 MB, so they are used only for a named zone.
  if (written !== '' || TZ === '' || machineZone() !== undefined) return [];
  const text = t`TZ is "${TZ}", which is not a time zone; times are in UTC`;
  const remedy = t`Set TZ, or sessions.timeZone, to a zone such as Europe/Berlin.`;
  return [warn(t`time zone`, text, remedy)];
}

export async function checkDisk(home: Home): Promise<Finding> {
  const found = await statfs(home.root).catch(() => undefined);
  if (found === undefined) {
    return warn('disk', t`${home.root} does not exist yet`, t`Create it: nanobot onboard`);
  }
  const free = found.bavail * found.bsize;
  const text = `${Math.round(free / MEGABYTE).toLocaleString('en')} MB free`;
  if (free < MIN_FREE_BYTES)
    return fail('disk', text, t`Free disk space: without it messages cannot be stored.`);
  if (free < LOW_FREE_BYTES) return warn('disk', text, t`Free disk space before it runs out.`);
  return ok('disk', text);
}

// The result of one check.

export type Finding = {
  readonly check: string;
  readonly level: 'ok' | 'warn' | 'fail';
  readonly text: string;
  /** What to do, where there is something to do. */
  readonly remedy?: string;
  /** Fixes it; only local permissions. */
  readonly fix?: () => Promise<void>;
};

export const ok = (check: string, text: string): Finding => ({ check, level: 'ok', text });

const trouble =
  (level: 'warn' | 'fail') =>
  (check: string, text: string, remedy: string): Finding => ({ check, level, text, remedy });

export const warn = trouble('warn');
export const fail = trouble('fail');
