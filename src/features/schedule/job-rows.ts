// Stored rows of jobs, and what is erased and cleaned up with them.

import type { StartedFrom } from '../../kernel/contributions.ts';
import type { Kernel } from '../../kernel/feature.ts';
import type { MessageId, SessionKey } from '../../kernel/message/ids.ts';
import { type ChatRef, sessionKeyOf } from '../../kernel/message/message.ts';
import type { PersonalData } from '../../kernel/personal-data.ts';
import type { OpenRows } from '../../kernel/rows.ts';
import { jsonRows, openWork } from '../../kernel/rows.ts';
import { chatsOfChannel } from '../../kernel/sessions/forget.ts';
import { deleteLeftovers } from '../../kernel/sessions/maintenance.ts';
import type { Holds } from '../../kernel/sessions/rules/forgetting.ts';
import { flag, kind, number, object, objects, rowShape, text } from '../../lib/json/json.ts';
import { t } from '../../lib/texts.ts';
import {
  SUBAGENT_CHANNEL,
  type SubagentRows,
  subagentSession,
  withoutTopic,
} from '../subagents/index.ts';
import { gateText } from './rules/gate.ts';
import { HEARTBEAT, type Job, type JobEnding } from './rules/job.ts';
import { JOB_CHANNEL, jobSession } from './settings.ts';

const JOB = rowShape<Job>({
  ...{ id: text, name: text, kind: text, text, schedule: kind, target: object, maker: object },
  ...{ enabled: flag, deleteAfterRun: flag, createdAt: number, failures: number },
});

export type JobRows = ReturnType<typeof openJobRows>;

/** One run that ended; its texts and model calls are in the conversation of the job. */
export type JobRun = {
  readonly run: MessageId;
  /** Epoch milliseconds. */
  readonly begunAt?: number;
  readonly at: number;
  readonly how: JobEnding;
  readonly detail?: string;
};

/** Newest first. */
type JobHistory = { readonly id: string; readonly runs: readonly JobRun[] };

const HISTORY = rowShape<JobHistory>({ id: text, runs: objects });
const MAX_RUNS = 50;

/** The history with another run; a repetition for the same run changes nothing. */
export function withRun(
  known: JobHistory | undefined,
  id: string,
  run: JobRun,
): JobHistory | undefined {
  const { runs = [] } = known ?? {};
  if (runs.some((each) => each.run === run.run)) return undefined;
  return { id, runs: [run, ...runs].slice(0, MAX_RUNS) };
}

/** Oldest first. */
export function openJobRows(rows: OpenRows) {
  const work = openWork(rows, {
    shape: JOB,
    left: rowShape<Pick<Job, 'id' | 'maker'>>({ id: text, maker: object }),
    leaves: ({ id, maker }) => ({ id, maker }),
    ...{ scope: 'jobs', prefix: 'job:', isCached: true },
    order: (one, other) => one.createdAt - other.createdAt,
  });
  const history = rows({ ...jsonRows(HISTORY), scope: 'jobs', prefix: 'runs:' });
  return {
    ...work,
    history,
    async remove(id: string): Promise<void> {
      await history.change(id, () => 'remove');
      await work.remove(id);
    },
  };
}

// Erases jobs on behalf of a person: a job whose text is erased has nothing left to do, so the
// whole job is removed.

/** Jobs whose own conversations are among `chats`, which contain the words. */
async function jobsHolding(
  { all }: Pick<JobRows, 'all'>,
  chats: readonly string[],
  holds: Holds,
): Promise<readonly Job[]> {
  const jobs = await all.list();
  return jobs.filter(
    ({ id, name, text, last, when, gate }) =>
      chats.includes(jobSession(id)) &&
      holds([name, text, last?.detail, when && gateText(when), gate?.reason].join('\n')),
  );
}

const detailOf = ({ detail = '' }: JobRun) => detail;

