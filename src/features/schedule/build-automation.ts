// Builds what the machine does of its own accord: scheduled jobs, the heartbeat, and what is said at
// the end of quiet hours.

import type { Agent } from '../../agent/agent.ts';
import type { Foundations } from '../../app/foundations.ts';
import { DOOR_OWNER, OWN_DOORS } from '../../channels/door.ts';
import { chatsOf } from '../../kernel/access/person.ts';
import { rightsOf } from '../../kernel/access/rights.ts';
import type { StopDeps } from '../../kernel/commands/stop-command.ts';
import type { LiveConfig } from '../../kernel/config/files/live-config.ts';
import type { Contributions } from '../../kernel/contributions.ts';
import type { Judge } from '../../kernel/intake/judge.ts';
import { type ChatRef, chatRefOf, sessionKeyOf } from '../../kernel/message/message.ts';
import type { Owners } from '../../kernel/owners.ts';
import type { Origins } from '../../kernel/turns/origins.ts';
import { createTurnPersonOf } from '../../kernel/turns/turn-person.ts';
import { createGuardedFiles } from '../../lib/files/guarded-files.ts';
import { GuardedFileError } from '../../lib/files/guarded-path.ts';
import type { People } from '../people/people.ts';
import type { BuiltWorkflows } from '../workflows/build-workflows.ts';
import { createAnnouncer, createNoteKeeper } from './announcer.ts';
import { cronCommands, type StartedWork, stopJob } from './cron-commands.ts';
import { createCron } from './cron-tool.ts';
import { createHeartbeat } from './heartbeat.ts';
import { createJobAskers } from './job-askers.ts';
import { createJobCourier, createJobStart, type JobPlace } from './job-start.ts';
import { createJobDesk, createNextSlot } from './jobs.ts';
import { createJobForgetting, startedFromJobs } from './personal-data.ts';
import { HEARTBEAT, JOB_CHANNEL, type Job, jobChat } from './rules/job.ts';
import { HEARTBEAT_FILE } from './rules/job-report.ts';
import { quietUntil } from './rules/quiet-hours.ts';
import { createScheduler, type Scheduler } from './scheduler.ts';
import { scheduleStage } from './stage.ts';

export type AutomationParts = Foundations & {
  readonly people: People;
  readonly judge: Judge;
  readonly origins: Origins;
  readonly agent: Agent;
  readonly owners: Pick<Owners, 'askChat' | 'tell' | 'keepNotes'>;
  readonly workflows: Pick<BuiltWorkflows, 'startWorkflow' | 'checkWorkflow' | 'runs'>;
  /** What runs of jobs have started. */
  readonly started: StartedWork;
  readonly add: Contributions;
};

export type Automation = {
  readonly jobs: StopDeps['jobs'];
};

const OWNER_RIGHTS = rightsOf({
  ...{ role: 'owner', place: 'direct', verified: 'verified', medium: 'chat' },
});
const MAX_HEARTBEAT_BYTES = 65_536;
const CONCURRENCY = 8;

