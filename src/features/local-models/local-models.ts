// What /local and /status know about models on one's own machines, and their texts.

import {
  COSTS,
  type Command,
  type CommandOrigin,
  type CommandTable,
  commandsOf,
} from '../../kernel/commands/command-access.ts';
import type { SessionSettings, SessionSettingsStore } from '../../kernel/turns/origins.ts';
import { msgid, ngettext, t } from '../../lib/texts.ts';
import type { ModelRegistry } from '../../providers/provider.ts';
import type { Warmth } from '../../providers/rules/provider-failure.ts';
import type { ClusterService } from '../cluster/index.ts';
import type { LocalOnly } from './local-only.ts';

export type FoundModel = {
  /** With its prefix. */
  readonly name: string;
  /** As the server reports it. */
  readonly contextTokens?: number;
  readonly warmth?: Warmth;
  readonly isLoaded?: boolean;
  /** The server forwards requests to a cloud service, so the model is not local. */
  readonly isHandedOn?: true;
};

export type FoundServer = {
  readonly label: string;
  /** Host and port. */
  readonly address: string;
  readonly state: 'unknown' | 'up' | 'down';
  readonly load: {
    readonly running: number;
    readonly waiting: number;
    readonly calls: number;
    readonly waitedMs: number;
  };
  readonly models: readonly FoundModel[];
};

export interface LocalModels {
  /** The local-only check of conversations. */
  readonly only: Pick<LocalOnly, 'holding' | 'hold' | 'refusal'>;
  /** Undefined where peers are switched off. */
  readonly cluster?: ClusterService | undefined;
  isLocal(model: string): boolean;
  /**
   * Queries every server that is configured or at its default address on this machine; takes a few
   * seconds at most.
   */
  look(): Promise<readonly FoundServer[]>;
  /** The configured model to switch to; empty: any. */
  preferred(): string;
  /** In the background: the server loads it and reports its context window. */
  warmUp(model: string): void;
  /** The model of all sessions without a choice of their own; undefined: the configured one. */
  useForAll(model: string | undefined): Promise<void>;
}

/** The model to switch to where none is named; prefers a loaded one. */
export function firstOf(found: readonly FoundServer[]): string | undefined {
  const all = found.flatMap(({ models }) => models).filter(({ isHandedOn }) => !isHandedOn);
  return (all.find(({ isLoaded }) => isLoaded === true) ?? all[0])?.name;
}

/** One line per server, for /status. */
export function serverLines(servers: readonly FoundServer[]): readonly string[] {
  return servers.map((server) => {
    const models = server.models.map(modelWords);
    return `${serverName(server)}: ${[stateWords(server), ...models].join('; ')}`;
  });
}

/** The answer of /local list. */
function foundText(found: readonly FoundServer[]): string {
  if (found.length === 0) return NOTHING_FOUND;
  return found
    .flatMap((server) => [
      `**${serverName(server)}**: ${stateWords(server)}`,
      ...server.models.map((model) => `- ${modelWords(model)}`),
    ])
    .join('\n');
}

const NOTHING_FOUND = t`No local model server answers. I look for Ollama, LM Studio, vLLM and llama.cpp on this machine and at the addresses in \`providers.<name>.apiBase\`.`;

const cloudModelText = (model: string) =>
  t`${model} is a cloud model: the local server forwards requests to a service. /local uses only models that run on your own machines; /model ${model} chooses it anyway.`;

const serverName = ({ label, address }: FoundServer) => t`${label} at ${address}`;

const STATES = { unknown: t`not checked yet`, up: 'answers', down: t`does not answer` } as const;

function stateWords({ state, load }: FoundServer): string {
  const { running, waiting, calls, waitedMs } = load;
  return [
    STATES[state],
    ...(running === 0 ? [] : [t`${running} running`]),
    ...(waiting === 0 ? [] : [t`${waiting} waiting`]),
    ...(calls === 0
      ? []
      : [
          ngettext(
            msgid`${calls} call so far, ${seconds(waitedMs)} waiting time`,
            `${calls} calls so far, ${seconds(waitedMs)} waiting time`,
            calls,
          ),
        ]),
  ].join(', ');
}

