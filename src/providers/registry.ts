// Resolves model names to handles that can be called, with fallbacks; explains names that no vendor
// serves.

import type { Config, ProviderName } from '../kernel/config/config.ts';
import { ProviderError } from '../kernel/message/errors.ts';
import type { MediaId } from '../kernel/message/ids.ts';
import { defined } from '../lib/json/json.ts';
import type { Logger } from '../lib/logger.ts';
import { isHomeUrl } from '../lib/net/address-rules.ts';
import { nearestName } from '../lib/text/cut.ts';
import { t } from '../lib/texts.ts';
import type { Clock } from '../lib/time/clock.ts';
import {
  type Connection,
  type Connections,
  createConnections,
  loadedProvider,
  ProviderHealth,
} from './connections.ts';
import { type Credentials, createCredentials, type Environment } from './credentials.ts';
import { isHandedOn, type LocalServer } from './local-servers.ts';
import {
  createLocalSites,
  type LocalServerAddress,
  type LocalSite,
  type LocalSites,
  NO_PEERS,
  type Peer,
  type Peers,
} from './local-site.ts';
import type { ModelHandle, ModelRegistry } from './provider.ts';
import { type Candidate, type ResilientDeps, streamResilient } from './resilient.ts';
import {
  CLOUD_ORDER,
  capabilitiesOf,
  contextTokensOf,
  DEMO_CONTEXT_TOKENS,
  DEMO_MODEL,
  fastModelOf,
  isDemo,
  isLocalVendor,
  LOCAL_VENDORS,
  localModelName,
  namesPeer,
  prefixOf,
  type QualifiedModel,
  serverLabel,
  splitModelName,
  splitPeerName,
  vendorsOfBareName,
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
    const how = t`There is no usable peer named in "${name}". Configure peers in \`cluster.peers\`, or confirm one that was found: /cluster list.`;
    return unservable(t`no usable peer has this name`, 'none', name, how);
  }
  const how = t`I do not know which provider serves the model "${name}". ${howToName(name)}`;
  return unservable(t`no provider serves this model name`, 'none', name, how);
}

function howToName(name: string): string {
  const slash = name.indexOf('/');
  if (slash <= 0) return t`Write it with its provider, e.g. anthropic/${name} or ollama/${name}.`;
  const near = nearestName(name.slice(0, slash), PREFIXES);
  const guess = near === undefined ? '' : t`Did you mean ${near}${name.slice(slash)}? `;
  return t`${guess}Write the provider before the slash: ${PREFIXES.join(', ')}.`;
}

function keyMissing(name: string, vendor: ProviderName): ProviderError {
  const { label, keyVariables } = vendorOf(vendor);
  const how = t`There is no API key for ${label}, which serves "${name}". The owner can set it with \`nanobot config set providers.${vendor}.apiKey <key>\` or in the variable ${keyVariables.join(' or ')}.`;
  return unservable(t`the provider of this model has no key`, vendor, name, how);
}

// Resolves model names to models ready to be called; the only place that knows which vendor serves
// what. Rebuilt when the configuration changes, which is free: clients connect at their first call.

type ModelRegistryDeps = {
  readonly config: Config;
  readonly env: Environment;
  readonly clock: Clock;
  readonly log: Logger;
  /** 0 to 1. */
  readonly random: () => number;
  readonly discovered?: readonly LocalServer[];
  /** Shared between successive registries; absent: used by this one only. */
  readonly sites?: LocalSites;
  /** Absent: there are none. */
  readonly peers?: Peers;
  /** Overrides the configured default model. */
  readonly preferred?: string;
  /** Absent: no model receives images. */
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
    const asksFirst = config.agents.defaults.fallback === 'ask';
    this.#resilience = { clock, log, random, policy: policyOf(config), asksFirst };
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

  /** Text for a model at home must not go to a service. */
  #isFastFor(name: string, fast: string): boolean {
    if (fast === '' || (this.isHome(name) && !this.isHome(fast))) return false;
    return this.#canResolve(fast);
  }

  /** Undefined if another kind of vendor serves the name, or none. */
  localModel(name: string): LocalModel | undefined {
    const place = isDemo(name) ? undefined : this.#places.find(name);
    if (place?.site === undefined) return undefined;
    return { site: place.site, model: place.model, name: place.name };
  }

  /** On the person's own machines or on a peer: requests do not leave them. */
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

  /** Possible local servers: configured, found, or their usual addresses on this machine. */
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

  /** A misspelt fallback must not break a model that works. */
  #fallbacks(first: Candidate): readonly Candidate[] {
    const { fallback, fallbackModels } = this.#config.agents.defaults;
    if (isDemo(first.name) || fallback === 'off') return [];
    return fallbackModels
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

