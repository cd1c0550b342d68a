// A local model server: its state, warm models and limits; the collection of all sites, and peers
// on the local network.

import { createPermits, RecentMap, readOnce } from '../lib/async.ts';
import { defined } from '../lib/json/json.ts';
import { isLoopbackHost } from '../lib/net/address-rules.ts';
import type { Clock } from '../lib/time/clock.ts';
import type { MakeRoom, ServerMemory } from './local-memory.ts';
import {
  askLocal,
  isOk,
  type LocalAddress,
  type LocalAnswer,
  type LocalQuestion,
  listModels,
  type ModelFacts,
  RefusedWindows,
  readModelFacts,
} from './local-servers.ts';
import type { CallMeter, MeteredTry } from './provider.ts';
import { basedAt } from './provider-call.ts';
import { type LocalVendor, localModelName } from './rules/model-names.ts';
import {
  afterProbe,
  type HealthChange,
  LOADING,
  type ServerHealth,
  UNKNOWN_HEALTH,
  type Warmth,
} from './rules/provider-failure.ts';

export type LocalServerAddress = LocalAddress & {
  readonly vendor: LocalVendor;
  /** The name of the peer, if it is one. */
  readonly peer?: string;
};

type SiteDeps = {
  readonly clock: Clock;
  /** Number of concurrent calls that a server of this kind accepts. */
  places(vendor: LocalVendor): number;
  /** Before a model is called or loaded; absent: no limit. */
  readonly makeRoom?: MakeRoom;
};

export type SiteReport = ReturnType<LocalSite['report']>;

