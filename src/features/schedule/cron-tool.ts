// `/cron`, a person's scheduled jobs, and `/quiet`, the hours in which none of them may disturb the
// person.

import { z } from 'zod';
import { LOCAL_CHANNELS, LOCAL_OWNER } from '../../channels/local-channel.ts';
import { type Person, personChannelOf, withChoice } from '../../kernel/access/person.ts';
import { permissionOf, type Rights } from '../../kernel/access/rights.ts';
import {
  type Command,
  type CommandOrigin,
  type CommandTable,
  commandsOf,
  PERSONAL,
} from '../../kernel/commands/command-access.ts';
import { ToolError } from '../../kernel/message/errors.ts';
import {
  type ChatRef,
  type InboundMessage,
  idsOf,
  type PersonSender,
} from '../../kernel/message/message.ts';
import { verbatim } from '../../kernel/message/untrusted.ts';
import type { Persons } from '../../kernel/people/persons.ts';
import { shownText } from '../../kernel/questions/rules/question-text.ts';
import type { OfferUndo } from '../../kernel/questions/undo.ts';
import type { Origins } from '../../kernel/turns/origins.ts';
import { givenText } from '../../lib/json/json.ts';
import { headOf } from '../../lib/text/cut.ts';
import { t } from '../../lib/texts.ts';
import { NO_QUIET_HOURS, quietHoursOf } from '../../lib/time/quiet-hours.ts';
import type { Executor } from '../../tools/exec/executor.ts';
import { readDescription, type Tool, type ToolContext } from '../../tools/tool.ts';
import { withPerson } from '../people/index.ts';
import type { JobAsker, JobChange, JobService, ShownJob } from './jobs.ts';
import { type Gate, gateNeeds, readGate } from './rules/gate.ts';
import { type Job, type JobWish, jobWords, parseHead } from './rules/job.ts';
import { JobError, readSchedule, scheduleText } from './rules/schedule.ts';

const HINT =
  'Usage:\n' +
  t`- /cron add <when>: <what>, a task for me\n` +
  t`- /cron add say <when>: <text>, a reminder, for example /cron add say in 20m: tea is ready\n` +
  t`- /cron add workflow <when>: <name> key=value, a workflow\n` +
  t`- /cron remove | enable | disable | run | stop | runs <id>\n\n` +
  t`<when> is e.g. "at 08:00", "at 2026-01-31 08:00", "in 20m", "every 2h" or "0 8 * * 1-5".\n` +
  t`Behind it, a check without a model may decide about each run: when url <address>, file <path>, mail <words> or program <command>.`;
const MAX_LINES = 40;
const MAX_RUN_LINES = 10;

export const CRON_COMMANDS = {
  cron: {
    summary: t`list or change your scheduled jobs`,
    usage: '/cron [add <when>: <what> | remove | enable | disable | run | stop | runs <id>]',
    access: { direct: 'trusted', group: 'nobody', audited: true },
    timing: 'immediate',
  },
  quiet: {
    summary: t`set the hours in which I do not message you first`,
    usage: '/quiet [22:00-07:00 | off | auto]',
    access: PERSONAL,
    timing: 'immediate',
  },
} satisfies CommandTable;

type CronCommandDeps = {
  readonly jobs: JobAskers['jobs'];
  readonly persons: Pick<Persons, 'author' | 'get' | 'change'>;
  /** Ends the run of a job with all that it started; returns whether there was anything. */
  stopJob(id: string): Promise<boolean>;
  /** The ended runs of the job, newest first, one line each; `timeZone`: empty = the configured. */
  runsOf(job: Job, timeZone: string): Promise<readonly string[]>;
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
  const { service, askerOf } = deps.jobs;
  const asker = await askerOf(origin.message);
  if (asker === undefined) return t`I cannot keep jobs for you here.`;
  const [word = '', ...rest] = argument.split(/\s+/);
  const typed = rest.join(' ');
  if (word === '' || word === 'list') return listText(await service.list(asker));
  if (word === 'runs') {
    const { job } = await service.find(typed, asker);
    const timeZone = asker.kind === 'person' ? asker.person.timeZone : undefined;
    return runsText(job, await deps.runsOf(job, timeZone ?? ''));
  }
  if (word === 'stop') {
    const shown = await service.find(typed, asker);
    const wasAtWork = await deps.stopJob(shown.job.id);
    return `${wasAtWork ? t`Run stopped` : t`The job is not running`}: ${lineOf(shown)}`;
  }
  const wish = word === 'add' ? parseHead(argument.slice(word.length).trim()) : undefined;
  const rights = asker.kind === 'operator' ? undefined : asker.rights;
  const mayRemind = rights?.own?.includes('schedule') === true && (wish?.kind ?? 'say') === 'say';
  const mayBegin = rights?.schedule !== 'never' || mayRemind;
  if (!mayBegin && word !== 'remove' && word !== 'disable') {
    return t`You may not have scheduled jobs. My owner can change that.`;
  }
  const gate = wish?.when === undefined ? undefined : readGate(wish.when);
  if (gate !== undefined && !mayCheck(gate, asker)) {
    return t`You may not have jobs with that check. My owner can set one up.`;
  }
  if (isChange(word)) {
    return `${CHANGED[word]}: ${lineOf(await service.change(typed, word, asker))}`;
  }
  return wish === undefined ? HINT : t`Created: ${lineOf(await service.add(wish, asker))}`;
}

