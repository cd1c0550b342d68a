// An update whose updater was killed, or ended with the machine: the gateway of the new version
// watches itself, and gives the version of before its place back if it does not stay healthy.

import { CONFIGURED_CHANNELS } from '../../channels/configured-channels.ts';
import type { Terminal } from '../../cli/terminal.ts';
import { holdHome } from '../../kernel/bus/store/home-lock.ts';
import { programVersion } from '../../kernel/config/files/home.ts';
import type { Kernel } from '../../kernel/feature.ts';
import { GatewayMustEnd } from '../../kernel/message/errors.ts';
import { t } from '../../lib/texts.ts';
import { homeGoesBack } from './home-files.ts';
import { findInstallation, type Installation } from './installation.ts';
import {
  downChannels,
  dropKept,
  isAttended,
  isBegun,
  outcomeText,
  readRun,
  type UpdateRun,
  writeRun,
} from './record.ts';

const WATCH_MS = 120_000;

const isGoingBack = ({ step }: UpdateRun) => step === 'rolling-back' || step === 'restoring';

type Starting = Pick<Terminal, 'home' | 'env' | 'note'>;

/**
 * At the start of a gateway. The second start of the new version means that the first one failed:
 * then this process becomes the version of before.
 */
export async function resumeUpdate(starting: Starting): Promise<void> {
  const { home, env, note } = starting;
  const run = await readRun(home);
  const isOurs = run !== undefined && isBegun(run) && run.to === programVersion();
  if (!isOurs || (await isAttended(run))) return;
  const lock = await holdHome(home.lock, { pid: process.pid });
  let program: string | undefined;
  try {
    if (!isGoingBack(run) && run.starts === undefined) {
      await writeRun(home, { ...run, starts: 1 });
      return;
    }
    const found = findInstallation(env);
    if (found.kind === 'other') return note(found.remedy);
    const reason = run.reason ?? t`the gateway ended and was started again`;
    program = await goBack(starting, found.installation, { ...run, reason });
  } finally {
    await lock[Symbol.asyncDispose]();
  }
  if (program !== undefined) becomeProgram(program);
}

/** The program of the version of before; undefined if the home would lose messages. */
async function goBack(
  { home, note }: Starting,
  installation: Installation,
  run: UpdateRun,
): Promise<string | undefined> {
  const program = installation.program(run.from);
  if (program === undefined || !(await homeGoesBack(home, run))) {
    await writeRun(home, { ...run, step: 'kept' });
    return undefined;
  }
  note(t`Version ${run.to} does not stay healthy: ${run.reason}. Version ${run.from} starts.`);
  try {
    await installation.switchTo(run.from, run.to);
    await writeRun(home, { ...run, step: 'rolled-back' });
  } catch (error) {
    // A service of the machine may not change its program: each start comes here, and the owner is told.
    note(error instanceof Error ? error.message : String(error));
    await writeRun(home, { ...run, step: 'rolling-back' });
  }
  return program;
}

/** Where a process cannot become another program, the service manager starts it again. */
function becomeProgram(program: string): void {
  const { execPath, execArgv, argv, env } = process;
  process.execve?.(execPath, [execPath, ...execArgv, program, ...argv.slice(2)], env);
  throw new GatewayMustEnd(t`The version of before takes its place. Start it: nanobot gateway`);
}

/** In the running gateway: what the updater would have done. @throws GatewayMustEnd to go back */
export async function watchItself(
  kernel: Kernel,
  run: UpdateRun,
  signal: AbortSignal,
): Promise<void> {
  const { home, clock, owners } = kernel;
  const { to, watchMs = WATCH_MS } = run;
  if (to !== programVersion() || isGoingBack(run)) {
    const why = run.reason === undefined ? '' : `: ${run.reason}`;
    owners.tell(t`The update to ${to} was interrupted${why}. Finish it: nanobot update`);
    return;
  }
  await clock.sleep(watchMs, signal);
  const running = kernel
    .use(CONFIGURED_CHANNELS)
    .channels()
    .filter(({ status }) => status.kind === 'running');
  const reason = downChannels(
    run,
    running.map(({ name }) => name),
  );
  if (reason !== undefined) {
    await writeRun(home, { ...run, step: 'rolling-back', reason });
    throw new GatewayMustEnd(t`The update to ${to} is rolled back: ${reason}.`);
  }
  const done: UpdateRun = { ...run, step: 'done', told: true };
  await writeRun(home, done);
  owners.tell(outcomeText(done));
  await dropKept(home);
}
