// What is left of helpers and jobs that are over: whose it was stays known as long as it lies there, and
// it goes when its days are over.

import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import {
  chatsOfNobody,
  createJobForgetting,
  createWorkLeftovers,
  openJobRows,
} from '../../src/features/schedule/job-rows.ts';
import type { Job } from '../../src/features/schedule/rules/job.ts';
import {
  createSubagentErasure,
  openSubagents,
  removeEndedRuns,
} from '../../src/features/subagents/personal-data.ts';
import type { SubagentRun } from '../../src/features/subagents/rules/subagent.ts';
import type { LiveConfig } from '../../src/kernel/config/files/live-config.ts';
import { sessionKey, turnId } from '../../src/kernel/message/ids.ts';
import { chatsOfChannel } from '../../src/kernel/sessions/forget.ts';
import { createJsonlSessionStore } from '../../src/kernel/sessions/jsonl.ts';
import { createRequestFiles } from '../../src/kernel/sessions/request-log.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { systemClock } from '../../src/lib/time/clock.ts';
import { createSessionFolder, ROOMY } from '../sessions/session-folder.ts';
import { memoryRows } from '../support/memory-host.ts';

const DAY = 86_400_000;
const WORK = {
  ...{ id: '', label: 'work', plan: {}, parent: { session: 'x' }, depth: 1, terms: {} },
  ...{ attempt: 1, answers: [], startedAt: 0, state: 'running', telling: 'over' },
} as unknown as SubagentRun;
const JOB = {
  ...{ name: 'job', kind: 'say', text: 'tea', schedule: { kind: 'at', at: 1 }, target: {} },
  ...{ enabled: true, deleteAfterRun: false, createdAt: 1, failures: 0 },
};

async function createWork() {
  const { folder, store: entryRows, fileNames } = await createSessionFolder();
  // Files have the time of the disk.
  const time = { now: Date.now() };
  const clock = { ...systemClock, now: () => time.now };
  const store = createJsonlSessionStore({
    ...{ folder, store: entryRows, clock, log: silentLogger, policy: () => ROOMY },
  });
  const subagents = openSubagents(memoryRows());
  const jobs = openJobRows(memoryRows());
  const say = (session: string) => {
    const key = sessionKey(session);
    const entry = { role: 'user', turnId: turnId(`${key}#1`), text: 'hi', at: time.now } as const;
    return store.append(key, [entry], { durable: true });
  };
  async function clean() {
    const stop = new AbortController();
    const sleep = async () => stop.abort();
    const live = { config: { sessions: { keepWorkDays: 30 } } } as LiveConfig;
    const kernel = { live, clock: { ...clock, sleep }, log: silentLogger, sessionFiles: store };
    const once = createWorkLeftovers(kernel, { subagents, jobs });
    await once.run(stop.signal);
  }
  return { folder, fileNames, time, store, subagents, jobs, say, clean };
}

it('is known by whose it was until its files go, those in use never', async () => {
  const { folder, fileNames, time, store, subagents, jobs, say, clean } = await createWork();
  const helper = (id: string, session: string) =>
    subagents.runs.change(id, () => ({
      ...{ ...WORK, id, parent: { session } as SubagentRun['parent'], state: 'done' },
      startedAt: time.now - 1,
    }));
  await helper('z1', 'telegram:1');
  await helper('a2', 'subagent:z1');
  const maker = { kind: 'person', chat: { channel: 'telegram', account: 'default', chat: '1' } };
  for (const id of ['j1', 'j2']) await jobs.all.change(id, () => ({ ...JOB, id, maker }) as Job);
  const sessions = [
    'subagent:z1',
    'subagent:a2',
    'cron:j1',
    'cron:j2',
    'subagent:lost',
    'telegram:1',
  ];
  const asked = createRequestFiles({
    ...{ folder, clock: systemClock, log: silentLogger },
    redact: (text) => text,
  });
  for (const session of sessions) {
    await say(session);
    asked.keep(sessionKey(session), { print: 'a', text: '{}' }, () => []);
  }
  await asked[Symbol.asyncDispose]();
  await removeEndedRuns(subagents, time.now);
  await subagents.runs.change('new', () => ({ ...WORK, id: 'new', state: 'running' }));
  await say('subagent:new');
  await jobs.remove('j1');
  await clean();
  const forgetting = createSubagentErasure(subagents);
  expect(await forgetting.chatsBelow(['telegram:1'])).toEqual(['subagent:z1']);
  expect(await forgetting.chatsBelow(['telegram:1', 'subagent:z1'])).toEqual([
    'subagent:a2',
    'subagent:z1',
  ]);
  const erasing = createJobForgetting(jobs, () => undefined);
  expect(await erasing.chatsBelow(['telegram:1'], false)).toEqual(['cron:j2', 'cron:j1']);
  const onDisk = (channel: string) => chatsOfChannel(store, channel);
  expect(await chatsOfNobody({ subagents, jobs }, onDisk)).toEqual(['subagent:lost']);
  time.now += 31 * DAY;
  await clean();
  const left = (await fileNames()).map((name) => decodeURIComponent(name).replace(/_.*/, ''));
  expect(left.sort()).toEqual(['cron:j2', 'subagent:new', 'telegram:1']);
  const kept = (await readdir(join(folder, 'asked'))).map(decodeURIComponent);
  expect(kept.sort()).toEqual(['cron:j2.jsonl', 'telegram:1.jsonl']);
  expect([...(await subagents.removed.list()), ...(await jobs.removed.list())]).toEqual([]);
  expect(await readdir(folder)).not.toContain('archive');
  await store[Symbol.asyncDispose]();
});
