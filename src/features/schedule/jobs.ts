// Creates and changes jobs. Everybody except owners sees and changes only their own.

import { randomBytes } from 'node:crypto';
import type { Cron } from 'croner';
import { LOCAL_CHANNELS } from '../../channels/local-channel.ts';
import { isSameChat, type Person, personChannelOf } from '../../kernel/access/person.ts';
import type { Rights } from '../../kernel/access/rights.ts';
import type { EmbeddedStore } from '../../kernel/bus/store/store.ts';
import { type ChatRef, chatRefOf, type PersonSender } from '../../kernel/message/message.ts';
import { RecentMap } from '../../lib/async.ts';
import { defined } from '../../lib/json/json.ts';
import { t } from '../../lib/texts.ts';
import { WorkflowError, workflowSession } from '../workflows/index.ts';
import type { JobRows } from './job-rows.ts';
import { gateText, readGate } from './rules/gate.ts';
import {
  type Job,
  type JobMaker,
  type JobTarget,
  type JobWish,
  jobName,
  MAX_JOB_CHARS,
} from './rules/job.ts';
import {
  JobError,
  nextPlainSlot,
  readSchedule,
  type Schedule,
  scheduleText,
  slotText,
  zoneOf,
} from './rules/schedule.ts';
import { jobSession } from './settings.ts';

export type JobAsker =
  /** At the command line of the machine. */
  | { readonly kind: 'operator' }
  | {
      readonly kind: 'person';
      readonly person: Person;
      readonly sender: PersonSender;
      readonly chat: ChatRef;
      /** Their rights there. */
      readonly rights: Rights;
      /** They, or the turn that asks for them, saw untrusted content. */
      readonly isTainted: boolean;
      /** A model asks on their behalf. */
      readonly isModel?: true;
    };

/** `next`: text of the next slots in the job's zone. */
export type ShownJob = { readonly job: Job; readonly line: string; readonly next: string };

export type JobChange = 'remove' | 'enable' | 'disable' | 'run';

type JobServiceDeps = {
  readonly jobs: JobRows;
  readonly bus: Pick<EmbeddedStore, 'cancel' | 'trace'>;
  readonly next: NextSlot;
  now(): number;
  /** IANA zone for people without one; empty: the machine's. */
  timeZone(): string;
  /** cron.enabled */
  isOn(): boolean;
  /** Called after a job was made or changed. */
  changed(): void;
  /**
   * The name of a workflow followed by its inputs.
   * @throws WorkflowError where it could not run now
   */
  checkWorkflow(typed: string): Promise<void>;
  /** Ids of the runs of workflows that this job started and that have not ended. */
  workflowsOf(job: string): Promise<readonly string[]>;
};

const MAX_JOBS = 500;
const MAX_JOBS_OF_ONE = 100;
const ID_BYTES = 4;
const LAST = 'last';

export type JobService = ReturnType<typeof createJobService>;

