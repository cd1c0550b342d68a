// Restores a back-up, and proves one: it is restored into a temporary folder, a gateway starts
// there without contact to anything, and its counts are compared. What is restored is complete
// before it takes the place of what is there; each step can be repeated after a kill.

import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { constants, mkdir, mkdtemp, readdir, realpath, rename, rm } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { z } from 'zod';
import { holdHome } from '../../kernel/bus/store/home-lock.ts';
import type { Environment } from '../../kernel/config/environment.ts';
import { type Home, homeOf } from '../../kernel/config/files/home.ts';
import { isJsonObject, readJson } from '../../kernel/config/json.ts';
import { valueAt, withValue } from '../../kernel/config/json-paths.ts';
import { isAlive } from '../../kernel/home-state.ts';
import { type Instance, readInstance, writeInstance } from '../../kernel/instance.ts';
import {
  isPermitted,
  makeFolder,
  syncFolder,
  textIfThere,
  writeAtomic,
} from '../../lib/files/files.ts';
import { parseJson } from '../../lib/json/json.ts';
import { t } from '../../lib/texts.ts';
import { type Counts, type ListHead, listHeadShape, type UnpackOptions, unpack } from './pack.ts';
import { type Place, placeError, requireRoom, writing } from './places.ts';
import { type Snapshot, snapshots } from './repository.ts';

/** @param id a start of it is enough; undefined: the newest. @throws NanobotError */
export async function findSnapshot(place: Place, id: string | undefined): Promise<Snapshot> {
  const all = await snapshots(place);
  const found = id === undefined ? all.slice(-1) : all.filter((one) => one.id.startsWith(id));
  const [only] = found;
  if (only !== undefined && found.length === 1) return only;
  throw placeError(
    'backup_not_found',
    all.length === 0
      ? t`there are no back-ups in ${place.name}`
      : t`"${id}" names ${found.length} back-ups in ${place.name}. List: nanobot backup list`,
  );
}

const FOLDER_MODE = 0o700;
const OURS = constants.R_OK | constants.W_OK | constants.X_OK;

/** Writes the files of the back-up into an empty folder. */
async function fill(folder: string, snapshot: Snapshot, options: UnpackOptions): Promise<ListHead> {
  await requireRoom(folder, snapshot.bytes, t`the files of the back-up`);
  const head = await unpack(folder, snapshot, options);
  await keepWorkspaceInside(folder);
  return head;
}

/** The workspace is restored in the home; the original one may be in use elsewhere. */
async function keepWorkspaceInside(folder: string): Promise<void> {
  for (const name of ['config.json', 'config.last-good.json']) {
    const path = join(folder, name);
    const written = await textIfThere(path);
    if (written === undefined) continue;
    const raw = rawOf(written);
    if (raw === undefined || !valueAt(raw, WORKSPACE)) continue;
    const inside = withValue(raw, WORKSPACE, '');
    await writeAtomic(path, `${JSON.stringify(inside, undefined, 2)}\n`);
  }
}

const WORKSPACE = 'agents.defaults.workspace';

