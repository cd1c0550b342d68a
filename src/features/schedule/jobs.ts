// Makes and changes jobs for whoever may. Others than an owner see and touch only their own.

import type { Cron } from 'croner';
import { doorOf, isSameChat } from '../../kernel/access/person.ts';
import type { MessageId } from '../../kernel/message/ids.ts';
import { type ChatRef, chatRefOf } from '../../kernel/message/message.ts';
import type { JobAsker, JobDesk, ShownJob } from './job-askers.ts';
import type { JobRows } from './job-rows.ts';
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

export type JobDeskDeps = {
  readonly jobs: JobRows;
  readonly next: NextSlot;
  now(): number;
  /** IANA zone for whoever has chosen none; empty: the machine's. */
  timeZone(): string;
  randomBytes(size: number): Uint8Array;
  /** Whether what is sent to the chat lasts. */
  lasts(chat: ChatRef): boolean;
  /** A job was made or changed. */
  changed(): void;
  /** The name of a workflow with its inputs behind it. @throws JobError where it could not run now */
  checkWorkflow(typed: string): Promise<void>;
  /** Ends what runs of it. */
  stop(id: string): Promise<void>;
  /** Whether the message waits or is answered just now. */
  isPending(id: MessageId): Promise<boolean>;
  /** Whether a workflow runs for the job. */
  hasWorkflow(id: string): Promise<boolean>;
};

const MAX_JOBS = 500;
const MAX_JOBS_OF_ONE = 100;
const ID_BYTES = 4;
const LAST = 'last';

