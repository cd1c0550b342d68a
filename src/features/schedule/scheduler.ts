// Fires jobs when they are due. A run is named after its job and its slot, so that a slot which is
// fired again after a crash is a duplicate; after a time away each job runs once for all it missed.
// Between two slots it sleeps, and looks at the clock on the wall at least once a minute.

import { narrowed, type Rights, UNRESTRICTED } from '../../kernel/access/rights.ts';
import type { MessageBus } from '../../kernel/bus/bus.ts';
import type { KeyValueStore } from '../../kernel/bus/store/store.ts';
import { type MessageId, messageId } from '../../kernel/message/ids.ts';
import { OWNER_TURN } from '../../kernel/message/untrusted.ts';
import type { Logger } from '../../lib/logger.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { createDayText, isWithinHours, readHours } from '../../lib/time/zone-time.ts';
import type { JobRows } from './job-rows.ts';
import type { NextSlot } from './jobs.ts';
import {
  asksForSomething,
  dueAt,
  ended,
  fired,
  HEARTBEAT,
  heartbeatText,
  isLateRun,
  type Job,
  type JobEnding,
  retryMs,
} from './rules/job.ts';
import { hasChosenTimes, slotText, zoneOf } from './rules/schedule.ts';
import { jobChat } from './settings.ts';

/** One run of a job, as it is handed on. */
export type Run = {
  readonly job: Job;
  readonly id: MessageId;
  /** When it should have run, in words, where it runs late. */
  readonly due?: string;
  /** The time that a person chose for it, epoch milliseconds. */
  readonly chosenAt?: number;
};

export type Started =
  /** The agent is asked; `ended` tells when that is over. */
  | { readonly kind: 'asked' }
  /** There was nothing to ask. */
  | { readonly kind: 'said' }
  /** Nobody stands for it any more. */
  | { readonly kind: 'nobody'; readonly reason: string };

type SchedulerDeps = {
  readonly jobs: JobRows;
  readonly next: NextSlot;
  readonly bus: Pick<MessageBus, 'trace'>;
  readonly clock: Clock;
  readonly log: Logger;
  /** IANA zone for what has none of its own; empty: the machine's. */
  timeZone(): string;
  maxFailures(): number;
  /** Jobs run; else they only wait. */
  isOn(): boolean;
  /** Another number once another process has written. */
  revision(): number;
  /** Durable when resolved; the same id once. */
  start(run: Run): Promise<Started>;
  /** Tells whoever made the job of trouble with it; the same id once. */
  tell(job: Job, id: string, text: string): Promise<void>;
  /** Tells an owner of a job that nobody stands for. */
  tellOwner(text: string): void;
};

/** How soon jobs are noticed that another process (a command) made. */
const OUTSIDE_MS = 5000;
const LONGEST_SLEEP_MS = 60_000;
/** A clock that is put back by less is only put right. */
const PUT_BACK_MS = 10 * 60_000;
/** The owner hears of a job that could not be started so often. */
const TOLD_FAILURES = 3;
/** What a finished job still says has gone out by then. */
const KEEP_FINISHED_MS = 86_400_000;

export type Scheduler = ReturnType<typeof createScheduler>;