function modelWords({ name, contextTokens, warmth, isLoaded, isHandedOn }: FoundModel): string {
  return [
    name,
    ...(isHandedOn === true ? [t`cloud model: runs at a service, not on this server`] : []),
    ...(contextTokens === undefined ? [] : [t`${contextTokens} tokens of context`]),
    ...(warmth === undefined ? loadedWords(isLoaded) : [warmthWords(warmth)]),
  ].join(', ');
}

const loadedWords = (isLoaded: boolean | undefined) => (isLoaded === true ? ['loaded'] : []);

function warmthWords(warmth: Warmth): string {
  if (warmth.kind === 'ready') return t`ready after ${seconds(warmth.tookMs)}`;
  return warmth.kind === 'warming' ? t`is being loaded` : t`could not be loaded`;
}

const seconds = (ms: number) => `${(ms / 1000).toFixed(1)} s`;

// The command `/local`: switches this conversation to a local model and back. A turn in progress
// ends with the model it started with; budgets continue.

const USAGE = '/local [list | model | only | off | default [model | off]]';

export const LOCAL_COMMANDS = {
  local: {
    summary: t`switch to a model on this machine, and back`,
    usage: USAGE,
    access: COSTS,
    timing: 'in_order',
  },
} satisfies CommandTable;

type LocalCommandDeps = {
  readonly local: LocalModels;
  readonly settings: SessionSettingsStore;
  models(): ModelRegistry;
};

export function localCommands(deps: LocalCommandDeps): readonly Command[] {
  return commandsOf(LOCAL_COMMANDS, {
    local: (origin, argument) => changeLocal(origin, argument, deps),
  });
}

async function changeLocal(origin: CommandOrigin, argument: string, deps: LocalCommandDeps) {
  const [word = '', ...rest] = argument.split(/\s+/).filter((part) => part !== '');
  if (word === 'default') {
    const [named = '', ...more] = rest;
    return more.length > 0 ? notUnderstood(more) : changeForAll(origin, named, deps);
  }
  if (rest.length > 0) return notUnderstood(rest);
  if (word === 'only') return stayHere(origin, deps);
  if (word === 'off' && (await deps.local.only.holding(origin.session)) !== undefined) {
    return letGo(origin, deps);
  }
  if (word === 'list')
    return `${await currentText(origin, deps)}\n\n${foundText(await deps.local.look())}`;
  const chosen = await deps.settings.get(origin.session);
  const isLocal = deps.local.isLocal(chosen.model ?? deps.models().defaultModel);
  if (word === 'off' || (word === '' && isLocal)) return changeBack(origin, chosen, deps);
  return withModel(word, deps, (model) => changeTo(origin, { chosen, model, isLocal }, deps));
}

const notUnderstood = (words: readonly string[]) =>
  t`I do not understand "${words.join(' ')}". Usage: ${USAGE}`;

async function currentText({ session }: CommandOrigin, deps: LocalCommandDeps): Promise<string> {
  const { model = deps.models().defaultModel } = await deps.settings.get(session);
  return t`The model here is ${model}.`;
}

const SAID = t`Nothing of this conversation goes to a model or voice service beyond your own machines`;

/** Also applies to what the conversation starts. */
async function stayHere({ session }: CommandOrigin, deps: LocalCommandDeps): Promise<string> {
  await deps.local.only.hold(session, true);
  const chosen = await deps.settings.get(session);
  const model = chosen.model ?? deps.models().defaultModel;
  const refused = await deps.local.only.refusal(session, model);
  if (refused === undefined) return t`${SAID} from now on. The model is ${model}.`;
  return t`${SAID} from now on. The model here, ${model}, is no longer used: choose one with /local, or one on a peer with /model. /local off undoes this.`;
}

