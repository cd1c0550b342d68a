// Tool: makes, shows and changes scheduled jobs of whoever asks.

import { z } from 'zod';
import { ToolError } from '../../kernel/message/errors.ts';
import { headOf } from '../../lib/text/cut.ts';
import { readDescription, type Tool, type ToolContext } from '../../tools/tool.ts';
import type { JobAskers } from './job-askers.ts';
import type { JobChange } from './jobs.ts';
import type { JobWish } from './rules/job.ts';
import { JobError, readSchedule } from './rules/schedule.ts';

export type Schedules = JobAskers['schedules'];

const MAX_TEXT_CHARS = 10_000;
const MAX_WORD_CHARS = 200;
const DETAIL_CHARS = 60;

const word = (description: string) =>
  z.string().trim().min(1).max(MAX_WORD_CHARS).optional().describe(description);

const input = z.object({
  action: z
    .enum(['add', 'list', 'remove', 'enable', 'disable', 'run'])
    .describe('run: once now, beside its schedule.'),
  id: word('Of the job; for remove, enable, disable and run.'),
  text: z
    .string()
    .trim()
    .min(1)
    .max(MAX_TEXT_CHARS)
    .optional()
    .describe('For add. What is to be done, complete in itself: nobody can be asked at that time.'),
  kind: z
    .enum(['ask', 'say', 'workflow'])
    .optional()
    .describe(
      'For add. say: the text itself is sent, a reminder; ask (usual): you do what it says; workflow: the text ' +
        'is the name of a workflow with its inputs as key=value.',
    ),
  name: word('For add. A few words.'),
  at: word('Once: "2026-01-31 08:00" or "08:00" in the person’s time zone, "in 20m", or ISO 8601.'),
  every: word('Again and again: "30m", "2h", "1d"; a bare number is seconds.'),
  cron: word('Five fields in the person’s time zone: "0 8 * * 1-5".'),
  time_zone: word('IANA name, where another zone than the person’s is meant.'),
  to: word(
    'Where the result goes: a door of the person (telegram, web, ...) or last; else this chat.',
  ),
});
type Input = z.infer<typeof input>;

export function createCron(schedules: Schedules): Tool<Input> {
  async function run(asked: Input, context: ToolContext): Promise<string> {
    const todo = todoOf(asked);
    if (todo.kind === 'list') return schedules.list(context);
    const { askedAt } = context;
    const since = askedAt === undefined ? {} : { askedAt };
    if (todo.kind === 'add') return schedules.add({ ...todo.wish, ...since }, context);
    return schedules.change(todo.id, todo.kind, context);
  }

  return {
    name: 'cron',
    ...readDescription('cron'),
    aliases: ['schedule', 'every', 'timer', 'periodic', 'reminder'],
    parameterAliases: {
      id: ['job_id', 'job'],
      text: ['message', 'task', 'prompt', 'content'],
      at: ['time', 'when', 'date'],
      every: ['interval', 'every_seconds', 'interval_seconds', 'seconds'],
      cron: ['cron_expr', 'expression', 'expr'],
      time_zone: ['tz'],
    },
    access: 'schedule',
    accessOf: ({ action }) => (action === 'list' ? 'read' : 'schedule'),
    input,
    // Nobody is asked to allow what could not be made anyway.
    async sealOf(asked) {
      return explained(async () => {
        const todo = todoOf(asked);
        if (todo.kind === 'add') await schedules.check(todo.wish);
        return '';
      });
    },
    describe: ({ action, id, name, text = '' }) =>
      `${action} ${id ?? name ?? headOf(text, DETAIL_CHARS)}`.trim(),
    run: (asked, context) => explained(() => run(asked, context)),
  };
}

type Todo =
  | { readonly kind: 'list' }
  | { readonly kind: 'add'; readonly wish: JobWish }
  | { readonly kind: JobChange; readonly id: string };

/** @throws JobError, ToolError where nothing could come of it, whenever it is done */
function todoOf(asked: Input): Todo {
  const { action, id, text, kind = 'ask', name, at, every, cron, time_zone, to } = asked;
  if (action === 'list') return { kind: action };
  if (action !== 'add') {
    if (id === undefined)
      throw new ToolError('invalid_arguments', `${action} needs the id of a job`);
    return { kind: action, id };
  }
  if (text === undefined) throw new ToolError('invalid_arguments', 'add needs a text');
  const isMoment = at !== undefined && every === undefined && cron === undefined;
  // A moment is read when the job is made, by the clock of whoever asks.
  if (!isMoment) readSchedule({ at, every, cron }, time_zone ?? '', 0);
  return { kind: action, wish: { text, kind, name, at, every, cron, timeZone: time_zone, to } };
}

async function explained(task: () => string | Promise<string>): Promise<string> {
  try {
    return await task();
  } catch (error) {
    if (error instanceof JobError) throw new ToolError('invalid_arguments', error.message);
    throw error;
  }
}