/** The same for chat, tool and command line. Errors are JobError. */
export function createJobService(deps: JobServiceDeps) {
  const { next, now, changed, bus } = deps;

  const zoneFor = (asker: JobAsker) =>
    (asker.kind === 'person' ? asker.person.timeZone : undefined) ?? deps.timeZone();

  function shown(job: Job, asker: JobAsker): ShownJob {
    const zone = zoneOf(job.schedule, zoneFor(asker));
    const slot = job.enabled && job.finishedAt === undefined ? job.nextAt : undefined;
    const idle = job.enabled ? 'never' : 'disabled';
    const waiting = deps.isOn() ? '' : t`, waits until cron.enabled is true`;
    const nextText = slot === undefined ? idle : `${slotText(slot, zone)}${waiting}`;
    const last = job.last === undefined ? '' : t`; last ${job.last.how}`;
    const check = job.when === undefined ? '' : t` when ${gateText(job.when)}`;
    const line = t`${job.id} ${job.name}: ${scheduleText(job.schedule, zone)}${check}; next: ${nextText}${last}${checkedText(job, zone)}`;
    return { job, line, next: nextText };
  }

  async function visible(asker: JobAsker): Promise<readonly Job[]> {
    const jobs = (await deps.jobs.all.list()).filter((job) => job.finishedAt === undefined);
    return jobs.filter((job) => isTheirs(job, asker));
  }

  async function isUnderWay({ id, running }: Job): Promise<boolean> {
    if (running === undefined) return false;
    const isPending = (await bus.trace(running))?.state === 'pending';
    return isPending || (await deps.workflowsOf(id)).length > 0;
  }

  /** Ends the runs of a job. */
  async function stop(id: string): Promise<void> {
    await bus.cancel(jobSession(id), 'the job was stopped');
    for (const run of await deps.workflowsOf(id)) {
      await bus.cancel(workflowSession(run), 'the job was stopped');
    }
  }

  /** @throws JobError where it could not run now */
  async function checkWorkflow(typed: string): Promise<void> {
    try {
      await deps.checkWorkflow(typed);
    } catch (error) {
      if (error instanceof WorkflowError) throw new JobError(error.message);
      throw error;
    }
  }

  /** @throws JobError where there is none, or none of theirs */
  async function found(id: string, asker: JobAsker): Promise<Job> {
    const jobs = await visible(asker);
    const job = jobs.find((each) => each.id === id) ?? onlyNamed(jobs, id);
    if (job !== undefined) return job;
    const known =
      jobs.length === 0
        ? t`There is none.`
        : t`There is ${jobs.map((each) => each.id).join(', ')}.`;
    throw new JobError(t`There is no job "${id}". ${known}`, 'job_unknown');
  }

  async function changedJob(id: string, asker: JobAsker, step: (job: Job) => Job) {
    const job = await found(id, asker);
    const after = await deps.jobs.all.change(job.id, (each) => each && step(each));
    changed();
    return shown(after ?? job, asker);
  }

  async function remove(id: string, asker: JobAsker): Promise<ShownJob> {
    const job = await found(id, asker);
    await deps.jobs.remove(job.id);
    await stop(job.id);
    changed();
    return shown(job, asker);
  }

  async function setEnabled(id: string, enabled: boolean, asker: JobAsker): Promise<ShownJob> {
    const job = await found(id, asker);
    const { schedule } = job;
    // Slots missed while it was disabled are not made up for.
    const nextAt = enabled ? await firstSlot(next, schedule, now()) : undefined;
    if (!enabled) await stop(job.id);
    // Changes meanwhile are not made up for either. Only a person accepts a changed program.
    const keepsMark = job.when?.kind === 'program' && asker.kind === 'person' && asker.isModel;
    const gate = keepsMark === true ? job.gate : undefined;
    return changedJob(job.id, asker, (each) =>
      enabled ? { ...each, enabled, nextAt, failures: 0, gate } : { ...each, enabled },
    );
  }

  /** Runs it once beside its schedule, as soon as possible. */
  const runNow = (id: string, asker: JobAsker) =>
    changedJob(id, asker, (job) => ({ ...job, runAsked: now() }));

  return {
    /** Whether a run could start for any person. */
    async check(wish: JobWish): Promise<void> {
      if (wish.kind === 'workflow') await checkWorkflow(wish.text);
      if (wish.when !== undefined) readGate(wish.when);
      // A moment is in the time zone of the asking person.
      if (wish.cron === undefined) return;
      const schedule = readSchedule(wish, wish.timeZone ?? '', now());
      await firstSlot(next, schedule, now());
    },
    async add(wish: JobWish, asker: JobAsker): Promise<ShownJob> {
      const text = wish.text.trim();
      if (text === '') throw new JobError(t`Add what is to be done.`);
      if (text.length > MAX_JOB_CHARS) {
        throw new JobError(
          t`A job may have at most ${MAX_JOB_CHARS} characters; put longer text in a file.`,
        );
      }
      if (wish.kind === 'workflow') await checkWorkflow(text);
      const all = await deps.jobs.all.list();
      const own = all.filter((job) => asker.kind === 'person' && isMadeBy(job.maker, asker));
      if (own.length >= MAX_JOBS_OF_ONE) {
        throw new JobError(t`You have ${MAX_JOBS_OF_ONE} jobs, the maximum. Remove one first.`);
      }
      if (all.length >= MAX_JOBS) {
        throw new JobError(
          t`There are ${MAX_JOBS} jobs of all people together, the maximum. Remove one first.`,
        );
      }
      const at = now();
      // "In 20 minutes" counts from the request, however long the model and an approval took.
      const since = wish.at === undefined ? at : (wish.requestedAt ?? at);
      const schedule = readSchedule(wish, wish.timeZone ?? zoneFor(asker), since);
      const nextAt = Math.max(at, await firstSlot(next, schedule, since));
      const job: Job = {
        id: newId(all),
        name: jobName(wish.name, text),
        ...{ kind: wish.kind, text, schedule, nextAt, ...gateOf(wish, asker, at) },
        target: targetOf(wish.to, asker),
        maker: makerOf(asker),
        ...(asker.kind === 'person' && asker.isTainted ? { isTainted: true } : {}),
        ...limitsOf(wish),
        enabled: true,
        deleteAfterRun: wish.deleteAfterRun ?? schedule.kind === 'at',
        createdAt: at,
        failures: 0,
      };
      await deps.jobs.all.change(job.id, () => job);
      changed();
      return shown(job, asker);
    },
    /** Their own; an owner and the operator see all. */
    async list(asker: JobAsker): Promise<readonly ShownJob[]> {
      return (await visible(asker)).map((job) => shown(job, asker));
    },
    change(id: string, change: JobChange, asker: JobAsker): Promise<ShownJob> {
      if (change === 'remove') return remove(id, asker);
      if (change === 'run') return runNow(id, asker);
      return setEnabled(id, change === 'enable', asker);
    },
    /** The job with this id or name. */
    find: async (id: string, asker: JobAsker) => shown(await found(id, asker), asker),
    /** Jobs made in this chat whose run has not ended. */
    async atWork(
      chat: ChatRef,
    ): Promise<readonly { readonly id: string; readonly name: string }[]> {
      const jobs = (await deps.jobs.all.list()).filter(({ maker }) => isMadeIn(maker, chat));
      const isOne = await Promise.all(jobs.map(isUnderWay));
      return jobs.filter((_job, at) => isOne[at]).map(({ id, name }) => ({ id, name }));
    },
    /** Ends the current run; the schedule stays. Returns whether there was one. */
    async endRun(id: string): Promise<boolean> {
      const job = await deps.jobs.all.get(id);
      const isOne = job !== undefined && (await isUnderWay(job));
      if (isOne) await stop(id);
      return isOne;
    },
  };
}

