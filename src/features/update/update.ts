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

import { constants } from 'node:fs';
import { dirname } from 'node:path';
import { z } from 'zod';
import { findHomeHolder } from '../../kernel/bus/store/home-lock.ts';
import type { Environment } from '../../kernel/config/environment.ts';
import { type Home, programVersion } from '../../kernel/config/files/home.ts';
import type { Kernel } from '../../kernel/feature.ts';
import { askGateway, findRunningGateway } from '../../kernel/home-state.ts';
import { NanobotError } from '../../kernel/message/errors.ts';
import { isPermitted } from '../../lib/files/files.ts';
import { t } from '../../lib/texts.ts';
import { comesTrue } from '../../lib/time/clock.ts';
import type { Place, Snapshot } from '../backup/index.ts';
import { homeGoesBack, keepFiles } from './home-files.ts';
import type { Installation } from './installation.ts';
import {
  downChannels,
  dropKept,
  isAttended,
  isBegun,
  isOver,
  readRun,
  takenOver,
  type UpdateRun,
  writeRun,
} from './record.ts';

const LOOK_MS = 500;
/** Until a started gateway answers, and until a stopped one has left its home. */
const START_MS = 90_000;
const STOP_MS = 120_000;

/** What starts and stops the gateway. */
export type GatewayService = {
  readonly name: string;
  start(): Promise<void>;
  stop(): Promise<void>;
};

export type UpdateDeps = Pick<Kernel, 'home' | 'env' | 'clock'> & {
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
  if (before !== undefined && !isOver(before) && (await isAttended(before))) {
    throw new NanobotError(
      'update_runs',
      t`process ${before.pid} already updates this home to ${before.to}`,
    );
  }
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
  const run = await takenOver({
    ...{ step: 'preparing', ...versions, prefix: installation.prefix },
    ...{ at: clock.now(), pid: process.pid, watchMs: deps.watchMs },
  });
  await writeRun(home, run);
  const backup = await prepare(deps, run);
  const channels = await runningChannels(deps);
  return goOn(deps, { ...run, step: 'stopping', backup, ...(channels && { channels }) });
}

export const updateBackups = ({ root }: Home) => `${root}-backups`;

async function placeIn(folder: string, env: Environment): Promise<Place> {
  const { openPlace } = await import('../backup/places.ts');
  return openPlace(folder, { env, s3: NO_S3, proxy: '' });
}

/** Oldest first. */
export async function backupsIn(folder: string, env: Environment): Promise<readonly Snapshot[]> {
  const { snapshots } = await import('../backup/repository.ts');
  await using place = await placeIn(folder, env);
  return await snapshots(place);
}

/** The back-up from which both versions start. Changes neither what runs nor the home. */
async function prepare(deps: UpdateDeps, { to, from }: Versions) {
  const { home, env, signal, installation, tell } = deps;
  const { createBackup } = await import('../backup/create.ts');
  const { verifyBackup } = await import('../backup/restore.ts');
  const folder = updateBackups(home);
  await using place = await placeIn(folder, env);
  const made = await createBackup({ home, place, signal });
  const above = dirname(home.root);
  const temp = (await isPermitted(above, constants.W_OK)) ? above : folder;
  tell(t`Back-up ${made.id} is in ${place.name}.`);
  const trial = async (program: string) => {
    const command = [process.execPath, program];
    const common = { place, id: made.id, env, signal, temp };
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
    return { place: folder, id: made.id };
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
  let run = await takenOver(begun);
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
  await dropKept(home);
  await deps.installation.keepOnly([run.from, run.to]);
  return run;
}

/**
 * The version of before takes its place again, unless the home would lose messages. How it ended is
 * recorded when the gateway runs: a kill before that is continued.
 */
async function goBack(deps: UpdateDeps, run: UpdateRun): Promise<UpdateRun> {
  const { home, installation, service } = deps;
  await stopGateway(deps);
  const isBack = await homeGoesBack(home, run);
  if (isBack) await installation.switchTo(run.from, run.to);
  await service?.start();
  const over: UpdateRun = { ...run, step: isBack ? 'rolled-back' : 'kept' };
  await writeRun(home, over).catch((error: Error) => deps.tell(error.message));
  return over;
}

async function stopGateway({ home, service, clock, signal }: UpdateDeps): Promise<void> {
  await service?.stop();
  const isFree = async () => (await findHomeHolder(home.lock)) === undefined;
  if (await comesTrue(clock, { withinMs: STOP_MS, everyMs: LOOK_MS, signal }, isFree)) return;
  throw new NanobotError('update_not_stopped', t`the gateway does not stop`);
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

const runningNames = (channels: z.infer<typeof statusShape>['channels']) =>
  channels.filter(({ status }) => status.kind === 'running').map(({ name }) => name);

async function runningChannels(deps: UpdateDeps): Promise<string[] | undefined> {
  const now = await gatewayNow(deps);
  return now === 'ended' ? undefined : now && runningNames(now.channels);
}

/** Why the new version has to go, or undefined. */
async function watch(deps: UpdateDeps, run: UpdateRun): Promise<string | undefined> {
  const { clock, signal, service, watchMs, tell } = deps;
  if (service === undefined) return undefined;
  const { to } = run;
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
      if (at - readyAt >= watchMs) return downChannels(run, runningNames(now.channels));
    }
    await clock.sleep(LOOK_MS, signal);
  }
}
