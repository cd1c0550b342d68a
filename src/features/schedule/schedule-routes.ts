// Jobs over HTTP: listed, followed, created and changed with the rights of `nanobot cron`, by the same
// service.

import { z } from 'zod';
import { noteCommand } from '../../channels/local-channel.ts';
import type { Kernel } from '../../kernel/feature.ts';
import { endpoint, Refusal, type RouteHandlers, watched } from '../../kernel/http-routes.ts';
import { sessionKeyOf } from '../../kernel/message/message.ts';
import { defined, givenText } from '../../lib/json/json.ts';
import { t } from '../../lib/texts.ts';
import type { JobService } from './jobs.ts';
import { type Gate, gateText, readGate } from './rules/gate.ts';
import { type Job, MAX_JOB_CHARS, makerName, parseWhen } from './rules/job.ts';
import { JobError, scheduleText, zoneOf } from './rules/schedule.ts';
import { jobKind, jobList, jobRuns, type ShownJob, shownJob } from './rules/views.ts';
import type { RunReport } from './runs.ts';

const OPERATOR = { kind: 'operator' } as const;
const MAX_WORD_CHARS = 200;
const MAX_WHEN_CHARS = 2000;

const word = givenText(MAX_WORD_CHARS);
const newJob = z.strictObject({
  when: givenText(MAX_WHEN_CHARS).describe(
    'As in /cron add: "at 08:00", "in 20m", "every 2h" or "0 8 * * 1-5"; behind it, a check such as "when url https://...".',
  ),
  text: givenText(MAX_JOB_CHARS),
  kind: jobKind.default('ask'),
  name: word.exactOptional(),
  to: word.exactOptional().describe('A chat, e.g. telegram:123456789; default: last.'),
});
const oneJob = z.object({ id: z.string().min(1).max(MAX_WORD_CHARS) });
const changedJob = oneJob.extend({
  change: z.enum(['run', 'stop', 'enable', 'disable', 'remove']),
});

type ScheduleRoutesDeps = {
  readonly service: Pick<JobService, 'add' | 'list' | 'change' | 'find'>;
  /** Ends the run of a job with all that it started; returns whether there was anything. */
  stop(id: string): Promise<boolean>;
  /** Whether an owner may have jobs with this check. */
  mayCheck(gate: Gate): boolean;
  runsOf(job: Job): Promise<readonly RunReport[]>;
};

export function scheduleRoutes(
  { live, clock, measuring: { audit } }: Kernel,
  { service, stop, mayCheck, runsOf }: ScheduleRoutesDeps,
) {
  const shown = (job: Job) => viewOf(job, live.config.sessions.timeZone);
  async function view() {
    const jobs = await service.list(OPERATOR);
    return { isOn: live.config.cron.enabled, jobs: jobs.map(({ job }) => shown(job)) };
  }

  return {
    'GET /api/v1/schedules': endpoint(
      { summary: t`All jobs, oldest first`, answer: jobList },
      view,
    ),
    'GET /api/v1/schedules/events': watched(
      { summary: t`All jobs, now and after each change`, answer: jobList },
      clock,
      view,
    ),
    'GET /api/v1/schedules/:id/runs': endpoint(
      { summary: t`The last runs of a job`, params: oneJob, answer: jobRuns },
      ({ id }) =>
        explained(async () => {
          const { job } = await service.find(id, OPERATOR);
          const reports = await runsOf(job);
          return { currency: live.config.limits.budget.currency, runs: reports.map(runView) };
        }),
    ),
    'POST /api/v1/schedules': endpoint(
      {
        ...{ summary: t`Create a job with the rights of an owner`, body: newJob, status: 201 },
        answer: z.object({ job: shownJob }),
      },
      (_params, { when, ...wish }) =>
        explained(async () => {
          const slot = parseWhen(when);
          if (slot.when !== undefined && !mayCheck(readGate(slot.when))) {
            const message = t`The configuration of the tools does not allow that check.`;
            throw new Refusal(403, 'check_refused', message);
          }
          const { job } = await service.add({ ...slot, ...wish }, OPERATOR);
          noteCommand(audit, 'cron', 'add', job.id);
          return { job: shown(job) };
        }),
    ),
    'POST /api/v1/schedules/:id/:change': endpoint(
      {
        ...{ summary: t`Run a job now, stop its run, enable, disable or remove it` },
        ...{ params: changedJob, body: z.strictObject({}), answer: z.object({ job: shownJob }) },
      },
      ({ id, change }) =>
        explained(async () => {
          const { job } =
            change === 'stop'
              ? await service.find(id, OPERATOR)
              : await service.change(id, change, OPERATOR);
          if (change === 'stop' && !(await stop(job.id))) {
            throw new Refusal(409, 'not_running', t`The job is not running.`);
          }
          noteCommand(audit, 'cron', change, job.id);
          return { job: shown(job) };
        }),
    ),
  } satisfies RouteHandlers;
}

function viewOf(job: Job, timeZone: string): ShownJob {
  const { id, name, text, schedule, enabled, finishedAt, nextAt, last, when, maker, target } = job;
  const isDue = enabled && finishedAt === undefined && nextAt !== undefined;
  return {
    ...{ id, name, kind: job.kind, text, failures: job.failures },
    schedule: scheduleText(schedule, zoneOf(schedule, timeZone)),
    ...(when === undefined ? {} : { check: gateText(when) }),
    ...(isDue ? { nextAt } : {}),
    isEnabled: enabled,
    isRunning: job.running !== undefined || job.runAsked !== undefined,
    ...(last === undefined ? {} : { last: endView(last) }),
    ...(maker.kind === 'person' ? { maker: makerName(maker) } : {}),
    ...(target.kind === 'chat' ? { to: sessionKeyOf(target.chat) } : {}),
  };
}

const endView = ({ at, how, detail }: NonNullable<Job['last']>) => ({
  ...{ at, how, ...defined({ detail }) },
});

const runView = ({ begunAt, tokens, micros, text, ...run }: RunReport) => ({
  ...{ ...endView(run), ...defined({ begunAt }), tokens, micros, text },
});

/** @throws Refusal where the job is invalid or unknown */
async function explained<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof JobError)) throw error;
    throw new Refusal(error.code === 'job_unknown' ? 404 : 400, error.code, error.message);
  }
}
