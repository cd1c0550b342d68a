// Back-ups that are being made or verified, one at a time, each in a process of its own: the schedule
// and the web page share them.

import type { Kernel } from '../../kernel/feature.ts';
import type { BackupEnd, BackupRun } from './rules/views.ts';

export interface BackupRuns {
  readonly running: BackupRun | undefined;
  /** The last that ended in this process. */
  readonly ended: BackupEnd | undefined;
  /** Undefined while another one runs. @param more variables of its environment */
  run(
    what: Pick<BackupRun, 'what' | 'id'>,
    args: readonly string[],
    signal: AbortSignal,
    more?: Readonly<Record<string, string>>,
  ): Promise<BackupEnd | undefined>;
}

export function createBackupRuns({
  home,
  env,
  clock,
}: Pick<Kernel, 'home' | 'env' | 'clock'>): BackupRuns {
  let running: BackupRun | undefined;
  let ended: BackupEnd | undefined;
  return {
    get running() {
      return running;
    },
    get ended() {
      return ended;
    },
    async run(what, args, signal, more = {}) {
      if (running !== undefined) return undefined;
      running = { ...what, since: clock.now() };
      try {
        const options = { home, env: { ...env, ...more }, signal };
        const { runOwnProgram } = await import('../../kernel/own-program.ts');
        const { code, output, said } = await runOwnProgram(args, options);
        const text = code === 0 ? output.trim() : said;
        ended = { ...what, at: clock.now(), isOk: code === 0, text };
        return ended;
      } finally {
        running = undefined;
      }
    },
  };
}
