// Opens a recorded conversation to be played again: over the workspace as it is, which nothing writes
// to, with a home that is thrown away.

import { randomBytes } from 'node:crypto';
import type { ModelsDeps } from '../../agent/models.ts';
import type { PromptSources } from '../../agent/prompt-sources.ts';
import type { PromptFile } from '../../agent/rules/prompt.ts';
import type { SpendingGuard } from '../../agent/spending.ts';
import { hasState, PAIRING_SCOPE } from '../../app/state.ts';
import { OWN_DOORS } from '../../channels/own-doors.ts';
import { createPeople } from '../../features/people/people.ts';
import { readAsked } from '../../features/request-log/asked-lines.ts';
import { openEmbeddedStore } from '../../kernel/bus/store/embedded.ts';
import type { ConfigOverrides } from '../../kernel/config/check.ts';
import type { Environment } from '../../kernel/config/environment.ts';
import {
  type LoadedConfig,
  loadConfig,
  readConfig,
} from '../../kernel/config/files/config-file.ts';
import type { Home } from '../../kernel/config/files/home.ts';
import { LiveConfig } from '../../kernel/config/files/live-config.ts';
import { gateOf } from '../../kernel/intake/doors.ts';
import { messageId, type SessionKey } from '../../kernel/message/ids.ts';
import { chatRefOf, type InboundMessage } from '../../kernel/message/message.ts';
import { OWNER_TURN, type TurnPerson } from '../../kernel/message/notes.ts';
import type { TranscriptEntry } from '../../kernel/message/transcript.ts';
import { readSession } from '../../kernel/sessions/catalog.ts';
import { stemOf } from '../../kernel/sessions/file-errors.ts';
import { createTurnPersonOf } from '../../kernel/turns/turn-person.ts';
import { silentLogger } from '../../lib/logger.ts';
import { systemClock } from '../../lib/time/clock.ts';
import type { ModelRegistry } from '../../providers/provider.ts';
import { openPurse } from '../eval/build-eval.ts';
import { openLab } from '../eval/build-lab.ts';
import type { CostCounter } from '../eval/cost.ts';
import type { ReplayDeps, ReplayModel } from './replay.ts';
import { keptImages } from './replay-images.ts';
import { replayedPrompt } from './replay-prompt.ts';
import { settleFor } from './replay-settings.ts';
import { ReplayStage } from './replay-stage.ts';
import { type RecordedTurn, recordedTurns } from './rules/replay.ts';

export type ReplayWish = {
  readonly home: Home;
  readonly env: Environment;
  readonly session: SessionKey;
  readonly model: ReplayModel;
  readonly overrides: ConfigOverrides;
  /** A file stands in for the one of that name in the prompt of then. */
  readonly prompt: 'recorded' | 'today' | PromptFile;
  /** `file`: a configuration in place of that of the home. */
  readonly config: 'recorded' | 'today' | { readonly file: string };
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
  const { home, env, session, model, overrides } = wish;
  const loaded = await configOf(wish);
  const stage = new ReplayStage();
  const { maxContextTokens, workspace } = loaded.config.agents.defaults;
  const person = await personOf(wish, new LiveConfig(loaded, env));
  const isRecorded = model === 'record';
  const images = await keptImages(home, resources);
  const { models, spending, cost }: Voices = isRecorded
    ? { models: stage.recordedModels(maxContextTokens), spending: NO_MONEY }
    : await livingModels(wish, loaded, images.load, resources);
  if (!isRecorded && model.kind === 'named') models.resolve(model.name);
  const instead = {
    isRecorded,
    sessions: stage.sessions,
    asked: stage.book,
    toolbox: stage.toolbox.bind(stage),
    prompt: (real: PromptSources) => replayedPrompt(real, stage, wish.prompt),
  };
  const opened = { loaded, env, models, spending, workspace, instead };
  const { agent, configure } = await openLab(opened, resources);
  const { prices } = loaded.config.models;
  const { currency } = loaded.config.limits.budget;
  return {
    turns: await readTurns(home, session),
    cost,
    modelName: nameOf(model, models),
    deps: {
      ...{ agent, stage, session, person, clock: systemClock, pricing: { prices, currency } },
      ...{ models, model },
      texts: await readAsked(home.sessions, session),
      prompt: wish.prompt === 'today' ? 'today' : 'recorded',
      settle: settleFor({
        ...{ config: loaded.config, overrides, configure },
        isRecorded: wish.config === 'recorded',
      }),
      missingImages: images.missing,
    },
  };
}

/** The budgets are those of the home, whatever another file says. @throws ConfigError */
async function configOf({ home, env, overrides, config }: ReplayWish): Promise<LoadedConfig> {
  const loaded = await loadConfig(home, env, overrides);
  if (typeof config === 'string') return loaded;
  const { limits } = loaded.config;
  return {
    ...loaded,
    config: { ...(await readConfig(config.file, env, home, overrides)), limits },
  };
}

function nameOf(model: ReplayModel, { defaultModel }: ModelRegistry): string {
  if (model === 'record') return 'what was recorded';
  if (model.kind === 'recorded') return 'the models of then';
  return model.kind === 'named' ? model.name : defaultModel;
}

async function livingModels(
  { home, env, maxCost }: ReplayWish,
  loaded: LoadedConfig,
  loadImage: ModelsDeps['loadImage'],
  resources: AsyncDisposableStack,
): Promise<Voices> {
  const { models, cost } = await openPurse(
    { home, env, loaded, maxCost, loadImage, mayRunBeside: true },
    resources,
  );
  return { models, spending: cost.guard, cost };
}

const NO_MONEY: SpendingGuard = {
  modelFor: (_payer, model) => model,
  reserve: async () => ({ kind: 'refused', text: 'Nothing is asked of a model here.' }),
};

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
