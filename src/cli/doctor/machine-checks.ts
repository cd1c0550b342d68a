// Checks of the machine and the files of the home: Node, permissions, time zone, disk space, what a
// kill left behind.

import { existsSync, lstatSync, statSync } from 'node:fs';
import { chmod, constants, readdir, rm, stat, statfs } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Environment } from '../../kernel/config/environment.ts';
import type { Home } from '../../kernel/config/files/home.ts';
import { isPermitted } from '../../lib/files/files.ts';
import { silentLogger } from '../../lib/logger.ts';
import { isContained } from '../../lib/process-group.ts';
import { t } from '../../lib/texts.ts';
import { isZoneUnknown } from '../../lib/time/zone-names.ts';
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
export async function checkPermissions({ home, env }: Machine): Promise<readonly Finding[]> {
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
  const fix = {
    text: t`make ${path} private (mode ${mode.toString(8)})`,
    run: () => chmod(path, mode),
  };
  return [fail('permissions', t`other users can read ${path}`, remedy, fix)];
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
export function checkTimeZone({ env }: Pick<Terminal, 'env'>, written: string): readonly Trouble[] {
  const { TZ = '' } = env;
  if (!isZoneUnknown(TZ, written)) return [];
  const text = t`TZ is "${TZ}", which is not a time zone; times are in UTC`;
  const remedy = t`Set TZ, or sessions.timeZone, to a zone such as Europe/Berlin.`;
  return [warn('time-zone', text, remedy)];
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

// Files of the home that a kill, a bad disk or an earlier version left behind.

const DAY_MS = 86_400_000;

/** Runs the work while no gateway can. @throws HomeLockedError */
async function withoutGateway(home: Home, work: () => Promise<void>): Promise<void> {
  const { holdHome } = await import('../../kernel/bus/store/home-lock.ts');
  const held = await holdHome(home.lock, { pid: process.pid });
  await work().finally(() => held[Symbol.asyncDispose]());
}

/** Rebuilds a damaged state.db as a start does. */
export const rebuildFix = ({ home, clock }: Machine, damage: string): Fix => ({
  text: t`rebuild ${home.state} from what can be read, its snapshots and the conversations`,
  run: () =>
    withoutGateway(home, async () => {
      const { recoverStore } = await import('../../kernel/recovery.ts');
      await recoverStore({ home, clock, log: silentLogger }, damage);
    }),
});

export async function checkFiles(machine: Machine): Promise<readonly Finding[]> {
  const { home } = machine;
  if (!existsSync(home.root)) return [];
  return [
    ...(await checkLock(home)),
    ...(await checkRecovered(home)),
    ...(await checkMigration(machine)),
    ...(await checkIndex(home)),
    ...(await checkTornFiles(home)),
    ...(await checkTemporary(machine)),
  ];
}

/** Folders that the gateway makes at its first start; without them it has nowhere to write. */
export function checkFolders({ home, env }: Machine, workspace: string): readonly Finding[] {
  const needed = [home.sessions, home.logs, home.media, workspace];
  const isThere = (path: string) => lstatSync(path, { throwIfNoEntry: false }) !== undefined;
  const isFolder = (path: string) => statSync(path, { throwIfNoEntry: false })?.isDirectory();
  const blocked = needed.filter((path) => isThere(path) && isFolder(path) !== true);
  if (blocked.length > 0) {
    const remedy = t`Move it away, or make what the link names available again.`;
    return blocked.map((path) =>
      fail('folders', t`${path} is a file, or a link to nothing`, remedy),
    );
  }
  const missing = [home.sessions, home.logs, workspace].filter((path) => !existsSync(path));
  if (!existsSync(home.state) || missing.length === 0) return [];
  const paths = missing.join(', ');
  return [
    warn('folders', t`missing: ${paths}`, t`Run: nanobot doctor --fix, or start the gateway.`, {
      text: t`create ${paths}`,
      async run() {
        const { openHome } = await import('../../kernel/config/files/first-run.ts');
        await openHome(home, env);
      },
    }),
  ];
}

/** A gateway holds the lock through the kernel: what is in the files means nothing without it. */
async function checkLock(home: Home): Promise<readonly Finding[]> {
  const { findHomeHolder, isLockDamaged } = await import('../../kernel/bus/store/home-lock.ts');
  const { findRunningGateway } = await import('../../kernel/home-state.ts');
  const remove = (paths: readonly string[]): Fix => ({
    text: t`delete ${paths.join(', ')}`,
    run: () => deleteAll(paths),
  });
  const remedy = t`Run: nanobot doctor --fix, or delete it.`;
  if (isLockDamaged(home.lock)) {
    const fix = remove([home.lock, `${home.lock}-journal`]);
    return [fail('lock', t`${home.lock} is damaged; no gateway can start`, remedy, fix)];
  }
  const isHeld = (await findRunningGateway(home)) ?? (await findHomeHolder(home.lock));
  const left = [home.runtime, `${home.lock}.json`].filter((path) => existsSync(path));
  if (isHeld !== undefined || left.length === 0) return [];
  const fix: Fix = {
    ...remove(left),
    async run() {
      const { refuseOlder } = await import('../../kernel/home-state.ts');
      await refuseOlder(home);
      await deleteAll(left);
    },
  };
  return [warn('lock', t`${left.join(', ')}: left by a gateway that was killed`, remedy, fix)];
}

async function deleteAll(paths: readonly string[]): Promise<void> {
  for (const path of paths) await rm(path, { force: true });
}

/** A person decides when the report was read and the damaged file is of no more use. */
async function checkRecovered({ state }: Home): Promise<readonly Finding[]> {
  const { recoveryReports } = await import('../../kernel/recovery.ts');
  return (await recoveryReports(state)).map((report) =>
    warn(
      'recovery',
      t`state.db was damaged and has been rebuilt: ${report}`,
      t`Read it, then move it and the damaged file of the same name away.`,
    ),
  );
}

async function checkMigration({ home, clock }: Machine): Promise<readonly Finding[]> {
  const { pendingMigrations } = await import('../../kernel/bus/store/database.ts');
  const steps = existsSync(home.state) ? pendingMigrations(home.state) : 0;
  if (steps === 0) return [];
  const remedy = t`Run: nanobot doctor --fix, or start the gateway. An older nanobot cannot read it then.`;
  const fix: Fix = {
    text: t`migrate ${home.state}`,
    async run() {
      const { openStore } = await import('../../kernel/home-state.ts');
      await (await openStore(home, { clock, log: silentLogger }))[Symbol.asyncDispose]();
    },
  };
  return [warn('schema', t`state.db is of an earlier version (${steps} steps)`, remedy, fix)];
}

async function checkIndex(home: Home): Promise<readonly Finding[]> {
  const { isIndexWhole } = await import('../../kernel/bus/store/file-index.ts');
  if (isIndexWhole(home.index)) return [];
  const files = ['', '-wal', '-shm'].map((suffix) => home.index + suffix);
  const remedy = t`Run: nanobot doctor --fix, or delete it while the gateway is stopped; it is rebuilt.`;
  return [
    warn('index', t`${home.index} is damaged; earlier conversations are not found`, remedy, {
      text: t`delete ${home.index}; the gateway builds it again`,
      run: () => withoutGateway(home, () => deleteAll(files)),
    }),
  ];
}

/** Ends of files that a kill or a full disk cut off: read of the end of each file only. */
async function checkTornFiles(home: Home): Promise<readonly Finding[]> {
  const { storedFiles } = await import('../../kernel/sessions/catalog.ts');
  const { isCutOff, repairFile, scanFile } = await import('../../kernel/sessions/file-lines.ts');
  const files = (await storedFiles(home.sessions)).map(({ path }) => path);
  const torn: string[] = [];
  for (const path of files) if (await isCutOff(path).catch(() => false)) torn.push(path);
  if (torn.length === 0) return [];
  const remedy = t`Run: nanobot doctor --fix. The gateway does the same when it next reads the conversation.`;
  return [
    warn('conversations', t`${torn.length} files end within a line: ${torn.join(', ')}`, remedy, {
      text: t`complete ${torn.length} files; what cannot be read is kept beside them as .damaged`,
      run: () =>
        withoutGateway(home, async () => {
          for (const path of torn) await repairFile(path, await scanFile(path));
        }),
    }),
  ];
}

/** What a write that was killed left: names of `writeAtomic`, copies of state.db. */
const TEMPORARY = /^(?:\..+\.[0-9a-f-]{36}\.tmp|.+\.(?:snapshot-new|recovering)(?:-\w+)*)$/;

async function checkTemporary({ home, clock }: Machine): Promise<readonly Finding[]> {
  const old: string[] = [];
  for (const folder of [home.root, home.sessions, home.media]) {
    for (const name of await readdir(folder).catch((): string[] => [])) {
      const path = join(folder, name);
      const info = TEMPORARY.test(name) ? await stat(path).catch(() => undefined) : undefined;
      if (info?.isFile() && clock.now() - info.mtimeMs > DAY_MS) old.push(path);
    }
  }
  if (old.length === 0) return [];
  const remedy = t`Run: nanobot doctor --fix, or delete them.`;
  const fix: Fix = { text: t`delete ${old.length} temporary files`, run: () => deleteAll(old) };
  return [warn('temporary', t`older than a day: ${old.join(', ')}`, remedy, fix)];
}

// The result of one check.

/** What a fix does, in one line, and doing it. @throws where it cannot be done */
export type Fix = { readonly text: string; run(): Promise<void> };

type Fine = {
  /** The name of the check, the same in every language. */
  readonly check: string;
  readonly level: 'ok';
  readonly text: string;
  readonly remedy?: never;
  readonly fix?: never;
};
export type Trouble = {
  readonly check: string;
  readonly level: 'warn' | 'fail';
  readonly text: string;
  /** What to do. */
  readonly remedy: string;
  /** What `--fix` does; only what loses nothing. */
  readonly fix?: Fix;
};
export type Finding = Fine | Trouble;

export const ok = (check: string, text: string): Finding => ({ check, level: 'ok', text });

const trouble =
  (level: 'warn' | 'fail') =>
  (check: string, text: string, remedy: string, fix?: Fix): Trouble => ({
    ...{ check, level, text, remedy },
    ...(fix === undefined ? {} : { fix }),
  });

export const warn = trouble('warn');
export const fail = trouble('fail');

/** What the checks need; without a terminal too. */
export type Machine = Pick<Terminal, 'home' | 'env' | 'clock'>;
