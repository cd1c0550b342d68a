// The collection of scheduled jobs.

import type { StartedFrom } from '../../kernel/contributions.ts';
import type { SessionKey } from '../../kernel/message/ids.ts';
import { type ChatRef, sessionKeyOf } from '../../kernel/message/message.ts';
import type { PersonalData } from '../../kernel/personal-data.ts';
import type { OpenRows } from '../../kernel/rows.ts';
import { openWork } from '../../kernel/rows.ts';
import type { Holds } from '../../kernel/sessions/rules/forgetting.ts';
import { flag, kind, number, object, rowShape, text } from '../../lib/json/json.ts';
import { HEARTBEAT, type Job, jobChat } from './rules/job.ts';

const JOB = rowShape<Job>({
  ...{ id: text, name: text, kind: text, text, schedule: kind, target: object, maker: object },
  ...{ enabled: flag, deleteAfterRun: flag, createdAt: number, failures: number },
});

export type JobRows = ReturnType<typeof openJobRows>;

/** Oldest first. */
export const openJobRows = (rows: OpenRows) =>
  openWork(rows, {
    shape: JOB,
    left: rowShape<Pick<Job, 'id' | 'maker'>>({ id: text, maker: object }),
    leaves: ({ id, maker }) => ({ id, maker }),
    ...{ scope: 'jobs', prefix: 'job:', isCached: true },
    order: (one, other) => one.createdAt - other.createdAt,
  });

// What a person wants forgotten, in their scheduled jobs: a job whose words are gone has nothing left to do,
// so it goes as a whole.

/** Those whose own conversations are among `chats`, which hold the words. */
async function jobsHolding(
  { all }: Pick<JobRows, 'all'>,
  chats: readonly string[],
  holds: Holds,
): Promise<readonly Job[]> {
  const jobs = await all.list();
  return jobs.filter(
    ({ id, name, text, last }) =>
      chats.includes(sessionKeyOf(jobChat(id))) &&
      holds([name, text, last?.detail ?? ''].join('\n')),
  );
}

/** `removed`: jobs went. */
export function createJobForgetting(jobs: JobRows, removed: () => void): PersonalData {
  return {
    chatsBelow: (chats, isOwner) => chatsOfJobs(jobs, chats, isOwner),
    async find(chats, holds) {
      const theirs = await jobsHolding(jobs, chats, holds);
      return theirs.map(({ id, text }) => ({ where: `job ${id}`, text }));
    },
    async forget(chats: readonly string[], holds: Holds): Promise<number> {
      const theirs = await jobsHolding(jobs, chats, holds);
      for (const { id } of theirs) await jobs.remove(id);
      if (theirs.length > 0) removed();
      return theirs.length;
    },
  };
}

// Whose the conversations of jobs are, for whoever wants words forgotten: those of whoever made the job,
// and of the machine's owners where that was done at the command line.

/** Keys of the chats of jobs that were made in these chats. */
export async function chatsOfJobs(
  jobs: JobRows,
  chats: readonly string[],
  isOwner: boolean,
): Promise<readonly string[]> {
  const theirs = (await jobs.known()).filter(({ maker }) => {
    if (maker.kind === 'operator') return isOwner;
    const { thread: _topic, ...chat } = maker.chat;
    return chats.includes(sessionKeyOf(chat));
  });
  const ids = [...theirs.map(({ id }) => id), ...(isOwner ? [HEARTBEAT] : [])];
  return ids.map((id) => sessionKeyOf(jobChat(id)));
}

/** The conversations that the job was made in. */
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
