// A local server as a place where models run: its state, warm models and limits; the collection of all
// sites, and peers on the local network.

import { defined } from '../lib/json/json.ts';
import type { Clock } from '../lib/time/clock.ts';
import { LocalGate, loadModel, type Place } from './local-gate.ts';
import { askLocal, isOk, type LocalAddress } from './local-http.ts';
import { listModels, type ModelFacts, RefusedWindows, readModelFacts } from './local-servers.ts';
import type { CallMeter } from './provider.ts';
import type { LocalVendor } from './rules/model-names.ts';
import {
  afterProbe,
  type HealthChange,
  type ServerHealth,
  UNKNOWN_HEALTH,
  type Warmth,
} from './rules/provider-failure.ts';

export type LocalServerAddress = LocalAddress & {
  readonly vendor: LocalVendor;
  /** The name of the peer that it is. */
  readonly peer?: string;
};

type SiteDeps = {
  readonly clock: Clock;
  /** Calls at once that a server of this kind takes. */
  places(vendor: LocalVendor): number;
};

export type SiteReport = ReturnType<LocalSite['report']>;

const PROBE_TIMEOUT_MS = 5000;
const READY_TIMEOUT_MS = 2500;
const FACTS_FRESH_MS = 600_000;
/** Somebody who does not answer is not asked at every turn. */
const SILENCE_FRESH_MS = 30_000;
const MAX_MODELS = 50;
const LASTS_IN_USE_MS = 3_600_000;

type Learnt = { readonly facts: ModelFacts | undefined; readonly until: number };

export class LocalSite {
  readonly gate: LocalGate;
  readonly #deps: SiteDeps;
  readonly #learnt = new Map<string, Learnt>();
  readonly #asking = new Map<string, Promise<ModelFacts | undefined>>();
  readonly #windows: RefusedWindows;
  readonly #warmth = new Map<string, Warmth>();
  #server: LocalServerAddress;
  #health: ServerHealth = UNKNOWN_HEALTH;
  #answeredAt = Number.NEGATIVE_INFINITY;
  #calledAt = Number.NEGATIVE_INFINITY;

  constructor(server: LocalServerAddress, deps: SiteDeps) {
    this.#server = server;
    this.#deps = deps;
    this.gate = new LocalGate(deps.clock);
    this.#windows = new RefusedWindows(deps.clock);
  }

  /** The key of a server may change while its address stays. */
  use(server: LocalServerAddress): this {
    this.#server = server;
    return this;
  }

