// What /local and /status know of the models on one's own machines, and the words for it.

import type { Warmth } from '../../providers/rules/provider-failure.ts';
import type { ClusterDesk } from '../cluster/cluster-desk.ts';
import type { LocalOnly } from './local-only.ts';

export type FoundModel = {
  /** With its prefix. */
  readonly name: string;
  /** As the server says. */
  readonly contextTokens?: number;
  readonly warmth?: Warmth;
  readonly isLoaded?: boolean;
  /** The server hands what it is asked on to a service: it is no local model. */
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
  /** Conversations of which nothing leaves one's own machines. */
  readonly only: Pick<LocalOnly, 'holding' | 'hold' | 'refusal'>;
  /** Undefined where there are to be no peers. */
  readonly cluster?: ClusterDesk | undefined;
  isLocal(model: string): boolean;
  /** Asks every server that is configured or at its usual address on this machine; a few seconds at most. */
  look(): Promise<readonly FoundServer[]>;
  /** The configured one to change to; empty: any. */
  preferred(): string;
  /** In the background: its server loads it, and says how large its window is. */
  warmUp(model: string): void;
  /** The model of all who chose none; undefined: the configured one. */
  useForAll(model: string | undefined): Promise<void>;
}

/** The one to change to where none is named: rather one that is loaded. */
export function firstOf(found: readonly FoundServer[]): string | undefined {
  const all = found.flatMap(({ models }) => models).filter(({ isHandedOn }) => !isHandedOn);
  return (all.find(({ isLoaded }) => isLoaded === true) ?? all[0])?.name;
}

/** A line for each server, for /status. */
export function serverLines(servers: readonly FoundServer[]): readonly string[] {
  return servers.map((server) => {
    const models = server.models.map(modelWords);
    return `${serverName(server)}: ${[stateWords(server), ...models].join('; ')}`;
  });
}

/** What /local list shows. */
export function foundText(found: readonly FoundServer[]): string {
  if (found.length === 0) return NOTHING_FOUND;
  return found
    .flatMap((server) => [
      `**${serverName(server)}**: ${stateWords(server)}`,
      ...server.models.map((model) => `- ${modelWords(model)}`),
    ])
    .join('\n');
}

export const NOTHING_FOUND =
  'No local model server answers. I look for Ollama, LM Studio, vLLM and llama.cpp on this machine and at the addresses in `providers.<name>.apiBase`.';

export const cloudModelText = (model: string) =>
  `${model} is a cloud model: the local server sends what it is asked to a service. /local uses models that run on your own machines; /model ${model} chooses it all the same.`;

const serverName = ({ label, address }: FoundServer) => `${label} at ${address}`;

const STATES = { unknown: 'not looked at yet', up: 'answers', down: 'does not answer' } as const;

function stateWords({ state, load }: FoundServer): string {
  const { running, waiting, calls, waitedMs } = load;
  return [
    STATES[state],
    ...(running === 0 ? [] : [`${running} running`]),
    ...(waiting === 0 ? [] : [`${waiting} waiting`]),
    ...(calls === 0
      ? []
      : [`${calls} ${calls === 1 ? 'call' : 'calls'} so far, which waited ${seconds(waitedMs)}`]),
  ].join(', ');
}

function modelWords({ name, contextTokens, warmth, isLoaded, isHandedOn }: FoundModel): string {
  return [
    name,
    ...(isHandedOn === true ? ['cloud model: runs at a service, not on this server'] : []),
    ...(contextTokens === undefined ? [] : [`${contextTokens} tokens of context`]),
    ...(warmth === undefined ? loadedWords(isLoaded) : [warmthWords(warmth)]),
  ].join(', ');
}

const loadedWords = (isLoaded: boolean | undefined) => (isLoaded === true ? ['loaded'] : []);

function warmthWords(warmth: Warmth): string {
  if (warmth.kind === 'ready') return `ready after ${seconds(warmth.tookMs)}`;
  return warmth.kind === 'warming' ? 'is being loaded' : 'could not be loaded';
}

const seconds = (ms: number) => `${(ms / 1000).toFixed(1)} s`;
