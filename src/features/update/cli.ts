// The command `nanobot update`.

import { type ChildProcess, spawn } from 'node:child_process';
import { realpathSync } from 'node:fs';
import { basename, join } from 'node:path';
import { Command, Option } from 'commander';
import { wayBack } from '../../cli/explain-error.ts';
import { parseLimit } from '../../cli/flag-values.ts';
import { CommandFailure, EXIT, type Terminal } from '../../cli/terminal.ts';
import type { Environment } from '../../kernel/config/environment.ts';
import { configInForce } from '../../kernel/config/files/config-file.ts';
import { programName, programVersion } from '../../kernel/config/files/home.ts';
import { NanobotError } from '../../kernel/message/errors.ts';
import { t } from '../../lib/texts.ts';
import { AS_OWNER_FLAG, isForOwner, parentOf, updateAsOwner } from './as-owner.ts';
import { findInstallation, installationIn } from './installation.ts';
import { dropKept, isBegun, isOver, outcomeText, readRun, type UpdateRun } from './record.ts';
import { askForNewest, isNewer, publishedVersion } from './registry.ts';
import {
  backupsIn,
  type GatewayService,
  type UpdateDeps,
  update,
  updateBackups,
} from './update.ts';

const WATCH_SECS = 120;

type UpdateFlags = {
  readonly check?: boolean;
  readonly to?: string;
  readonly watch: number;
  readonly installation?: string;
  readonly asOwner?: boolean;
};

export function updateCommand(terminal: Terminal): Command {
  return new Command('update')
    .description(t`install the newest version`)
    .option('--check', t`only ask the npm registry for the newest version`)
    .option('--to <version>', t`this version instead of the newest`)
    .option('--watch <secs>', t`watch the started gateway for so long`, parseLimit, WATCH_SECS)
    .option('--installation <folder>', t`update the installation in this folder, not this one`)
    .addOption(new Option(AS_OWNER_FLAG).hideHelp())
    .action((flags: UpdateFlags) =>
      flags.check === true ? check(terminal) : run(terminal, flags),
    );
}

async function settingsOf({ home, env }: Terminal) {
  const { config } = await configInForce(home, env, true);
  return { token: config.gateway.token, proxy: config.network.proxy };
}

async function check(terminal: Terminal): Promise<void> {
  const { home, env, clock } = terminal;
  const { proxy } = await settingsOf(terminal);
  const signal = AbortSignal.timeout(60_000);
  const newest = await askForNewest(home, clock.now(), { env, proxy, signal });
  const current = programVersion();
  if (!isNewer(newest.version, current)) {
    terminal.tell(t`${programName()} ${current} is the newest version.`);
    return;
  }
  terminal.tell(t`${programName()} ${newest.version} is available; this is ${current}.`);
  if (newest.homepage !== undefined) terminal.tell(t`What changed: ${newest.homepage}`);
  terminal.tell(t`Update: nanobot update`);
}

/** A foreign installation may get this version without a question. */
async function wantedVersion(
  { env }: Terminal,
  { to, installation }: UpdateFlags,
  proxy: string,
  signal: AbortSignal,
): Promise<string> {
  if (installation !== undefined && to === programVersion()) return to;
  return (await publishedVersion(to ?? 'latest', { env, proxy, signal })).version;
}

async function run(terminal: Terminal, flags: UpdateFlags): Promise<void> {
  const { home, env } = terminal;
  const { installation: folder } = flags;
  const found = folder === undefined ? findInstallation(env) : installationIn(folder);
  if (found.kind === 'other') throw new CommandFailure(EXIT.failure, found.remedy);
  const { installedService, needRoot } = await import('../../cli/service/manager.ts');
  const service = await installedService(home, env);
  if (flags.asOwner === true) {
    const parent = parentOf(service?.name ?? '');
    const installation = await parent.installation(found.installation);
    const by = { service: parent.service, installation };
    return runHere(terminal, flags, by).finally(() => parent[Symbol.dispose]());
  }
  if (service !== undefined) needRoot(service, terminal, ['update']);
  const by = { service: service && guarded(service, env), installation: found.installation };
  if (by.service === undefined || !isForOwner(home)) return runHere(terminal, flags, by);
  const code = await updateAsOwner(terminal, by.service, found.installation);
  if (code !== 0) throw new CommandFailure(EXIT.failure);
}

type By = Pick<UpdateDeps, 'service' | 'installation'>;

async function runHere(terminal: Terminal, flags: UpdateFlags, by: By): Promise<void> {
  const { home, env, clock } = terminal;
  const { installation: folder } = flags;
  const { token, proxy } = await settingsOf(terminal);
  const stopping = new AbortController();
  process.once('SIGINT', () => stopping.abort(new CommandFailure(EXIT.interrupted)));
  const { signal } = stopping;
  const from =
    folder === undefined ? programVersion() : basename(realpathSync(join(folder, 'current')));
  const before = await readRun(home);
  // Of an update that was killed when it was done.
  if (before !== undefined && isOver(before)) await dropKept(home);
  const isContinued = before !== undefined && isBegun(before);
  const to = isContinued ? before.to : await wantedVersion(terminal, flags, proxy, signal);
  const isNothing = flags.to === undefined ? !isNewer(to, from) : to === from;
  if (isNothing && !isContinued) {
    terminal.tell(t`${programName()} ${from} is installed. There is nothing to do.`);
    return;
  }
  const watchMs = flags.watch * 1000;
  const result = await update(
    { ...{ home, env, clock, signal, token, watchMs, tell: terminal.tell }, ...by },
    { from, to },
  ).catch(async (error: unknown) => {
    const isDowngrade = isNewer(from, to) && error instanceof NanobotError;
    if (!isDowngrade || error.code !== 'update_refused') throw error;
    const back = await wayBackTo(to, before, terminal);
    throw new CommandFailure(EXIT.failure, `${error.message} ${back}`);
  });
  terminal.tell(outcomeText(result));
  if (result.step !== 'done') throw new CommandFailure(EXIT.failure);
  if (by.service !== undefined) return;
  terminal.tell(t`No service runs the gateway, so it was not watched. Start it: nanobot gateway`);
}

/** To an older version that does not start with the home of now: the last back-up from before it. */
async function wayBackTo(
  version: string,
  last: UpdateRun | undefined,
  { home, env }: Terminal,
): Promise<string> {
  if (last?.from === version && last.backup !== undefined) {
    return wayBack({ from: version, backup: last.backup });
  }
  const place = updateBackups(home);
  const made = await backupsIn(place, env);
  const found = made.findLast(({ program }) => program === version);
  if (found !== undefined) return wayBack({ from: version, backup: { place, id: found.id } });
  return t`The way back is a back-up that version ${version} made. ${place} contains none: nanobot backup list`;
}

/** Killed while the service is stopped, this process does not leave it so. */
function guarded(service: GatewayService, env: Environment): GatewayService {
  let guard: ChildProcess | undefined;
  return {
    name: service.name,
    async stop() {
      guard ??= startGuard(env);
      await service.stop();
    },
    async start() {
      await service.start();
      guard?.stdin?.end('\n');
      guard = undefined;
    },
  };
}

/** A shell that starts the service if its input ends without a line. Windows has none. */
function startGuard(env: Environment): ChildProcess | undefined {
  if (process.platform === 'win32') return undefined;
  const command = [process.execPath, process.argv[1] ?? '', 'service', 'start'];
  const guard = spawn('/bin/sh', ['-c', 'read -r line || exec "$@"', 'sh', ...command], {
    env: { ...env },
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  guard.once('error', () => undefined);
  guard.unref();
  return guard;
}