function rawOf(written: string) {
  try {
    const { value } = readJson(written);
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

// Restoring.

export type RestoreOptions = UnpackOptions & {
  readonly id?: string | undefined;
  readonly into: Home;
  /** What is in the home is set aside. */
  readonly force?: boolean | undefined;
  /** Accounts that exist only once run here from now on. */
  readonly takesOver?: boolean | undefined;
};

export type Restored = Pick<Snapshot, 'id' | 'at' | 'files' | 'bytes'> & {
  /** Where the earlier content of the home is. */
  readonly setAside: string | undefined;
  /** Accounts that exist only once stay off here. */
  readonly isHeld: boolean;
  readonly counts: Counts;
};

/** Belongs to who holds the home now. */
const STAYS = ['nanobot.lock', 'nanobot.lock.json', 'nanobot.lock-journal'];
const PLAN = 'complete.json';
const CONTENT = 'home';

const planShape = z.object({
  setAside: z.string().optional(),
  old: z.array(z.string()),
  instance: z.object({
    id: z.string(),
    epoch: z.int(),
    held: z.object({ at: z.string(), elsewhere: z.string().optional() }).optional(),
  }),
  original: z.string().optional(),
  facts: z.object({ id: z.string(), at: z.string(), files: z.number(), bytes: z.number() }),
  counts: listHeadShape.shape.counts,
});

type Plan = Readonly<z.infer<typeof planShape>>;

/** @throws HomeLockedError if a gateway runs there; NanobotError if the home is not empty */
export async function restoreBackup(options: RestoreOptions): Promise<Restored> {
  const { into } = options;
  await makeFolder(into.root);
  await using _held = await holdHome(into.lock, { pid: process.pid });
  const snapshot = await findSnapshot(options.place, options.id);
  const begun = await readPlan(into);
  // What was begun with another back-up would bring back an earlier state.
  const isSame = begun?.facts.id === snapshot.id;
  return await carryOut(into, isSame ? begun : await stage(options, snapshot));
}

async function readPlan({ restoring }: Home): Promise<Plan | undefined> {
  const written = await textIfThere(join(restoring, PLAN));
  return written === undefined ? undefined : planShape.safeParse(parseJson(written)).data;
}

async function contentOf(home: Home): Promise<readonly string[]> {
  const names = await readdir(home.root);
  const isContent = (name: string) =>
    !STAYS.includes(name) &&
    !name.startsWith('before-restore-') &&
    join(home.root, name) !== home.restoring;
  return names.filter(isContent);
}

/** @throws NanobotError if there is something, and no restore that is to be continued */
export async function refuseUnlessEmpty(into: Home, force: boolean): Promise<void> {
  if (force || !existsSync(into.root) || (await readPlan(into)) !== undefined) return;
  if ((await contentOf(into)).length === 0) return;
  throw placeError(
    'home_not_empty',
    t`${into.root} is not empty. Restore into another folder (--into), or add --force: ` +
      t`what is there is set aside, not deleted.`,
  );
}

/** What a failed restore had written; not if only the last steps are missing. */
export async function discardStaged(into: Home): Promise<void> {
  if ((await readPlan(into)) === undefined) {
    await rm(into.restoring, { recursive: true, force: true });
  }
}

/** Writes everything beside the content of the home, and what is to be done then. */
async function stage(options: RestoreOptions, snapshot: Snapshot): Promise<Plan> {
  const { into, force, takesOver } = options;
  await refuseUnlessEmpty(into, force === true);
  const old = await contentOf(into);
  const content = join(into.restoring, CONTENT);
  await rm(join(into.restoring, PLAN), { force: true });
  await rm(content, { recursive: true, force: true });
  await mkdir(content, { recursive: true, mode: FOLDER_MODE });
  const head = await writing(into.root, () => fill(content, snapshot, options));
  const before = await readInstance(into).catch(() => undefined);
  // Of the home that is replaced the accounts continue here.
  const isSameHome =
    before?.id === snapshot.home && before.moved === undefined && before.held === undefined;
  const isHeld = takesOver !== true && !isSameHome;
  const at = new Date().toISOString();
  // Of another user it is as invisible as of another machine.
  const isHere = head.host === hostname() && (await isPermitted(head.root, OURS));
  const original = isHere && head.root !== (await realpath(into.root)) ? head.root : undefined;
  const { files, bytes } = snapshot;
  const plan: Plan = {
    ...(old.length === 0 ? {} : { setAside: `before-restore-${at.replace(/[:.]/g, '-')}` }),
    old: [...old],
    instance: {
      id: snapshot.home,
      epoch: Math.max(head.epoch, before?.epoch ?? 1),
      ...(isHeld ? { held: { at, ...(original && { elsewhere: original }) } } : {}),
    },
    ...(original && takesOver === true ? { original } : {}),
    facts: { id: snapshot.id, at: snapshot.at, files, bytes },
    counts: head.counts,
  };
  await writeAtomic(join(into.restoring, PLAN), JSON.stringify(plan));
  return plan;
}

/** Each step leaves out what an interrupted one did. */
async function carryOut(into: Home, plan: Plan): Promise<Restored> {
  const content = join(into.restoring, CONTENT);
  const { setAside, old, instance, original, facts, counts } = plan;
  if (setAside !== undefined) {
    const aside = join(into.root, setAside);
    await mkdir(aside, { recursive: true, mode: FOLDER_MODE });
    for (const name of old) {
      const from = join(into.root, name);
      if (existsSync(from) && !existsSync(join(aside, name))) await rename(from, join(aside, name));
    }
  }
  const names = await readdir(content).catch((): string[] => []);
  for (const name of names) await rename(join(content, name), join(into.root, name));
  await writeInstance(into, instance);
  if (original !== undefined) await holdAccounts(homeOf({ NANOBOT_HOME: original }), into.root);
  // Not part of a back-up.
  await mkdir(into.logs, { recursive: true, mode: FOLDER_MODE });
  await syncFolder(into.root);
  await rm(into.restoring, { recursive: true, force: true });
  const isHeld = instance.held !== undefined;
  return { ...facts, setAside: setAside && join(into.root, setAside), isHeld, counts };
}

/** In the home that another one takes over from. */
async function holdAccounts(home: Home, elsewhere: string): Promise<void> {
  const instance = await readInstance(home);
  if (instance === undefined) return;
  await writeInstance(home, { ...instance, held: { at: new Date().toISOString(), elsewhere } });
}

/** The accounts that exist only once run in this home from now on. */
export async function takeOver(home: Home): Promise<Instance | undefined> {
  const instance = await readInstance(home);
  if (instance?.held === undefined) return instance;
  const { held, ...rest } = instance;
  if (held.elsewhere !== undefined && held.elsewhere !== home.root) {
    await holdAccounts(homeOf({ NANOBOT_HOME: held.elsewhere }), home.root).catch(() => undefined);
  }
  return writeInstance(home, rest);
}

// The trial.

const TRIAL_TIMEOUT_MS = 180_000;
const SAID_CHARS = 2000;

export type TrialResult =
  | {
      readonly ok: true;
      readonly version: string;
      /** Before features took over rows of earlier versions. */
      readonly stored: Counts;
      /** In the started gateway. */
      readonly counts: Counts;
    }
  | { readonly ok: false; readonly reason: string };

const countsShape = listHeadShape.shape.counts;
const trialShape = z.object({ version: z.string(), stored: countsShape, counts: countsShape });

/**
 * Starts the program in a copy of a home, where it answers one message by the demo model and ends.
 * @param command the program, e.g. `[process.execPath, 'bin/nanobot.js']`
 */
export async function trialStart(options: {
  readonly command: readonly string[];
  readonly home: string;
  readonly env: Environment;
  readonly signal: AbortSignal;
}): Promise<TrialResult> {
  const { command, home, env, signal } = options;
  const [program = '', ...args] = command;
  const child = spawn(program, [...args, 'gateway', '--trial'], {
    env: { ...env, NANOBOT_HOME: home },
    stdio: ['ignore', 'pipe', 'pipe'],
    signal: AbortSignal.any([signal, AbortSignal.timeout(TRIAL_TIMEOUT_MS)]),
    killSignal: 'SIGKILL',
  });
  const ended = new Promise<string>((done) => {
    child.once('error', ({ message }) => done(message));
    child.once('close', (code, killed) =>
      done(code === 0 ? '' : t`it ended with ${killed ?? code}`),
    );
  });
  const [problem, stdout, stderr] = await Promise.all([
    ended,
    text(child.stdout),
    text(child.stderr),
  ]);
  signal.throwIfAborted();
  const said = trialShape.safeParse(parseJson(stdout.trim().split('\n').at(-1) ?? '')).data;
  if (problem === '' && said !== undefined) return { ok: true, ...said };
  const reason = stderr.trim().slice(-SAID_CHARS) || problem || t`it did not say its counts`;
  return { ok: false, reason };
}

// The proof.

export type Verified = Pick<Snapshot, 'id' | 'at' | 'files' | 'bytes'> &
  (
    | { readonly ok: true; readonly counts: Counts; readonly version: string }
    | { readonly ok: false; readonly problems: readonly string[] }
  );

export type VerifyOptions = UnpackOptions & {
  readonly id?: string | undefined;
  /** The program that is tried. */
  readonly command: readonly string[];
  readonly env: Environment;
  /** An existing folder with room for all files. */
  readonly temp: string;
};

const TRIAL_FOLDER = 'nanobot-verify-';

/** Copies of homes whose trial was killed. */
async function removeLeft(temp: string): Promise<void> {
  for (const name of await readdir(temp)) {
    const [, pid] = name.startsWith(TRIAL_FOLDER) ? (/^\D+(\d+)-/.exec(name) ?? []) : [];
    if (pid === undefined || isAlive(Number(pid))) continue;
    await rm(join(temp, name), { recursive: true, force: true }).catch(() => undefined);
  }
}

/** @throws NanobotError if the back-up is damaged or cannot be read */
export async function verifyBackup(options: VerifyOptions): Promise<Verified> {
  const { place, id, command, env, signal, temp } = options;
  const snapshot = await findSnapshot(place, id);
  await mkdir(temp, { recursive: true, mode: FOLDER_MODE });
  await removeLeft(temp);
  const folder = await mkdtemp(join(temp, `${TRIAL_FOLDER}${process.pid}-`));
  try {
    const { counts: expected } = await fill(folder, snapshot, options);
    const { files, bytes, at } = snapshot;
    const facts = { id: snapshot.id, at, files, bytes };
    const trial = await trialStart({ command, home: folder, env, signal });
    if (!trial.ok) return { ...facts, ok: false, problems: [trial.reason] };
    const problems = [
      ...differences(expected, trial.stored),
      // Features take over rows of earlier versions at the start, so their rows may become fewer.
      ...differences({ ...expected, rows: {} }, trial.counts),
    ];
    if (problems.length > 0) return { ...facts, ok: false, problems };
    return { ...facts, ok: true, counts: trial.counts, version: trial.version };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** What is missing; a start may add rows. */
export function differences(expected: Counts, found: Counts): readonly string[] {
  const fewer = (what: string, before: number, now: number) =>
    now < before ? [t`${what}: ${before} in the back-up, ${now} after the start`] : [];
  return [
    ...fewer(t`messages`, expected.messages, found.messages),
    ...fewer(t`sessions`, expected.sessions, found.sessions),
    ...Object.entries(expected.rows).flatMap(([scope, rows]) =>
      fewer(t`rows of "${scope}"`, rows, found.rows[scope] ?? 0),
    ),
  ];
}
