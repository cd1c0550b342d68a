// Opens a recorded conversation for replay: settings (recorded, current or from a file), images,
// prompt, and a read-only workspace with a temporary home.

import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { SpendingGuard } from '../../agent/agent.ts';
import type { ModelsDeps } from '../../agent/models.ts';
import type { PromptSources } from '../../agent/prepared.ts';
import { type PromptFile, titledPart, WORKSPACE_FILES } from '../../agent/rules/prompt.ts';
import { LOCAL_CHANNELS } from '../../channels/local-channel.ts';
import type { ConfigOverrides } from '../../kernel/config/check.ts';
import { type Config, configSchema } from '../../kernel/config/config.ts';
import {
  type LoadedConfig,
  loadConfig,
  readConfig,
} from '../../kernel/config/files/config-file.ts';
import type { Home } from '../../kernel/config/files/home.ts';
import { LiveConfig } from '../../kernel/config/files/live-config.ts';
import type { JsonObject } from '../../kernel/config/json.ts';
import { withValue } from '../../kernel/config/json-paths.ts';
import type { Kernel } from '../../kernel/feature.ts';
import { completeSessions, hasState, openStore, PAIRING_SCOPE } from '../../kernel/home-state.ts';
import { gateOf } from '../../kernel/intake/routes.ts';
import { createKeptMedia, loadedImage } from '../../kernel/media/files.ts';
import { createMediaReader } from '../../kernel/media/media-reader.ts';
import { messageId, type SessionKey } from '../../kernel/message/ids.ts';
import { chatRefOf, type InboundMessage } from '../../kernel/message/message.ts';
import { OWNER_TURN, type TurnPerson } from '../../kernel/message/untrusted.ts';
import { createPeople } from '../../kernel/people/people.ts';
import { createRows } from '../../kernel/rows.ts';
import { readSession } from '../../kernel/sessions/catalog.ts';
import { stemOf } from '../../kernel/sessions/file-lines.ts';
import { readRequests, withRequestConfig } from '../../kernel/sessions/request-log.ts';
import type { RecordedAsk } from '../../kernel/sessions/rules/request-records.ts';
import { createTurnPersonOf } from '../../kernel/turns/origins.ts';
import { silentLogger } from '../../lib/logger.ts';
import { systemClock } from '../../lib/time/clock.ts';
import type { ModelRegistry } from '../../providers/provider.ts';
import { openPurse } from '../eval/build-eval.ts';
import { openLab } from '../eval/build-lab.ts';
import type { CostCounter } from '../eval/spending.ts';
import type { ReplayDeps, ReplayModel, Settled } from './replay.ts';
import { ReplayStage } from './replay.ts';
import { type RecordedTurn, recordedTurns } from './rules/replay.ts';

type ReplaySettings = {
  /** The loaded configuration with the overrides applied. */
  readonly config: Config;
  readonly overrides: ConfigOverrides;
  readonly isRecorded: boolean;
  /** Applies the settings from the next turn. */
  configure(config: Config): void;
};

const THINKING = 'agents.defaults.thinkingBudget';
const MODE = 'agents.mode';
const NOT_FITTING =
  'the recorded settings are not valid in this version; the settings of today are used';

function settleFor(wish: ReplaySettings): (ask: RecordedAsk | undefined) => Settled {
  const { config, overrides, isRecorded, configure } = wish;
  const today = { notes: [], settings: { thinkingBudget: config.agents.defaults.thinkingBudget } };
  return (ask) => {
    const isWanted = isRecorded && ask?.config !== undefined;
    const then = isWanted ? withRequestConfig(config, ask.config) : undefined;
    configure(unsummed(then === undefined ? config : withSet(then, overrides)));
    if (ask === undefined || !isRecorded) return today;
    const { thinkingBudget, mode, engine } = ask;
    const chosen = {
      ...(THINKING in overrides ? today.settings : { thinkingBudget }),
      ...(mode === undefined || MODE in overrides ? {} : { mode }),
      ...(engine === undefined ? {} : { engine }),
    };
    const notes = isWanted && then === undefined ? [NOT_FITTING] : [];
    return { notes, settings: chosen };
  };
}

/** The overrides were validated when the configuration was loaded. */
function withSet(config: Config, overrides: ConfigOverrides): Config {
  const written: JsonObject = JSON.parse(JSON.stringify(config));
  const set = Object.entries(overrides).reduce(
    (result, [path, value]) => withValue(result, path, value),
    written,
  );
  return configSchema.parse(set);
}

/** Switches compaction off, so that turns that the record leaves out are not summarised again. */
function unsummed(config: Config): Config {
  const { agents } = config;
  const compaction = { ...agents.defaults.compaction, enabled: false };
  return { ...config, agents: { ...agents, defaults: { ...agents.defaults, compaction } } };
}

// The images of a replayed conversation: read from the stored media; files made from them are
// temporary.

async function keptImages({ media }: Home, resources: AsyncDisposableStack) {
  const folder = await mkdtemp(join(tmpdir(), 'nanobot-replay-'));
  resources.defer(() => rm(folder, { recursive: true, force: true, maxRetries: 3 }));
  const reader = createMediaReader({ store: createKeptMedia(media), folder, clock: systemClock });
  const missing = new Set<string>();
  const load: ModelsDeps['loadImage'] = async (id) => {
    const loaded = await loadedImage(reader, id);
    if (loaded.kind === 'unreadable') missing.add(id);
    return loaded;
  };
  return {
    load,
    /** Number of images that could not be shown since the last call. */
    missing() {
      const { size } = missing;
      missing.clear();
      return size;
    },
  };
}

