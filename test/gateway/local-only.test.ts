// Conversations that stay on one's own machines, over a real store: what is held with them, and that
// nobody is asked on the way.

import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  type PlannedCall,
  type SpendingGuard,
  SpendingRefusedError,
} from '../../src/agent/agent.ts';
import type { Models } from '../../src/agent/models.ts';
import { openLocalOnly } from '../../src/features/local-models/local-only.ts';
import { openJobRows, startedFromJobs } from '../../src/features/schedule/job-rows.ts';
import type { Job } from '../../src/features/schedule/rules/job.ts';
import { JOB_CHANNEL, jobChat } from '../../src/features/schedule/settings.ts';
import { openSubagents, startedFromSubagents } from '../../src/features/subagents/personal-data.ts';
import {
  SUBAGENT_CHANNEL,
  type SubagentRun,
  subagentChat,
} from '../../src/features/subagents/rules/subagent.ts';
import { charged } from '../../src/features/voice/voice.ts';
import { openEmbeddedStore } from '../../src/kernel/bus/store/embedded.ts';
import type { EmbeddedStore } from '../../src/kernel/bus/store/store.ts';
import { configSchema } from '../../src/kernel/config/config.ts';
import { LiveConfig } from '../../src/kernel/config/files/live-config.ts';
import { createRegistries } from '../../src/kernel/contributions.ts';
import { budgetGuard, guardedModelCalls } from '../../src/kernel/guards.ts';
import {
  channelName,
  chatId,
  DEFAULT_ACCOUNT,
  type SessionKey,
  userId,
} from '../../src/kernel/message/ids.ts';
import { type ChatRef, sessionKeyOf } from '../../src/kernel/message/message.ts';
import { createRows } from '../../src/kernel/rows.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { createLocalSites } from '../../src/providers/local-site.ts';
import { createModelRegistry } from '../../src/providers/registry.ts';
import { createMovableClock } from '../support/movable-clock.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const clock = createMovableClock();
const signal = new AbortController().signal;
const chatOf = (id: string): ChatRef => ({
  ...{ channel: channelName('telegram'), account: DEFAULT_ACCOUNT, chat: chatId(id) },
});
const HERE = chatOf('1');
const ELSEWHERE = chatOf('2');
const CLOUD = 'openai/sim-1';

let folder: string;
let store: EmbeddedStore;
let asked: string[];
let moved: Record<string, SessionKey>;

beforeEach(async () => {
  folder = await temporaryFolder();
  store = await openEmbeddedStore({ path: join(folder, 'state.db'), clock, log: silentLogger });
  asked = [];
  moved = {};
});
afterEach(() => store[Symbol.asyncDispose]());

const inner: SpendingGuard = {
  modelFor: (_payer, model) => model,
  async reserve({ model }) {
    asked.push(model);
    return { kind: 'reserved', outputTokens: 1, settle: () => undefined };
  },
};

function open(only = false) {
  const config = configSchema.parse({
    localModels: { only },
    providers: {
      openai: { apiKey: 'sk-x' },
      vllm: { apiBase: 'https://models.example.com/v1' },
      lmstudio: { apiBase: 'http://192.168.1.5:1234/v1' },
    },
  });
  const loaded = { config, notes: [], path: '' } as unknown as ConstructorParameters<
    typeof LiveConfig
  >[0];
  const live = new LiveConfig(loaded, {});
  const registry = createModelRegistry({
    ...{ config, env: {}, clock, log: silentLogger, random: () => 0.5 },
  });
  const models: Models = {
    current: () => registry,
    rebuild: async () => undefined,
    onRebuilt: () => undefined,
    sites: createLocalSites({ clock, places: () => 1 }),
  };
  const sessionOf = async (chat: ChatRef) => moved[chat.chat] ?? sessionKeyOf(chat);
  const rows = createRows(store);
  const collections = { jobs: openJobRows(rows), subagents: openSubagents(rows) };
  const { add, contributed } = createRegistries();
  add.startedFrom(JOB_CHANNEL, startedFromJobs(collections.jobs, sessionOf));
  add.startedFrom(SUBAGENT_CHANNEL, startedFromSubagents(collections.subagents));
  const held = openLocalOnly({
    ...{ live, store, models, routes: { sessionOf } },
    startedFrom: contributed.startedFrom,
  });
  const guard = guardedModelCalls(() => [held.guard, budgetGuard(inner)]);
  const ask = (
    model: string,
    chat = HERE,
    more: Partial<PlannedCall> & { session?: SessionKey } = {},
  ) => {
    const { session, role = 'turn' } = more;
    const sender = {
      kind: 'person',
      id: userId('7'),
      verified: 'verified',
    } as PlannedCall['payer']['sender'];
    const payer = { chat, sender, ...(session === undefined ? {} : { session }) };
    return guard.reserve({ payer, role, model, inputTokens: 1, outputTokens: 1 }, signal);
  };
  return { collections, held, ask };
}

const kindOf = async (answer: ReturnType<SpendingGuard['reserve']>) => (await answer).kind;

