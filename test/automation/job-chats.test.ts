// Whose the conversations of jobs are.

import { expect, it } from 'vitest';
import { createJobForgetting, openJobRows } from '../../src/features/schedule/job-rows.ts';
import type { Job } from '../../src/features/schedule/rules/job.ts';
import { channelName, chatId, DEFAULT_ACCOUNT, threadId } from '../../src/kernel/message/ids.ts';
import { memoryRows } from '../support/memory-host.ts';

const JOB = {
  ...{ name: 'job', kind: 'say', text: 'tea', schedule: { kind: 'at', at: 1 }, target: {} },
  ...{ enabled: true, deleteAfterRun: false, createdAt: 1, failures: 0 },
};

const madeIn = (id: string, chat: string): Job => {
  const place = { channel: channelName('telegram'), account: DEFAULT_ACCOUNT, chat: chatId(chat) };
  const maker = { kind: 'person', chat: { ...place, thread: threadId('7') } };
  return { ...JOB, id, maker } as Job;
};

it('are theirs who made the job, and an owner has those made at the machine', async () => {
  const operator = { ...JOB, id: 'j3', maker: { kind: 'operator' } } as Job;
  const jobs = openJobRows(memoryRows());
  for (const job of [madeIn('j1', '1'), madeIn('j2', '2'), operator])
    await jobs.all.change(job.id, () => job);
  const erasing = createJobForgetting(jobs, () => undefined);
  expect(await erasing.chatsBelow(['telegram:1'], false)).toEqual(['cron:j1']);
  expect(await erasing.chatsBelow(['telegram:2'], true)).toEqual([
    ...['cron:j2', 'cron:j3', 'cron:heartbeat'],
  ]);
  expect(await erasing.chatsBelow([], false)).toEqual([]);
});
