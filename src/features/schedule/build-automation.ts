// Builds what the machine does of its own accord: scheduled jobs, the heartbeat, and what is said at
// the end of quiet hours.

import type { Agent } from '../../agent/agent.ts';
import type { Alert } from '../../app/alerts.ts';
import type { Foundations } from '../../app/foundations.ts';
import type { BackgroundWork } from '../../app/gateway-service.ts';
import { DOOR_OWNER, OWN_DOORS } from '../../channels/own-doors.ts';
import { chatsOf } from '../../kernel/access/person.ts';
import { rightsOf } from '../../kernel/access/rights.ts';
import type { LiveConfig } from '../../kernel/config/files/live-config.ts';
import type { Judge } from '../../kernel/intake/judge.ts';
import { type ChatRef, chatRefOf, sessionKeyOf } from '../../kernel/message/message.ts';
import type { Dispatcher } from '../../kernel/turns/dispatcher.ts';
import type { Origins } from '../../kernel/turns/origins.ts';
import { createTurnPersonOf } from '../../kernel/turns/turn-person.ts';
import { createGuardedFiles } from '../../lib/files/guarded-files.ts';
import { GuardedFileError } from '../../lib/files/guarded-path.ts';
import type { People } from '../people/people.ts';
import { createAnnouncer } from './announcer.ts';
import { createHeartbeat } from './heartbeat.ts';
import { createJobAskers, type JobAskers } from './job-askers.ts';
import { createJobCourier, type JobPlace } from './job-courier.ts';
import { createJobForgetting } from './job-forgetting.ts';
import { createJobStart, type JobStartDeps } from './job-start.ts';
import { withJobs } from './job-turns.ts';
import { openJobs } from './open-jobs.ts';
import { createOwnerNotes, type OwnerNotesDeps, type TellOwner } from './owner-notes.ts';
import { HEARTBEAT, type Job, jobChat } from './rules/job.ts';
import { HEARTBEAT_FILE } from './rules/job-report.ts';
import { quietUntil } from './rules/quiet-hours.ts';
import { Scheduler } from './scheduler.ts';

export type AutomationParts = Foundations & {
  readonly people: People;
  readonly judge: Judge;
  readonly origins: Origins;
  readonly agent: Agent;
  readonly alert: Alert;
  /** Where an owner is reached by chat. */
  ownerChat(): Promise<ChatRef>;
  readonly noticeChat: OwnerNotesDeps['noticeChat'];
  readonly startWorkflow: JobStartDeps['startWorkflow'];
  /** @throws WorkflowError */
  checkWorkflow(typed: string): Promise<void>;
};

export type Automation = JobAskers & {
  /** Notes that can wait for the end of quiet hours. */
  readonly tell: TellOwner;
  /** The run of a job is over; told twice, the second changes nothing. */
  readonly jobEnded: Scheduler['ended'];
  readonly forgetting: ReturnType<typeof createJobForgetting>;
  with(dispatcher: Dispatcher): Dispatcher;
  readonly background: readonly BackgroundWork[];
};

const OWNER_RIGHTS = rightsOf({
  ...{ role: 'owner', place: 'direct', verified: 'verified', medium: 'chat' },
});
const MAX_HEARTBEAT_BYTES = 65_536;
const CONCURRENCY = 8;

export function buildAutomation(parts: AutomationParts): Automation {
  const { live, clock, log, store, bus, sessions, people, judge, origins, agent } = parts;
  const { persons, routes } = people;
  const { revision } = store;
  const timeZone = () => live.config.sessions.timeZone;
  const changed = () => scheduler.changed();
  const { checkWorkflow } = parts;
  const open = { now: () => clock.now(), timeZone, changed, checkWorkflow };
  const { jobs } = parts.collections;
  const { next, desk } = openJobs(parts.collections, bus, open);
  const announcer = createAnnouncer({
    ...{ state: store.scope('announcements'), bus, clock },
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
    startWorkflow: parts.startWorkflow,
    ended: (id, run, how, detail) => scheduler.ended(id, run, how, detail),
  });
  const tell = createOwnerNotes({
    ...{ announcer, log, noticeChat: parts.noticeChat, quietUntil: quietIn },
    tellNow: (text, about) => parts.alert(undefined, text, about),
  });
  const scheduler: Scheduler = new Scheduler({
    ...{ jobs, next, bus, clock, log, timeZone, revision, start, tellOwner: tell },
    isOn: () => live.config.cron.enabled,
    maxFailures: () => live.config.cron.maxFailures,
    tell: async (job, id, text) =>
      announcer.announce({ ...(await placeOf(job)), id, markdown: text, isForeign: false }),
  });
  const courier = createJobCourier({
    ...{ announcer, sessions, log },
    async placeOf(id) {
      if (id === HEARTBEAT) return heartbeatPlace(parts);
      const job = await jobs.all.get(id);
      return job === undefined ? undefined : placeOf(job);
    },
  });
  const heartbeat = createHeartbeat({
    ...{ state: store.scope('heartbeat'), bus, clock, log, ownerRights: OWNER_RIGHTS },
    settings: () => ({ ...live.config.heartbeat, timeZone: timeZone() }),
    readFile: heartbeatFile(live),
    beginAnew: () => agent.reset(sessionKeyOf(jobChat(HEARTBEAT))),
  });
  return {
    ...createJobAskers({
      ...{ desk, persons, origins },
      ownerAt: ({ channel }) =>
        OWN_DOORS.some((door) => door.channel === channel) ? DOOR_OWNER : undefined,
    }),
    tell,
    jobEnded: (id, run, how, detail) => scheduler.ended(id, run, how, detail),
    forgetting: createJobForgetting(jobs, changed),
    with: (dispatcher) =>
      withJobs(dispatcher, {
        ...{ agent, scheduler },
        answersTo: (session, message) => routes.answersTo(session, message),
      }),
    background: [
      { name: 'jobs', run: (signal) => scheduler.run(signal) },
      {
        name: 'job reports',
        run: (signal) => bus.deliver(courier, { signal, concurrency: CONCURRENCY }),
      },
      { name: 'announcements', run: (signal) => announcer.run(signal) },
      { name: 'heartbeat', run: (signal) => heartbeat.run(signal) },
    ],
  };
}

/** Where a job reports. */
async function placeFor(job: Job, { people, ownerChat }: AutomationParts): Promise<JobPlace> {
  const { target, maker, name: title } = job;
  if (target.kind === 'chat') return { title, chat: target.chat };
  if (maker.kind === 'operator') return { title, chat: await ownerChat() };
  const person = await people.persons.get(maker.id);
  if (person?.role === 'owner') return { title, chat: await ownerChat() };
  const [chat = maker.chat] = person === undefined ? [] : chatsOf(person);
  return { title, chat };
}

async function heartbeatPlace({ live, ownerChat }: AutomationParts): Promise<JobPlace> {
  const chat = chatRefOf(live.config.heartbeat.chat) ?? (await ownerChat());
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
