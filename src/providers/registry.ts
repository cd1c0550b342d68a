// Resolves model names to handles that can be called, with fallbacks; explains names that no vendor
// serves.

import type { Config, ProviderName } from '../kernel/config/config.ts';
import { ProviderError } from '../kernel/message/errors.ts';
import type { MediaId } from '../kernel/message/ids.ts';
import { defined } from '../lib/json/json.ts';
import type { Logger } from '../lib/logger.ts';
import { nearestName } from '../lib/text/nearest.ts';
import type { Clock } from '../lib/time/clock.ts';
import { createConnections, ProviderHealth } from './connections.ts';
import { createCredentials, type Environment } from './credentials.ts';
import { createDemoProvider, DEMO_CONTEXT_TOKENS } from './demo.ts';
import type { LocalServer } from './local-servers.ts';
import {
  createLocalSites,
  type LocalServerAddress,
  type LocalSite,
  type LocalSites,
  NO_PEERS,
  type Peers,
} from './local-site.ts';
import { ModelPlaces } from './model-places.ts';
import type { ModelHandle, ModelRegistry } from './provider.ts';
import { type Candidate, type ResilientDeps, streamResilient } from './resilient.ts';
import { capabilitiesOf } from './rules/model-capabilities.ts';
import {
  CLOUD_ORDER,
  contextTokensOf,
  DEMO_MODEL,
  isDemo,
  LOCAL_VENDORS,
  namesPeer,
  prefixOf,
} from './rules/model-names.ts';
import type { BreakerPolicy, RetryPolicy } from './rules/provider-failure.ts';
import { createImageSource, type ImageSource, type LoadedImage } from './seen-images.ts';
import { Manners, vendorOf } from './vendors.ts';

const PREFIXES = [...CLOUD_ORDER, ...LOCAL_VENDORS].map(prefixOf);

/** `userText`: what the person can do about it. */
const unservable = (message: string, provider: string, model: string, userText: string) =>
  new ProviderError(message, { failure: { kind: 'unknown_model' }, provider, model, userText });

function unknownModel(name: string): ProviderError {
  if (namesPeer(name)) {
    const how = `No peer that may be asked is called as in "${name}". Peers stand in \`cluster.peers\`, or are found and confirmed: /cluster list.`;
    return unservable('no peer of this name may be asked', 'none', name, how);
  }
  const how = `I do not know which vendor serves the model "${name}". ${howToName(name)}`;
  return unservable('no vendor serves this model name', 'none', name, how);
}

function howToName(name: string): string {
  const slash = name.indexOf('/');
  if (slash <= 0) return `Write it with its vendor, e.g. anthropic/${name} or ollama/${name}.`;
  const near = nearestName(name.slice(0, slash), PREFIXES);
  const guess = near === undefined ? '' : `Did you mean ${near}${name.slice(slash)}? `;
  return `${guess}Before the slash stands the vendor: ${PREFIXES.join(', ')}.`;
}

function keyMissing(name: string, vendor: ProviderName): ProviderError {
  const { label, keyVariables } = vendorOf(vendor);
  const how = `There is no API key for ${label}, which serves "${name}". The owner can set it with \`nanobot config set providers.${vendor}.apiKey <key>\` or in the variable ${keyVariables.join(' or ')}.`;
  return unservable('the vendor of this model has no key', vendor, name, how);
}

// Resolves model names to models ready to be asked; the one place that knows which vendor serves what.
// Built anew when the configuration changes, which costs nothing: clients connect at their first call.

type ModelRegistryDeps = {
  readonly config: Config;
  readonly env: Environment;
  readonly clock: Clock;
  readonly log: Logger;
  /** 0 to 1. */
  readonly random: () => number;
  readonly discovered?: readonly LocalServer[];
  /** Kept from one registry to the next; left out: of this one alone. */
  readonly sites?: LocalSites;
  /** Left out: there are none. */
  readonly peers?: Peers;
  /** The model in force, whatever is configured. */
  readonly preferred?: string;
  /** Left out: no model is shown an image. */
  readonly loadImage?: (id: MediaId) => Promise<LoadedImage>;
};

/** A model on a local server, or on a peer. */
export type LocalModel = {
  readonly site: LocalSite;
  readonly model: string;
  readonly name: string;
};

export type VendorRegistry = Pick<Registry, keyof Registry>;

export const createModelRegistry = (deps: ModelRegistryDeps): VendorRegistry => new Registry(deps);

class Registry implements ModelRegistry {
  readonly defaultModel: string;
  readonly #config: Config;
  readonly #images: ImageSource;
  readonly #places: ModelPlaces;
  readonly #peers: Peers;
  readonly #resilience: ResilientDeps;
  readonly #demo: Candidate;

