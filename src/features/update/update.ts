// Puts another version in the place of this one, in steps that are recorded before they are taken:
//
//   preparing   a verified back-up; the version beside this one; its start in a copy of the home
//   stopping    the gateway stops; the files that a migration changes are kept
//   switched    the version takes the place of the other; the gateway starts
//   watching    the gateway has to stay healthy for a while -> done
//   rolling-back, restoring   the version of before takes its place again -> rolled-back
//
// A kill while it prepares leaves what was; later, `nanobot update` continues. The home is never
// taken back behind a message: if the new version migrated it and messages came since, both stay
// and the owner decides (`kept`).

import { existsSync } from 'node:fs';
import { cp, mkdir, readFile, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { z } from 'zod';
import { wayBack } from '../../cli/explain-error.ts';
import { findHomeHolder } from '../../kernel/bus/store/home-lock.ts';
import { type StoreMark, storeMark } from '../../kernel/bus/store/store-copy.ts';
import type { Environment } from '../../kernel/config/environment.ts';
import { type Home, programVersion } from '../../kernel/config/files/home.ts';
import { askGateway, findRunningGateway } from '../../kernel/home-state.ts';
import { NanobotError } from '../../kernel/message/errors.ts';
import { syncFolder, textIfThere, writeAtomic } from '../../lib/files/files.ts';
import { parseJson } from '../../lib/json/json.ts';
import { t } from '../../lib/texts.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { createBackup, openPlace, type Place, verifyBackup } from '../backup/index.ts';
import type { Installation } from './installation.ts';

const LOOK_MS = 500;
/** Until a started gateway answers, and until a stopped one has left its home. */
const START_MS = 90_000;
const STOP_MS = 120_000;

const runShape = z.object({
  step: z.enum([
    ...['preparing', 'stopping', 'switched', 'watching', 'rolling-back', 'restoring'],
    ...['done', 'rolled-back', 'kept'],
  ] as const),
  from: z.string(),
  to: z.string(),
  /** The folder of the versions. */
  prefix: z.string(),
  /** Epoch milliseconds. */
  at: z.number(),
  /** The process that carries it out. */
  pid: z.number(),
  backup: z.object({ place: z.string(), id: z.string() }).optional(),
  /** Undefined until the gateway stopped. */
  store: z.object({ schema: z.number(), traffic: z.string() }).optional(),
  /** Channels that ran; undefined if no gateway did. */
  channels: z.array(z.string()).optional(),
  /** Why it was rolled back. */
  reason: z.string().optional(),
  /** The owner knows how it ended. */
  told: z.boolean().optional(),
});

export type UpdateRun = Readonly<z.infer<typeof runShape>>;

export async function readRun(home: Home): Promise<UpdateRun | undefined> {
  const written = await textIfThere(home.update);
  return written === undefined ? undefined : runShape.safeParse(parseJson(written)).data;
}

export const writeRun = (home: Home, run: UpdateRun): Promise<void> =>
  writeAtomic(home.update, `${JSON.stringify(run, undefined, 2)}\n`);

const OVER: readonly UpdateRun['step'][] = ['done', 'rolled-back', 'kept'];
export const isOver = ({ step }: UpdateRun): boolean => OVER.includes(step);
/** From here on a kill needs a continuation. */
export const isBegun = (run: UpdateRun) => !isOver(run) && run.step !== 'preparing';

/** What starts and stops the gateway. */
export type GatewayService = {
  readonly name: string;
  start(): Promise<void>;
  stop(): Promise<void>;
};

export type UpdateDeps = {
  readonly home: Home;
  readonly env: Environment;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly installation: Installation;
  readonly service: GatewayService | undefined;
  /** The gateway's token. */
  readonly token: string;
  /** For the time after the start. */
  readonly watchMs: number;
  tell(line: string): void;
};

/** The version that is installed there now; this program is another one where it updates a foreign installation. */
type Versions = { readonly from: string; readonly to: string };

/** @throws NanobotError if nothing was changed */
export async function update(deps: UpdateDeps, versions: Versions): Promise<UpdateRun> {
  const { home, installation, service, clock } = deps;
  const before = await readRun(home);
  // The link may lead to either version then.
  if (before !== undefined && isBegun(before)) {
    deps.tell(t`An interrupted update to ${before.to} continues.`);
    return goOn(deps, before);
  }
  const holder = await findHomeHolder(home.lock);
  if (holder !== undefined && service === undefined) {
    throw new NanobotError(
      'update_gateway_runs',
      t`the gateway (process ${holder['pid'] ?? '?'}) was started by hand. Stop it and repeat this, ` +
        t`or let it run as a service: nanobot service install`,
    );
  }
  const run: UpdateRun = {
    ...{ step: 'preparing', ...versions, prefix: installation.prefix },
    ...{ at: clock.now(), pid: process.pid },
  };
  await writeRun(home, run);
  const backup = await prepare(deps, run);
  const channels = await runningChannels(deps);
  return goOn(deps, { ...run, step: 'stopping', backup, ...(channels && { channels }) });
}

/** Changes neither what runs nor the home. */
async function prepare(deps: UpdateDeps, versions: Versions) {
  const { home, env } = deps;
  const folder = `${home.root}-backups`;
  const place = await openPlace(folder, { env, s3: NO_S3, proxy: '' });
  try {
    return { place: folder, id: await proved(deps, versions, place) };
  } finally {
    await place[Symbol.asyncDispose]();
  }
}

/** The id of a back-up from which both versions start. */
async function proved(deps: UpdateDeps, { to, from }: Versions, place: Place): Promise<string> {
  const { home, env, signal, installation, tell } = deps;
  const made = await createBackup({ home, place, signal });
  tell(t`Back-up ${made.id} is in ${place.name}.`);
  const trial = async (program: string) => {
    const command = [process.execPath, program];
    const common = { place, id: made.id, env, signal, temp: dirname(home.root) };
    const unlock = () => Promise.reject(notEncrypted(place.name));
    return verifyBackup({ ...common, command, unlock });
  };
  if (from === programVersion()) {
    const proof = await trial(process.argv[1] ?? '');
    if (!proof.ok) throw refused(t`the back-up does not start: ${proof.problems.join('; ')}`);
  }
  await installation.install(to, env, signal);
  const program = installation.program(to) ?? '';
  const tried = await trial(program);
  if (tried.ok && tried.version === to) {
    tell(t`Version ${to} started on a copy of the home and answered.`);
    return made.id;
  }
  const problem = tried.ok ? t`it says that it is ${tried.version}` : tried.problems.join('; ');
  throw refused(t`version ${to} does not start on a copy of this home: ${problem}`);
}

const NO_S3 = { endpoint: '', region: '', accessKeyId: '', secretAccessKey: '' };

const notEncrypted = (folder: string) =>
  new NanobotError('backup_locked', t`${folder} contains encrypted back-ups. Move it away.`);

const refused = (problem: string) =>
  new NanobotError('update_refused', t`${problem}. Nothing was changed.`);

/** Takes the steps that are left. */
async function goOn(deps: UpdateDeps, begun: UpdateRun): Promise<UpdateRun> {
  const { home } = deps;
  let run: UpdateRun = { ...begun, pid: process.pid };
  const reach = async (step: UpdateRun['step'], facts: Partial<UpdateRun> = {}) => {
    run = { ...run, ...facts, step };
    await writeRun(home, run);
  };
  try {
    if (run.step === 'stopping') {
      await reach('stopping');
      await stopGateway(deps);
      await reach('stopping', { store: run.store ?? (await keepFiles(home)) });
      await deps.installation.switchTo(run.to, run.from);
      await reach('switched');
    }
    if (run.step === 'switched' || run.step === 'watching') {
      await deps.service?.start();
      await reach('watching');
      const reason = await watch(deps, run);
      if (reason === undefined) await reach('done');
      else await reach('rolling-back', { reason });
    }
  } catch (error) {
    if (deps.signal.aborted) throw error;
    const reason = error instanceof Error ? error.message : String(error);
    deps.tell(t`The update failed: ${reason}`);
    // A full disk cannot record it; the steps back can be taken without.
    await reach('rolling-back', { reason }).catch(() => undefined);
  }
  if (run.step === 'rolling-back' || run.step === 'restoring') run = await goBack(deps, run);
  await rm(home.beforeUpdate, { recursive: true, force: true });
  await deps.installation.keepOnly([run.from, run.to]);
  return run;
}

/** The version of before takes its place again, unless the home would lose messages. */
async function goBack(deps: UpdateDeps, run: UpdateRun): Promise<UpdateRun> {
  const { home, installation, service } = deps;
  const isMigrated = () => run.store !== undefined && markOf(home).schema !== run.store.schema;
  await stopGateway(deps);
  if (run.step !== 'restoring' && isMigrated() && markOf(home).traffic !== run.store?.traffic) {
    const kept: UpdateRun = { ...run, step: 'kept' };
    await writeRun(home, kept);
    await service?.start();
    return kept;
  }
  const steps = { ...run, step: 'restoring' } as const;
  const record = (next: UpdateRun) => writeRun(home, next).catch(() => undefined);
  if (run.step === 'restoring' || isMigrated()) {
    await record(steps);
    await putBack(home);
  }
  await installation.switchTo(run.from, run.to);
  const over: UpdateRun = { ...run, step: 'rolled-back' };
  await writeRun(home, over).catch((error: Error) => deps.tell(error.message));
  await service?.start();
  return over;
}

async function stopGateway({ home, service, clock, signal }: UpdateDeps): Promise<void> {
  await service?.stop();
  const until = clock.monotonic() + STOP_MS;
  while ((await findHomeHolder(home.lock)) !== undefined) {
    if (clock.monotonic() > until) {
      throw new NanobotError('update_not_stopped', t`the gateway does not stop`);
    }
    await clock.sleep(LOOK_MS, signal);
  }
}

// The files of the home that a migration changes.

const NOTHING: StoreMark = { schema: 0, traffic: '' };
const markOf = ({ state }: Home) => (existsSync(state) ? storeMark(state) : NOTHING);

const migratedFiles = (home: Home): readonly string[] => {
  const store = ['', '-wal', '-shm'].map((end) => `${home.state}${end}`);
  return [...store, home.config, home.lastGoodConfig];
};

/** Complete before it has its name. */
async function keepFiles(home: Home): Promise<StoreMark> {
  const partial = `${home.beforeUpdate}.new`;
  await rm(partial, { recursive: true, force: true });
  await mkdir(partial, { mode: 0o700 });
  const mark = markOf(home);
  for (const path of migratedFiles(home).filter(existsSync)) {
    await cp(path, join(partial, basename(path)), { preserveTimestamps: true });
  }
  await rm(home.beforeUpdate, { recursive: true, force: true });
  await rename(partial, home.beforeUpdate);
  await syncFolder(home.root);
  return mark;
}

/** Can be repeated: what is put back stays kept. */
async function putBack(home: Home): Promise<void> {
  for (const path of migratedFiles(home)) {
    const kept = join(home.beforeUpdate, basename(path));
    if (!existsSync(kept)) await rm(path, { force: true });
    else await writeAtomic(path, await readFile(kept));
  }
}

// Health.

const statusShape = z.object({
  version: z.string().optional(),
  channels: z.array(z.object({ name: z.string(), status: z.object({ kind: z.string() }) })),
});

async function gatewayNow({ home, token }: UpdateDeps) {
  const running = await findRunningGateway(home);
  if (running === undefined) return 'ended';
  const status = statusShape.safeParse(await askGateway(running, '/api/status', token)).data;
  return status && { pid: running.pid, ...status };
}

async function runningChannels(deps: UpdateDeps): Promise<string[] | undefined> {
  const now = await gatewayNow(deps);
  if (now === 'ended') return undefined;
  return now?.channels.filter(({ status }) => status.kind === 'running').map(({ name }) => name);
}

/** Why the new version has to go, or undefined. */
async function watch(deps: UpdateDeps, { to, channels }: UpdateRun): Promise<string | undefined> {
  const { clock, signal, service, watchMs, tell } = deps;
  if (service === undefined) return undefined;
  tell(t`Version ${to} starts; it is watched for ${Math.round(watchMs / 1000)} s.`);
  const started = clock.monotonic();
  let pid: number | undefined;
  let readyAt = started;
  let silentSince: number | undefined;
  for (;;) {
    const at = clock.monotonic();
    const now = await gatewayNow(deps);
    if (now === 'ended' && pid !== undefined) return t`the gateway ended by itself`;
    if (now === undefined || now === 'ended') {
      silentSince ??= at;
      if (at - silentSince > START_MS) return t`the gateway does not answer`;
    } else {
      silentSince = undefined;
      if (now.version !== undefined && now.version !== to) {
        return t`the service starts version ${now.version}`;
      }
      if (pid === undefined) readyAt = at;
      pid ??= now.pid;
      if (now.pid !== pid) return t`the gateway ended and was started again`;
      if (at - readyAt >= watchMs) return downChannels(channels, now.channels);
    }
    await clock.sleep(LOOK_MS, signal);
  }
}

function downChannels(
  before: readonly string[] = [],
  now: z.infer<typeof statusShape>['channels'],
): string | undefined {
  const isUp = (name: string) =>
    now.some((each) => each.name === name && each.status.kind === 'running');
  const down = before.filter((name) => !isUp(name));
  return down.length === 0 ? undefined : t`not running any more: ${down.join(', ')}`;
}

/** For the owner. */
export function outcomeText(run: UpdateRun): string {
  const { from, to, reason = '', backup } = run;
  const back = backup === undefined ? '' : wayBack({ from, backup });
  if (run.step === 'done') return t`nanobot was updated from ${from} to ${to}.`;
  if (run.step === 'rolled-back') {
    return t`The update to ${to} was rolled back: ${reason}. Version ${from} runs again.`;
  }
  return (
    t`The update to ${to} went wrong: ${reason}. It stays, because messages came since it changed ` +
    t`the home, and ${from} cannot read it now. ${back}`
  );
}
