// Starts jobs when they are due. The id of a run consists of job and slot, so that a slot repeated
// after a crash is a duplicate; after a downtime each job runs once for all missed slots. Between
// slots it sleeps, and checks the system clock at least once a minute.

import type { MessageBus } from '../../kernel/bus/bus.ts';
import type { Kernel } from '../../kernel/feature.ts';
import { type MessageId, messageId } from '../../kernel/message/ids.ts';
import { createPermits } from '../../lib/async.ts';
import { defined } from '../../lib/json/json.ts';
import { t } from '../../lib/texts.ts';
import { sleepOrWoken } from '../../lib/time/clock.ts';
import { type JobRows, withRun } from './job-rows.ts';
import type { NextSlot } from './jobs.ts';
import {
  dueAt,
  ended,
  fired,
  isLateRun,
  isUnmarked,
  type Job,
  type JobEnding,
  type JobMaker,
  passedBy,
  retryMs,
  uncheckedAt,
} from './rules/job.ts';
import { hasChosenTimes, slotText, zoneOf } from './rules/schedule.ts';

/** One run of a job. */
export type Run = {
  readonly job: Job;
  readonly id: MessageId;
  /** Text of the scheduled time, where it runs late. */
  readonly due?: string;
  /** The time that a person chose for it, epoch milliseconds. */
  readonly chosenAt?: number;
  /** A person asked for it: it starts without the check. */
  readonly isAsked: boolean;
  /** Ends a check under way. */
  readonly signal: AbortSignal;
};

export type Started =
  /** The agent was asked; `ended` is called when that run is over. `mark`: what the check found. */
  | { readonly kind: 'asked'; readonly mark?: string | undefined }
  /** A text was sent; no turn was needed. */
  | { readonly kind: 'said'; readonly mark?: string | undefined }
  /** The check found nothing to do. */
  | { readonly kind: 'closed'; readonly mark?: string }
  /** The check failed. */
  | { readonly kind: 'failed'; readonly reason: string; readonly isFinal?: boolean }
  /** Its maker has lost access. */
  | { readonly kind: 'nobody'; readonly reason: string };

type SchedulerDeps = Pick<Kernel, 'clock' | 'log'> & {
  readonly jobs: JobRows;
  readonly next: NextSlot;
  readonly bus: Pick<MessageBus, 'trace'>;
  /** IANA zone of the maker; empty: the machine's. */
  zoneOf(maker: JobMaker): Promise<string>;
  maxFailures(): number;
  /** Whether jobs run; otherwise they wait. */
  isOn(): boolean;
  /** Changes when another process has written. */
  revision(): number;
  /** Durable when it resolves; once per id. */
  start(run: Run): Promise<Started>;
  /** Reports trouble with a job to its maker; once per id. */
  tell(job: Job, id: string, text: string): Promise<void>;
  /** Sends the owner a notice about a job whose maker has lost access. */
  tellOwner(text: string): void;
};

/** Interval for noticing jobs that another process (a command) made. */
const OUTSIDE_MS = 5000;
const LONGEST_SLEEP_MS = 60_000;
/** Setting the clock back by less is treated as a correction. */
const PUT_BACK_MS = 10 * 60_000;
/** Failed starts after which the owner gets a notice. */
const TOLD_FAILURES = 3;
/** Checks at once: one that waits for a slow server delays no other job. */
const MAX_CHECKS = 4;
/** Texts of a finished job are delivered by then. */
const KEEP_FINISHED_MS = 86_400_000;

export type Scheduler = ReturnType<typeof createScheduler>;

