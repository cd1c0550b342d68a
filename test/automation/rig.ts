// Jobs over a real store and bus, with time moved by hand and a process that can be stopped, killed and
// started again. The agent is a script: what it would answer a run is the test's to say.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { Remark } from '../../src/agent/thread.ts';
import { createAnnouncer } from '../../src/features/schedule/announcer.ts';
import { createHeartbeat } from '../../src/features/schedule/heartbeat.ts';
import { openJobRows } from '../../src/features/schedule/job-rows.ts';
import {
  createJobCourier,
  createJobStart,
  scheduleStage,
} from '../../src/features/schedule/job-start.ts';
import {
  createJobService,
  createNextSlot,
  type JobAsker,
} from '../../src/features/schedule/jobs.ts';
import type { Look } from '../../src/features/schedule/rules/gate.ts';
import { HEARTBEAT, type Job } from '../../src/features/schedule/rules/job.ts';
import { createScheduler, type Scheduler } from '../../src/features/schedule/scheduler.ts';
import { openWorkflowRows, runsOfJob } from '../../src/features/workflows/workflow-rows.ts';
import type { Verdict } from '../../src/kernel/access/admission.ts';
import type { Rights } from '../../src/kernel/access/rights.ts';
import type { Turn } from '../../src/kernel/bus/bus.ts';
import { createMessageBus } from '../../src/kernel/bus/message-bus.ts';
import { openEmbeddedStore } from '../../src/kernel/bus/store/embedded.ts';
import {
  channelName,
  chatId,
  DEFAULT_ACCOUNT,
  nativeId,
  personId,
} from '../../src/kernel/message/ids.ts';
import {
  type ChatRef,
  type OutboundMessage,
  sessionKeyOf,
} from '../../src/kernel/message/message.ts';
import type { TranscriptEntry } from '../../src/kernel/message/transcript.ts';
import { OWNER_TURN } from '../../src/kernel/message/untrusted.ts';
import { createRows } from '../../src/kernel/rows.ts';
import type { HandledTurn } from '../../src/kernel/turns/stages.ts';
import { supervise } from '../../src/lib/async.ts';
import { silentLogger as log } from '../../src/lib/logger.ts';
import { aborted } from '../../src/lib/time/clock.ts';
import { quietUntil } from '../../src/lib/time/quiet-hours.ts';
import { OWNER_RIGHTS } from '../gateway/approvals-rig.ts';
import { person } from '../gateway/people-rig.ts';
import { createMovableClock } from '../support/movable-clock.ts';

export const CHAT: ChatRef = {
  channel: channelName('chat'),
  account: DEFAULT_ACCOUNT,
  chat: chatId('1'),
};
const ZONE = 'Europe/Berlin';
const RESTARTS = { minMs: 500, maxMs: 500, stableMs: 60_000 };

export const asker = (rights: Rights = OWNER_RIGHTS): Extract<JobAsker, { kind: 'person' }> => ({
  kind: 'person',
  person: {
    ...{ id: personId('p1'), name: 'Ann', conversations: 'each', role: 'owner', timeZone: ZONE },
    doors: [{ channel: CHAT.channel, ids: [person('1').id], chat: CHAT }],
  },
  sender: person('1'),
  chat: CHAT,
  rights,
  isTainted: false,
});

/** What a run answers; `failed` with the reason. */
type Answer = string | { readonly failed: string } | Promise<string>;

