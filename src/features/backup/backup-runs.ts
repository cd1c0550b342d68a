// Back-ups that are being made or verified, one at a time, each in a process of its own: the schedule
// and the web page share them.

import type { Kernel } from '../../kernel/feature.ts';
import type { BackupEnd, BackupRun } from './rules/views.ts';

export type BackupRuns = ReturnType<typeof createBackupRuns>;

export function createBackupRuns({ home, env, clock }: Kernel) {
  let running: BackupRun | undefined;
  let ended: BackupEnd | undefined;
  return {
    get running() {
      return running;
    },
    /** The last that ended in this process. */
    get ended() {
      return ended;
    },
    /** Undefined while another one runs. @param more variables of its environment */
    async run(
      what: Pick<BackupRun, 'what' | 'id'>,
      args: readonly string[],
      signal: AbortSignal,
      more: Readonly<Record<string, string>> = {},
    ): Promise<BackupEnd | undefined> {
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
