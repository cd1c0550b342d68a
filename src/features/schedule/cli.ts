// The command `nanobot cron`: creates and changes jobs, with or without a running gateway. Jobs
// created here have an owner's rights.

import { Command, InvalidArgumentError } from 'commander';
import { parseCount } from '../../cli/flag-values.ts';
import { CommandFailure, EXIT, printable, type Terminal, withState } from '../../cli/terminal.ts';
import type { Config } from '../../kernel/config/config.ts';
import { t } from '../../lib/texts.ts';
import type { JobRows } from './job-rows.ts';
import type { JobService, ShownJob } from './jobs.ts';
import { type JobWish, makerName } from './rules/job.ts';
import { JobError } from './rules/schedule.ts';

type AddFlags = Pick<JobWish, 'name' | 'at' | 'every' | 'cron' | 'to' | 'when'> & {
  readonly timezone?: string;
  readonly say?: boolean;
  readonly workflow?: boolean;
  readonly keep?: boolean;
  readonly tokensPerDay?: number;
  readonly moneyPerDay?: number;
};

const OPERATOR = { kind: 'operator' } as const;
const ID = t`id from "cron list", or name`;

export function cronCommand(terminal: Terminal): Command {
  const command = new Command('cron').description(t`scheduled jobs and reminders`);
  command
    .command('add')
    .description(t`create a job`)
    .argument('<text>', t`task for the agent, or with --say the text to send`)
    .option('--at <moment>', t`run once at: "2026-01-31 08:00", "08:00" or "in 20m"`)
    .option('--every <span>', t`repeat every: 30m, 2h, 1d`)
    .option(
      '--cron <fields>',
      t`repeat by minute, hour, day of month, month, day of week: "0 8 * * 1-5"`,
    )
    .option(
      '--when <check>',
      t`before each run, without a model: "url https://...", "file notes/x.md", "mail words" or "program ./check.sh"`,
    )
    .option('--timezone <zone>', t`time zone, e.g. Europe/Berlin; default: sessions.timeZone`)
    .option('--name <name>', t`name of the job, shown in lists and reports`)
    .option(
      '--to <chat>',
      t`chat for the result, e.g. telegram:123456789; default: the owner’s latest chat`,
    )
    .option('--say', t`send the text itself, without the agent`)
    .option('--workflow', t`run a workflow: the text is its name with inputs as key=value`)
    .option('--keep', t`keep a job that runs once after its run, disabled`)
    .option('--tokens-per-day <n>', t`model tokens per day`, parseCount)
    .option('--money-per-day <amount>', t`model cost per day`, parseAmount)
    .action((text: string, flags: AddFlags) => add(terminal, text, flags));
  command
    .command('list')
    .description(t`list all jobs with their next run`)
    .option('--json', t`print as JSON`)
    .action(({ json }: { readonly json?: boolean }) => list(terminal, json === true));
  command
    .command('runs')
    .description(t`show the last 50 runs of a job: outcome, cost and text`)
    .argument('<job>', ID)
    .option('--json', t`print as JSON`)
    .action((id: string, { json }: { readonly json?: boolean }) =>
      runs(terminal, id, json === true),
    );
  const changes = [
    ['remove', t`delete a job`, t`Removed`],
    ['enable', t`enable a job`, t`Enabled`],
    ['disable', t`disable a job`, t`Disabled`],
    [
      'run',
      t`run a job now, in addition to its schedule`,
      t`Runs now, or when the gateway next starts`,
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
    throw new CommandFailure(EXIT.usage, t`use either --say or --workflow, not both`);
  }
  const kind = say === true ? 'say' : workflow === true ? 'workflow' : 'ask';
  const kept = keep === true ? { deleteAfterRun: false } : {};
  const wish = { ...rest, ...kept, text, kind, timeZone: timezone } as const;
  const made = await withService(terminal, (service) => service.add(wish, OPERATOR));
  terminal.print(made.job.id);
  terminal.note(t`Created: ${printable(made.line)}`);
}

async function list(terminal: Terminal, json: boolean) {
  const jobs = await withService(terminal, (service) => service.list(OPERATOR));
  if (json) return terminal.printJson(jobs.map(({ job }) => job));
  for (const shown of jobs) for (const line of linesOf(shown)) terminal.print(line);
  if (jobs.length === 0) terminal.note(t`No jobs. To create one, see: nanobot cron add --help`);
}

async function runs(terminal: Terminal, id: string, json: boolean) {
  const { completeSessions } = await import('../../kernel/home-state.ts');
  const { readRuns, runLines } = await import('./runs.ts');
  await completeSessions(terminal.home, terminal.clock);
  const folder = terminal.home.sessions;
  await withService(terminal, async (service, { jobs, config }) => {
    const { job } = await service.find(id, OPERATOR);
    const found = await readRuns(job, { jobs, config, folder });
    if (json) return terminal.printJson(found);
    const { limits, sessions } = config;
    const lines = await runLines(job, found, sessions.timeZone, limits.budget.currency);
    for (const line of lines) terminal.print(printable(line));
    if (lines.length === 0) terminal.note(t`The job has not run yet.`);
  });
}

function linesOf({ job, line }: ShownJob): readonly string[] {
  const { maker, last, kind, text } = job;
  const by = maker.kind === 'operator' ? t`the operator` : makerName(maker);
  const ended = last?.detail === undefined ? '' : `; ${last.how}: ${last.detail}`;
  return [printable(line), `  ${printable(t`by ${by}, ${kind}: ${text}${ended}`)}`];
}

/** @throws CommandFailure where the input is invalid or no job has this name. */
async function withService<Result>(
  terminal: Terminal,
  work: (
    service: JobService,
    opened: { readonly jobs: JobRows; readonly config: Config },
  ) => Promise<Result>,
): Promise<Result> {
  const { loadConfig } = await import('../../kernel/config/files/config-file.ts');
  const { createJobService, createNextSlot } = await import('./jobs.ts');
  const { openJobRows } = await import('./job-rows.ts');
  const { openWorkflowRows, runsOfJob } = await import('../workflows/workflow-rows.ts');
  const { config } = await loadConfig(terminal.home, terminal.env);
  return withState(terminal, async ({ store, rows }) => {
    const workflows = openWorkflowRows(rows, (text) => text);
    const jobs = openJobRows(rows);
    const service = createJobService({
      ...{ jobs, bus: store, next: createNextSlot() },
      workflowsOf: (job) => runsOfJob(workflows, job),
      now: () => terminal.clock.now(),
      timeZone: () => config.sessions.timeZone,
      isOn: () => config.cron.enabled,
      changed: () => undefined,
      async checkWorkflow(typed) {
        const { checkWorkflowOf } = await import('../workflows/open-workflows.ts');
        await checkWorkflowOf(terminal.home, config, typed);
      },
    });
    try {
      return await work(service, { jobs, config });
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
  throw new InvalidArgumentError(t`Use a number, e.g. 0.5.`);
}
