// An agent over the real session store in a temporary folder, with a scripted model and a small set
// of tools that count what they do. `restart` stands for a killed and restarted process.

import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { onTestFinished } from 'vitest';
import { z } from 'zod';
import type {
  CallToApprove,
  SpendingGuard,
  TurnInput,
  TurnMessage,
} from '../../src/agent/agent.ts';
import { createAgent } from '../../src/agent/install.ts';
import { createPromptSources } from '../../src/agent/prepared.ts';
import type { CompactionPolicy } from '../../src/agent/rules/compaction.ts';
import type { AgentSettings } from '../../src/agent/settings.ts';
import { createSideModel, type SideModel } from '../../src/agent/side-model.ts';
import type { Modes } from '../../src/features/modes/modes.ts';
import type { StandingNote } from '../../src/features/plans/rules/plan.ts';
import { antiDriftSchema, proprioceptionSchema } from '../../src/features/steadiness/settings.ts';
import { ALL_RIGHTS } from '../../src/kernel/access/rights.ts';
import {
  channelName,
  chatId,
  DEFAULT_ACCOUNT,
  messageId,
  turnId,
} from '../../src/kernel/message/ids.ts';
import type { AgentEvent, TurnOutcome } from '../../src/kernel/message/message.ts';
import { sessionKeyOf } from '../../src/kernel/message/message.ts';
import type { TranscriptEntry } from '../../src/kernel/message/transcript.ts';
import { OWNER_TURN } from '../../src/kernel/message/untrusted.ts';
import { findResult } from '../../src/kernel/sessions/earlier.ts';
import type { SessionPolicy } from '../../src/kernel/sessions/rules/carry.ts';
import { type Logger, silentLogger } from '../../src/lib/logger.ts';
import type { ModelRegistry } from '../../src/providers/provider.ts';
import { createExpand, createReadEarlier, createReadResult } from '../../src/tools/read-back.ts';
import type { Tool, ToolContext } from '../../src/tools/tool.ts';
import { createToolbox } from '../../src/tools/toolbox.ts';
import { createSessionFolder } from '../sessions/session-folder.ts';
import { createMemoryMedia, createTestReader } from '../support/memory-media.ts';
import { createScriptedModel } from '../support/scripted-model.ts';
import { createTestSkills } from '../support/test-skills.ts';

export const CHAT = {
  channel: channelName('terminal'),
  account: DEFAULT_ACCOUNT,
  chat: chatId('local'),
};
export const SESSION = sessionKeyOf(CHAT);

type RigTool = Pick<Tool, 'name' | 'access' | 'taints' | 'urlOf' | 'isAvailable'> & {
  /** Left out: whatever is given. */
  readonly input?: z.ZodType<Readonly<Record<string, unknown>>>;
  run(input: Readonly<Record<string, unknown>>, context: ToolContext): Promise<string>;
};

export type RigOptions = {
  /** What the agent noted of a task under way. */
  readonly standing?: StandingNote;
  readonly settings?: Partial<AgentSettings>;
  /** Of the session files. */
  readonly policy?: Partial<SessionPolicy>;
  readonly contextTokens?: number;
  readonly local?: boolean;
  readonly vision?: boolean;
  readonly tools?: readonly RigTool[];
  /** With the tool that reads on in results. */
  readonly readsResults?: boolean;
  /** Left out: the scripted model. */
  readonly models?: ModelRegistry;
  readonly maxResultChars?: number;
  /** Left out: nothing is summed up. */
  readonly compaction?: Partial<CompactionPolicy>;
  /** With the tool that reads on in the conversation itself. */
  readonly readsEarlier?: boolean;
  /** With the tool that expands nodes. */
  readonly expands?: boolean;
  readonly log?: Logger;
  /** Left out: the main model alone. */
  readonly modes?: Modes;
  /** Left out: the model itself. */
  readonly side?: SideModel;
};

const TOOL_TIMEOUT_MS = 60_000;