export function createScheduler(deps: SchedulerDeps) {
  const { jobs, next, bus, clock, log, maxFailures, isOn, revision, start } = deps;
  const { tell, tellOwner } = deps;
  /**
   * Jobs that could not be started, with the end of their delay (epoch milliseconds); a restart
   * tries all.
   */
  const putOff = new Map<string, { readonly failures: number; readonly until: number }>();
  let change = Promise.withResolvers<void>();
  /** Jobs whose check is under way. */
  const checking = new Map<string, Promise<void>>();
  const permits = createPermits(MAX_CHECKS);
  const waitsUntil = ({ id }: Job) => putOff.get(id)?.until ?? 0;
  const zone = async ({ schedule, maker }: Job) => zoneOf(schedule, await deps.zoneOf(maker));
  const changeJob = ({ id }: Job, step: (job: Job) => Job) =>
    jobs.all.change(id, (job) => job && step(job));

  /** A job was made or changed in this process. */
  function changed(): void {
    change.resolve();
  }

  async function run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      change = Promise.withResolvers<void>();
      await fireDue(signal);
      if (signal.aborted) break;
      await rest(signal);
    }
    await Promise.all(checking.values());
  }

  /** Ends a run; a repetition for the same run changes nothing. */
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
    const over = { message: run, how, now, ...defined({ detail }) };
    const after = await jobs.all.change(id, (each) =>
      each === undefined || each.last?.run === run ? undefined : ended(each, over, retry),
    );
    changed();
    if (after === undefined) return;
    log.info('job ended', { job: id, how, failures: after.failures });
    await remember(job, run, how, detail);
    const text = await troubleText(job, after, { now, zone: await zone(job), next });
    if (text !== undefined) await tell(after, `${run}/trouble`, text);
  }

  async function remember(
    { id, firedAt, running }: Job,
    run: MessageId,
    how: JobEnding,
    detail?: string,
  ): Promise<void> {
    const begunAt = running === run ? firedAt : undefined;
    const ran = { run, at: clock.now(), how, ...defined({ begunAt, detail }) };
    await jobs.history.change(id, (known) => withRun(known, id, ran));
  }

  /** The delay grows with each failure; a recurring job then waits for its next slot. */
  async function retryAt(
    { schedule, nextAt, failures }: Job,
    now: number,
  ): Promise<number | undefined> {
    const earliest = now + retryMs(failures + 1);
    if (schedule.kind === 'at') return earliest;
    if (nextAt !== undefined && nextAt >= earliest) return nextAt;
    return next(schedule, earliest - 1);
  }

  async function fireDue(signal: AbortSignal): Promise<void> {
    if (!isOn()) return;
    for (const job of await jobs.all.list()) {
      if (clock.now() < waitsUntil(job) || checking.has(job.id)) continue;
      const isDue = (dueAt(job) ?? Number.POSITIVE_INFINITY) <= clock.now();
      const firing = fireIfDue(job, signal);
      if (job.when === undefined || !isDue) {
        await firing;
        continue;
      }
      // Other jobs do not wait for a check.
      const done = firing.finally(() => {
        checking.delete(job.id);
        changed();
      });
      checking.set(job.id, done);
    }
  }

  async function fireIfDue(job: Job, signal: AbortSignal): Promise<void> {
    try {
      const at = dueAt(await settled(job));
      if (at !== undefined && at <= clock.now()) await fire(job, at, signal);
      putOff.delete(job.id);
    } catch (error) {
      if (!signal.aborted) notStarted(job, error);
    }
  }

  /** A failure of one job does not delay the others. */
  function notStarted(job: Job, error: unknown): void {
    const failures = (putOff.get(job.id)?.failures ?? 0) + 1;
    putOff.set(job.id, { failures, until: clock.now() + retryMs(failures) });
    log.warn('job not started', { job: job.id, failures, error });
    if (failures !== TOLD_FAILURES) return;
    const reason = error instanceof Error ? error.message : String(error);
    tellOwner(
      t`The scheduled job ${job.name} (${job.id}) cannot be started: ${reason}. I keep trying. ` +
        t`Remove it with /cron remove ${job.id}, or see the log.`,
    );
  }

  async function fire(job: Job, slot: number, signal: AbortSignal): Promise<void> {
    const now = clock.now();
    const isAsked = job.runAsked !== undefined;
    if (!isAsked && isUnmarked(job)) return takeMark(job, signal);
    const after = isAsked ? job.nextAt : await next(job.schedule, Math.max(now, slot));
    if (await isUnderWay(job)) return skip(job, isAsked, after);
    const id = messageId(`cron/${job.id}/${isAsked ? 'asked-' : ''}${slot}`);
    const isLate = !isAsked && isLateRun(slot, now);
    const due = isLate ? { due: slotText(slot, await zone(job)) } : {};
    const chosen = isAsked || hasChosenTimes(job.schedule) ? { chosenAt: slot } : {};
    const started = await begin({ job, id, ...due, ...chosen, isAsked, signal });
    if (started.kind === 'nobody') return switchOff(job, started.reason);
    if (started.kind === 'failed') return unchecked(job, id, started, after);
    const { mark } = started;
    if (job.gate?.isTold === true) await tell(job, `${id}/check`, t`Its check works again.`);
    if (started.kind === 'closed') {
      await changeJob(job, (each) => passedBy(each, { mark, now }, after));
      return;
    }
    const message = started.kind === 'asked' ? { message: id } : {};
    await changeJob(job, (each) => fired(each, { isAsked, now, mark, ...message }, after));
    if (started.kind === 'said') await remember({ ...job, firedAt: now, running: id }, id, 'done');
    log.info('job started', { job: job.id, slot, late: isLate });
  }

  async function begin(run: Run): Promise<Started> {
    if (run.job.when === undefined) return start(run);
    using _place = await permits.acquire(run.signal);
    return await start(run);
  }

  /** What changes from now on opens the gate; a check that cannot work is reported at once. */
  async function takeMark(job: Job, signal: AbortSignal): Promise<void> {
    const now = clock.now();
    const id = messageId(`cron/${job.id}/mark-${now}`);
    const looked = await begin({ job, id, isAsked: false, signal });
    if (looked.kind === 'nobody') return switchOff(job, looked.reason);
    if (looked.kind === 'failed') return unchecked(job, id, looked, job.nextAt);
    const { mark } = looked;
    await changeJob(job, (each) => passedBy(each, { mark, now }, each.nextAt));
  }

  /** A check that keeps failing is reported once. */
  async function unchecked(
    job: Job,
    id: MessageId,
    looked: Extract<Started, { readonly kind: 'failed' }>,
    after: number | undefined,
  ): Promise<void> {
    const now = clock.now();
    const isOnce = job.schedule.kind === 'at' && (after === undefined || after <= now);
    const nextAt = isOnce ? now + retryMs((job.gate?.failures ?? 0) + 1) : after;
    const changed = await changeJob(job, (each) => uncheckedAt(each, looked, now, nextAt));
    log.info('check of a job failed', { job: job.id, failures: changed?.gate?.failures });
    if (changed?.gate?.isTold !== true || job.gate?.isTold === true) return;
    const again =
      changed.nextAt === undefined
        ? ''
        : t` It is checked again ${slotText(changed.nextAt, await zone(job))}.`;
    await tell(
      changed,
      `${id}/check`,
      t`Its check failed: ${looked.reason}.${again} I tell you when it works again.`,
    );
  }

  /** The message bus is authoritative: a message that it holds will be processed. */
  async function isUnderWay({ running }: Job): Promise<boolean> {
    if (running === undefined) return false;
    return (await bus.trace(running))?.state === 'pending';
  }

  async function skip(job: Job, isAsked: boolean, after: number | undefined): Promise<void> {
    const now = clock.now();
    const detail = t`the previous run was still running`;
    const last = { at: now, how: 'skipped', detail } as const;
    // A one-time job is delayed, not skipped.
    const nextAt = job.schedule.kind === 'at' ? now + retryMs(2) : after;
    await changeJob(job, (each) =>
      isAsked ? { ...each, runAsked: undefined, last } : { ...each, nextAt, last },
    );
  }

  async function switchOff(job: Job, reason: string): Promise<void> {
    const last = { at: clock.now(), how: 'stopped', detail: reason } as const;
    await changeJob(job, (each) => ({ ...each, enabled: false, runAsked: undefined, last }));
    log.warn('job stopped', { job: job.id, reason });
    tellOwner(t`The scheduled job ${job.name} (${job.id}) was disabled: ${reason}.`);
  }

  /** After the clock was set back, a slot far in the future is recomputed. Old rows are removed. */
  async function settled(job: Job): Promise<Job> {
    const now = clock.now();
    const { finishedAt, firedAt, schedule } = job;
    if (finishedAt !== undefined && now - finishedAt > KEEP_FINISHED_MS) await jobs.remove(job.id);
    if (firedAt === undefined || now >= firedAt - PUT_BACK_MS || schedule.kind === 'at') return job;
    const nextAt = await next(schedule, now);
    return (await changeJob(job, (each) => ({ ...each, nextAt, firedAt: now }))) ?? job;
  }

  async function rest(signal: AbortSignal): Promise<void> {
    const all = isOn() ? await jobs.all.list() : [];
    const dues = all.flatMap((job) => {
      const at = checking.has(job.id) ? undefined : dueAt(job);
      return at === undefined ? [] : [Math.max(at, waitsUntil(job))];
    });
    const begun = clock.now();
    const until = Math.min(begun + LONGEST_SLEEP_MS, ...dues);
    const known = revision();
    let isChanged = false;
    const woken = change.promise.then(() => {
      isChanged = true;
    });
    const isStill = () => clock.now() >= begun && clock.now() < until && revision() === known;
    while (!signal.aborted && !isChanged && isStill()) {
      await sleepOrWoken(clock, Math.min(OUTSIDE_MS, until - clock.now()), woken, signal);
    }
  }

  return { changed, run, ended: runEnded };
}

/** Reported when a job starts to fail, when it is given up and when it works again. */
async function troubleText(
  before: Job,
  after: Job,
  { now, zone, next }: { readonly now: number; readonly zone: string; readonly next: NextSlot },
): Promise<string | undefined> {
  const reason = after.last?.detail ?? t`unknown reason`;
  if (after.last?.how === 'done') {
    return before.failures === 0
      ? undefined
      : t`Works again, after ${before.failures} failed runs.`;
  }
  if (after.last?.how !== 'failed') return undefined;
  if (!after.enabled && before.enabled) {
    return (
      t`Failed ${after.failures} times in a row and is now disabled: ${reason}\n` +
      t`Enable it with /cron enable ${after.id}.`
    );
  }
  if (before.failures > 0) return undefined;
  const again = after.nextAt ?? (await next(after.schedule, now));
  const when = again === undefined ? '' : t` It runs again ${slotText(again, zone)}.`;
  return t`Failed: ${reason}${when} I tell you when it works again or is disabled.`;
}