/** What a person types needs no approval where they could give it themselves. */
function mayCheck(gate: Gate, asker: JobAsker): boolean {
  if (asker.kind === 'operator') return true;
  return rightsAllow(gate, asker.rights, asker.person.role === 'owner');
}

export function rightsAllow(gate: Gate, rights: Rights, isOwner: boolean): boolean {
  const { access, reach } = gateNeeds(gate, 'outside');
  const permission = permissionOf(access, rights, false, reach);
  return permission === 'free' || (permission === 'ask' && isOwner);
}

const isChange = (word: string): word is JobChange => Object.hasOwn(CHANGED, word);

const CHANGED: Readonly<Record<JobChange, string>> = {
  remove: t`Removed`,
  enable: t`Enabled`,
  disable: t`Disabled`,
  run: t`Started now; the schedule stays as it is`,
};

function listText(jobs: readonly ShownJob[]): string {
  if (jobs.length === 0) return t`There are no scheduled jobs. ${HINT}`;
  return cut(jobs.map(lineOf), MAX_LINES, (left) => t`and ${left} more: \`nanobot cron list\``);
}

function runsText({ id, name }: Job, lines: readonly string[]): string {
  if (lines.length === 0) return t`${verbatim(name)} has not run yet.`;
  return cut(
    lines.map(verbatim),
    MAX_RUN_LINES,
    (left) => t`and ${left} more: \`nanobot cron runs ${id}\``,
  );
}

/** `rest`: says how many more there are, and where. */
function cut(lines: readonly string[], most: number, rest: (left: number) => string): string {
  const shown = lines.slice(0, most).map((line) => `- ${line}`);
  const left = lines.length - shown.length;
  return [...shown, ...(left > 0 ? [rest(left)] : [])].join('\n');
}

/** The stars of a cron expression are no markup. */
const lineOf = ({ line }: ShownJob) => line.replaceAll('*', '\\*');

/** Resets the choice. */
const AUTOMATIC = 'auto';
const QUIET_HINT = t`Usage: /quiet 22:00-07:00, /quiet Sun-Thu 22:00-07:00, Fri-Sat 23:30-09:00, /quiet off, or /quiet auto for the configured hours.`;

async function quiet(
  person: Person,
  argument: string,
  persons: CronCommandDeps['persons'],
): Promise<string> {
  if (argument === '') return `${quietWords(person.quietHours)} ${QUIET_HINT}`;
  const isAutomatic = argument.toLowerCase() === AUTOMATIC;
  const quietHours = isAutomatic ? undefined : quietHoursOf(argument);
  if (!isAutomatic && quietHours === undefined) {
    return t`${verbatim(argument)} are not hours I understand. ${QUIET_HINT}`;
  }
  await persons.change(person.id, (record) => withChoice(record, 'quietHours', quietHours));
  return quietWords(quietHours);
}

function quietWords(quietHours: string | undefined): string {
  if (quietHours === undefined) return t`You use the quiet hours of the configuration.`;
  if (quietHours === NO_QUIET_HOURS) return t`You have no quiet hours.`;
  return (
    t`Quiet hours ${quietHours.replaceAll(/(?<=\d)-/g, ' to ')}: I won't message you first. Anything else arrives ` +
    t`together at the end. I still answer your messages at once, and reminders that you set for these ` +
    t`hours come on time.`
  );
}

// Tool: makes, shows and changes scheduled jobs of the asking person.

export type Schedules = JobAskers['schedules'];

const MAX_TEXT_CHARS = 10_000;
const MAX_WORD_CHARS = 200;
const DETAIL_CHARS = 60;

const word = (description: string, most = MAX_WORD_CHARS) =>
  givenText(most).optional().describe(description);

