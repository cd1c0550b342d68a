// Installs schedules: jobs, the heartbeat, and announcements at the end of quiet hours.

import { AGENT } from '../../agent/install.ts';
import { chatsOf } from '../../kernel/access/person.ts';
import { rightsOf } from '../../kernel/access/rights.ts';
import { type Kernel, port } from '../../kernel/feature.ts';
import type { Routes } from '../../kernel/intake/routes.ts';
import { type ChatRef, chatRefOf } from '../../kernel/message/message.ts';
import { createUndo, undoHandler } from '../../kernel/questions/undo.ts';
import { createTurnPersonOf } from '../../kernel/turns/origins.ts';
import { readOnce } from '../../lib/async.ts';
import { createGuardedFiles } from '../../lib/files/guarded-files.ts';
import { GuardedFileError } from '../../lib/files/guarded-path.ts';
import { quietUntil } from '../../lib/time/quiet-hours.ts';
import { EXECUTOR } from '../../tools/exec/exec.ts';
import { SUBAGENTS } from '../subagents/index.ts';
import { WORKFLOWS, WORKFLOWS_OFF, WorkflowError } from '../workflows/index.ts';
import { createAnnouncer } from './announcer.ts';
import { createCron, createJobAskers, cronCommands, JOB_UNDO, rightsAllow } from './cron-tool.ts';
import type { LookAtGate } from './gates.ts';
import { createHeartbeat } from './heartbeat.ts';
import {
  createJobForgetting,
  installLeftovers,
  type JobRows,
  openJobRows,
  startedFromJobs,
} from './job-rows.ts';
import { createJobCourier, createJobStart, type JobPlace, scheduleStage } from './job-start.ts';
import { createJobService, createNextSlot } from './jobs.ts';
import { HEARTBEAT, type Job } from './rules/job.ts';
import { createScheduler, type Scheduler } from './scheduler.ts';
import { HEARTBEAT_FILE, JOB_CHANNEL, jobSession } from './settings.ts';

/** Jobs as `/stop` and the page of runs see them. */
export const JOBS = port<{
  /** The running jobs of the chat. */
  atWork(chat: ChatRef): Promise<readonly { readonly id: string; readonly name: string }[]>;
  stop(id: string): Promise<boolean>;
  nameOf(id: string): Promise<string | undefined>;
}>('jobs');

const OWNER = { role: 'owner', place: 'direct', verified: 'verified', medium: 'chat' } as const;
export const MAX_HEARTBEAT_BYTES = 65_536;
const CONCURRENCY = 8;