export function createJobDesk(deps: JobDeskDeps): JobDesk {
  const { next, now, lasts, changed } = deps;

  const zoneFor = (asker: JobAsker) =>
    (asker.kind === 'person' ? asker.person.timeZone : undefined) ?? deps.timeZone();

  function shown(job: Job, asker: JobAsker): ShownJob {
    const zone = zoneOf(job.schedule, zoneFor(asker));
    const slot = job.enabled && job.finishedAt === undefined ? job.nextAt : undefined;
    const idle = job.enabled ? 'not again' : 'switched off';
    const nextText = slot === undefined ? idle : slotText(slot, zone);
    const last = job.last === undefined ? '' : `; last ${job.last.how}`;
    const line = `${job.id} ${job.name}: ${scheduleText(job.schedule, zone)}; next: ${nextText}${last}`;
    return { job, line, next: nextText };
  }

  async function visible(asker: JobAsker): Promise<readonly Job[]> {
    const jobs = (await deps.jobs.all.list()).filter((job) => job.finishedAt === undefined);
    return jobs.filter((job) => isTheirs(job, asker));
  }

  const isUnderWay = async ({ id, running }: Job) =>
    running !== undefined && ((await deps.isPending(running)) || (await deps.hasWorkflow(id)));

  /** @throws JobError where there is none, or none of theirs. */
  async function found(id: string, asker: JobAsker): Promise<Job> {
    const jobs = await visible(asker);
    const job = jobs.find((each) => each.id === id) ?? onlyNamed(jobs, id);
    if (job !== undefined) return job;
    const known =
      jobs.length === 0 ? 'There is none.' : `There is ${jobs.map((each) => each.id).join(', ')}.`;
    throw new JobError(`There is no job "${id}". ${known}`, 'job_unknown');
  }

  async function changedJob(id: string, asker: JobAsker, step: (job: Job) => Job) {
    const job = await found(id, asker);
    const after = await deps.jobs.all.change(job.id, (each) => each && step(each));
    changed();
    return shown(after ?? job, asker);
  }

  return {
    async check(wish) {
      if (wish.kind === 'workflow') await deps.checkWorkflow(wish.text);
      // A moment is read by the clock of whoever asks.
      if (wish.cron === undefined) return;
      const schedule = readSchedule(wish, wish.timeZone ?? '', now());
      await firstSlot(next, schedule, now());
    },
    async add(wish, asker) {
      const text = wish.text.trim();
      if (text === '') throw new JobError('Say what is to be done.');
      if (text.length > MAX_JOB_CHARS) {
        throw new JobError(
          `That is longer than the ${MAX_JOB_CHARS} characters of a job; put it in a file.`,
        );
      }
      if (wish.kind === 'workflow') await deps.checkWorkflow(text);
      const all = await deps.jobs.all.list();
      const own = all.filter((job) => asker.kind === 'person' && isMadeBy(job.maker, asker));
      if (own.length >= MAX_JOBS_OF_ONE) {
        throw new JobError(
          `You have ${MAX_JOBS_OF_ONE} jobs, the most there may be. Remove one first.`,
        );
      }
      if (all.length >= MAX_JOBS) {
        throw new JobError(
          `There are ${MAX_JOBS} jobs of all people together, the most there may be. One must be removed first.`,
        );
      }
      const at = now();
      // "In 20 minutes" counts from the request, however long its approval took.
      const since = wish.at === undefined ? at : (wish.askedAt ?? at);
      const schedule = readSchedule(wish, wish.timeZone ?? zoneFor(asker), since);
      const nextAt = Math.max(at, await firstSlot(next, schedule, since));
      const job: Job = {
        id: newId(deps.randomBytes(ID_BYTES), all),
        name: jobName(wish.name, text),
        ...{ kind: wish.kind, text, schedule, nextAt },
        target: targetOf(wish.to, asker, lasts),
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
    async list(asker) {
      return (await visible(asker)).map((job) => shown(job, asker));
    },
    async remove(id, asker) {
      const job = await found(id, asker);
      await deps.jobs.remove(job.id);
      await deps.stop(job.id);
      changed();
      return shown(job, asker);
    },
    async setEnabled(id, enabled, asker) {
      const job = await found(id, asker);
      const { schedule } = job;
      // What was missed while it was off is not made up for.
      const nextAt = enabled ? await firstSlot(next, schedule, now()) : undefined;
      if (!enabled) await deps.stop(job.id);
      return changedJob(job.id, asker, (each) =>
        enabled ? { ...each, enabled, nextAt, failures: 0 } : { ...each, enabled },
      );
    },
    find: async (id, asker) => shown(await found(id, asker), asker),
    async atWork(chat) {
      const jobs = (await deps.jobs.all.list()).filter(({ maker }) => isMadeIn(maker, chat));
      const isOne = await Promise.all(jobs.map(isUnderWay));
      return jobs.filter((_job, at) => isOne[at]).map(({ id, name }) => ({ id, name }));
    },
    async endRun(id) {
      const job = await deps.jobs.all.get(id);
      const isOne = job !== undefined && (await isUnderWay(job));
      if (isOne) await deps.stop(id);
      return isOne;
    },
    runNow: (id, asker) => changedJob(id, asker, (job) => ({ ...job, runAsked: now() })),
  };
}

type PersonAsker = Extract<JobAsker, { readonly kind: 'person' }>;

function isTheirs(job: Job, asker: JobAsker): boolean {
  return asker.kind === 'operator' || asker.person.role === 'owner' || isMadeBy(job.maker, asker);
}

/** Two records of one person may have been joined since. */
function isMadeBy(maker: JobMaker, { person }: PersonAsker): boolean {
  if (maker.kind !== 'person') return false;
  const door = doorOf(person, maker.chat.channel);
  return maker.id === person.id || door?.ids.includes(maker.sender.id) === true;
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
function targetOf(
  to: string | undefined,
  asker: JobAsker,
  lasts: (chat: ChatRef) => boolean,
): JobTarget {
  const typed = to?.trim() ?? '';
  if (typed.toLowerCase() === LAST) return { kind: 'last' };
  if (asker.kind === 'operator') {
    if (typed === '') return { kind: 'last' };
    const chat = chatRefOf(typed);
    if (chat !== undefined) return { kind: 'chat', chat };
    throw new JobError(
      `"${typed}" is no chat: write channel:chat, e.g. telegram:123456789, or last.`,
    );
  }
  const { person, chat } = asker;
  if (typed === '') return lasts(chat) ? { kind: 'chat', chat } : { kind: 'last' };
  const door = doorOf(person, typed.toLowerCase());
  if (door?.chat !== undefined) return { kind: 'chat', chat: door.chat };
  const doors = person.doors.flatMap((each) => (each.chat === undefined ? [] : [each.channel]));
  throw new JobError(`"${typed}" is no door of yours; there is ${[...doors, LAST].join(', ')}.`);
}

/** @throws JobError */
function limitsOf({ tokensPerDay, moneyPerDay }: JobWish): Pick<Job, 'limits'> {
  const limits = {
    ...(tokensPerDay === undefined ? {} : { tokensPerDay }),
    ...(moneyPerDay === undefined ? {} : { moneyPerDay }),
  };
  if (Object.values(limits).some((each) => !(each > 0))) {
    throw new JobError('A limit of tokens or money is a number above 0.');
  }
  return Object.keys(limits).length === 0 ? {} : { limits };
}

function newId(bytes: Uint8Array, jobs: readonly Job[]): string {
  const id = `j${Buffer.from(bytes).toString('hex')}`;
  if (jobs.some((job) => job.id === id)) throw new JobError('Please try that again.');
  return id;
}

// The slots of a schedule. Each time of the wall clock counts once: what the clock jumps over runs as
// it jumps, what it shows twice runs the first time; only an expression without fixed times, such as
// "every hour", follows real time.

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
