// The command `nanobot cron`: creates and changes jobs, with or without a running gateway. Jobs
// created here have an owner's rights.

import { Command, InvalidArgumentError } from 'commander';
import { parseCount } from '../../cli/flag-values.ts';
import { CommandFailure, EXIT, printable, type Terminal, withState } from '../../cli/terminal.ts';
import type { JobService, ShownJob } from './jobs.ts';
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
const ID = 'id from "cron list", or name';

export function cronCommand(terminal: Terminal): Command {
  const command = new Command('cron').description('scheduled jobs and reminders');
  command
    .command('add')
    .description('create a job')
    .argument('<text>', 'task for the agent, or with --say the text to send')
    .option('--at <moment>', 'run once at: "2026-01-31 08:00", "08:00" or "in 20m"')
    .option('--every <span>', 'repeat every: 30m, 2h, 1d')
    .option(
      '--cron <fields>',
      'repeat by minute, hour, day of month, month, day of week: "0 8 * * 1-5"',
    )
    .option('--timezone <zone>', 'time zone, e.g. Europe/Berlin; default: sessions.timeZone')
    .option('--name <name>', 'name of the job, shown in lists and reports')
    .option(
      '--to <chat>',
      'chat for the result, e.g. telegram:123456789; default: the owner’s latest chat',
    )
    .option('--say', 'send the text itself, without the agent')
    .option('--workflow', 'run a workflow: the text is its name with inputs as key=value')
    .option('--keep', 'keep a job that runs once after its run, disabled')
    .option('--tokens-per-day <n>', 'model tokens per day', parseCount)
    .option('--money-per-day <amount>', 'model cost per day', parseAmount)
    .action((text: string, flags: AddFlags) => add(terminal, text, flags));
  command
    .command('list')
    .description('list all jobs with their next run')
    .option('--json', 'print as JSON')
    .action(({ json }: { readonly json?: boolean }) => list(terminal, json === true));
  const changes = [
    ['remove', 'delete a job', 'Removed'],
    ['enable', 'enable a job', 'Enabled'],
    ['disable', 'disable a job', 'Disabled'],
    [
      'run',
      'run a job now, in addition to its schedule',
      'Runs now, or when the gateway next starts',
    ],
  ] as const;
  for (const [name, description, done] of changes) {
    command
      .command(name)
      .description(description)
      .argument('<job>', ID)
      .action(async (id: string) => {
        const changed = await withService(terminal, (service) =>
          service.change(id, name, OPERATOR),
        );
        terminal.note(`${done}: ${printable(changed.line)}`);
      });
  }
  return command;
}

async function add(terminal: Terminal, text: string, flags: AddFlags) {
  const { say, keep, timezone, workflow, ...rest } = flags;
  if (say === true && workflow === true) {
    throw new CommandFailure(EXIT.usage, 'use either --say or --workflow, not both');
  }
  const kind = say === true ? 'say' : workflow === true ? 'workflow' : 'ask';
  const kept = keep === true ? { deleteAfterRun: false } : {};
  const wish = { ...rest, ...kept, text, kind, timeZone: timezone } as const;
  const made = await withService(terminal, (service) => service.add(wish, OPERATOR));
  terminal.print(made.job.id);
  terminal.note(`Created: ${printable(made.line)}`);
}

async function list(terminal: Terminal, json: boolean) {
  const jobs = await withService(terminal, (service) => service.list(OPERATOR));
  if (json) return terminal.printJson(jobs.map(({ job }) => job));
  for (const shown of jobs) for (const line of linesOf(shown)) terminal.print(line);
  if (jobs.length === 0) terminal.note('No jobs. To create one, see: nanobot cron add --help');
}

function linesOf({ job, line }: ShownJob): readonly string[] {
  const { maker, last, kind, text } = job;
  const by = maker.kind === 'operator' ? 'the operator' : maker.name || maker.id;
  const ended = last?.detail === undefined ? '' : `; ${last.how}: ${last.detail}`;
  return [printable(line), `  ${printable(`by ${by}, ${kind}: ${text}${ended}`)}`];
}

/** @throws CommandFailure where the input is invalid or no job has this name. */
async function withService<Result>(
  terminal: Terminal,
  work: (service: JobService) => Promise<Result>,
): Promise<Result> {
  const { loadConfig } = await import('../../kernel/config/files/config-file.ts');
  const { createJobService, createNextSlot } = await import('./jobs.ts');
  const { openJobRows } = await import('./job-rows.ts');
  const { openWorkflowRows, runsOfJob } = await import('../workflows/workflow-rows.ts');
  const { config } = await loadConfig(terminal.home, terminal.env);
  return withState(terminal, async ({ store, rows }) => {
    const workflows = openWorkflowRows(rows, (text) => text);
    const service = createJobService({
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
      return await work(service);
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
  throw new InvalidArgumentError('Use a number, e.g. 0.5.');
}
