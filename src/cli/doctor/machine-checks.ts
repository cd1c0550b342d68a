// What the doctor asks of the machine: Node, the home's permissions, room on the disk.

import { existsSync } from 'node:fs';
import { chmod, constants, stat, statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Environment } from '../../kernel/config/environment.ts';
import type { Home } from '../../kernel/config/files/home.ts';
import { isPermitted } from '../../lib/files/files.ts';
import { isContained } from '../../lib/surroundings.ts';
import { machineZone } from '../../lib/time/zone-time.ts';
import type { Terminal } from '../terminal.ts';
import { type Finding, fail, ok, warn } from './finding.ts';

const MINIMUM_NODE_MAJOR = 24;
const OTHERS = 0o077;
const PRIVATE_FOLDER = 0o700;
const PRIVATE_FILE = 0o600;
const MIN_FREE_BYTES = 100_000_000;
const LOW_FREE_BYTES = 1_000_000_000;
const MEGABYTE = 1_000_000;

export function checkNode(version: string): Finding {
  const isNew = Number.parseInt(version, 10) >= MINIMUM_NODE_MAJOR;
  if (isNew) return ok('node', `Node ${version}`);
  return fail('node', `Node ${version} is too old`, `Install Node ${MINIMUM_NODE_MAJOR} or newer.`);
}

/** The home and what in it holds secrets or conversations must be its user's alone. */
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

const privacyText = ({ root }: Home) => `${root} ${existsSync(root) ? 'is' : 'will be'} private`;

async function checkPrivate(
  path: string,
  mode: number,
  env: Environment,
): Promise<readonly Finding[]> {
  const found = await stat(path).catch(() => undefined);
  if (found === undefined || process.platform === 'win32' || (found.mode & OTHERS) === 0) return [];
  const isOurs = found.uid === process.getuid?.();
  // A volume belongs to the engine that mounts it, and is reached by its group.
  if (!isOurs && isContained(env)) return [];
  const remedy = `nanobot doctor --fix, or chmod ${mode.toString(8)} ${path}`;
  const finding = fail('permissions', `other users can reach ${path}`, remedy);
  return [{ ...finding, fix: () => chmod(path, mode) }];
}

/** Whether this user can keep anything there; the nearest folder above a home that is still to be made. */
export async function checkHome({ root }: Home): Promise<readonly Finding[]> {
  const isThere = existsSync(root);
  const base = isThere ? root : nearestAbove(root);
  const remedy = 'Give it to the user who runs nanobot, or choose another home with NANOBOT_HOME.';
  if (!(await stat(base)).isDirectory()) {
    return [fail('home', `${base} is a file, and a folder is needed`, remedy)];
  }
  if (await isPermitted(base, constants.W_OK | constants.X_OK)) return [];
  const text = isThere ? `${root} cannot be written` : `${root} cannot be made below ${base}`;
  return [fail('home', text, remedy)];
}

function nearestAbove(path: string): string {
  const above = dirname(path);
  return existsSync(above) || above === path ? above : nearestAbove(above);
}

/** @param written `sessions.timeZone`, which counts more */
export function checkTimeZone({ env }: Pick<Terminal, 'env'>, written: string): readonly Finding[] {
  if (written !== '' || machineZone() !== undefined) return [];
  const text = `TZ is "${env['TZ'] ?? ''}", which is no time zone: times are read and told in UTC`;
  const remedy = 'Set TZ, or sessions.timeZone, to a zone such as Europe/Berlin.';
  return [warn('time zone', text, remedy)];
}

export async function checkDisk(home: Home): Promise<Finding> {
  const found = await statfs(home.root).catch(() => undefined);
  if (found === undefined) {
    return warn(
      'disk',
      `${home.root} does not exist yet`,
      'Run "nanobot onboard" or "nanobot gateway".',
    );
  }
  const free = found.bavail * found.bsize;
  const text = `${Math.round(free / MEGABYTE).toLocaleString('en')} MB free`;
  if (free < MIN_FREE_BYTES)
    return fail('disk', text, 'Make room: without it messages cannot be kept.');
  if (free < LOW_FREE_BYTES) return warn('disk', text, 'Make room before it runs out.');
  return ok('disk', text);
}