const UNLIMITED: SpendingGuard = {
  modelFor: (_payer, model) => model,
  reserve: async ({ outputTokens }) => ({
    kind: 'reserved',
    outputTokens,
    settle: () => undefined,
  }),
};

const SETTINGS: AgentSettings = {
  maxTokens: 4096,
  temperature: 0.7,
  maxToolIterations: 20,
  maxSameCalls: 3,
  maxContextTokens: 128_000,
  compaction: {
    enabled: false,
    watermarkPercent: 66,
    watermarkTokens: 100_000,
    keepTokens: 20_000,
    summaryTokens: 2000,
    engine: 'summary',
    lossless: { softPercent: 50, hardPercent: 85, keepMessages: 4 },
  },
  maxResultChars: 10_000,
  finalAnswer: 'inline',
  claimCheck: true,
  maxTurnTokens: 1_000_000,
  maxTurnMs: 600_000,
  clearing: { aboveTokens: 100_000, abovePercent: 66, keepNewest: 5 },
  workspace: '',
  smallTools: [],
  maxInlineChars: 8000,
  timeZone: 'UTC',
  antiDrift: antiDriftSchema.parse(undefined),
  proprioception: proprioceptionSchema.parse(undefined),
};

export async function createRig(options: RigOptions = {}) {
  const home = await createSessionFolder(options.policy);
  const workspace = join(home.folder, '..', 'workspace');
  await mkdir(workspace, { recursive: true });
  const model = createScriptedModel(options);
  const compaction =
    options.compaction === undefined
      ? SETTINGS.compaction
      : { ...SETTINGS.compaction, enabled: true, ...options.compaction };
  const settings = { ...SETTINGS, workspace, compaction, ...options.settings };
  const readEarlier = createReadEarlier({
    sessions: { earlier: (session, question) => current.sessions.earlier(session, question) },
    maxResultChars: () => options.maxResultChars ?? 10_000,
  });
  const expand = createExpand({
    sessions: {
      earlier: (session, question) => current.sessions.earlier(session, question),
      load: (...asked) => current.sessions.load(...asked),
    },
    maxResultChars: () => options.maxResultChars ?? 10_000,
  });
  const tools = [
    ...(options.tools ?? []).map(toolOf),
    ...(options.readsEarlier === true ? [readEarlier] : []),
    ...(options.expands === true ? [expand] : []),
  ] as readonly Tool[];
  const toolbox = createToolbox({
    tools: () => [...tools, ...readers],
    settings: () => ({
      disabled: [],
      maxResultChars: options.maxResultChars ?? 10_000,
      timeoutMs: TOOL_TIMEOUT_MS,
    }),
    clock: home.clock,
    log: silentLogger,
  });
  const media = createMemoryMedia(home.clock);
  const readResult = createReadResult({
    find: (session, id) => findResult(current.sessions, session, id),
    maxResultChars: () => options.maxResultChars ?? 10_000,
  });
  const readers = (options.readsResults === true ? [readResult] : []) as readonly Tool[];
  const reader = createTestReader(media, join(home.folder, '..', 'derived'));
  const said: { markdown: string; ordinal: number }[] = [];
  const asked: CallToApprove[] = [];
  const state: { memory: string; settings: Partial<AgentSettings> } = { memory: '', settings: {} };

  const open = () => {
    const sessions = home.open();
    onTestFinished(() => sessions[Symbol.asyncDispose]());
    const models = () => options.models ?? model.models;
    const asked = { spending: UNLIMITED, clock: home.clock, models };
    return {
      sessions,
      agent: createAgent({
        standing: async () => options.standing,
        working: async () => undefined,
        ...(options.modes === undefined ? {} : { modes: options.modes }),
        models,
        side: options.side ?? createSideModel(asked),
        toolbox: () => toolbox,
        settings: () => ({ ...settings, ...state.settings }),
        sessions,
        spending: UNLIMITED,
        prompt: createPromptSources({
          workspace: () => workspace,
          memoryText: async () => state.memory,
          skills: createTestSkills(workspace),
          redact: (text) => text,
        }),
        reader,
        clock: home.clock,
        log: options.log ?? silentLogger,
      }),
    };
  };
  let current = open();

  function inputOf(
    first: number,
    texts: readonly string[],
    more: Partial<TurnInput> = {},
  ): TurnInput {
    const [message, ...rest] = texts.map((text, index) => messageOf(first + index, text));
    if (message === undefined) throw new Error('a turn needs a message');
    return {
      turnId: turnId(`${SESSION}#${first}`),
      session: SESSION,
      chat: CHAT,
      person: OWNER_TURN,
      messages: [message, ...rest],
      rights: ALL_RIGHTS,
      settings: { thinkingBudget: 0 },
      steer: async () => [],
      say: async (markdown, ordinal) => void said.push({ markdown, ordinal }),
      judge: async (call) => {
        asked.push(call);
        return { text: 'Not run: an owner is asked.', isWaiting: true };
      },
      post: async () => ({ status: 'ok', text: 'Shown to an owner.' }),
      ask: async () => 'The question was sent.',
      ...more,
    };
  }

  /** Runs a turn; `onEvent` may stop it or look into it. */
  async function run(
    input: TurnInput,
    signal: AbortSignal = new AbortController().signal,
    onEvent: (event: AgentEvent) => void = () => undefined,
  ): Promise<{ outcome: TurnOutcome; events: readonly AgentEvent[] }> {
    const context = await current.agent.prepare(SESSION, CHAT, OWNER_TURN);
    const events: AgentEvent[] = [];
    const turn = current.agent.run(input, context, signal);
    for (;;) {
      const step = await turn.next();
      if (step.done === true) return { outcome: step.value, events };
      events.push(step.value);
      onEvent(step.value);
    }
  }

  return {
    model,
    clock: home.clock,
    media,
    reader,
    workspace,
    /** Of the session files. */
    folder: home.folder,
    fileNames: home.fileNames,
    said,
    /** Calls that an owner was asked about. */
    asked,
    state,
    inputOf,
    run,
    /** Arguments of `agent.prepare`. */
    place: [SESSION, CHAT, OWNER_TURN] as const,
    async write(name: string, text: string) {
      const path = join(workspace, name);
      await mkdir(dirname(path), { recursive: true });
      await writeFile(path, text);
    },
    link: (target: string, name: string) => symlink(target, join(workspace, name)),
    ask: async (seq: number, text: string) => (await run(inputOf(seq, [text]))).outcome,
    get agent() {
      return current.agent;
    },
    get sessions() {
      return current.sessions;
    },
    /** Of rows. */
    store: home.store,
    /** The process dies: what was not committed is gone. */
    async kill() {
      await current.agent[Symbol.asyncDispose]();
      current = open();
    },
    /** What a new process finds after an orderly stop: the files, nothing in memory. */
    async restart() {
      await current.agent[Symbol.asyncDispose]();
      await current.sessions[Symbol.asyncDispose]();
      current = open();
    },
    async transcript(): Promise<readonly TranscriptEntry[]> {
      return home.read(SESSION);
    },
  };
}

export function messageOf(seq: number, text: string): TurnMessage {
  const receivedAt = Date.UTC(2026, 0, 15, 12) + seq * 100;
  return {
    seq,
    rights: ALL_RIGHTS,
    isForeign: false,
    message: {
      id: messageId(`terminal:default:${seq}`),
      chat: CHAT,
      sender: { kind: 'system', source: 'webhook' },
      addressing: 'direct',
      text,
      sentAt: receivedAt,
      receivedAt,
    },
  };
}

function toolOf({
  name,
  run,
  input = z.looseObject({}),
  ...rest
}: RigTool): Tool<Readonly<Record<string, unknown>>> {
  return {
    ...rest,
    name,
    description: name,
    input,
    describe: () => '',
    run,
  };
}

export const textOf = (events: readonly AgentEvent[]) =>
  events.map((event) => (event.type === 'text_delta' ? event.text : '')).join('');