export function install(kernel: Kernel): void {
  const { live, clock, log, store, bus, sessions, people, judge, origins, owners, add } = kernel;
  const { persons, routes } = people;
  const agent = kernel.use(AGENT);
  const workflows = kernel.useIfOn(WORKFLOWS);
  const timeZone = () => live.config.sessions.timeZone;
  const jobs = openJobRows(kernel.rows);
  const next = createNextSlot();
  const isOn = () => live.config.cron.enabled;
  const service = createJobService({
    ...{
      jobs,
      bus,
      next,
      timeZone,
      isOn,
      now: () => clock.now(),
      changed: () => scheduler.changed(),
    },
    checkWorkflow: workflows?.check ?? workflowsAreOff,
    workflowsOf: workflows?.ofJob ?? (async () => []),
  });
  const announcer = createAnnouncer({
    ...{ rows: kernel.rows, bus, clock },
    sessionOf: (chat) => routes.sessionOf(chat),
    quietUntil: quietHoursIn(kernel),
  });
  const placeOf = (job: Job) => placeFor(job, kernel);
  const ownerRights = () => rightsOf(OWNER, { approvals: live.config.tools.approvals.owner });
  const start = createJobStart({
    ...{ bus, announcer, clock, judge, origins, placeOf, ownerRights },
    personOf: createTurnPersonOf(persons),
    look: gatesOf(kernel, jobs),
    startWorkflow: workflows?.startForJob ?? workflowsAreOff,
    ended: (id, run, how, detail) => scheduler.ended(id, run, how, detail),
  });
  owners.keepNotes(announcer.keepNote);
  const scheduler: Scheduler = createScheduler({
    ...{ jobs, next, bus, clock, log, start, tellOwner: owners.tell },
    zoneOf: async (maker) =>
      (maker.kind === 'person' && (await persons.author(maker))?.timeZone) || timeZone(),
    revision: store.revision,
    isOn,
    maxFailures: () => live.config.cron.maxFailures,
    tell: async (job, id, text) =>
      announcer.announce({ ...(await placeOf(job)), id, markdown: text, isForeign: false }),
  });
  const courier = createJobCourier({
    ...{ announcer, sessions, log },
    async placeOf(id) {
      if (id === HEARTBEAT) return heartbeatPlace(kernel);
      const job = await jobs.all.get(id);
      return job === undefined ? undefined : placeOf(job);
    },
  });
  const file = heartbeatFile(kernel);
  const heartbeat = createHeartbeat({
    ...{ state: store.scope('heartbeat'), bus, clock, log, ownerRights },
    settings: () => ({ ...live.config.heartbeat, timeZone: timeZone() }),
    readFile: file.read,
    beginAnew: () => agent.reset(jobSession(HEARTBEAT)),
  });
  const asked = createJobAskers({ service, persons, origins, offerUndo: createUndo(kernel) });
  const tool = createCron(asked.schedules, kernel.use(EXECUTOR));
  const { service: subagentService, rows: subagents } = kernel.use(SUBAGENTS);
  /** Also ends what its run started; returns whether there was anything. */
  async function stop(id: string): Promise<boolean> {
    const session = jobSession(id);
    const wasAtWork = await service.endRun(id);
    const helped = await subagentService.stopAll(session);
    const ended = (await workflows?.service.stopAll(session)) ?? 0;
    return wasAtWork || helped + ended > 0;
  }
  add.tools(() => [tool]);
  add.answers(
    JOB_UNDO,
    undoHandler(async (id) => {
      const isThere = (await jobs.all.get(id)) !== undefined;
      if (isThere) await service.change(id, 'remove', { kind: 'operator' });
      return isThere;
    }),
  );
  const runsOf = (job: Job, zone: string) => runLinesOf(job, zone, kernel, jobs);
  add.command(...cronCommands({ jobs: asked.jobs, persons, stopJob: stop, runsOf }));
  add.personalData(createJobForgetting(jobs, () => scheduler.changed()));
  add.startedFrom(
    JOB_CHANNEL,
    startedFromJobs(jobs, (chat) => routes.sessionOf(chat)),
  );
  add.routes(
    [
      'GET /api/v1/schedules',
      'GET /api/v1/schedules/events',
      'GET /api/v1/schedules/:id/runs',
      'POST /api/v1/schedules',
      'POST /api/v1/schedules/:id/:change',
    ],
    async () =>
      (await import('./schedule-routes.ts')).scheduleRoutes(kernel, {
        ...{ service, stop },
        mayCheck: (gate) => rightsAllow(gate, ownerRights(), true),
        runsOf: (job) => reportsOf(job, kernel, jobs),
      }),
  );
  add.routes(
    [
      'GET /api/v1/heartbeat',
      'GET /api/v1/heartbeat/events',
      'POST /api/v1/heartbeat',
      'POST /api/v1/heartbeat/run',
    ],
    async () => (await import('./heartbeat-routes.ts')).heartbeatRoutes(kernel, heartbeat, file),
  );
  add.routes(['POST /api/v1/schedules/draft'], async () =>
    (await import('./job-draft.ts')).jobDraftRoutes(kernel),
  );
  workflows?.whenJobEnds((id, run, how, detail) => scheduler.ended(id, run, how, detail));
  installLeftovers(kernel, { subagents, jobs });
  add.task({ name: 'jobs', isOnce: true, run: (signal) => scheduler.run(signal) });
  add.task({
    name: 'job reports',
    isOnce: true,
    run: (signal) => bus.deliver(courier, { signal, concurrency: CONCURRENCY }),
  });
  add.task({ name: 'announcements', isOnce: true, run: (signal) => announcer.run(signal) });
  add.task({ name: 'heartbeat', isOnce: true, run: (signal) => heartbeat.run(signal) });
  const answersTo: Routes['answersTo'] = (...asking) => routes.answersTo(...asking);
  add.stage(scheduleStage({ agent, scheduler, answersTo }));
  const nameOf = async (id: string) => (await jobs.all.get(id))?.name;
  kernel.provide(JOBS, { atWork: (chat) => service.atWork(chat), stop, nameOf });
}