// The prompt of a replayed turn: the recorded one if it exists, otherwise the current one; one file
// can be replaced in either.

type Parts = NonNullable<ReplayStage['prompt']>;

/** A file of the workspace is replaced; any other takes the place of the agent's instructions. */
function replayedPrompt(
  real: PromptSources,
  stage: Pick<ReplayStage, 'prompt'>,
  wish: 'recorded' | 'today' | PromptFile,
): PromptSources {
  const file = typeof wish === 'string' ? undefined : placed(wish);
  return {
    async read(channel, notes) {
      const material = await real.read(channel, notes);
      const { prompt } = stage;
      if (prompt !== undefined) {
        return { ...material, whole: file === undefined ? prompt : withPart(prompt, file) };
      }
      return file === undefined ? material : { ...material, files: withFile(material.files, file) };
    },
  };
}

function placed({ name, text }: PromptFile): PromptFile {
  return { name: WORKSPACE_FILES.find((each) => each === name) ?? WORKSPACE_FILES[0], text };
}

function withFile(files: readonly PromptFile[], file: PromptFile): readonly PromptFile[] {
  return WORKSPACE_FILES.flatMap((name) =>
    name === file.name ? file : files.filter((other) => other.name === name),
  );
}

/** A file without a counterpart follows the part that says who the agent is. */
function withPart(parts: Parts, { name, text }: PromptFile): Parts {
  const part = titledPart(name, text);
  if (parts.some((each) => each.name === name)) {
    return parts.map((each) => (each.name === name ? part : each));
  }
  return [...parts.slice(0, 1), part, ...parts.slice(1)];
}

export type ReplayWish = Pick<Kernel, 'home' | 'env'> & {
  readonly session: SessionKey;
  readonly model: ReplayModel;
  readonly overrides: ConfigOverrides;
  /** A file replaces the file of that name in the recorded prompt. */
  readonly prompt: 'recorded' | 'today' | PromptFile;
  /** `file`: a configuration that replaces that of the home. */
  readonly config: 'recorded' | 'today' | { readonly file: string };
  readonly maxCost: number | undefined;
};

export type OpenedReplay = {
  readonly deps: ReplayDeps;
  /** Undefined where no paid model is called. */
  readonly cost: CostCounter | undefined;
  readonly modelName: string;
};

/**
 * All recorded turns, including the archive; empty where the session does not exist. @throws if its
 * file lacks what the store holds
 */
export async function readTurns(home: Home, session: SessionKey): Promise<readonly RecordedTurn[]> {
  const unwritten = await completeSessions(home, systemClock);
  if (unwritten.has(session)) throw unwritten.get(session);
  return recordedTurns(await Array.fromAsync(readSession(home.sessions, stemOf(session))));
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
  const living = { ...wish, loaded, loadImage: images.load, mayRunBeside: true } as const;
  const purse = isRecorded ? undefined : await openPurse(living, resources);
  const models = purse?.models ?? stage.recordedModels(maxContextTokens);
  const spending = purse?.cost.guard ?? NO_MONEY;
  if (!isRecorded && model.kind === 'named') models.resolve(model.name);
  const instead = {
    isRecorded,
    sessions: stage.sessions,
    asked: stage.requestLog,
    toolbox: stage.toolbox.bind(stage),
    prompt: (real: PromptSources) => replayedPrompt(real, stage, wish.prompt),
  };
  const opened = { loaded, env, models, spending, workspace, instead };
  const { agent, configure } = await openLab(opened, resources);
  const { prices } = loaded.config.models;
  const { currency } = loaded.config.limits.budget;
  return {
    cost: purse?.cost,
    modelName: nameOf(model, models),
    deps: {
      ...{ agent, stage, session, person, clock: systemClock, pricing: { prices, currency } },
      ...{ models, model },
      texts: await readRequests(home.sessions, session),
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

const NO_MONEY: SpendingGuard = {
  modelFor: (_payer, model) => model,
  reserve: async () => ({ kind: 'refused', text: 'Nothing is asked of a model here.' }),
};

/** The notes in the prompt: those of the person in the chat, never the owner's by mistake. */
async function personOf({ home, session }: ReplayWish, live: LiveConfig): Promise<TurnPerson> {
  const chat = chatRefOf(session);
  if (chat === undefined || !(await hasState(home))) return { notes: NOBODYS };
  if (LOCAL_CHANNELS.some(({ channel }) => channel === chat.channel)) return OWNER_TURN;
  const clock = systemClock;
  await using store = await openStore(home, { clock, log: silentLogger });
  const { persons } = createPeople({
    rows: createRows(store),
    state: store.scope(PAIRING_SCOPE),
    localChannels: LOCAL_CHANNELS,
    policy: (channel, account) => gateOf(channel, live.config, account),
    ...{ clock, randomBytes, release: async () => undefined, settled: async () => false },
  });
  const probe: InboundMessage = {
    id: messageId('replay'),
    chat,
    sender: { kind: 'system', source: 'webhook' },
    addressing: 'direct',
    ...{ text: '', sentAt: 0, receivedAt: 0 },
  };
  return await createTurnPersonOf(persons)(probe);
}

const NOBODYS = 'groups/replay/';