const input = z.object({
  action: z
    .enum(['add', 'list', 'remove', 'enable', 'disable', 'run'])
    .describe('run: once now, in addition to its schedule.'),
  id: word(t`Job id; for remove, enable, disable and run.`),
  text: word(t`For add. The whole task: nobody can be asked at that time.`, MAX_TEXT_CHARS),
  kind: z
    .enum(['ask', 'say', 'workflow'])
    .optional()
    .describe(
      'For add. say: sends the text itself, a reminder; ask (default): you do what it says; workflow: the ' +
        'text is a workflow name with inputs as key=value.',
    ),
  name: word(t`For add. A few words.`),
  at: word(
    t`Once: "2026-01-31 08:00" or "08:00" in the person's time zone, "in 20m", or ISO 8601.`,
  ),
  every: word(t`Repeated: "30m", "2h", "1d"; a bare number is seconds.`),
  cron: word(t`Five fields in the person's time zone: "0 8 * * 1-5".`),
  when: word(
    t`Check before each run, without a model; nothing runs unless it finds something. "url https://...", ` +
      t`"file notes/x.md": changed; "mail words": a new mail with them; "program ./check.sh": exit status 0 runs, 1 does not.`,
    MAX_TEXT_CHARS,
  ),
  time_zone: word(t`IANA name, if not the person's zone.`),
  to: word(
    t`Where the result goes: a channel of the person (telegram, web, ...) or last; default: this chat.`,
  ),
});
type Input = z.infer<typeof input>;

type Programs = Pick<Executor, 'isIsolated' | 'seal' | 'confinement' | 'defaultTimeoutMs'>;

/** `programs`: runs the programs that decide whether a job starts. */
export function createCron(schedules: Schedules, programs?: Programs): Tool<Input> {
  const reach = () => (programs?.isIsolated() === true ? 'machine' : 'outside');

  async function run(asked: Input, context: ToolContext): Promise<string> {
    const todo = todoOf(asked);
    if (todo.kind === 'list') return schedules.list(context);
    const { askedAt, requestedAt, seal } = context;
    // Created without an approval, so a button takes it back.
    const isUnasked = askedAt === undefined;
    if (todo.kind === 'add')
      return schedules.add({ ...todo.wish, requestedAt, seal }, context, isUnasked);
    return schedules.change(todo.id, todo.kind, context);
  }

  return {
    name: 'cron',
    ...readDescription('cron'),
    aliases: ['schedule', 'every', 'timer', 'periodic', 'reminder'],
    parameterAliases: {
      id: ['job_id', 'job'],
      text: ['message', 'task', 'prompt', 'content'],
      at: ['time', 'date'],
      when: ['check', 'condition', 'only_if'],
      every: ['interval', 'every_seconds', 'interval_seconds', 'seconds'],
      cron: ['cron_expr', 'expression', 'expr'],
      time_zone: ['tz'],
    },
    access: 'schedule',
    accessOf: ({ action }) => (action === 'list' ? 'read' : 'schedule'),
    isForOneself: true,
    // A job reports only to its maker. One that calls a model has effects of its own, with their
    // approvals.
    reachOf: ({ action, kind }) => (action === 'add' && kind !== 'say' ? 'machine' : 'self'),
    input,
    // The check before a run has the rights that the tool with the same effect needs.
    needs: ({ when }) => {
      const gate = when === undefined ? undefined : gateIn(when);
      return gate === undefined ? [] : [gateNeeds(gate, reach())];
    },
    urlOf({ when }) {
      const gate = when === undefined ? undefined : gateIn(when);
      return gate?.kind === 'url' ? gate.url : undefined;
    },
    // No approval is requested for a job that could not be made.
    async sealOf(asked, { workspace }) {
      const todo = todoOf(asked);
      if (todo.kind !== 'add') return '';
      await schedules.check(todo.wish);
      const gate = asked.when === undefined ? undefined : readGate(asked.when);
      if (gate?.kind !== 'program' || programs === undefined) return '';
      const timeoutMs = programs.defaultTimeoutMs();
      const work = { kind: 'argv', argv: gate.argv } as const;
      return programs.seal({ work, folder: '.', timeoutMs }, workspace);
    },
    requestOf: (asked, { now, timeZone }) =>
      asked.action === 'add'
        ? jobWords(asked, now, timeZone, programs?.confinement() ?? '')
        : {
            sentence: t`${capitalised(asked.action)} the job ${verbatim(shownText(asked.id ?? ''))}?`,
          },
    describe: ({ action, id, name, text = '' }) =>
      `${action} ${id ?? name ?? headOf(text, DETAIL_CHARS)}`.trim(),
    run,
  };
}

/** Undefined where it is invalid, as `run` then explains. */
function gateIn(typed: string): Gate | undefined {
  try {
    return readGate(typed);
  } catch {
    return undefined;
  }
}

const capitalised = (word: string) => word.charAt(0).toUpperCase() + word.slice(1);

type Todo =
  | { readonly kind: 'list' }
  | { readonly kind: 'add'; readonly wish: JobWish }
  | { readonly kind: JobChange; readonly id: string };

