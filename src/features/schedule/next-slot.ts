// The slots of a schedule. Each time of the wall clock counts once: what the clock jumps over runs as
// it jumps, what it shows twice runs the first time; only an expression without fixed times, such as
// "every hour", follows real time.

import type { Cron } from 'croner';
import { JobError, nextPlainSlot, type Schedule } from './rules/schedule.ts';

export type NextSlot = (schedule: Schedule, afterMs: number) => Promise<number | undefined>;

const MAX_KEPT = 200;

/** Read when the first expression is, not with the program. */
export function createNextSlot(): NextSlot {
  const kept = new Map<string, Cron>();

  async function cronOf(expression: string, timeZone: string): Promise<Cron> {
    const key = `${timeZone} ${expression}`;
    const known = kept.get(key);
    if (known !== undefined) return known;
    const { Cron: Expression } = await import('croner');
    const options = { timezone: timeZone, paused: true, mode: '5-part' } as const;
    const cron = new Expression(expression, { ...options, fixedTimeRule: 'no-wildcard' });
    if (kept.size >= MAX_KEPT) kept.clear();
    kept.set(key, cron);
    return cron;
  }

  return async (schedule, afterMs) => {
    if (schedule.kind !== 'cron') return nextPlainSlot(schedule, afterMs);
    const cron = await cronOf(schedule.expression, schedule.timeZone);
    return cron.nextRun(new Date(afterMs))?.getTime();
  };
}

/** The first slot of a new job. @throws JobError where there is none or the expression is none */
export async function firstSlot(
  next: NextSlot,
  schedule: Schedule,
  nowMs: number,
): Promise<number> {
  const at = await next(schedule, nowMs).catch((error: unknown) => {
    const reason = error instanceof Error ? error.message.replace(/^CronPattern: /, '') : '';
    const { expression = '' } = schedule.kind === 'cron' ? schedule : {};
    throw new JobError(
      `"${expression}" is no cron expression (${reason}). Write minute, hour, day of month, month and day of ` +
        'week, e.g. "0 8 * * 1-5" for 08:00 on weekdays.',
    );
  });
  if (at !== undefined) return at;
  throw new JobError('That schedule never comes to a run. Write one that does.');
}
