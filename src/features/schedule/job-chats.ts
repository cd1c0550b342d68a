// Whose the conversations of jobs are, for whoever wants words forgotten: those of whoever made the job,
// and of the machine's owners where that was done at the command line.

import type { StartedFrom } from '../../kernel/contributions.ts';
import type { SessionKey } from '../../kernel/message/ids.ts';
import { type ChatRef, sessionKeyOf } from '../../kernel/message/message.ts';
import type { JobRows } from './job-rows.ts';
import { HEARTBEAT, jobChat } from './rules/job.ts';

/** Keys of the chats of jobs that were made in these chats. */
export async function chatsOfJobs(
  { all, removed }: JobRows,
  chats: readonly string[],
  isOwner: boolean,
): Promise<readonly string[]> {
  const known = [...(await all.list()), ...(await removed.list())];
  const theirs = known.filter(({ maker }) => {
    if (maker.kind === 'operator') return isOwner;
    const { thread: _topic, ...chat } = maker.chat;
    return chats.includes(sessionKeyOf(chat));
  });
  const ids = [...theirs.map(({ id }) => id), ...(isOwner ? [HEARTBEAT] : [])];
  return ids.map((id) => sessionKeyOf(jobChat(id)));
}

/** The conversations that the job was made in. */
export function startedFromJobs(
  { all, removed }: JobRows,
  sessionOf: (chat: ChatRef) => Promise<SessionKey>,
): StartedFrom {
  return async (id) => {
    const job = (await all.get(id)) ?? (await removed.get(id));
    const maker = job?.maker;
    if (maker?.kind !== 'person') return [];
    return [...new Set([sessionKeyOf(maker.chat), await sessionOf(maker.chat)])];
  };
}
