// `nanobot cron`: scheduled jobs, made and changed at the machine, with the gateway running or not. What
// is made here has an owner's rights.

import { Command, InvalidArgumentError } from 'commander';
import { parseCount } from '../../cli/flag-values.ts';
import { CommandFailure, EXIT, printable, type Terminal, withState } from '../../cli/terminal.ts';
import type { JobDesk, ShownJob } from './jobs.ts';
import type { JobWish } from './rules/job.ts';
import { JobError } from './rules/schedule.ts';

type AddFlags = Pick<JobWish, 'name' | 'at' | 'every' | 'cron' | 'to'> & {
  readonly timezone?: string;
  readonly say?: boolean;
  readonly workflow?: boolean;
  readonly keep?: boolean;
  readonly tokensPerDay?: number;
  readonly moneyPerDay?: number;
};

const OPERATOR = { kind: 'operator' } as const;
const ID = 'as "nanobot cron list" shows it, or its name';

export function cronCommand(terminal: Terminal): Command {
  const command = new Command('cron').description('scheduled jobs and reminders');
  command
    .command('add')
    .description('make a job')
    .argument('<text>', 'what the agent is to do, or with --say what is sent')
    .option('--at <moment>', 'once: "2026-01-31 08:00", "08:00" or "in 20m"')
    .option('--every <span>', 'again and again: 30m, 2h, 1d')
    .option('--cron <fields>', 'minute, hour, day of month, month, day of week: "0 8 * * 1-5"')
    .option('--timezone <zone>', 'of the times, e.g. Europe/Berlin; else sessions.timeZone')
    .option('--name <name>', 'how it is listed and what its reports are headed with')
    .option(
      '--to <chat>',
      'where it reports, e.g. telegram:123456789; else where an owner wrote last',
    )
    .option('--say', 'send the text as it is, without a model')
    .option('--workflow', 'the text is the name of a workflow, with its inputs as key=value')
    .option('--keep', 'keep a job that runs once, switched off, when it is over')
    .option('--tokens-per-day <n>', 'that its runs may take', parseCount)
    .option('--money-per-day <amount>', 'that its runs may cost', parseAmount)
    .action((text: string, flags: AddFlags) => add(terminal, text, flags));
  command
    .command('list')
    .description('all jobs with the time of their next run')
    .option('--json', 'as JSON')
    .action(({ json }: { readonly json?: boolean }) => list(terminal, json === true));
  const changes = [
    ['remove', 'delete a job', 'Removed'],
    ['enable', 'switch a job on', 'Switched on'],
    ['disable', 'switch a job off', 'Switched off'],
    ['run', 'run a job once, beside its schedule', 'Runs as soon as the gateway does'],
  ] as const;
  for (const [name, description, done] of changes) {
    command
      .command(name)
      .description(description)
      .argument('<job>', ID)
      .action(async (id: string) => {
        const changed = await withDesk(terminal, (desk) => desk.change(id, name, OPERATOR));
        terminal.note(`${done}: ${printable(changed.line)}`);
      });
  }
  return command;
}

async function add(terminal: Terminal, text: string, flags: AddFlags) {
  const { say, keep, timezone, workflow, ...rest } = flags;
  if (say === true && workflow === true) {
    throw new CommandFailure(EXIT.usage, '--say and --workflow are two different things; use one');
  }
  const kind = say === true ? 'say' : workflow === true ? 'workflow' : 'ask';
  const kept = keep === true ? { deleteAfterRun: false } : {};
  const wish = { ...rest, ...kept, text, kind, timeZone: timezone } as const;
  const made = await withDesk(terminal, (desk) => desk.add(wish, OPERATOR));
  terminal.print(made.job.id);
  terminal.note(`Made: ${printable(made.line)}`);
}

async function list(terminal: Terminal, json: boolean) {
  const jobs = await withDesk(terminal, (desk) => desk.list(OPERATOR));
  if (json) return terminal.printJson(jobs.map(({ job }) => job));
  for (const shown of jobs) for (const line of linesOf(shown)) terminal.print(line);
  if (jobs.length === 0)
    terminal.note('There are no jobs; "nanobot cron add --help" says how to make one.');
}

function linesOf({ job, line }: ShownJob): readonly string[] {
  const { maker, last, kind, text } = job;
  const by = maker.kind === 'operator' ? 'the operator' : maker.name || maker.id;
  const ended = last?.detail === undefined ? '' : `; ${last.how}: ${last.detail}`;
  return [printable(line), `  ${printable(`by ${by}, ${kind}: ${text}${ended}`)}`];
}

/** @throws CommandFailure where what is typed makes or names no job. */
async function withDesk<Result>(
  terminal: Terminal,
  work: (desk: JobDesk) => Promise<Result>,
): Promise<Result> {
  const { loadConfig } = await import('../../kernel/config/files/config-file.ts');
  const { createJobDesk, createNextSlot } = await import('./jobs.ts');
  const { openJobRows } = await import('./job-rows.ts');
  const { openWorkflowRows, runsOfJob } = await import('../workflows/workflow-rows.ts');
  const { config } = await loadConfig(terminal.home, terminal.env);
  return withState(terminal, async ({ store, rows }) => {
    const workflows = openWorkflowRows(rows, (text) => text);
    const desk = createJobDesk({
      ...{ jobs: openJobRows(rows), bus: store, next: createNextSlot() },
      workflowsOf: (job) => runsOfJob(workflows, job),
      now: () => terminal.clock.now(),
      timeZone: () => config.sessions.timeZone,
      changed: () => undefined,
      async checkWorkflow(typed) {
        const { checkWorkflowOf } = await import('../workflows/open-workflows.ts');
        await checkWorkflowOf(terminal.home, config, typed);
      },
    });
    try {
      return await work(desk);
    } catch (error) {
      const isSlip = error instanceof JobError && error.code === 'job_invalid';
      if (isSlip) throw new CommandFailure(EXIT.usage, error.message);
      throw error;
    }
  });
}

function parseAmount(text: string): number {
  const value = Number(text);
  if (text.trim() !== '' && Number.isFinite(value) && value >= 0) return value;
  throw new InvalidArgumentError('Use a number, like 0.5.');
}
