// What a person wants forgotten, in their scheduled jobs: a job whose words are gone has nothing left to do,
// so it goes as a whole.

import { sessionKeyOf } from '../../kernel/message/message.ts';
import type { PersonalData } from '../../kernel/personal-data.ts';
import type { Holds } from '../../kernel/sessions/rules/forgetting.ts';
import { chatsOfJobs } from './job-chats.ts';
import { type JobRows, removeJob } from './job-rows.ts';
import { type Job, jobChat } from './rules/job.ts';

/** Those whose own conversations are among `chats`, which hold the words. */
export async function jobsHolding(
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
      for (const { id } of theirs) await removeJob(jobs, id);
      if (theirs.length > 0) removed();
      return theirs.length;
    },
  };
}