async function reportsOf(job: Job, { sessionFiles, live: { config } }: Kernel, jobs: JobRows) {
  const { readRuns } = await import('./runs.ts');
  await sessionFiles.complete();
  return readRuns(job, { jobs, config, folder: sessionFiles.folder });
}

async function runLinesOf(
  job: Job,
  timeZone: string,
  kernel: Kernel,
  jobs: JobRows,
): Promise<readonly string[]> {
  const { runLines } = await import('./runs.ts');
  const { config } = kernel.live;
  const runs = await reportsOf(job, kernel, jobs);
  const zone = timeZone || config.sessions.timeZone;
  return runLines(job, runs, zone, config.limits.budget.currency);
}

/** The checks of jobs, loaded with the first. */
function gatesOf(kernel: Kernel, jobs: JobRows): LookAtGate {
  const gates = readOnce(async () => (await import('./gates.ts')).openGates(kernel));
  return async (job, ...rest) => {
    const looked = await (await gates())(job, ...rest);
    // A check may take a while.
    const isWanted = (await jobs.all.get(job.id))?.enabled === true;
    return isWanted || looked.kind === 'failed' ? looked : { kind: 'closed' };
  };
}

async function workflowsAreOff(): Promise<never> {
  throw new WorkflowError(WORKFLOWS_OFF);
}

/** The end of the quiet hours that apply in a chat; undefined outside of them. */
function quietHoursIn({ live, clock, people }: Kernel) {
  return async (chat: ChatRef, moment = clock.now()) => {
    const person = await people.persons.inChat(chat);
    const timeZone = person?.timeZone ?? live.config.sessions.timeZone;
    const at = quietUntil(moment, person?.quietHours ?? live.config.quietHours, timeZone);
    return at === undefined ? undefined : { at, timeZone };
  };
}

/** Where a job reports. */
async function placeFor(job: Job, { people, owners }: Kernel): Promise<JobPlace> {
  const { target, maker, name: title } = job;
  if (target.kind === 'chat') return { title, chat: target.chat };
  if (maker.kind === 'operator') return { title, chat: await owners.askChat() };
  const person = await people.persons.get(maker.id);
  if (person?.role === 'owner') return { title, chat: await owners.askChat() };
  const [chat = maker.chat] = person === undefined ? [] : chatsOf(person);
  return { title, chat };
}

async function heartbeatPlace({ live, owners }: Kernel): Promise<JobPlace> {
  const chat = chatRefOf(live.config.heartbeat.chat) ?? (await owners.askChat());
  return { title: 'Heartbeat', chat };
}

export type HeartbeatFile = ReturnType<typeof heartbeatFile>;

function heartbeatFile({ live, store }: Kernel) {
  const { exclusively } = store.shared ?? {};
  const files = createGuardedFiles({ exclusively });
  const limits = { maxBytes: MAX_HEARTBEAT_BYTES };
  return {
    /** Undefined where it does not exist. */
    async read(): Promise<string | undefined> {
      const { workspace } = live.defaults;
      const content = await files.read(workspace, HEARTBEAT_FILE, limits).catch((error) => {
        if (error instanceof GuardedFileError) return undefined;
        throw error;
      });
      return content?.toString('utf8');
    },
    /** Reads, changes and writes the file without another change in between. */
    update: (change: (text: string) => string) =>
      files.update(
        live.defaults.workspace,
        HEARTBEAT_FILE,
        (content) => change(content?.toString('utf8') ?? ''),
        limits,
      ),
  };
}
