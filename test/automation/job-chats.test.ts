// Whose the conversations of jobs are.

import { expect, it } from 'vitest';
import { JobBook } from '../../src/features/schedule/job-book.ts';
import { chatsOfJobs } from '../../src/features/schedule/job-chats.ts';
import type { Job } from '../../src/features/schedule/rules/job.ts';
import { channelName, chatId, DEFAULT_ACCOUNT, threadId } from '../../src/kernel/message/ids.ts';
import { createMemoryStore } from '../support/memory-host.ts';

const madeIn = (id: string, chat: string): Job => {
  const place = { channel: channelName('telegram'), account: DEFAULT_ACCOUNT, chat: chatId(chat) };
  const maker = { kind: 'person', chat: { ...place, thread: threadId('7') } };
  return { id, maker } as Job;
};

it('are theirs who made the job, and an owner has those made at the machine', async () => {
  const operator = { id: 'j3', maker: { kind: 'operator' } } as Job;
  const gone = new JobBook({ state: createMemoryStore(), revision: () => 1 }).gone;
  const book = { all: async () => [madeIn('j1', '1'), madeIn('j2', '2'), operator], gone };
  expect(await chatsOfJobs(book, ['telegram:1'], false)).toEqual(['cron:j1']);
  expect(await chatsOfJobs(book, ['telegram:2'], true)).toEqual([
    ...['cron:j2', 'cron:j3', 'cron:heartbeat'],
  ]);
  expect(await chatsOfJobs(book, [], false)).toEqual([]);
});