async function letGo(origin: CommandOrigin, deps: LocalCommandDeps): Promise<string> {
  const { session } = origin;
  await deps.local.only.hold(session, false);
  const holding = await deps.local.only.holding(session);
  if (holding === 'all') return t`${SAID}, as configured (\`localModels.only\`).`;
  if (holding === 'conversation')
    return t`${SAID}: it was started from a conversation that stays on them. Send /local off there.`;
  const chosen = await deps.settings.get(session);
  const model = chosen.model ?? deps.models().defaultModel;
  const again = deps.local.isLocal(model) ? await changeBack(origin, chosen, deps) : '';
  return t`Any model may be used here again. ${again}`.trim();
}

/** Among the available models: the named one, otherwise the preferred one, otherwise any. */
async function withModel(
  named: string,
  { local }: LocalCommandDeps,
  use: (model: string) => Promise<string>,
): Promise<string> {
  const found = await local.look();
  const wanted = named === '' ? local.preferred() : named;
  const model = modelAmong(found, wanted);
  if (model !== undefined) return isHandedOn(found, model) ? cloudModelText(model) : use(model);
  if (found.length === 0) return NOTHING_FOUND;
  const lacks = wanted === '' ? t`a model of its own` : t`the model ${wanted}`;
  return t`No local server here has ${lacks}. There are:\n\n${foundText(found)}`;
}

/** By its full name, or by the server's name for it; without a name the first one. */
function modelAmong(found: readonly FoundServer[], named: string) {
  if (named === '') return firstOf(found);
  const names = found.flatMap(({ models }) => models.map(({ name }) => name));
  return names.find((name) => name === named) ?? names.find((name) => name.endsWith(`/${named}`));
}

const isHandedOn = (found: readonly FoundServer[], model: string) =>
  found.some(({ models }) => models.some((one) => one.name === model && one.isHandedOn === true));

type Change = {
  readonly chosen: SessionSettings;
  readonly model: string;
  /** The current model. */
  readonly isLocal: boolean;
};

async function changeTo({ session }: CommandOrigin, change: Change, deps: LocalCommandDeps) {
  const { chosen, model, isLocal } = change;
  const handle = deps.models().resolve(model);
  const kept = isLocal || chosen.model === undefined ? {} : { beforeLocal: chosen.model };
  await deps.settings.change(session, { ...kept, model });
  deps.local.warmUp(model);
  return t`From the next message on the model is ${handle.name}, on your own machine; it is being loaded. /local off goes back.`;
}

async function changeBack(
  { session }: CommandOrigin,
  chosen: SessionSettings,
  deps: LocalCommandDeps,
): Promise<string> {
  const { model = '', beforeLocal } = chosen;
  const fallback = deps.models().defaultModel;
  if (!deps.local.isLocal(model === '' ? fallback : model))
    return t`The model here is not a local one.`;
  if (model === '')
    return t`The default model is ${fallback}, a local one. Choose another: /model.`;
  await deps.settings.change(session, { model: beforeLocal, beforeLocal: undefined });
  return t`From the next message on the model is ${beforeLocal ?? fallback} again.`;
}

const FOR_ALL_IS_THE_OWNERS = t`Only my owner can change the default model.`;

async function changeForAll({ role }: CommandOrigin, named: string, deps: LocalCommandDeps) {
  if (role !== 'owner') return FOR_ALL_IS_THE_OWNERS;
  if (named === 'off') {
    await deps.local.useForAll(undefined);
    return t`The default model is ${deps.models().defaultModel}.`;
  }
  return withModel(named, deps, async (model) => {
    await deps.local.useForAll(model);
    deps.local.warmUp(model);
    return t`From the next message on the default model is ${model}. /local default off goes back.`;
  });
}
