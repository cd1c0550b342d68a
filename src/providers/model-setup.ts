// Finds and verifies models during setup: keys in the environment, servers on this machine, one
// small real completion.

import { peersOnce } from '../features/cluster/index.ts';
import type { Config, ProviderName } from '../kernel/config/config.ts';
import type { Environment } from '../kernel/config/environment.ts';
import type { Home } from '../kernel/config/files/home.ts';
import { defined } from '../lib/json/json.ts';
import { silentLogger } from '../lib/logger.ts';
import { t } from '../lib/texts.ts';
import type { Clock } from '../lib/time/clock.ts';
import { createCredentials, discoverWhereNeeded } from './credentials.ts';
import { discoverLocalModels, listModels } from './local-servers.ts';
import type { ModelHandle } from './provider.ts';
import { createModelRegistry, type VendorRegistry } from './registry.ts';
import {
  CLOUD_ORDER,
  defaultModelOf,
  fastModelOf,
  prefixOf,
  splitModelName,
} from './rules/model-names.ts';
import { vendorOf } from './vendors.ts';

type ModelProof = {
  readonly ok: boolean;
  readonly latencyMs: number;
  readonly text: string;
};

/** Enough for models that think before the first word. */
const PROOF_TOKENS = 512;

/** @throws ProviderError, whose `userText` says what to do. */
export async function proveModel(
  handle: ModelHandle,
  signal: AbortSignal,
  clock: Clock,
): Promise<ModelProof> {
  const startedAt = clock.monotonic();
  let text = '';
  const request = {
    system: [],
    messages: [{ role: 'user', text: t`Reply with the single word: ready` }],
    tools: [],
    maxTokens: PROOF_TOKENS,
  } as const;
  for await (const event of handle.stream(request, signal)) {
    if (event.type === 'finished') text = event.text.trim();
  }
  return { ok: text !== '', latencyMs: Math.round(clock.monotonic() - startedAt), text };
}

// Finds and tests models for setup: keys in the environment, servers on this machine, one real
// completion.

const DISCOVERY_DEADLINE_MS = 1000;
/** A server on another machine may be slower. */
const LISTING_DEADLINE_MS = 5000;

/** A model that can be used at once. */
export type FoundModel = {
  readonly vendor: ProviderName;
  /** With its prefix. */
  readonly model: string;
  /** The environment variable that holds the key; undefined for a server on this machine. */
  readonly keyVariable: string | undefined;
};

export const CLOUD_VENDORS = CLOUD_ORDER.map((vendor) => ({
  vendor,
  label: vendorOf(vendor).label,
  defaultModel: defaultModelOf(vendor),
}));

export async function findModels(env: Environment): Promise<readonly FoundModel[]> {
  const keyed = CLOUD_ORDER.flatMap((vendor): readonly FoundModel[] => {
    const keyVariable = keyVariableOf(vendor, env);
    if (keyVariable === undefined) return [];
    return [{ vendor, model: defaultModelOf(vendor), keyVariable }];
  });
  const signal = AbortSignal.timeout(DISCOVERY_DEADLINE_MS);
  const servers = await discoverLocalModels({ signal });
  const local = servers.flatMap(({ vendor, models }) => {
    const names = models.map((model) => `${prefixOf(vendor)}/${model}`);
    return names.map((model) => ({ vendor, model, keyVariable: undefined }));
  });
  return [...keyed, ...local];
}

export type ServerAddress = { readonly apiBase: string; readonly apiKey: string };

/** The chat models that a server lists; empty if it does not answer. */
export function modelsOf(server: ServerAddress): Promise<readonly string[]> {
  const signal = AbortSignal.timeout(LISTING_DEADLINE_MS);
  return listModels(server, LISTING_DEADLINE_MS, signal);
}

/** The names of models that can be used as things stand: the default first, then by their vendor. */
export async function usableModels(
  config: Config,
  env: Environment,
  registry: Pick<VendorRegistry, 'defaultModel' | 'localServers'>,
): Promise<readonly string[]> {
  const { accessTo } = createCredentials(config, env, []);
  const keyed = CLOUD_ORDER.filter((vendor) => accessTo(vendor) !== undefined).flatMap((vendor) => [
    defaultModelOf(vendor),
    fastModelOf(vendor) ?? '',
  ]);
  const local = registry.localServers().map(async ({ vendor, ...server }) => {
    const names = await modelsOf(server).catch(() => []);
    return names.map((model) => `${prefixOf(vendor)}/${model}`);
  });
  const { fallbackModels, fastModel } = config.agents.defaults;
  const named = [registry.defaultModel, ...fallbackModels, fastModel];
  const all = [...named, ...keyed, ...(await Promise.all(local)).flat()];
  return [...new Set(all.filter((name) => name !== ''))];
}

/** The environment variable that holds the vendor's key. */
export function keyVariableOf(vendor: ProviderName, env: Environment): string | undefined {
  return vendorOf(vendor).keyVariables.find((name) => (env[name] ?? '') !== '');
}

/** Vendors recognised by the start of their keys. */
const KEY_BEGINNINGS: readonly (readonly [beginning: string, vendor: ProviderName])[] = [
  ['sk-ant-', 'anthropic'],
  ['sk-or-', 'openrouter'],
  ['sk-proj-', 'openai'],
  ['gsk_', 'groq'],
  ['AIza', 'gemini'],
  ['hf_', 'huggingface'],
];

/** The vendor of a key, by the model's name or else by the start of the key. */
export function vendorFor(model: string, apiKey: string): ProviderName | undefined {
  const named = splitModelName(model)?.vendor;
  return named ?? KEY_BEGINNINGS.find(([beginning]) => apiKey.startsWith(beginning))?.[1];
}

/** One real completion by the configured model. @throws ProviderError */
export async function proveConfigured(
  config: Config,
  env: Environment,
  clock: Clock,
  signal: AbortSignal,
  home?: Home,
): Promise<ModelProof & { readonly model: string }> {
  const handle = await modelInForce(withoutFallbacks(config), env, clock, home);
  return { ...(await proveModel(handle, signal, clock)), model: handle.name };
}

/**
 * The model in use, including servers on this machine. @throws ProviderError if nothing serves it
 */
export async function resolveConfigured(
  config: Config,
  env: Environment,
  clock: Clock,
  home?: Home,
): Promise<string> {
  return (await modelInForce(config, env, clock, home)).name;
}

async function modelInForce(
  config: Config,
  env: Environment,
  clock: Clock,
  home?: Home,
): Promise<ModelHandle> {
  const peers = home === undefined ? undefined : await peersOnce(config, home, clock);
  const registry = createModelRegistry({
    ...{ config, env, clock, log: silentLogger, random: Math.random, ...defined({ peers }) },
    discovered: await discoverWhereNeeded(config, env),
  });
  return registry.resolve(registry.defaultModel);
}

/** A working fallback must not hide that the model fails, and retries must not take a minute. */
function withoutFallbacks(config: Config): Config {
  const defaults = { ...config.agents.defaults, fallbackModels: [] };
  return {
    ...config,
    agents: { ...config.agents, defaults },
    retry: { ...config.retry, providerAttempts: 0 },
  };
}