describe('a conversation that stays on one’s own machines', () => {
  it('asks models at home only, whatever the call is for, also after a start', async () => {
    const { held, ask } = open();
    expect(await kindOf(ask(CLOUD))).toBe('reserved');
    await held.hold(sessionKeyOf(HERE), true);
    const anew = open();
    for (const role of [
      'turn',
      'compaction',
      'claim_check',
      'mail_summary',
      'router',
      'workflow',
    ]) {
      expect(await anew.ask(CLOUD, HERE, { role })).toMatchObject({
        ...{ kind: 'refused', because: 'local_only' },
        text: expect.stringMatching(/openai\/sim-1 is not on your own machines.*\/local off/),
      });
    }
    for (const model of ['vllm/qwen', 'ollama/gpt-oss:120b-cloud', 'ollama/kimi:cloud']) {
      expect(await kindOf(anew.ask(model)), model).toBe('refused');
    }
    for (const model of ['ollama/qwen3:8b', 'lmstudio/qwen', 'demo/demo']) {
      expect(await kindOf(anew.ask(model)), model).toBe('reserved');
    }
    expect(await kindOf(anew.ask(CLOUD, ELSEWHERE))).toBe('reserved');
    expect(await kindOf(anew.ask(CLOUD, ELSEWHERE, { role: 'reflection' }))).toBe('refused');
    expect(asked.filter((model) => model === CLOUD)).toHaveLength(2);
    await anew.held.hold(sessionKeyOf(HERE), false);
    expect(await kindOf(anew.ask(CLOUD))).toBe('reserved');
    expect(await kindOf(open().ask(CLOUD))).toBe('reserved');
  });

  it('holds helpers of helpers, jobs made in it, and the chat that it moved to', async () => {
    const { collections, held, ask } = open();
    const helper = (id: string, session: SessionKey) =>
      ({
        ...{ id, label: '', plan: { kind: 'task', task: '' }, depth: 1, terms: {}, attempt: 1 },
        ...{ parent: { session, chat: HERE, payingChat: HERE }, answers: [], startedAt: 1 },
        ...{ state: 'running', telling: 'due' },
      }) as unknown as SubagentRun;
    const { runs } = collections.subagents;
    await runs.change('h1', () => helper('h1', sessionKeyOf(HERE)));
    await runs.change('h2', () => helper('h2', sessionKeyOf(subagentChat('h1'))));
    const job = {
      ...{ id: 'j1', name: 'n', kind: 'ask', text: 't', schedule: { kind: 'at' }, failures: 0 },
      ...{ target: { kind: 'last' }, maker: { kind: 'person', chat: HERE }, enabled: true },
      ...{ createdAt: 1, deleteAfterRun: false },
    } as unknown as Job;
    await collections.jobs.all.change('j1', () => job);
    const below = [
      sessionKeyOf(subagentChat('h1')),
      sessionKeyOf(subagentChat('h2')),
      sessionKeyOf(jobChat('j1')),
    ];
    for (const session of below)
      expect(await kindOf(ask(CLOUD, HERE, { session }))).toBe('reserved');
    await held.hold(sessionKeyOf(HERE), true);
    for (const session of below) {
      expect(await kindOf(ask(CLOUD, ELSEWHERE, { session })), session).toBe('refused');
    }
    expect(await kindOf(ask(CLOUD, jobChat('j1')))).toBe('refused');
    moved = { '2': sessionKeyOf(HERE) };
    expect(await kindOf(ask(CLOUD, ELSEWHERE))).toBe('refused');
    // Said to be in another conversation, which the chat takes part in now.
    expect(await kindOf(ask(CLOUD, HERE, { session: sessionKeyOf(ELSEWHERE) }))).toBe('reserved');
  });

  it('is not read from where services are asked, and no service hears or speaks in it', async () => {
    const { held } = open();
    const payer = {
      chat: HERE,
      sender: { kind: 'system', source: 'cron' },
    } as PlannedCall['payer'];
    const spending = held.paid({
      reservePaid: async () => ({ kind: 'reserved', settle: () => undefined }),
    });
    const heard: boolean[] = [];
    const listen = (isElsewhere: boolean) =>
      charged(
        { payer, micros: 0, isElsewhere, costOf: () => 0 },
        async () => heard.push(isElsewhere),
        {
          ...{ spending, signal },
        },
      );
    await listen(true);
    await held.hold(sessionKeyOf(HERE), true);
    await listen(false);
    await expect(listen(true)).rejects.toThrow(SpendingRefusedError);
    expect(heard).toEqual([true, false]);
    expect(await held.closedTo(sessionKeyOf(ELSEWHERE))).toEqual([sessionKeyOf(HERE)]);
    expect(await held.closedTo(sessionKeyOf(HERE))).toEqual([]);
  });

  it('is every one where the configuration says so, and nobody takes that back', async () => {
    const { held, ask } = open(true);
    await held.hold(sessionKeyOf(HERE), false);
    expect(await ask(CLOUD)).toMatchObject({ text: expect.stringContaining('localModels.only') });
    expect(await kindOf(ask('ollama/x', ELSEWHERE))).toBe('reserved');
    expect(await held.holding(sessionKeyOf(ELSEWHERE))).toBe('all');
    expect(await held.lines(sessionKeyOf(HERE))).toHaveLength(1);
  });
});