export function createScheduler(deps: SchedulerDeps) {
  const { jobs, next, bus, clock, log, timeZone, maxFailures, isOn, revision, start } = deps;
  const { tell, tellOwner } = deps;
  /** Jobs that could not be started, until when they wait (epoch milliseconds); a restart tries them all. */
  const putOff = new Map<string, { readonly failures: number; readonly until: number }>();
  let change = Promise.withResolvers<void>();
  const waitsUntil = ({ id }: Job) => putOff.get(id)?.until ?? 0;
  const zone = (job: Job) => zoneOf(job.schedule, timeZone());

  /** A job was made or changed in this process. */
  function changed(): void {
    change.resolve();
  }

  async function run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      change = Promise.withResolvers<void>();
      await fireDue();
      if (signal.aborted) return;
      await rest(signal);
    }
  }

  /** The run is over; told twice of the same run, the second changes nothing. */
  async function runEnded(
    id: string,
    run: MessageId,
    how: JobEnding,
    detail?: string,
  ): Promise<void> {
    const job = await jobs.all.get(id);
    if (job === undefined || job.last?.run === run) return;
    const now = clock.now();
    const retry = { at: await retryAt(job, now), maxFailures: maxFailures() };
    const over = { message: run, how, now, ...(detail === undefined ? {} : { detail }) };
    const after = await jobs.all.change(id, (each) =>
      each === undefined || each.last?.run === run ? undefined : ended(each, over, retry),
    );
    changed();
    if (after === undefined) return;
    log.info('job ended', { job: id, how, failures: after.failures });
    const text = await troubleText(job, after, { now, zone: zone(job), next });
    if (text !== undefined) await tell(after, `${run}/trouble`, text);
  }

  /** A failed job waits longer each time, and then for a slot of its own. */
  async function retryAt(
    { schedule, nextAt, failures }: Job,
    now: number,
  ): Promise<number | undefined> {
    const earliest = now + retryMs(failures + 1);
    if (schedule.kind === 'at') return earliest;
    if (nextAt !== undefined && nextAt >= earliest) return nextAt;
    return next(schedule, earliest - 1);
  }

  async function fireDue(): Promise<void> {
    if (!isOn()) return;
    for (const job of await jobs.all.list()) {
      if (clock.now() < waitsUntil(job)) continue;
      try {
        const at = dueAt(await settled(job));
        if (at !== undefined && at <= clock.now()) await fire(job, at);
        putOff.delete(job.id);
      } catch (error) {
        notStarted(job, error);
      }
    }
  }

  /** One job must not hold up the others. */
  function notStarted(job: Job, error: unknown): void {
    const failures = (putOff.get(job.id)?.failures ?? 0) + 1;
    putOff.set(job.id, { failures, until: clock.now() + retryMs(failures) });
    log.warn('job not started', { job: job.id, failures, error });
    if (failures !== TOLD_FAILURES) return;
    const reason = error instanceof Error ? error.message : String(error);
    tellOwner(
      `The scheduled job ${job.name} (${job.id}) cannot be started: ${reason}. I keep trying. ` +
        `Remove it with /cron remove ${job.id}, or see the log.`,
    );
  }

  async function fire(job: Job, slot: number): Promise<void> {
    const now = clock.now();
    const isAsked = job.runAsked !== undefined;
    const after = isAsked ? job.nextAt : await next(job.schedule, Math.max(now, slot));
    if (await isUnderWay(job)) return skip(job, isAsked, after);
    const id = messageId(`cron/${job.id}/${isAsked ? 'asked-' : ''}${slot}`);
    const isLate = !isAsked && isLateRun(slot, now);
    const due = isLate ? { due: slotText(slot, zone(job)) } : {};
    const chosen = isAsked || hasChosenTimes(job.schedule) ? { chosenAt: slot } : {};
    const started = await start({ job, id, ...due, ...chosen });
    if (started.kind === 'nobody') return switchOff(job, started.reason);
    const message = started.kind === 'asked' ? { message: id } : {};
    await jobs.all.change(
      job.id,
      (each) => each && fired(each, { isAsked, now, ...message }, after),
    );
    log.info('job started', { job: job.id, slot, late: isLate });
  }

  /** The bus knows better than we do: what it holds will come to an end. */
  async function isUnderWay({ running }: Job): Promise<boolean> {
    if (running === undefined) return false;
    return (await bus.trace(running))?.state === 'pending';
  }

  async function skip(job: Job, isAsked: boolean, after: number | undefined): Promise<void> {
    const now = clock.now();
    const last = { at: now, how: 'skipped', detail: 'the previous run was still running' } as const;
    // What runs once is not skipped but waits.
    const nextAt = job.schedule.kind === 'at' ? now + retryMs(2) : after;
    await jobs.all.change(
      job.id,
      (each) =>
        each && (isAsked ? { ...each, runAsked: undefined, last } : { ...each, nextAt, last }),
    );
  }

  async function switchOff(job: Job, reason: string): Promise<void> {
    const last = { at: clock.now(), how: 'stopped', detail: reason } as const;
    await jobs.all.change(
      job.id,
      (each) => each && { ...each, enabled: false, runAsked: undefined, last },
    );
    log.warn('job stopped', { job: job.id, reason });
    tellOwner(`The scheduled job ${job.name} (${job.id}) was disabled: ${reason}.`);
  }

  /** After the clock was put back, a slot far ahead is no slot any more. Old rows go. */
  async function settled(job: Job): Promise<Job> {
    const now = clock.now();
    const { finishedAt, firedAt, schedule } = job;
    if (finishedAt !== undefined && now - finishedAt > KEEP_FINISHED_MS) await jobs.remove(job.id);
    if (firedAt === undefined || now >= firedAt - PUT_BACK_MS || schedule.kind === 'at') return job;
    const nextAt = await next(schedule, now);
    const settled = await jobs.all.change(
      job.id,
      (each) => each && { ...each, nextAt, firedAt: now },
    );
    return settled ?? job;
  }

  async function rest(signal: AbortSignal): Promise<void> {
    const all = isOn() ? await jobs.all.list() : [];
    const dues = all.flatMap((job) => {
      const at = dueAt(job);
      return at === undefined ? [] : [Math.max(at, waitsUntil(job))];
    });
    const begun = clock.now();
    const until = Math.min(begun + LONGEST_SLEEP_MS, ...dues);
    const known = revision();
    const stop = new AbortController();
    const whole = AbortSignal.any([signal, stop.signal]);
    const stopped = change.promise.then(() => stop.abort());
    const isStill = () => clock.now() >= begun && clock.now() < until && revision() === known;
    while (!whole.aborted && isStill()) {
      const waitMs = Math.min(OUTSIDE_MS, until - clock.now());
      await clock.sleep(waitMs, whole).catch(() => undefined);
    }
    change.resolve();
    await stopped;
  }

  return { changed, run, ended: runEnded };
}