type PersonAsker = Extract<JobAsker, { readonly kind: 'person' }>;

function isTheirs(job: Job, asker: JobAsker): boolean {
  return asker.kind === 'operator' || asker.person.role === 'owner' || isMadeBy(job.maker, asker);
}

/** @throws JobError */
function gateOf({ when: typed, seal }: JobWish, asker: JobAsker, at: number): Partial<Job> {
  if (typed === undefined) return {};
  const when = readGate(typed);
  if (when.kind === 'mail' && asker.kind === 'person' && asker.person.role !== 'owner') {
    throw new JobError(t`Only an owner’s job may look into the mailbox.`);
  }
  // Approved were the files of the program as they were then.
  const isSealed = when.kind === 'program' && seal !== undefined && seal !== '';
  return isSealed ? { when, gate: { mark: seal, at, quiet: 0, failures: 0 } } : { when };
}

/** `; checked 12 times since the last run, 08:05`. */
function checkedText({ gate, when }: Job, zone: string): string {
  if (when === undefined || gate === undefined) return '';
  if (gate.failures > 0) return t`; its check fails: ${gate.reason ?? t`unknown reason`}`;
  const times = t`${gate.quiet} time${gate.quiet === 1 ? '' : 's'}`;
  return t`; checked ${times} since the last run, ${slotText(gate.at, zone)}`;
}

/** Two records of one person may have been linked since. */
function isMadeBy(maker: JobMaker, { person }: PersonAsker): boolean {
  if (maker.kind !== 'person') return false;
  const personChannel = personChannelOf(person, maker.chat.channel);
  return maker.id === person.id || personChannel?.ids.includes(maker.sender.id) === true;
}

const isMadeIn = (maker: JobMaker, chat: ChatRef) =>
  maker.kind === 'person' && isSameChat(maker.chat, chat);

function onlyNamed(jobs: readonly Job[], typed: string): Job | undefined {
  const named = jobs.filter(({ name }) => name.toLowerCase() === typed.trim().toLowerCase());
  return named.length === 1 ? named[0] : undefined;
}