export function buildAutomation(parts: AutomationParts): Automation {
  const { live, clock, log, store, bus, sessions, people, judge, origins, agent } = parts;
  const { owners, workflows, add } = parts;
  const { persons, routes } = people;
  const { revision } = store;
  const timeZone = () => live.config.sessions.timeZone;
  const changed = () => scheduler.changed();
  const { checkWorkflow, startWorkflow } = workflows;
  const { jobs: rows } = parts.collections;
  const next = createNextSlot();
  const desk = createJobDesk({
    ...{ ...parts.collections, bus, next, timeZone, changed, checkWorkflow },
    now: () => clock.now(),
  });
  const announcer = createAnnouncer({
    ...{ rows: parts.rows, bus, clock },
    sessionOf: (chat) => routes.sessionOf(chat),
    quietUntil: quietIn,
  });

  async function quietIn(chat: ChatRef, moment = clock.now()) {
    const person = await persons.inChat(chat);
    const zone = person?.timeZone ?? timeZone();
    const at = quietUntil(moment, person?.quietHours ?? live.config.quietHours, zone);
    return at === undefined ? undefined : { at, timeZone: zone };
  }

  const placeOf = (job: Job) => placeFor(job, parts);
  const start = createJobStart({
    ...{ bus, announcer, clock, judge, origins, placeOf, ownerRights: OWNER_RIGHTS },
    personOf: createTurnPersonOf(persons),
    startWorkflow,
    ended: (id, run, how, detail) => scheduler.ended(id, run, how, detail),
  });
  owners.keepNotes(createNoteKeeper({ announcer, quietUntil: quietIn }));
  const scheduler: Scheduler = createScheduler({
    ...{ jobs: rows, next, bus, clock, log, timeZone, revision, start, tellOwner: owners.tell },
    isOn: () => live.config.cron.enabled,
    maxFailures: () => live.config.cron.maxFailures,
    tell: async (job, id, text) =>
      announcer.announce({ ...(await placeOf(job)), id, markdown: text, isForeign: false }),
  });
  const courier = createJobCourier({
    ...{ announcer, sessions, log },
    async placeOf(id) {
      if (id === HEARTBEAT) return heartbeatPlace(parts);
      const job = await rows.all.get(id);
      return job === undefined ? undefined : placeOf(job);
    },
  });
  const heartbeat = createHeartbeat({
    ...{ state: store.scope('heartbeat'), bus, clock, log, ownerRights: OWNER_RIGHTS },
    settings: () => ({ ...live.config.heartbeat, timeZone: timeZone() }),
    readFile: heartbeatFile(live),
    beginAnew: () => agent.reset(sessionKeyOf(jobChat(HEARTBEAT))),
  });
  const { jobs, schedules } = createJobAskers({
    ...{ desk, persons, origins },
    ownerAt: ({ channel }) =>
      OWN_DOORS.some((door) => door.channel === channel) ? DOOR_OWNER : undefined,
  });
  const tool = createCron(schedules);
  add.tools(() => [tool]);
  const stop = (id: string) => stopJob(id, desk, parts.started);
  add.command(...cronCommands({ jobs, persons, stopJob: stop }));
  add.personalData(createJobForgetting(rows, changed));
  add.startedFrom(
    JOB_CHANNEL,
    startedFromJobs(rows, (chat) => routes.sessionOf(chat)),
  );
  workflows.runs.whenJobEnds((id, run, how, detail) => scheduler.ended(id, run, how, detail));
  add.task({ name: 'jobs', run: (signal) => scheduler.run(signal) });
  add.task({
    name: 'job reports',
    run: (signal) => bus.deliver(courier, { signal, concurrency: CONCURRENCY }),
  });
  add.task({ name: 'announcements', run: (signal) => announcer.run(signal) });
  add.task({ name: 'heartbeat', run: (signal) => heartbeat.run(signal) });
  const stage = scheduleStage({
    ...{ agent, scheduler },
    answersTo: (session, message) => routes.answersTo(session, message),
  });
  add.stage(stage);
  return { jobs: { atWork: (chat) => desk.atWork(chat), stop } };
}

/** Where a job reports. */
async function placeFor(job: Job, { people, owners }: AutomationParts): Promise<JobPlace> {
  const { target, maker, name: title } = job;
  if (target.kind === 'chat') return { title, chat: target.chat };
  if (maker.kind === 'operator') return { title, chat: await owners.askChat() };
  const person = await people.persons.get(maker.id);
  if (person?.role === 'owner') return { title, chat: await owners.askChat() };
  const [chat = maker.chat] = person === undefined ? [] : chatsOf(person);
  return { title, chat };
}

async function heartbeatPlace({ live, owners }: AutomationParts): Promise<JobPlace> {
  const chat = chatRefOf(live.config.heartbeat.chat) ?? (await owners.askChat());
  return { title: 'Heartbeat', chat };
}

function heartbeatFile(live: LiveConfig): () => Promise<string | undefined> {
  const files = createGuardedFiles();
  return async () => {
    const limits = { maxBytes: MAX_HEARTBEAT_BYTES };
    const { workspace } = live.defaults;
    const content = await files.read(workspace, HEARTBEAT_FILE, limits).catch((error) => {
      if (error instanceof GuardedFileError) return undefined;
      throw error;
    });
    return content?.toString('utf8');
  };
}
