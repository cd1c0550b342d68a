// Opens a recorded conversation to be played again: over the workspace as it is, which nothing writes
// to, with a home that is thrown away.

import { randomBytes } from 'node:crypto';
import type { PromptSources } from '../agent/prompt-sources.ts';
import type { SpendingGuard } from '../agent/spending.ts';
import type { ConfigOverrides } from '../core/config-check.ts';
import type { Environment } from '../core/environment.ts';
import { messageId, type SessionKey } from '../core/ids.ts';
import { chatRefOf, type InboundMessage } from '../core/message.ts';
import { OWNER_TURN, type TurnPerson } from '../core/notes.ts';
import { type PromptFile, WORKSPACE_FILES } from '../core/prompt.ts';
import { type RecordedTurn, recordedTurns } from '../core/replay.ts';
import type { TranscriptEntry } from '../core/transcript.ts';
import type { CostCounter } from '../eval/cost.ts';
import type { ReplayDeps } from '../eval/replay.ts';
import { ReplayStage } from '../eval/replay-stage.ts';
import { createPeople } from '../gateway/people.ts';
import { createTurnPersonOf } from '../gateway/turn-person.ts';
import { systemClock } from '../lib/clock.ts';
import { silentLogger } from '../lib/logger.ts';
import type { ModelRegistry } from '../providers/provider.ts';
import { readSession } from '../sessions/catalog.ts';
import { stemOf } from '../sessions/stem.ts';
import { openEmbeddedStore } from '../store/embedded.ts';
import { openPurse } from './build-eval.ts';
import { openLab } from './build-lab.ts';
import { type LoadedConfig, loadConfig } from './config.ts';
import { gateOf } from './doors.ts';
import type { Home } from './home.ts';
import { LiveConfig } from './live-config.ts';
import { OWN_DOORS } from './own-doors.ts';
import { hasState, PAIRING_SCOPE } from './state.ts';

export type ReplayWish = {
  readonly home: Home;
  readonly env: Environment;
  readonly session: SessionKey;
  /** `record`: the models say what they said then; else this model, or the one in force. */
  readonly model: 'record' | { readonly name: string | undefined };
  readonly overrides: ConfigOverrides;
  /** Stands in for the file of that name in the prompt. */
  readonly prompt: PromptFile | undefined;
  readonly maxCost: number | undefined;
};

export type OpenedReplay = {
  readonly turns: readonly RecordedTurn[];
  readonly deps: ReplayDeps;
  /** Undefined where nothing is asked that costs. */
  readonly cost: CostCounter | undefined;
  readonly modelName: string;
};

type Voices = {
  readonly models: ModelRegistry;
  readonly spending: SpendingGuard;
  readonly cost?: CostCounter;
};

/** All that is on record, the archive included; none for a conversation that there is not. */
export async function readTurns(home: Home, session: SessionKey): Promise<readonly RecordedTurn[]> {
  const entries: TranscriptEntry[] = [];
  for await (const entry of readSession(home.sessions, stemOf(session))) entries.push(entry);
  return recordedTurns(entries);
}

/** @throws ConfigError; with another model than the recorded one also as `openPurse` does */
export async function openReplay(
  wish: ReplayWish,
  resources: AsyncDisposableStack,
): Promise<OpenedReplay> {
  const { home, env, session, model } = wish;
  const loaded = unsummed(await loadConfig(home, env, wish.overrides));
  const stage = new ReplayStage();
  const { maxContextTokens, thinkingBudget, workspace } = loaded.config.agents.defaults;
  const person = await personOf(wish, new LiveConfig(loaded, env));
  const isRecorded = model === 'record';
  const { models, spending, cost }: Voices = isRecorded
    ? { models: stage.recordedModels(maxContextTokens), spending: NO_MONEY }
    : await livingModels(wish, loaded, resources);
  const name = isRecorded ? models.defaultModel : (model.name ?? models.defaultModel);
  models.resolve(name);
  const instead = {
    isRecorded,
    sessions: stage.sessions,
    toolbox: stage.toolbox.bind(stage),
    prompt: (real: PromptSources) => withPrompt(real, wish.prompt),
  };
  const { agent } = await openLab({ loaded, env, models, spending, workspace, instead }, resources);
  const { prices } = loaded.config.models;
  const { currency } = loaded.config.limits.budget;
  return {
    turns: await readTurns(home, session),
    cost,
    modelName: isRecorded ? 'what was recorded' : name,
    deps: {
      ...{ agent, stage, session, person, clock: systemClock, pricing: { prices, currency } },
      model: isRecorded ? 'record' : { name, thinkingBudget },
    },
  };
}

async function livingModels(
  { home, env, maxCost }: ReplayWish,
  loaded: LoadedConfig,
  resources: AsyncDisposableStack,
): Promise<Voices> {
  const { models, cost } = await openPurse({ home, env, loaded, maxCost }, resources);
  return { models, spending: cost.guard, cost };
}

/** What the record leaves out is not summed up anew. */
function unsummed(loaded: LoadedConfig): LoadedConfig {
  const { agents } = loaded.config;
  const compaction = { ...agents.defaults.compaction, enabled: false };
  const defaults = { ...agents.defaults, compaction };
  return { ...loaded, config: { ...loaded.config, agents: { ...agents, defaults } } };
}

const NO_MONEY: SpendingGuard = {
  modelFor: (_payer, model) => model,
  reserve: async () => ({ kind: 'refused', text: 'Nothing is asked of a model here.' }),
};

/** A file of the workspace is replaced, any other stands where the agent's instructions do. */
function withPrompt(real: PromptSources, prompt: PromptFile | undefined): PromptSources {
  if (prompt === undefined) return real;
  const name = WORKSPACE_FILES.find((each) => each === prompt.name) ?? WORKSPACE_FILES[0] ?? '';
  const file = { name, text: prompt.text };
  return {
    async read(channel, notes) {
      const material = await real.read(channel, notes);
      const others = material.files.filter((each) => each.name !== name);
      const files = WORKSPACE_FILES.flatMap((each) =>
        each === name ? file : others.filter((other) => other.name === each),
      );
      return { ...material, files };
    },
  };
}

/** Whose notes the prompt holds: those of whoever the chat is with, and never the owner's by mistake. */
async function personOf({ home, session }: ReplayWish, live: LiveConfig): Promise<TurnPerson> {
  const chat = chatRefOf(session);
  if (chat === undefined || !hasState(home)) return { notes: NOBODYS };
  if (OWN_DOORS.some(({ channel }) => channel === chat.channel)) return OWNER_TURN;
  const clock = systemClock;
  const store = await openEmbeddedStore({ path: home.state, clock, log: silentLogger });
  try {
    const { persons } = createPeople({
      state: store.scope(PAIRING_SCOPE),
      revision: store.revision,
      ownDoors: OWN_DOORS,
      policy: (channel, account) => gateOf(channel, live.config, account),
      ...{ clock, randomBytes, release: async () => undefined },
    });
    const probe: InboundMessage = {
      id: messageId('replay'),
      chat,
      sender: { kind: 'system', source: 'webhook' },
      addressing: 'direct',
      ...{ text: '', sentAt: 0, receivedAt: 0 },
    };
    return await createTurnPersonOf(persons)(probe);
  } finally {
    await store[Symbol.asyncDispose]();
  }
}

const NOBODYS = 'groups/replay/';
