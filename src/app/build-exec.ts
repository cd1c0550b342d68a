// Builds what runs programs for the agent. The system's sandbox is looked for once, beside the start.

import { realpathSync } from 'node:fs';
import type { Environment } from '../core/environment.ts';
import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../lib/logger.ts';
import { execSettings, usedSandbox } from '../tools/exec/exec-settings.ts';
import { createExecutor, type Executor } from '../tools/exec/executor.ts';
import { type FoundSandbox, findSandbox, thisSystem } from '../tools/exec/find-sandbox.ts';
import { removeOldFolders } from '../tools/exec/scripts.ts';
import type { Home } from './home.ts';
import type { LiveConfig } from './live-config.ts';

/** Where no /proc is mounted Node does not know where it lies itself. */
function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}

const NOT_YET: FoundSandbox = {
  kind: 'missing',
  reason: 'the sandbox is still being looked for',
  remedy: 'Try again in a moment.',
};

/** Longer than any run. */
const OLD_MS = 3_600_000;

export type ExecParts = {
  readonly live: LiveConfig;
  readonly clock: Clock;
  readonly log: Logger;
  readonly home: Home;
  readonly env: Environment;
};

export function buildExec({ live, clock, log, home, env }: ExecParts): Executor {
  const system = thisSystem();
  let found = NOT_YET;
  const looking = findSandbox(system).then((answer) => {
    found = answer;
    const isMissed = answer.kind === 'missing' && live.config.tools.exec.enabled;
    if (isMissed) log.info('no sandbox for programs', { reason: answer.reason });
  });
  looking.catch((error: unknown) => log.warn('sandbox not looked for', { error }));
  const tidying = removeOldFolders(clock.now() - OLD_MS);
  tidying.catch((error: unknown) => log.warn('old scripts not removed', { error }));
  return createExecutor({
    sandbox: () => usedSandbox(live.config.tools.exec, found, system.nodePath),
    settings: () => execSettings(live.config.tools.exec),
    forbidden: [realpathSync(home.root)],
    env,
    nodePath: realPath(system.nodePath),
    redact: (text) => live.redact(text),
  });
}