export async function makeJobsRig(startsAt: string) {
  const clock = createMovableClock(Date.parse(startsAt));
  const folder = await mkdtemp(join(tmpdir(), 'nanobot-jobs-'));
  const edge = {
    answer: (_text: string): Answer => 'done',
    verdict: { kind: 'admit', role: 'owner' } as Verdict,
    checkWorkflow: async (_typed: string): Promise<void> => undefined,
    /** What a check before a run finds. */
    look: async (_job: Job): Promise<Look> => ({ kind: 'closed', mark: 'as ever' }),
    quiet: '',
    maxFailures: 3,
    heartbeatFile: '',
    /** Of the turn that answers. */
    entries: [{ role: 'reset', at: 0 }] as readonly TranscriptEntry[],
    /** Dies behind the start of a run, before that is noted. */
    diesOnStart: false,
    /** The job of that name cannot be started. */
    broken: '',
  };
  const said: { readonly at: string; readonly text: string }[] = [];
  const runs: Turn[] = [];
  const remarks: Remark[] = [];
  const told: string[] = [];
  const begun: string[] = [];

  async function answer(turn: Turn): Promise<HandledTurn> {
    const { seq, message } = turn.messages[0];
    runs.push(turn);
    const stopped = aborted(turn.signal).then(() => ({ failed: 'stopped' }));
    const answered = await Promise.race([edge.answer(message.text), stopped]);
    turn.signal.throwIfAborted();
    const isFailed = typeof answered !== 'string';
    const markdown = isFailed ? answered.failed : answered;
    const outbound = [{ chat: turn.chat, markdown }];
    return { throughSeq: seq, outbound, ending: isFailed ? 'failed' : 'answered' };
  }

  async function quietIn(_chat: ChatRef, moment = clock.now()) {
    const at = quietUntil(moment, edge.quiet, ZONE);
    return at === undefined ? undefined : { at, timeZone: ZONE };
  }

  async function open() {
    const store = await openEmbeddedStore({ path: join(folder, 'state.db'), clock, log });
    const bus = createMessageBus({
      ...{ store, clock, log, limits: { maxPending: 1000, maxPendingPerChat: 100 } },
    });
    const { revision } = store;
    const rows = createRows(store);
    const jobs = openJobRows(rows);
    const next = createNextSlot();
    const announcer = createAnnouncer({
      ...{ rows, bus, clock },
      sessionOf: async (chat) => sessionKeyOf(chat),
      quietUntil: quietIn,
    });
    const placeOf = async (job: Job) => ({ title: job.name, chat: CHAT });
    const begin = createJobStart({
      ...{ bus, announcer, clock, placeOf, ownerRights: () => OWNER_RIGHTS },
      judge: async () => edge.verdict,
      origins: async () => ({ rights: OWNER_RIGHTS, isForeign: false, isOwnerHere: true }),
      personOf: async () => OWNER_TURN,
      startWorkflow: async () => undefined,
      look: (job) => edge.look(job),
      ended: (...over) => scheduler.ended(...over),
    });
    const scheduler: Scheduler = createScheduler({
      ...{ jobs, next, bus, clock, log, revision, zoneOf: async () => ZONE },
      ...{
        isOn: () => true,
        maxFailures: () => edge.maxFailures,
        tellOwner: (text) => void told.push(text),
      },
      async start(run) {
        if (run.job.name === edge.broken) throw new Error('its row is damaged');
        const started = await begin(run);
        if (edge.diesOnStart) throw new Error('killed');
        return started;
      },
      tell: async (job, id, text) =>
        announcer.announce({ ...(await placeOf(job)), id, markdown: text, isForeign: false }),
    });
    const note = async (text: string) => {
      if (!(await announcer.keepNote(text, CHAT))) told.push(text);
    };
    const heartbeat = createHeartbeat({
      ...{ state: store.scope('heartbeat'), bus, clock, log, ownerRights: () => OWNER_RIGHTS },
      settings: () => ({ enabled: true, everyMins: 30, activeHours: '', timeZone: ZONE }),
      readFile: async () => edge.heartbeatFile,
      beginAnew: async () => void begun.push(new Date(clock.now()).toISOString()),
    });
    const workflows = openWorkflowRows(rows, (text) => text);
    const service = createJobService({
      ...{ jobs, next, bus, now: () => clock.now(), timeZone: () => ZONE, isOn: () => true },
      workflowsOf: (job) => runsOfJob(workflows, job),
      checkWorkflow: (typed) => edge.checkWorkflow(typed),
      changed: () => scheduler.changed(),
    });
    const stage = scheduleStage({
      scheduler,
      agent: {
        remark: async (_session, remark) => void remarks.push(remark),
        reset: async () => undefined,
      },
      answersTo: async (_session, message) => message.chat,
    });
    const handle = (turn: Turn) => stage.run(turn, answer);
    const courier = createJobCourier({
      ...{ announcer, log, sessions: { turn: async () => edge.entries } },
      async placeOf(id) {
        if (id === HEARTBEAT) return { title: 'Heartbeat', chat: CHAT };
        const job = await jobs.all.get(id);
        return job && placeOf(job);
      },
    });
    const stop = new AbortController();
    const { signal } = stop;
    const kept = (name: string, run: (inner: AbortSignal) => Promise<void>) =>
      supervise(run, { name, signal, clock, log, ...RESTARTS, onFailure: () => 'restart' });
    const running = Promise.all([
      bus.work(handle, { signal, maxOpenTurns: () => 9, maxAttempts: 3, onPoison: () => [] }),
      bus.deliver(courier, { signal, concurrency: 8 }),
      bus.deliver(chatCourier(), { signal, concurrency: 8 }),
      kept('jobs', (inner) => scheduler.run(inner)),
      kept('announcements', (inner) => announcer.run(inner)),
      kept('heartbeat', (inner) => heartbeat.run(inner)),
    ]);
    return { store, bus, jobs, service, note, stop, running };
  }

  const chatCourier = () => ({
    account: CHAT.channel,
    onUnknown: 'idempotent' as const,
    lifetimeMs: 30 * 86_400_000,
    async send({ id, markdown }: OutboundMessage) {
      said.push({ at: new Date(clock.now()).toISOString(), text: markdown });
      return { nativeIds: [nativeId(id)] };
    },
  });

  let opened = await open();
  async function close() {
    const { store, bus, stop, running } = opened;
    stop.abort();
    await running;
    await bus[Symbol.asyncDispose]();
    await store[Symbol.asyncDispose]();
  }
  onTestFinished(async () => {
    await close();
    await rm(folder, { recursive: true });
  });
  await clock.advance(0);

  return {
    ...{ clock, edge, said, runs, remarks, told },
    /** When the heartbeat left the days before out of sight. */
    begun,
    get service() {
      return opened.service;
    },
    note: (text: string) => opened.note(text),
    get jobs() {
      return opened.jobs.all;
    },
    get history() {
      return opened.jobs.history;
    },
    /** What was said since this was last asked. */
    heard: () => said.splice(0).map(({ at, text }) => `${at.slice(0, 16)} ${text}`),
    /** Time goes on to the moment, the last second of it tick by tick. */
    async until(moment: string) {
      await clock.jump(Date.parse(moment) - clock.now() - 1000);
      await clock.advance(1000);
    },
    /** The process is away until the moment. */
    async away(moment: string) {
      await close();
      await clock.jump(Date.parse(moment) - clock.now());
      opened = await open();
      await clock.advance(1000);
    },
  };
}