  /** For one call and its whole stream. @throws the signal's reason */
  enter(signal: AbortSignal): Promise<Place> {
    this.#calledAt = this.#deps.clock.monotonic();
    return this.gate.enter(this.#places, signal);
  }

  get ahead(): number {
    return this.gate.ahead(this.#places);
  }

  /** A call of the model was answered to its end; what is not known of it yet is asked now. */
  answered(model: string): void {
    this.#answeredAt = this.#deps.clock.monotonic();
    void this.ready(model);
  }

  /**
   * It found a question too long: its window may be another than it said before. `size`: the one that
   * it named then; `assumed`: the one that the question was made for. Tokens.
   */
  overflowed(model: string, size: number | undefined, assumed: number): void {
    const known = this.#learnt.get(model);
    if (size !== undefined && size < assumed)
      this.#windows.refused(model, size, known?.facts?.contextTokens);
    else if (known === undefined) return;
    const facts = this.#windows.bounded(model, known?.facts);
    this.#learnt.set(model, { facts, until: Number.NEGATIVE_INFINITY });
    void this.ready(model);
  }

  /** Called in the last hour. */
  get wasCalled(): boolean {
    return this.#deps.clock.monotonic() - this.#calledAt < LASTS_IN_USE_MS;
  }

  /** As far as it was asked before. */
  facts(model: string): ModelFacts | undefined {
    return this.#learnt.get(model)?.facts;
  }

  /** Waits for the first word of the server only; what grew old is asked anew meanwhile. */
  ready(model: string): Promise<void> | undefined {
    const known = this.#learnt.get(model);
    if (known !== undefined && known.until > this.#deps.clock.monotonic()) return undefined;
    const learning = this.learn(model, AbortSignal.timeout(READY_TIMEOUT_MS)).then(() => undefined);
    return known === undefined ? learning : undefined;
  }

  /** Asks where nothing fresh is known; those who ask at once share one question. */
  async learn(model: string, signal: AbortSignal): Promise<ModelFacts | undefined> {
    const known = this.#learnt.get(model);
    if (known !== undefined && known.until > this.#deps.clock.monotonic()) return known.facts;
    const asking = this.#asking.get(model) ?? this.#ask(model, signal);
    this.#asking.set(model, asking);
    return asking.finally(() => this.#asking.delete(model));
  }

  async #ask(model: string, signal: AbortSignal): Promise<ModelFacts | undefined> {
    const said = await readModelFacts(this.#server, model, signal);
    const found = said && this.#windows.heard(model, said);
    const forMs = found === undefined ? SILENCE_FRESH_MS : FACTS_FRESH_MS;
    const facts = found ?? this.facts(model);
    this.#learnt.delete(model);
    this.#learnt.set(model, { facts, until: this.#deps.clock.monotonic() + forMs });
    for (const oldest of this.#learnt.keys()) {
      if (this.#learnt.size <= MAX_MODELS) break;
      this.#learnt.delete(oldest);
      this.#windows.forget(oldest);
      this.#warmth.delete(oldest);
    }
    return facts;
  }

  /** Has the model loaded, where the server loads it only when it is asked. Never throws. */
  async warmUp(
    model: string,
    { meter }: { readonly meter: CallMeter | undefined },
    signal: AbortSignal,
  ): Promise<void> {
    if (this.#warmth.get(model)?.kind === 'warming') return;
    this.#warmth.set(model, { kind: 'warming' });
    const { clock } = this.#deps;
    const startedAt = clock.monotonic();
    const isReady = await this.#load(model, meter, signal).catch(() => false);
    const tookMs = Math.round(clock.monotonic() - startedAt);
    this.#warmth.set(model, isReady ? { kind: 'ready', tookMs } : { kind: 'failed' });
  }

  async #load(model: string, meter: CallMeter | undefined, signal: AbortSignal): Promise<boolean> {
    this.#learnt.delete(model);
    const before = await this.learn(model, signal);
    if (before === undefined && !(await this.#lists(model, signal))) return false;
    if (before?.isLoaded !== false) return true;
    const loading = { server: this.#server, model, clock: this.#deps.clock, meter };
    const isLoaded = await loadModel({ ...loading, enter: () => this.enter(signal) }, signal);
    this.#learnt.delete(model);
    await this.learn(model, signal);
    return isLoaded;
  }

  /** Looks whether the server is there, unless calls of the last `sinceMs` tell. */
  async look(sinceMs: number, signal: AbortSignal): Promise<HealthChange | undefined> {
    const isRecent = this.#deps.clock.monotonic() - this.#answeredAt < sinceMs;
    const isThere = this.gate.load.running > 0 || isRecent || (await this.#answers(signal));
    if (signal.aborted) return undefined;
    const { health, change } = afterProbe(this.#health, isThere);
    this.#health = health;
    return change;
  }

  /** Servers of which only the address is known may call it otherwise, and take any name. */
  async #lists(model: string, signal: AbortSignal): Promise<boolean> {
    const { vendor } = this.#server;
    if (vendor === 'local') return this.#answers(signal);
    const listed = await listModels(this.#server, PROBE_TIMEOUT_MS, signal);
    return listed.includes(model) || listed.includes(`${model}:latest`);
  }

  async #answers(signal: AbortSignal): Promise<boolean> {
    const question = { path: '/models', below: 'apiBase', timeoutMs: PROBE_TIMEOUT_MS } as const;
    const answer = await askLocal(this.#server, question, signal);
    return answer !== undefined && isOk(answer);
  }

  report() {
    const names = new Set([...this.#learnt.keys(), ...this.#warmth.keys()]);
    const { vendor, peer, apiBase } = this.#server;
    return {
      vendor,
      ...defined({ peer }),
      /** Host and port. */
      address: addressOf(apiBase),
      state: this.#health.state,
      load: this.gate.load,
      models: [...names].map((model) => {
        const warmth = this.#warmth.get(model);
        return { model, ...defined({ facts: this.facts(model), warmth }) };
      }),
    };
  }

  get #places(): number {
    return this.#deps.places(this.#server.vendor);
  }
}

/** Two names of one place are one server, and so are two vendors there. */
export function addressOf(apiBase: string): string {
  const host = URL.canParse(apiBase) ? new URL(apiBase).host : apiBase;
  return host.replace(/^(?:localhost|\[::1\])(?=:|$)/, '127.0.0.1');
}

// All local model servers that were used since the start, by address. They outlive the registries of
// models, which are built anew with every configuration.

export type LocalSites = ReturnType<typeof createLocalSites>;

export function createLocalSites(deps: SiteDeps) {
  const sites = new Map<string, LocalSite>();
  return {
    /** The same one for the same address. */
    at(server: LocalServerAddress): LocalSite {
      const address = addressOf(server.apiBase);
      const site = sites.get(address)?.use(server) ?? new LocalSite(server, deps);
      sites.set(address, site);
      return site;
    },
    all: (): readonly LocalSite[] => [...sites.values()],
  };
}

// CONTRACT of another machine that runs models for us: who may be asked, and which models it has. Only
// peers that the configuration names or an owner confirmed are ever handed out.

export type Peer = LocalServerAddress & { readonly peer: string };

export interface Peers {
  /** Which of the two is asked where both have a model. */
  readonly prefer: 'peer' | 'local';
  named(name: string): Peer | undefined;
  /** That lists exactly this model; `up`: and answered lately. */
  having(model: string, state: 'up' | 'known'): Peer | undefined;
  /** Undefined once all were looked at; it never waits for long. */
  looked(): Promise<void> | undefined;
}

export const NO_PEERS: Peers = {
  prefer: 'local',
  named: () => undefined,
  having: () => undefined,
  looked: () => undefined,
};
