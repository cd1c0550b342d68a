// Knows of newer versions: asks the registry once a day if the owner wants that, and shows what is
// known in the status of the gateway. Tells the owner how an update ended.

import { existsSync } from 'node:fs';
import type { Finding } from '../../cli/doctor/machine-checks.ts';
import type { Terminal } from '../../cli/terminal.ts';
import type { Config } from '../../kernel/config/config.ts';
import type { Home } from '../../kernel/config/files/home.ts';
import { type Kernel, port } from '../../kernel/feature.ts';
import { readOnce } from '../../lib/async.ts';
import { t } from '../../lib/texts.ts';
import type { UpdateView } from './rules/views.ts';

const LOOK_MS = 3_600_000;
const DAY_MS = 86_400_000;
/** While an update is under way. */
const OUTCOME_MS = 2000;

/** What the page shows of updates. */
export const UPDATES = port<{ view(): Promise<UpdateView> }>('updates');

export function install(kernel: Kernel): void {
  const { add, live, home, clock, log, owners } = kernel;
  const { env } = kernel.options;
  async function askDaily(signal: AbortSignal): Promise<void> {
    if (live.config.update.check !== 'daily') return;
    const { askForNewest, knownNewest } = await import('./registry.ts');
    const { at = 0 } = (await knownNewest(home)) ?? {};
    const now = clock.now();
    if (Math.abs(now - at) < DAY_MS) return;
    await askForNewest(home, now, { env, proxy: live.config.network.proxy, signal });
  }

  /** Resolves when there is nothing to tell any more. */
  async function tellOutcome(signal: AbortSignal): Promise<void> {
    const { dropKept, isAttended, isOver, outcomeText, readRun, writeRun } = await import(
      './record.ts'
    );
    for (;;) {
      const run = await readRun(home);
      if (run === undefined || run.told === true) return;
      if (isOver(run)) {
        await dropKept(home);
        owners.tell(outcomeText(run));
        return writeRun(home, { ...run, told: true });
      }
      if (run.step === 'preparing') return;
      if (!(await isAttended(run))) {
        const { watchItself } = await import('./unattended.ts');
        return watchItself(kernel, run, signal);
      }
      await clock.sleep(OUTCOME_MS, signal);
    }
  }

  const started = readOnce(async () =>
    (await import('./started-update.ts')).createStartedUpdates(kernel),
  );
  kernel.provide(UPDATES, { view: async () => (await started()).view() });
  add.routes(['POST /api/v1/update', 'POST /api/v1/update/check'], async () =>
    (await import('./update-routes.ts')).updateRoutes(kernel, await started()),
  );
  add.status({
    async lines() {
      if (live.config.update.check === 'never') return [];
      const { knownUpdate } = await import('./registry.ts');
      const update = await knownUpdate(home);
      return update === undefined
        ? []
        : [t`Update: ${update.version} is available (nanobot update)`];
    },
  });
  add.task({
    name: 'update',
    async run(signal) {
      if (existsSync(home.update)) await tellOutcome(signal);
      while (!signal.aborted) {
        await askDaily(signal).catch((error) => log.warn('newest version not known', { error }));
        await clock.sleep(LOOK_MS, signal).catch(() => undefined);
      }
    },
  });
}

/** The findings of `doctor`. What the registry says is none where the owner never wants to know. */
export async function checkUpdate(home: Home, { update }: Config): Promise<readonly Finding[]> {
  const check = 'update';
  const interrupted = await interruptedUpdate(home);
  if (interrupted !== undefined) {
    const text = t`the update to ${interrupted.to} was interrupted`;
    return [{ check, level: 'warn', text, remedy: t`Finish it, or go back: nanobot update` }];
  }
  if (update.check === 'never') return [];
  const { knownNewest, knownUpdate } = await import('./registry.ts');
  const newer = await knownUpdate(home);
  if (newer !== undefined) {
    const text = t`${newer.version} is available`;
    return [{ check, level: 'warn', text, remedy: t`Install it: nanobot update` }];
  }
  const isKnown = (await knownNewest(home)) !== undefined;
  const text = isKnown ? t`this is the newest version` : t`the registry was not asked yet`;
  return [{ check, level: 'ok', text }];
}

/** Its process ended before it did. */
async function interruptedUpdate(home: Home) {
  if (!existsSync(home.update)) return undefined;
  const { isAttended, isBegun, readRun } = await import('./record.ts');
  const run = await readRun(home);
  return run !== undefined && isBegun(run) && !(await isAttended(run)) ? run : undefined;
}

/** At the start of a gateway: goes on with an update whose updater is gone. */
export async function resumeUpdate(terminal: Terminal): Promise<void> {
  if (existsSync(terminal.home.update))
    await (await import('./unattended.ts')).resumeUpdate(terminal);
}