function makerOf(asker: JobAsker): JobMaker {
  if (asker.kind === 'operator') return asker;
  const { person, sender, chat, rights } = asker;
  return { kind: 'person', id: person.id, name: person.name, sender, chat, rights };
}

/** @throws JobError */
function targetOf(to: string | undefined, asker: JobAsker): JobTarget {
  const typed = to?.trim() ?? '';
  if (typed.toLowerCase() === LAST) return { kind: 'last' };
  if (asker.kind === 'operator') {
    if (typed === '') return { kind: 'last' };
    const chat = chatRefOf(typed);
    if (chat !== undefined) return { kind: 'chat', chat };
    throw new JobError(
      t`"${typed}" is not a chat: write channel:chat, e.g. telegram:123456789, or last.`,
    );
  }
  const { person, chat } = asker;
  if (typed === '') return lasts(chat) ? { kind: 'chat', chat } : { kind: 'last' };
  const personChannel = personChannelOf(person, typed.toLowerCase());
  if (personChannel?.chat !== undefined) return { kind: 'chat', chat: personChannel.chat };
  const doors = person.doors.flatMap((each) => (each.chat === undefined ? [] : [each.channel]));
  throw new JobError(
    t`"${typed}" is not one of your channels; use one of: ${[...doors, LAST].join(', ')}.`,
  );
}

/** @throws JobError */
function limitsOf({ tokensPerDay, moneyPerDay }: JobWish): Pick<Job, 'limits'> {
  const limits = defined({ tokensPerDay, moneyPerDay });
  if (Object.values(limits).some((each) => !(each > 0))) {
    throw new JobError(t`A limit for tokens or money must be above 0.`);
  }
  return Object.keys(limits).length === 0 ? {} : { limits };
}

/** Whether the chat keeps what is sent to it. */
const lasts = ({ channel }: ChatRef) =>
  !LOCAL_CHANNELS.some((local) => local.channel === channel && !local.lasts);

function newId(jobs: readonly Job[]): string {
  const id = `j${randomBytes(ID_BYTES).toString('hex')}`;
  if (jobs.some((job) => job.id === id)) throw new JobError(t`Please try that again.`);
  return id;
}

// The slots of a schedule. Each time of the wall clock counts once: a skipped time runs at the
// skip, a repeated one runs the first time; only an expression without fixed times, such as "every
// hour", follows elapsed time.

export type NextSlot = (schedule: Schedule, afterMs: number) => Promise<number | undefined>;

const MAX_KEPT = 200;

/** Loads the cron parser with the first expression. */
export function createNextSlot(): NextSlot {
  const kept = new RecentMap<string, Cron>(MAX_KEPT);

  async function cronOf(expression: string, timeZone: string): Promise<Cron> {
    const key = `${timeZone} ${expression}`;
    const known = kept.get(key);
    if (known !== undefined) return known;
    const { Cron: Expression } = await import('croner');
    const options = { timezone: timeZone, paused: true, mode: '5-part' } as const;
    const cron = new Expression(expression, { ...options, fixedTimeRule: 'no-wildcard' });
    kept.set(key, cron);
    return cron;
  }

  return async (schedule, afterMs) => {
    if (schedule.kind !== 'cron') return nextPlainSlot(schedule, afterMs);
    const cron = await cronOf(schedule.expression, schedule.timeZone);
    return cron.nextRun(new Date(afterMs))?.getTime();
  };
}

/**
 * The first slot of a new job.
 * @throws JobError where there is none or the expression is invalid
 */
async function firstSlot(next: NextSlot, schedule: Schedule, nowMs: number): Promise<number> {
  const at = await next(schedule, nowMs).catch((error: unknown) => {
    const reason = error instanceof Error ? error.message.replace(/^CronPattern: /, '') : '';
    const { expression = '' } = schedule.kind === 'cron' ? schedule : {};
    throw new JobError(
      t`"${expression}" is not a cron expression (${reason}). Write minute, hour, day of month, month and day of ` +
        t`week, e.g. "0 8 * * 1-5" for 08:00 on weekdays.`,
    );
  });
  if (at !== undefined) return at;
  throw new JobError(t`That schedule never runs. Write one that does.`);
}