  constructor(deps: ModelRegistryDeps) {
    const { config, env, clock, log, random, discovered = [] } = deps;
    this.#config = config;
    const credentials = createCredentials(config, env, discovered);
    const sites = deps.sites ?? createLocalSites({ clock, places: () => 1 });
    const { timeouts } = config;
    const circuit = breakerPolicyOf(config);
    const images = createImageSource(config, deps.loadImage);
    const connections = createConnections({ credentials, timeouts, circuit, clock, images });
    this.#images = images;
    this.#peers = deps.peers ?? NO_PEERS;
    this.#places = new ModelPlaces({
      ...{ config, credentials, connections, discovered, sites },
      peers: this.#peers,
    });
    this.#resilience = { clock, log, random, policy: policyOf(config) };
    this.#demo = demoCandidate(clock, circuit);
    this.defaultModel = deps.preferred || config.agents.defaults.model || credentials.firstFound;
  }

  resolve(name: string, tries?: 'once'): ModelHandle {
    const candidate = this.#find(name);
    const isOnce = tries === 'once';
    const { policy } = this.#resilience;
    const resilience = isOnce
      ? { ...this.#resilience, policy: { ...policy, maxRetries: 0 } }
      : this.#resilience;
    return {
      name: candidate.name,
      contextTokens: Math.min(
        candidate.contextTokens,
        this.#config.agents.defaults.maxContextTokens,
      ),
      local: candidate.local,
      vision: this.#images.sightOf(candidate.name) === 'sees',
      capabilities: candidate.capabilities,
      stream: (request, signal, meter) => {
        const others = isOnce ? [] : this.#fallbacks(candidate);
        const deps = { ...resilience, ...defined({ meter }) };
        return streamResilient([candidate, ...others], request, signal, deps);
      },
    };
  }

  fast(name: string): string {
    if (isDemo(name)) return name;
    const { fastModel } = this.#config.agents.defaults;
    return this.#isFastFor(name, fastModel) ? fastModel : this.#places.fast(name);
  }

  /** What a model at home was told stays there. */
  #isFastFor(name: string, fast: string): boolean {
    if (fast === '' || (this.isHome(name) && !this.isHome(fast))) return false;
    return this.#canResolve(fast);
  }

  /** Undefined where another kind of vendor serves the name, or none. */
  localModel(name: string): LocalModel | undefined {
    const place = isDemo(name) ? undefined : this.#places.find(name);
    if (place?.site === undefined) return undefined;
    return { site: place.site, model: place.model, name: place.name };
  }

  /** On one's own machines or on a peer: nothing of what it is asked leaves them. */
  isHome(name: string): boolean {
    return isDemo(name) || this.#places.find(name)?.isHome === true;
  }

  ready(name: string): Promise<void> | undefined {
    return this.#peers.looked()?.then(() => this.#learn(name)) ?? this.#learn(name);
  }

  #learn(name: string): Promise<void> | undefined {
    const found = this.localModel(name);
    return found?.site.ready(found.model);
  }

  /** Where local servers may be: configured, found, or their usual addresses here. */
  localServers(): readonly LocalServerAddress[] {
    return this.#places.localServers();
  }

  #find(name: string): Candidate {
    if (isDemo(name)) return this.#demo;
    const place = this.#places.find(name);
    if (place === undefined) throw unknownModel(name);
    const { model, vendor, label, connection, site } = place;
    if (connection === undefined) throw keyMissing(name, vendor);
    const facts = site?.facts(model);
    const local = site !== undefined;
    const capabilities = capabilitiesOf({
      name: place.name,
      local,
      overrides: this.#config.modelCapabilities,
      ...defined({ said: facts }),
    });
    const known = capabilities.contextTokens ?? facts?.contextTokens;
    return {
      name: place.name,
      model,
      provider: connection.provider,
      vendor: { name: vendor, label },
      local,
      capabilities,
      contextTokens: known ?? contextTokensOf(vendor, model),
      apiBase: connection.apiBase,
      health: connection.healthOf(model),
      manners: connection.mannersOf(model),
      ...defined({ site }),
    };
  }

  /** A misspelt name must not take the answer of a model that works. */
  #fallbacks(first: Candidate): readonly Candidate[] {
    if (isDemo(first.name)) return [];
    return this.#config.agents.defaults.fallbackModels
      .filter((name) => this.#canResolve(name))
      .map((name) => this.#find(name))
      .filter((candidate) => candidate.name !== first.name);
  }

  #canResolve(name: string): boolean {
    const usable = isDemo(name) || this.#places.find(name)?.connection !== undefined;
    if (!usable) this.#resilience.log.warn('configured model cannot be used', { model: name });
    return usable;
  }
}

/** Stands where a vendor stands, so that the demo is called like any model. */
function demoCandidate(clock: Clock, circuit: BreakerPolicy): Candidate {
  return {
    name: DEMO_MODEL,
    model: 'demo',
    provider: createDemoProvider({ clock }),
    vendor: { name: 'demo', label: 'The demo' },
    local: false,
    capabilities: capabilitiesOf({ name: DEMO_MODEL, local: false, overrides: [] }),
    contextTokens: DEMO_CONTEXT_TOKENS,
    apiBase: '',
    health: new ProviderHealth(clock, circuit),
    manners: new Manners(),
  };
}

function breakerPolicyOf({ agents }: Config): BreakerPolicy {
  const { failures, cooldownSecs } = agents.circuit;
  return { failures, cooldownMs: cooldownSecs * 1000 };
}

function policyOf({ retry }: Config): RetryPolicy {
  return {
    maxRetries: retry.providerAttempts,
    minMs: retry.providerMinSecs * 1000,
    maxMs: retry.providerMaxSecs * 1000,
  };
}