/** @throws JobError, ToolError where the request is invalid at any time */
function todoOf(asked: Input): Todo {
  const { action, id, text, kind = 'ask', name, at, every, cron, time_zone, to, when } = asked;
  if (action === 'list') return { kind: action };
  if (action !== 'add') {
    if (id === undefined)
      throw new ToolError('invalid_arguments', `${action} needs the id of a job`);
    return { kind: action, id };
  }
  if (text === undefined) throw new ToolError('invalid_arguments', 'add needs a text');
  const isMoment = at !== undefined && every === undefined && cron === undefined;
  // A moment is read when the job is made, in the time zone of the asking person.
  if (!isMoment) readSchedule({ at, every, cron }, time_zone ?? '', 0);
  if (when !== undefined) readGate(when);
  return {
    kind: action,
    wish: { text, kind, name, at, every, cron, timeZone: time_zone, to, when },
  };
}

// Determines who asks for a job: from a message, or from the chat whose turn calls the tool. Jobs
// are made only in private chats, by a verified sender.

type JobAskersDeps = {
  readonly service: JobService;
  readonly persons: Pick<Persons, 'author' | 'inChat' | 'of'>;
  readonly origins: Origins;
  readonly offerUndo: OfferUndo;
};

type ScheduleAsker = Pick<ToolContext, 'chat' | 'rights' | 'isTainted'>;

/** The subject kind of taking back a new job. */
export const JOB_UNDO = 'undo-job';

type JobAskers = ReturnType<typeof createJobAskers>;

export function createJobAskers({ service, persons, origins, offerUndo }: JobAskersDeps) {
  /** @throws JobError */
  async function askerIn({ chat, rights, isTainted }: ScheduleAsker): Promise<JobAsker> {
    // The sender on a local channel, in any chat there.
    const isLocal = LOCAL_CHANNELS.some(({ channel }) => channel === chat.channel);
    const own = isLocal ? LOCAL_OWNER : undefined;
    const person = await (own === undefined
      ? persons.inChat(chat)
      : persons.of(chat.channel, idsOf(own)));
    const sender = own ?? (person && senderAt(person, chat));
    if (person === undefined || sender === undefined) {
      throw new JobError(
        t`Jobs are created only in a private chat with the person, not in groups or by other jobs. Tell the user.`,
      );
    }
    return { kind: 'person', person, sender, chat, rights, isTainted, isModel: true };
  }

  return {
    /** For commands. */
    jobs: {
      service,
      /** Undefined where the sender is not verified, or it is not a private chat. */
      async askerOf(message: InboundMessage): Promise<JobAsker | undefined> {
        const { sender, chat, addressing, group } = message;
        const isSure = sender.kind === 'person' && sender.verified !== 'unverified';
        if (!isSure || addressing !== 'direct' || group !== undefined) return undefined;
        const person = await persons.author(message);
        if (person === undefined) return undefined;
        const { rights, isForeign: isTainted } = await origins(message);
        return { kind: 'person', person, sender, chat, rights, isTainted };
      },
    },
    /** For the tool: all answers are texts for the model. @throws JobError */
    schedules: {
      check: (wish: JobWish) => service.check(wish),
      async add(wish: JobWish, asking: ScheduleAsker, isUndoable: boolean): Promise<string> {
        const asker = await askerIn(asking);
        const shown = await service.add(wish, asker);
        const { job, line, next } = shown;
        if (isUndoable && asker.kind === 'person') {
          const what = job.kind === 'say' ? t`Reminder set` : t`Job set`;
          const { name, schedule } = job;
          const rule = schedule.kind === 'at' ? '' : t`${scheduleText(schedule, '')}; next: `;
          const text = `${what}: ${verbatim(name)}, ${rule}${next}.`;
          await offerUndo({ subject: JOB_UNDO, id: job.id, text, to: asker });
        }
        return `Created: ${line}`;
      },
      async list(asking: ScheduleAsker): Promise<string> {
        const jobs = await service.list(await askerIn(asking));
        return jobs.length === 0 ? t`There are no jobs.` : jobs.map(({ line }) => line).join('\n');
      },
      async change(id: string, change: JobChange, asking: ScheduleAsker): Promise<string> {
        const { line } = await service.change(id, change, await askerIn(asking));
        return `${CHANGED[change]}: ${line}`;
      },
    },
  };
}

function senderAt(person: Person, chat: ChatRef): PersonSender | undefined {
  const [id, ...alsoKnownAs] = personChannelOf(person, chat.channel)?.ids ?? [];
  if (id === undefined) return undefined;
  return { kind: 'person', id, alsoKnownAs, name: person.name, verified: 'verified' };
}
