// Builds what runs programs for the agent. The system's sandbox is looked for once, beside the start.

import { createHash } from 'node:crypto';
import { realpathSync } from 'node:fs';
import type { Environment } from '../../kernel/config/environment.ts';
import type { Home } from '../../kernel/config/files/home.ts';
import type { LiveConfig } from '../../kernel/config/files/live-config.ts';
import type { Logger } from '../../lib/logger.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { execSettings } from './exec.ts';
import { createExecutor, type Executor } from './executor.ts';
import { thisSystem } from './find-sandbox.ts';
import { createKnownSandbox } from './known-sandbox.ts';
import { removeOldFolders } from './scripts.ts';

/** Where no /proc is mounted Node does not know where it lies itself. */
function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}

const OWNER_CHARS = 16;
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
  const system = thisSystem(env);
  const root = realpathSync(home.root);
  const owner = createHash('sha256').update(root).digest('hex').slice(0, OWNER_CHARS);
  const sandbox = createKnownSandbox({
    system,
    log,
    clock,
    owner,
    config: () => live.config.tools.exec,
  });
  // Beside the start: nobody has to wait for it later.
  sandbox();
  const tidying = removeOldFolders(clock.now() - OLD_MS);
  tidying.catch((error: unknown) => log.warn('old scripts not removed', { error }));
  return createExecutor({
    sandbox,
    settings: () => execSettings(live.config.tools.exec),
    forbidden: [root],
    env,
    nodePath: realPath(system.nodePath),
    redact: (text) => live.redact(text),
  });
}