const PROBE_TIMEOUT_MS = 5000;
const READY_TIMEOUT_MS = 2500;
const FACTS_FRESH_MS = 600_000;
/** A server that does not answer is not asked at every turn. */
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
  readonly #usedAt = new RecentMap<string, number>(MAX_MODELS);
  /** Calls of each model that hold a place. */
  readonly #answering = new Map<string, number>();

  constructor(server: LocalServerAddress, deps: SiteDeps) {
    this.#server = server;
    this.#deps = deps;
    this.gate = new LocalGate(deps.clock);
    this.#windows = new RefusedWindows(deps.clock);
  }

  /** Sets the current key: it may change while the address stays. */
  use(server: LocalServerAddress): this {
    this.#server = server;
    return this;
  }

  /**
   * Takes a place for one call of the model and its whole stream, and room for the model. @throws
   * MemoryRefused, the signal's reason
   */
  async enter(model: string, signal: AbortSignal): Promise<Place> {
    this.#calledAt = this.#deps.clock.monotonic();
    const place = await this.gate.enter(this.#places, signal);
    const leave = this.#counted(model, place, signal);
    try {
      await this.#deps.makeRoom?.(this, model, signal);
      return { waitedMs: place.waitedMs, [Symbol.dispose]: leave };
    } catch (error) {
      leave();
      throw error;
    }
  }

  /** Counts a call of the model until it is left or aborted. */
  #counted(model: string, place: Place, signal: AbortSignal): () => void {
    this.#usedAt.set(model, this.#deps.clock.monotonic());
    this.#answering.set(model, (this.#answering.get(model) ?? 0) + 1);
    let isHeld = true;
    const leave = () => {
      if (!isHeld) return;
      isHeld = false;
      signal.removeEventListener('abort', leave);
      const left = (this.#answering.get(model) ?? 1) - 1;
      if (left === 0) this.#answering.delete(model);
      else this.#answering.set(model, left);
      place[Symbol.dispose]();
    };
    signal.addEventListener('abort', leave, { once: true });
    if (signal.aborted) leave();
    return leave;
  }

  get isElsewhere(): boolean {
    const { apiBase, peer } = this.#server;
    return peer !== undefined || !isLoopbackHost(URL.parse(apiBase)?.hostname ?? '');
  }

  async memory(signal: AbortSignal): Promise<ServerMemory> {
    const { readMemory } = await import('./local-memory.ts');
    return readMemory(this.#server, signal);
  }

  isAnswering(model: string): boolean {
    return this.#answering.has(model);
  }

  usedAt(model: string): number {
    return this.#usedAt.get(model) ?? Number.NEGATIVE_INFINITY;
  }

  async unload(
    { model, unload }: ServerMemory['held'][number],
    signal: AbortSignal,
  ): Promise<boolean> {
    const answer = unload && (await askLocal(this.#server, unload, signal));
    this.#learnt.delete(model);
    this.#warmth.delete(model);
    return answer !== undefined && isOk(answer);
  }

  get ahead(): number {
    return this.gate.ahead(this.#places);
  }

  /** A call of the model completed: requests facts that are missing, or from before it was loaded. */
  answered(model: string): void {
    this.#answeredAt = this.#deps.clock.monotonic();
    if (this.#warmth.get(model)?.kind === 'failed') this.#warmth.delete(model);
    const facts = this.facts(model);
    if (facts?.isLoaded === false)
      this.#learnt.set(model, { facts, until: Number.NEGATIVE_INFINITY });
    void this.ready(model);
  }

  /**
   * The server refused a request as too long: its window may differ from its report. `size`: the
   * size it named; `assumed`: the size the request was made for. Tokens.
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

  /** Called within the last hour. */
  get wasCalled(): boolean {
    return this.#deps.clock.monotonic() - this.#calledAt < LASTS_IN_USE_MS;
  }

  /** The facts known from earlier requests. */
  facts(model: string): ModelFacts | undefined {
    return this.#learnt.get(model)?.facts;
  }

  /** Waits only for the server's first answer; stale facts are refreshed in the background. */
  ready(model: string): Promise<void> | undefined {
    const known = this.#learnt.get(model);
    if (known !== undefined && known.until > this.#deps.clock.monotonic()) return undefined;
    const learning = this.learn(model, AbortSignal.timeout(READY_TIMEOUT_MS)).then(() => undefined);
    return known === undefined ? learning : undefined;
  }

  /** Requests facts that are missing or stale; concurrent callers share one request. */
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

  /** Loads the model on servers that load on demand. Never throws. */
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
    const isLoaded = await loadModel(
      { ...loading, enter: () => this.enter(model, signal) },
      signal,
    );
    this.#learnt.delete(model);
    await this.learn(model, signal);
    return isLoaded;
  }

  /** Checks whether the server is there, unless calls of the last `sinceMs` show it. */
  async look(sinceMs: number, signal: AbortSignal): Promise<HealthChange | undefined> {
    const isRecent = this.#deps.clock.monotonic() - this.#answeredAt < sinceMs;
    const isThere = this.gate.load.running > 0 || isRecent || (await this.#answers(signal));
    if (signal.aborted) return undefined;
    const { health, change } = afterProbe(this.#health, isThere);
    this.#health = health;
    return change;
  }

  /** Servers with only a known address may use another name for it, and accept any name. */
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

/** Two names of one address are one server, and so are two vendors at it. */
export function addressOf(apiBase: string): string {
  const host = URL.canParse(apiBase) ? new URL(apiBase).host : apiBase;
  return host.replace(/^(?:localhost|\[::1\])(?=:|$)/, '127.0.0.1');
}

// All local model servers used since the start, by address. They outlive the registries of models,
// which are rebuilt with every configuration.

export type LocalSites = ReturnType<typeof createLocalSites>;

export function createLocalSites({
  memoryGb: limitGb = () => 0,
  ...deps
}: Omit<SiteDeps, 'makeRoom'> & {
  /** Most memory for models of this machine, in gigabytes; 0 or absent: no limit. */
  readonly memoryGb?: () => number;
}) {
  const sites = new Map<string, LocalSite>();
  const all = () => [...sites.values()];
  const memory = readOnce(async () => {
    const { createMemoryLimit } = await import('./local-memory.ts');
    return createMemoryLimit({ limitGb, sites: all, clock: deps.clock });
  });
  const makeRoom: MakeRoom = async (...call) => {
    if (limitGb() > 0) await (await memory())(...call);
  };
  return {
    /** The same instance for the same address. */
    at(server: LocalServerAddress): LocalSite {
      const address = addressOf(server.apiBase);
      const site = sites.get(address)?.use(server) ?? new LocalSite(server, { ...deps, makeRoom });
      sites.set(address, site);
      return site;
    },
    all: (): readonly LocalSite[] => all(),
  };
}

// CONTRACT of another machine that runs models: which peers may be asked, and which models they
// have. Only peers that the configuration names or an owner confirmed are returned.

export type Peer = LocalServerAddress & { readonly peer: string };

export interface Peers {
  /** Which of the two is used if both have a model. */
  readonly prefer: 'peer' | 'local';
  named(name: string): Peer | undefined;
  /** A peer that lists exactly this model; `up`: and answered recently. */
  having(model: string, state: 'up' | 'known'): Peer | undefined;
  /** Undefined once all were checked; the wait is short. */
  looked(): Promise<void> | undefined;
}

export const NO_PEERS: Peers = {
  prefer: 'local',
  named: () => undefined,
  having: () => undefined,
  looked: () => undefined,
};

// Admission to a local server (a bounded number of concurrent calls) and loading its model before
// the first call.

/** A place at the server; disposing releases it, repeated disposal has no effect. */
export type Place = Disposable & {
  /** Milliseconds until it was granted. */
  readonly waitedMs: number;
};

export class LocalGate {
  readonly #clock: Clock;
  readonly #permits = createPermits(1);
  #places = 1;
  #running = 0;
  #waiting = 0;
  #calls = 0;
  #waitedMs = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** `calls` and `waitedMs` since the start: admitted calls, and the sum of their waits. */
  get load() {
    const [running, waiting, calls] = [this.#running, this.#waiting, this.#calls];
    return { running, waiting, calls, waitedMs: this.#waitedMs };
  }

  /** Number of calls that would be admitted first. */
  ahead(places: number): number {
    return this.#running < places ? 0 : this.#waiting + this.#running - places + 1;
  }

  /** Released automatically when the signal aborts. @throws the signal's reason */
  async enter(places: number, signal: AbortSignal): Promise<Place> {
    if (places !== this.#places) this.#permits.resize(places);
    this.#places = places;
    const startedAt = this.#clock.monotonic();
    this.#waiting += 1;
    const permit = await this.#permits.acquire(signal).finally(() => {
      this.#waiting -= 1;
    });
    const waitedMs = Math.round(this.#clock.monotonic() - startedAt);
    this.#running += 1;
    this.#calls += 1;
    this.#waitedMs += waitedMs;
    return this.#placeOf(permit, waitedMs, signal);
  }

  #placeOf(permit: Disposable, waitedMs: number, signal: AbortSignal): Place {
    let isHeld = true;
    const giveBack = () => {
      if (!isHeld) return;
      isHeld = false;
      this.#running -= 1;
      signal.removeEventListener('abort', giveBack);
      permit[Symbol.dispose]();
    };
    // An aborted caller may leave its stream without closing it.
    signal.addEventListener('abort', giveBack, { once: true });
    if (signal.aborted) giveBack();
    return { waitedMs, [Symbol.dispose]: giveBack };
  }
}

// Makes a local server load a model before somebody waits for its answer: Ollama by its own call,
// the others by a completion of one token. While the server reports that it is loading, the request
// is repeated.

type Loading = {
  readonly server: LocalAddress & { readonly vendor: LocalVendor; readonly peer?: string };
  readonly model: string;
  readonly clock: Clock;
  /** Undefined: the call is not accounted to anybody and costs nothing. */
  readonly meter: CallMeter | undefined;
  enter(): Promise<Place>;
};

const LOAD_TIMEOUT_MS = 120_000;
/** Between the tries. */
const WAITS_MS = [2000, 4000, 8000];

/** Whether the model is loaded. @throws what the meter throws, the signal's reason */
async function loadModel(loading: Loading, signal: AbortSignal): Promise<boolean> {
  for (let tries = 0; ; tries += 1) {
    const answer = await tryOnce(loading, signal);
    if (answer !== undefined && isOk(answer)) return true;
    const waitMs = WAITS_MS[tries];
    const isLoading = answer !== undefined && LOADING.test(JSON.stringify(answer.body ?? ''));
    if (!isLoading || waitMs === undefined) return false;
    await loading.clock.sleep(waitMs, signal);
  }
}

async function tryOnce(
  { server, model, meter, enter }: Loading,
  signal: AbortSignal,
): Promise<LocalAnswer | undefined> {
  using place = await enter();
  let attempt: MeteredTry | undefined;
  let answer: LocalAnswer | undefined;
  try {
    const at = { ...basedAt(server.apiBase), waitedMs: place.waitedMs };
    attempt = await meter?.begin(localModelName(server, model), signal, at);
    answer = await askLocal(server, askFor(server.vendor, model), signal);
    return answer;
  } finally {
    attempt?.end(endOf(answer));
  }
}

function askFor(vendor: LocalVendor, model: string): LocalQuestion {
  const timeoutMs = LOAD_TIMEOUT_MS;
  if (vendor === 'ollama') {
    return { path: '/api/generate', below: 'root', body: { model, stream: false }, timeoutMs };
  }
  const messages = [{ role: 'user', content: 'Hi' }];
  const body = { model, messages, max_tokens: 1, stream: false };
  return { path: '/chat/completions', below: 'apiBase', body, timeoutMs };
}

function endOf(answer: LocalAnswer | undefined): Parameters<MeteredTry['end']>[0] {
  const answerChars = 0;
  if (answer === undefined) return { kind: 'failed', failure: { kind: 'network' }, answerChars };
  if (isOk(answer)) return { kind: 'finished', answerChars };
  return { kind: 'failed', failure: { kind: 'server', status: answer.status }, answerChars };
}