/** Told when it begins to fail, when it is given up and when it works again; not in between. */
async function troubleText(
  before: Job,
  after: Job,
  { now, zone, next }: { readonly now: number; readonly zone: string; readonly next: NextSlot },
): Promise<string | undefined> {
  const reason = after.last?.detail ?? 'unknown reason';
  if (after.last?.how === 'done') {
    return before.failures === 0 ? undefined : `Works again, after ${before.failures} failed runs.`;
  }
  if (after.last?.how !== 'failed') return undefined;
  if (!after.enabled && before.enabled) {
    return (
      `Failed ${after.failures} times in a row and is now disabled: ${reason}\n` +
      `Enable it with /cron enable ${after.id}.`
    );
  }
  if (before.failures > 0) return undefined;
  const again = after.nextAt ?? (await next(after.schedule, now));
  const when = again === undefined ? '' : ` It runs again ${slotText(again, zone)}.`;
  return `Failed: ${reason}${when} I tell you when it works again or is disabled.`;
}

// A look at HEARTBEAT.md from time to time. Where it asks for nothing no model is asked; where it does,
// a turn with an owner's rights begins, which neither schedules nor changes rules.

type HeartbeatSettings = {
  readonly enabled: boolean;
  readonly everyMins: number;
  /** `08:00-22:00`; empty: at any time. */
  readonly activeHours: string;
  readonly timeZone: string;
};

type HeartbeatDeps = {
  readonly state: KeyValueStore;
  readonly bus: Pick<MessageBus, 'accept' | 'trace'>;
  readonly clock: Clock;
  readonly log: Logger;
  /** Of an owner, alone with the agent. */
  ownerRights(): Rights;
  settings(): HeartbeatSettings;
  /** Leaves out of its conversation what was before. */
  beginAnew(): Promise<void>;
  /** Undefined where there is none. */
  readFile(): Promise<string | undefined>;
};

const LOOKED = 'looked';
/** When the newest turn began: a look may have begun none. */
const BEGUN = 'begun';
const DAY = 'day';
const MINUTE_MS = 60_000;
const LOOK_MS = MINUTE_MS;
const NARROWER: Rights = {
  ...UNRESTRICTED,
  ...{ rules: 'never', schedule: 'never', own: ['write'] },
};

export function createHeartbeat(deps: HeartbeatDeps) {
  const { state, bus, clock, log, settings } = deps;
  const dayText = createDayText();

  /** When the file was last looked at; a clock that was put back counts from now. */
  async function lastLook(): Promise<number | undefined> {
    const at = Number(await state.get(LOOKED));
    return at > 0 && at <= clock.now() ? at : undefined;
  }

  /** It knows what it did today, so that it does once what is due once a day, and no more. */
  async function beginDay(now: number) {
    const day = dayText(now, settings().timeZone);
    if ((await state.get(DAY)) === day) return;
    await deps.beginAnew();
    await state.set(DAY, day);
  }

  async function isUnderWay(): Promise<boolean> {
    const at = await state.get(BEGUN);
    return at !== undefined && (await bus.trace(nameOf(at)))?.state === 'pending';
  }

  async function look(now: number) {
    const { activeHours, timeZone } = settings();
    if (readHours(activeHours) !== undefined && !isWithinHours(now, activeHours, timeZone)) return;
    const file = (await deps.readFile()) ?? '';
    if (!asksForSomething(file)) return;
    if (await isUnderWay()) return log.info('heartbeat skipped: the previous one is running');
    await beginDay(now);
    const rights = narrowed(deps.ownerRights(), NARROWER);
    const message = {
      id: nameOf(now),
      chat: jobChat(HEARTBEAT),
      sender: { kind: 'system', source: 'heartbeat', rights, person: OWNER_TURN },
      addressing: 'direct',
      text: heartbeatText(file),
      sentAt: now,
      receivedAt: now,
    } as const;
    await state.set(BEGUN, `${now}`);
    await bus.accept([{ kind: 'queue', message }]);
  }

  return {
    async run(signal: AbortSignal): Promise<void> {
      while (!signal.aborted) {
        const { enabled, everyMins } = settings();
        const before = await lastLook();
        const now = clock.now();
        if (enabled && (before === undefined || now - before >= everyMins * MINUTE_MS)) {
          // Noted first: a file that cannot be dealt with is not asked about again at once.
          await state.set(LOOKED, `${now}`);
          await look(now);
        }
        await clock.sleep(LOOK_MS, signal).catch(() => undefined);
      }
    },
  };
}

const nameOf = (at: number | string) => messageId(`cron/${HEARTBEAT}/${at}`);
