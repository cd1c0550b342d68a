// `/cron`, a person's scheduled jobs, and `/quiet`, the hours in which none of them may disturb the person.

import { PERSONAL } from '../../kernel/access/command-access.ts';
import { type Person, withChoice } from '../../kernel/access/person.ts';
import {
  type Command,
  type CommandOrigin,
  type CommandTable,
  commandsOf,
} from '../../kernel/commands/command.ts';
import { sessionKeyOf } from '../../kernel/message/message.ts';
import { verbatim } from '../../kernel/message/untrusted.ts';
import { withPerson } from '../people/person-commands.ts';
import type { Persons } from '../people/persons.ts';
import type { HelperView } from '../subagents/agents-commands.ts';
import type { WorkflowDesk } from '../workflows/workflow-people.ts';
import type { JobAskers } from './job-askers.ts';
import type { JobDesk, ShownJob } from './jobs.ts';
import { jobChat, parseHead } from './rules/job.ts';
import { NO_QUIET_HOURS, quietHoursOf } from './rules/quiet-hours.ts';

const HINT =
  'Say /cron, /cron add <when>: <what>, or /cron remove | enable | disable | run | stop with the id of a job. ' +
  '<when> is e.g. "at 08:00", "at 2026-01-31 08:00", "in 20m", "every 2h" or "0 8 * * 1-5"; a "say" ' +
  'before it sends the text as it is: /cron add say in 20m: tea is ready. "workflow" before it runs a ' +
  'workflow: /cron add workflow every 1d: <name> key=value.';
const MAX_LINES = 40;

export const CRON_COMMANDS = {
  cron: {
    summary: 'your scheduled jobs',
    usage: '/cron [add <when>: <what> | remove | enable | disable | run | stop <id>]',
    access: { direct: 'trusted', group: 'nobody', audited: true },
    timing: 'immediate',
  },
  quiet: {
    summary: 'the hours in which I begin nothing of my own accord',
    usage: '/quiet [22:00-07:00 | off | auto]',
    access: PERSONAL,
    timing: 'immediate',
  },
} satisfies CommandTable;

export type CronCommandDeps = {
  readonly jobs: JobAskers['jobs'];
  readonly persons: Pick<Persons, 'author' | 'get' | 'change'>;
  /** Ends the run of a job with all that it has started; whether there was anything. */
  stopJob(id: string): Promise<boolean>;
};

export function cronCommands(deps: CronCommandDeps): readonly Command[] {
  const { persons } = deps;
  return commandsOf(CRON_COMMANDS, {
    cron: (origin, argument) => cron(origin, argument, deps),
    quiet: (origin, argument) =>
      withPerson(origin, persons, (person) => quiet(person, argument, persons)),
  });
}

async function cron(
  origin: CommandOrigin,
  argument: string,
  deps: CronCommandDeps,
): Promise<string> {
  const { desk, askerOf } = deps.jobs;
  const asker = await askerOf(origin.message);
  if (asker === undefined) return 'I keep no jobs for you.';
  const [word = '', ...rest] = argument.split(/\s+/);
  const typed = rest.join(' ');
  if (word === '' || word === 'list') return listText(await desk.list(asker));
  if (word === 'stop') {
    const shown = await desk.find(typed, asker);
    const wasAtWork = await deps.stopJob(shown.job.id);
    return `${wasAtWork ? 'Its run is ended' : 'It is not at work'}: ${lineOf(shown)}`;
  }
  const mayBegin = asker.kind === 'operator' || asker.rights.schedule !== 'never';
  if (!mayBegin && word !== 'remove' && word !== 'disable') {
    return 'You may not have jobs of your own. My owner can change that.';
  }
  const [change, done] = CHANGES.find(([name]) => name === word) ?? [];
  if (change !== undefined) return `${done}: ${lineOf(await desk.change(typed, change, asker))}`;
  const wish = word === 'add' ? parseHead(argument.slice(word.length).trim()) : undefined;
  return wish === undefined ? HINT : `Made: ${lineOf(await desk.add(wish, asker))}`;
}

const CHANGES = [
  ['remove', 'Removed'],
  ['enable', 'Switched on'],
  ['disable', 'Switched off'],
  ['run', 'Runs now'],
] as const;

/** What the run of a job may have started. */
export type StartedWork = {
  readonly helpers: Pick<HelperView, 'stopAll'>;
  /** Undefined where workflows are off. */
  readonly workflows: Pick<WorkflowDesk, 'stopAll'> | undefined;
};

/** With all that its run has started; whether there was anything. */
export async function stopJob(
  id: string,
  desk: Pick<JobDesk, 'endRun'>,
  { helpers, workflows }: StartedWork,
): Promise<boolean> {
  const session = sessionKeyOf(jobChat(id));
  const wasAtWork = await desk.endRun(id);
  const helped = await helpers.stopAll(session);
  const ended = (await workflows?.stopAll(session)) ?? 0;
  return wasAtWork || helped + ended > 0;
}

function listText(jobs: readonly ShownJob[]): string {
  if (jobs.length === 0) return `There are no scheduled jobs. ${HINT}`;
  const lines = jobs.slice(0, MAX_LINES).map((job) => `- ${lineOf(job)}`);
  const left = jobs.length - lines.length;
  return [...lines, ...(left > 0 ? [`and ${left} more: \`nanobot cron list\``] : [])].join('\n');
}

/** The stars of an expression are no markup. */
const lineOf = ({ line }: ShownJob) => line.replaceAll('*', '\\*');

/** Takes the choice back. */
const AUTOMATIC = 'auto';
const QUIET_HINT = 'Say /quiet 22:00-07:00, /quiet off, or /quiet auto for what is configured.';

async function quiet(
  person: Person,
  argument: string,
  persons: CronCommandDeps['persons'],
): Promise<string> {
  if (argument === '') return `${quietWords(person.quietHours)} ${QUIET_HINT}`;
  const isAutomatic = argument.toLowerCase() === AUTOMATIC;
  const quietHours = isAutomatic ? undefined : quietHoursOf(argument);
  if (!isAutomatic && quietHours === undefined) {
    return `${verbatim(argument)} are no hours I know. ${QUIET_HINT}`;
  }
  await persons.change(person.id, (record) => withChoice(record, 'quietHours', quietHours));
  return quietWords(quietHours);
}

function quietWords(quietHours: string | undefined): string {
  if (quietHours === undefined) return 'Your quiet hours are those that are configured for all.';
  if (quietHours === NO_QUIET_HOURS) return 'You have no quiet hours.';
  return (
    `Quiet hours ${quietHours.replace('-', ' to ')}: I won't message you first. What comes up meanwhile arrives ` +
    'together at the end. Your messages are answered at once, and a reminder that you set for a time in ' +
    'these hours comes on time.'
  );
}