/** Takes the place of a vendor, so that the demo is called like any model. */
function demoCandidate(clock: Clock, circuit: BreakerPolicy): Candidate {
  return {
    name: DEMO_MODEL,
    model: 'demo',
    provider: loadedProvider({ name: 'demo' }, async () =>
      (await import('./demo.ts')).createDemoProvider({ clock }),
    ),
    vendor: { name: 'demo', label: t`The demo` },
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

// Where a model runs, by its name: at the vendor of its prefix, on a peer, on a local server that
// lists it, or at the vendor whose models have such names. A bare name never goes to another vendor
// because a peer that had it is away.

type ModelPlacesDeps = {
  readonly config: Config;
  readonly credentials: Credentials;
  readonly connections: Connections;
  readonly discovered: readonly LocalServer[];
  readonly sites: LocalSites;
  readonly peers: Peers;
};

type ModelPlace = {
  /** With its prefix. */
  readonly name: string;
  /** The server's name of it. */
  readonly model: string;
  readonly vendor: ProviderName;
  /** The server's name for people. */
  readonly label: string;
  /** Undefined if no credentials are known. */
  readonly connection: Connection | undefined;
  /** Undefined at a vendor's service. */
  readonly site: LocalSite | undefined;
  /** On the person's own machines, or on a peer. */
  readonly isHome: boolean;
};

class ModelPlaces {
  readonly #deps: ModelPlacesDeps;

  constructor(deps: ModelPlacesDeps) {
    this.#deps = deps;
  }

  /** Undefined if nothing is known to have it. */
  find(name: string): ModelPlace | undefined {
    const { peers } = this.#deps;
    if (namesPeer(name)) {
      const named = splitPeerName(name);
      const peer = named && peers.named(named.peer);
      return named && peer && this.#onPeer(peer, named.model);
    }
    const prefixed = splitModelName(name);
    if (prefixed !== undefined) return this.#preferred(prefixed) ?? this.#at(prefixed);
    return this.#bare(name);
  }

  /** A cheaper model at the same place; the same if there is none. */
  fast(name: string): string {
    const place = this.find(name);
    if (place === undefined || place.site !== undefined) return name;
    return fastModelOf(place.vendor) ?? name;
  }

  localServers(): readonly LocalServerAddress[] {
    return LOCAL_VENDORS.flatMap((vendor) => {
      const access = this.#deps.credentials.accessTo(vendor);
      return access === undefined ? [] : [{ vendor, ...access }];
    });
  }

  /** The peer's model, for a name on an own server that a reachable peer has as well. */
  #preferred({ vendor, model }: QualifiedModel): ModelPlace | undefined {
    const { peers } = this.#deps;
    if (peers.prefer !== 'peer' || !isLocalVendor(vendor)) return undefined;
    const peer = peers.having(model, 'up');
    return peer && this.#onPeer(peer, model);
  }

  #bare(name: string): ModelPlace | undefined {
    const { peers, discovered, config, credentials } = this.#deps;
    const server = discovered.find(({ models, handedOn }) =>
      [...models, ...handedOn].includes(name),
    );
    const peer = peers.having(name, 'up') ?? peers.having(name, 'known');
    const isLocal = server !== undefined && (peers.prefer === 'local' || peer === undefined);
    if (isLocal) return this.#at({ vendor: server.vendor, model: name });
    if (peer !== undefined) return this.#onPeer(peer, name);
    const vendor =
      vendorsOfBareName(name).find((cloud) => credentials.accessTo(cloud) !== undefined) ??
      LOCAL_VENDORS.find((local) => config.providers[local].apiBase !== '');
    return vendor === undefined ? undefined : this.#at({ vendor, model: name });
  }

  #at({ vendor, model }: QualifiedModel): ModelPlace {
    const { connections, credentials, sites } = this.#deps;
    const access = isLocalVendor(vendor) ? credentials.accessTo(vendor) : undefined;
    const isLocal = isLocalVendor(vendor) && access !== undefined;
    const site = isLocal ? sites.at({ vendor, ...access }) : undefined;
    return {
      name: `${prefixOf(vendor)}/${model}`,
      ...{ model, vendor, label: vendorOf(vendor).label },
      connection: connections.to(vendor),
      site,
      isHome: isLocal && isHomeUrl(access.apiBase) && !isHandedOn(model, site?.facts(model)),
    };
  }

  #onPeer(peer: Peer, model: string): ModelPlace {
    const { connections, sites } = this.#deps;
    const site = sites.at(peer);
    return {
      name: localModelName(peer, model),
      ...{ model, vendor: peer.vendor, label: serverLabel('', peer.peer) },
      connection: connections.toPeer(peer),
      site,
      isHome: !isHandedOn(model, site.facts(model)),
    };
  }
}
