// Drives pipelines and loops: one helper at a time, each named after its place, so that a series that
// is driven again finds the helpers it had and goes on behind the last answer.

import type { HelperRun, Plan } from '../core/subagent.ts';
import { nextOf } from '../core/subagent-series.ts';
import { aborted, orAborted } from '../lib/aborted.ts';
import type { Logger } from '../lib/logger.ts';
import type { HelperBook } from './helper-book.ts';
import type { HelperDesk } from './helper-desk.ts';

export type HelperSeriesDeps = {
  readonly book: HelperBook;
  readonly desk: Pick<HelperDesk, 'begin' | 'end' | 'over'>;
  readonly log: Logger;
  /** The helper that is asked for the next part. @throws SubagentError where its profile is gone */
  childOf(
    series: HelperRun,
    child: { readonly id: string; readonly plan: Plan; readonly label: string },
  ): Promise<HelperRun>;
};

export type HelperSeries = {
  drive(run: HelperRun): void;
  /** Resolves when the signal aborts and nothing is driven any more. */
  run(signal: AbortSignal): Promise<void>;
};

export function createHelperSeries(deps: HelperSeriesDeps): HelperSeries {
  const { book, desk, log } = deps;
  const driven = new Map<string, Promise<void>>();
  const closing = new AbortController();

  /** One part further; false: there is nothing left to do here. */
  async function advance(id: string): Promise<boolean> {
    const run = await book.get(id);
    if (run === undefined || run.state !== 'running') return false;
    const next = nextOf(run);
    if (next.kind === 'over') {
      await desk.end(id, {
        state: next.state,
        result: next.text,
        isForeign: run.isForeign === true,
      });
      return false;
    }
    const child = `${id}-${run.attempt}-${next.part}-${next.vote}`;
    if ((await book.get(child)) === undefined) {
      const { profile } = next;
      const kind = profile === undefined ? {} : { profile };
      const plan = { kind: 'task', task: next.prompt, ...kind } as const;
      await desk.begin(
        await deps.childOf(run, { id: child, plan, label: `${run.label} ${next.part}` }),
      );
    }
    await orAborted(desk.over(child), closing.signal).catch((error: unknown) => {
      if (!closing.signal.aborted) throw error;
    });
    return !closing.signal.aborted && take(run, next.part, child);
  }

  async function take({ id }: HelperRun, part: number, child: string): Promise<boolean> {
    const answered = await book.get(child);
    if (answered?.state === 'running') return true;
    const foreign = answered?.isForeign === true ? { isForeign: true as const } : {};
    if (answered?.state === 'done') {
      const answer = { part, text: answered.result ?? '' };
      await book.change(id, (run) => ({ ...run, ...foreign, answers: [...run.answers, answer] }));
      return true;
    }
    const why = `${answered?.state ?? 'lost'}: ${answered?.result ?? ''}`;
    const result = `Part ${part} gave no answer (${why}). The parts before it are kept: the same id goes on there.`;
    await desk.end(id, { state: 'failed', result, isForeign: answered?.isForeign === true });
    return false;
  }

  async function toItsEnd(id: string): Promise<void> {
    try {
      while (!closing.signal.aborted && (await advance(id)));
    } catch (error) {
      if (closing.signal.aborted) return;
      log.error('series broken off', { helper: id, error });
      const result = error instanceof Error ? error.message : 'it failed';
      await desk.end(id, { state: 'failed', result, isForeign: false });
    } finally {
      driven.delete(id);
    }
  }

  return {
    drive({ id }) {
      if (closing.signal.aborted || driven.has(id)) return;
      const driving = toItsEnd(id).catch((error) =>
        log.error('series lost', { helper: id, error }),
      );
      driven.set(id, driving);
    },
    async run(signal) {
      await aborted(signal);
      closing.abort();
      await Promise.all(driven.values());
    },
  };
}