/** `removed`: called after jobs were removed. */
export function createJobForgetting(jobs: JobRows, removed: () => void) {
  return {
    /** Of the chats of jobs that were made in these chats; `isOwner`: also at the command line. */
    async chatsBelow(chats: readonly string[], isOwner: boolean): Promise<readonly string[]> {
      const theirs = (await jobs.known()).filter(({ maker }) => {
        if (maker.kind === 'operator') return isOwner;
        const { thread: _topic, ...chat } = maker.chat;
        return chats.includes(sessionKeyOf(chat));
      });
      return [...theirs.map(({ id }) => id), ...(isOwner ? [HEARTBEAT] : [])].map(jobSession);
    },
    async find(chats: readonly string[], holds: Holds) {
      const theirs = await jobsHolding(jobs, chats, holds);
      return theirs.map(({ id, text }) => ({ where: t`job ${id}`, text }));
    },
    async forget(chats: readonly string[], holds: Holds): Promise<number> {
      const theirs = await jobsHolding(jobs, chats, holds);
      for (const { id } of theirs) await jobs.remove(id);
      if (theirs.length > 0) removed();
      const details = await jobs.history.erase(
        ({ id, runs }) => chats.includes(jobSession(id)) && holds(runs.map(detailOf).join('\n')),
      );
      return theirs.length + details;
    },
  } satisfies PersonalData;
}

/** The session that the job was made in. */
export function startedFromJobs(
  jobs: JobRows,
  sessionOf: (chat: ChatRef) => Promise<SessionKey>,
): StartedFrom {
  return async (id) => {
    const maker = (await jobs.whose(id))?.maker;
    if (maker?.kind !== 'person') return [];
    return [...new Set([sessionKeyOf(maker.chat), await sessionOf(maker.chat)])];
  };
}

// Cleans up after finished work: conversations of subagents and jobs stay on the disk for their
// retention and are then deleted.

type Works = { readonly subagents: SubagentRows; readonly jobs: JobRows };

const DAY_MS = 86_400_000;
const EVERY_MS = 3_600_000;

/** Deletes old conversations of finished work, and tells which of them an owner may erase. */
export function installLeftovers(kernel: Kernel, works: Works): void {
  const { sessionFiles, add } = kernel;
  const { run } = createWorkLeftovers(kernel, works);
  const onDisk = (channel: string) => chatsOfChannel(sessionFiles, channel);
  add.task({ name: 'leftovers', isOnce: true, run });
  add.personalData({
    chatsBelow: async (_chats, isOwner) => (isOwner ? chatsOfNobody(works, onDisk) : []),
  });
}

export function createWorkLeftovers(
  { live, clock, log, sessionFiles }: Pick<Kernel, 'live' | 'clock' | 'log' | 'sessionFiles'>,
  { subagents, jobs }: Works,
) {
  /**
   * Deletes files of conversations that are not in use, and the rows that tell to whom they
   * belonged.
   */
  async function deleteOf(
    channel: string,
    { removed }: SubagentRows | JobRows,
    sessionOf: (id: string) => SessionKey,
    isInUse: (session: string) => boolean,
  ): Promise<number> {
    const before = clock.now() - live.config.sessions.keepWorkDays * DAY_MS;
    const gone = await removed.list();
    const { deleted, left } = await deleteLeftovers(sessionFiles, {
      ...{ channel, before },
      isInUse: (session) => isInUse(withoutTopic(session)),
    });
    for (const { id } of gone) {
      if (!left.has(sessionOf(id))) await removed.change(id, () => 'remove');
    }
    return deleted;
  }

  async function clean(): Promise<number> {
    const open = new Set<string>(
      (await subagents.runs.list()).map(({ id }) => subagentSession(id)),
    );
    const over = new Set<string>((await jobs.removed.list()).map(({ id }) => jobSession(id)));
    return (
      (await deleteOf(SUBAGENT_CHANNEL, subagents, subagentSession, (chat) => open.has(chat))) +
      (await deleteOf(JOB_CHANNEL, jobs, jobSession, (chat) => !over.has(chat)))
    );
  }

  return {
    /** Runs now, and every hour until aborted. */
    async run(signal: AbortSignal): Promise<void> {
      while (!signal.aborted) {
        const deleted = await clean();
        if (deleted > 0) log.info('old conversations of subagents and jobs deleted', { deleted });
        await clock.sleep(EVERY_MS, signal).catch(() => undefined);
      }
    },
  };
}

/** Conversations on the disk that belong to no known work; earlier versions left them. */
export async function chatsOfNobody(
  { subagents, jobs }: Works,
  onDisk: (channel: string) => Promise<readonly string[]>,
): Promise<readonly string[]> {
  const known = new Set<string>([
    ...(await subagents.known()).map(({ id }) => subagentSession(id)),
    ...(await jobs.known()).map(({ id }) => jobSession(id)),
    jobSession(HEARTBEAT),
  ]);
  const found = [...(await onDisk(SUBAGENT_CHANNEL)), ...(await onDisk(JOB_CHANNEL))];
  return found.filter((chat) => !known.has(chat));
}
