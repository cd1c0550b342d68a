// Resolves model names to models ready to be asked; the one place that knows which vendor serves what.
// Built anew when the configuration changes, which costs nothing: clients connect at their first call.

import type { Config, ProviderName } from '../core/config.ts';
import { ProviderError } from '../core/errors.ts';
import {
  contextTokensOf,
  DEMO_MODEL,
  fastModelOf,
  isDemo,
  isLocalVendor,
  LOCAL_VENDORS,
  prefixOf,
  type QualifiedModel,
  splitModelName,
  vendorsOfBareName,
} from '../core/model-names.ts';
import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../lib/logger.ts';
import { createAnthropicProvider } from './anthropic.ts';
import { createCredentials, type Environment } from './credentials.ts';
import { createDemoProvider, DEMO_CONTEXT_TOKENS } from './demo.ts';
import type { LocalServer } from './local-servers.ts';
import { createOpenaiProvider } from './openai.ts';
import type { LLMProvider, ModelHandle, ModelRegistry } from './provider.ts';
import { createProviderHealth, type ProviderHealth } from './provider-health.ts';
import { type Candidate, type ResilientDeps, streamResilient } from './resilient.ts';
import { vendorOf } from './vendors.ts';

export type ModelRegistryDeps = {
  readonly config: Config;
  readonly env: Environment;
  readonly clock: Clock;
  readonly log: Logger;
  /** 0 to 1. */
  readonly random: () => number;
  readonly discovered?: readonly LocalServer[];
};

type Connection = {
  readonly provider: LLMProvider;
  readonly apiBase: string;
  /** Vendors limit each model on its own. */
  readonly healthOf: (model: string) => ProviderHealth;
};

export function createModelRegistry(deps: ModelRegistryDeps): ModelRegistry {
  const { config, clock, discovered = [] } = deps;
  const defaults = config.agents.defaults;
  const credentials = createCredentials(config, deps.env, discovered);
  const connections = new Map<ProviderName, Connection>();
  const resilience = resilienceOf(deps);
  const demo = demoCandidate(deps);

  function connectionTo(vendor: ProviderName): Connection | undefined {
    const known = connections.get(vendor);
    if (known !== undefined) return known;
    const access = credentials.accessTo(vendor);
    if (access === undefined) return undefined;
    const row = vendorOf(vendor);
    const create = row.dialect === 'anthropic' ? createAnthropicProvider : createOpenaiProvider;
    const provider = create({ vendor: row, ...access, clock, timeouts: timeoutsOf(config) });
    const connection = { provider, apiBase: access.apiBase, healthOf: createHealths(clock) };
    connections.set(vendor, connection);
    return connection;
  }

  /** The vendor of a name: its prefix, a local server that lists it, or what the name itself says. */
  function qualify(name: string): QualifiedModel | undefined {
    const prefixed = splitModelName(name);
    if (prefixed !== undefined) return prefixed;
    const server = discovered.find(({ models }) => models.includes(name));
    if (server !== undefined) return { vendor: server.vendor, model: name };
    const vendor =
      vendorsOfBareName(name).find((v) => !isLocalVendor(v) && credentials.accessTo(v)) ??
      LOCAL_VENDORS.find((v) => config.providers[v].apiBase !== '');
    return vendor === undefined ? undefined : { vendor, model: name };
  }

  function candidateFor(name: string): Candidate {
    if (isDemo(name)) return demo;
    const qualified = qualify(name);
    if (qualified === undefined) throw unknownModel(name);
    const { vendor, model } = qualified;
    const connection = connectionTo(vendor);
    if (connection === undefined) throw keyMissing(name, vendor);
    const fullName = `${prefixOf(vendor)}/${model}`;
    const local = isLocalVendor(vendor);
    const { provider, apiBase } = connection;
    const health = connection.healthOf(model);
    return { name: fullName, model, vendor: vendorOf(vendor), local, provider, apiBase, health };
  }

  /** A misspelt fallback must not take the answer of a model that works. */
  function fallbacksFor(first: Candidate): readonly Candidate[] {
    if (isDemo(first.name)) return [];
    return defaults.fallbackModels.flatMap((name) => {
      const usable = isDemo(name) || canResolve(name);
      const candidate = usable ? candidateFor(name) : undefined;
      return candidate === undefined || candidate.name === first.name ? [] : [candidate];
    });
  }

  function canResolve(name: string): boolean {
    const qualified = qualify(name);
    const usable = qualified !== undefined && connectionTo(qualified.vendor) !== undefined;
    if (!usable) deps.log.warn('fallback model cannot be used', { model: name });
    return usable;
  }

  function resolve(name: string): ModelHandle {
    const first = candidateFor(name);
    const tokens =
      first === demo ? DEMO_CONTEXT_TOKENS : contextTokensOf(vendorNameOf(first), first.model);
    return {
      name: first.name,
      contextTokens: Math.min(tokens, defaults.maxContextTokens),
      local: first.local,
      stream: (request, signal) =>
        streamResilient([first, ...fallbacksFor(first)], request, signal, resilience),
    };
  }

  return {
    resolve,
    defaultModel: defaults.model || credentials.firstFound,
    fast(name) {
      const qualified = isDemo(name) ? undefined : qualify(name);
      return qualified === undefined ? name : (fastModelOf(qualified.vendor) ?? name);
    },
  };
}

function createHealths(clock: Clock): Connection['healthOf'] {
  const byModel = new Map<string, ProviderHealth>();
  return (model) => {
    const health = byModel.get(model) ?? createProviderHealth(clock);
    byModel.set(model, health);
    return health;
  };
}

const vendorNameOf = (candidate: Candidate): ProviderName => candidate.vendor.name;

function demoCandidate({ clock }: ModelRegistryDeps): Candidate {
  return {
    name: DEMO_MODEL,
    model: 'demo',
    provider: createDemoProvider({ clock }),
    vendor: { name: 'local', label: 'The demo' },
    local: false,
    apiBase: '',
    health: createProviderHealth(clock),
  };
}

const timeoutsOf = ({ timeouts }: Config) => ({
  firstTokenMs: timeouts.firstTokenSecs * 1000,
  idleMs: timeouts.streamIdleSecs * 1000,
  wholeCallMs: timeouts.modelCallSecs * 1000,
});

function resilienceOf({ config, clock, log, random }: ModelRegistryDeps): ResilientDeps {
  const { providerAttempts, providerMinSecs, providerMaxSecs } = config.retry;
  const policy = {
    maxRetries: providerAttempts,
    minMs: providerMinSecs * 1000,
    maxMs: providerMaxSecs * 1000,
  };
  return { clock, log, random, policy };
}

function unknownModel(name: string): ProviderError {
  return new ProviderError('no vendor serves this model name', {
    failure: { kind: 'unknown_model' },
    provider: 'none',
    model: name,
    userText: `I do not know which vendor serves the model "${name}". Write it with its vendor, e.g. anthropic/${name} or ollama/${name}.`,
  });
}

function keyMissing(name: string, vendor: ProviderName): ProviderError {
  const { label, keyVariables } = vendorOf(vendor);
  return new ProviderError('the vendor of this model has no key', {
    failure: { kind: 'unknown_model' },
    provider: vendor,
    model: name,
    userText: `There is no API key for ${label}, which serves "${name}". The owner can set it with \`nanobot config set providers.${vendor}.apiKey <key>\` or in the variable ${keyVariables.join(' or ')}.`,
  });
}
