// Installs the care of models on one's own machines: warm-up, health checks, notices to the owner,
// `/local` and the lines of /status. Makes no request where no local model is in use.

import {
  CLUSTER,
  MODEL_FOR_ALL,
  MODEL_SERVERS,
  type ModelForAll,
  type Models,
} from '../../agent/models.ts';
import { chargedMeter } from '../../agent/side-model.ts';
import { type Kernel, port } from '../../kernel/feature.ts';
import type { StatusSource } from '../../kernel/status.ts';
import { t } from '../../lib/texts.ts';
import { aborted } from '../../lib/time/clock.ts';
import {
  askLocal,
  discoverLocalModels,
  isOk,
  type LocalAddress,
} from '../../providers/local-servers.ts';
import type { LocalSite, SiteReport } from '../../providers/local-site.ts';
import type { LocalModel } from '../../providers/registry.ts';
import {
  localModelName,
  peerModelName,
  prefixOf,
  serverLabel,
} from '../../providers/rules/model-names.ts';
import type { HealthChange } from '../../providers/rules/provider-failure.ts';
import { vendorOf } from '../../providers/vendors.ts';
import type { ClusterKeeper } from '../cluster/index.ts';
import { clusterCommands } from '../cluster/index.ts';
import {
  type FoundModel,
  type FoundServer,
  type LocalModels,
  localCommands,
  serverLines,
} from './local-models.ts';
import type { LocalOnly } from './local-only.ts';
import { LOCAL_ONLY } from './local-only.ts';

export type { LocalModels } from './local-models.ts';
export { LOCAL_ONLY } from './local-only.ts';

type LocalModelsParts = Kernel & {
  readonly models: Models;
  readonly forAll: ModelForAll;
  readonly only: LocalOnly;
  readonly cluster: ClusterKeeper;
};

/** Interval of the check whether local models came into use. */
const IDLE_MS = 3_600_000;
/** Maximum number of models listed per server. */
const MAX_LISTED = 20;
/** Configured servers may be on another machine. */
const LOOK_MS = 1500;

export const LOCAL_MODELS = port<LocalModels>('local models');

export function install(kernel: Kernel): void {
  const { settings, add } = kernel;
  const models = kernel.use(MODEL_SERVERS);
  const cluster = kernel.use(CLUSTER);
  const forAll = kernel.use(MODEL_FOR_ALL);
  const only = kernel.use(LOCAL_ONLY);
  const care = new LocalModelCare({ ...kernel, ...{ models, forAll, only, cluster } });
  add.status(care.status);
  add.command(...localCommands({ local: care.service, settings, models: models.current }));
  add.command(...clusterCommands(() => cluster.current?.service));
  add.task({ name: 'local models', run: (signal) => care.run(signal) });
  add.task({ name: 'local model servers', run: (signal) => care.keepServers(signal) });
  add.task({ name: 'cluster', run: (signal) => cluster.run(signal) });
  kernel.provide(LOCAL_MODELS, care.service);
}

class LocalModelCare {
  readonly service: LocalModels;
  readonly status: StatusSource = {
    lines: async (origin) => [
      ...(origin === undefined ? [] : await this.#parts.only.lines(origin.session)),
      ...serverLines(this.#inUse().map((site) => shown(site.report()))),
      ...(this.#parts.cluster.current?.status() ?? []),
    ],
    fields: () => ({ peers: this.#parts.cluster.current?.service.seen() ?? [] }),
  };
  readonly #parts: LocalModelsParts;
  readonly #stop = new AbortController();
  #changed = new AbortController();
  #warmed = '';

  constructor(parts: LocalModelsParts) {
    this.#parts = parts;
    this.service = this.#service(parts);
    parts.models.onRebuilt(() => this.#changed.abort());
  }

  #service({ live, models, forAll, only, cluster }: LocalModelsParts): LocalModels {
    return {
      only,
      get cluster() {
        return cluster.current?.service;
      },
      isLocal: (model) => this.#model(model) !== undefined,
      look: () => this.#look(),
      preferred: () => live.config.localModels.model,
      warmUp: (model) => this.#warm(this.#model(model), this.#stop.signal),
      async useForAll(model) {
        await forAll.set(model);
        await models.rebuild();
      },
    };
  }

  async run(signal: AbortSignal): Promise<void> {
    signal.addEventListener('abort', () => this.#stop.abort(), { once: true });
    while (!signal.aborted) {
      this.#warmDefault(signal);
      const everyMs = this.#everyMs;
      await Promise.all(this.#inUse().map((site) => this.#watch(site, everyMs, signal)));
      const woken = AbortSignal.any([signal, this.#changed.signal]);
      await this.#parts.clock.sleep(everyMs ?? IDLE_MS, woken).catch(() => undefined);
      this.#changed = new AbortController();
    }
  }

  /** The programs of servers that the configuration starts. */
  async keepServers(signal: AbortSignal): Promise<void> {
    const { live, models } = this.#parts;
    const { start, stop } = live.config.localModels;
    const wanted = models
      .current()
      .localServers()
      .filter(({ vendor }) => start[vendor].length > 0);
    if (wanted.length === 0) return aborted(signal);
    const { keepServer } = await import('./server-program.ts');
    await Promise.all(
      wanted.map((server) => {
        const program = {
          ...{ label: vendorOf(server.vendor).label, isThere: isAnswering(server) },
          ...{ start: start[server.vendor], stop: stop[server.vendor] },
          started: () => {
            this.#warmed = '';
            this.#changed.abort();
          },
        };
        return keepServer(program, { ...this.#parts, folder: this.#parts.home.root }, signal);
      }),
    );
  }

  get #everyMs(): number | undefined {
    const { probeSecs } = this.#parts.live.config.localModels;
    return probeSecs === 0 ? undefined : probeSecs * 1000;
  }

  /** The servers of the models in the configuration and of those called lately. */
  #inUse(): readonly LocalSite[] {
    const { models, live } = this.#parts;
    const { fallbackModels, fastModel } = live.defaults;
    const side = fastModel === '' ? [] : [fastModel];
    const named = [models.current().defaultModel, ...fallbackModels, ...side];
    const sites = named.flatMap((name) => this.#model(name)?.site ?? []);
    const called = models.sites.all().filter((site) => site.wasCalled && this.#mayBeAsked(site));
    return [...new Set([...sites, ...called])];
  }

  /** False for a former peer. */
  #mayBeAsked(site: LocalSite): boolean {
    const { peer } = site.report();
    return peer === undefined || this.#model(peerModelName({ peer, model: '-' }))?.site === site;
  }

  #model(name: string): LocalModel | undefined {
    return this.#parts.models.current().localModel(name);
  }

  async #watch(site: LocalSite, everyMs: number | undefined, signal: AbortSignal): Promise<void> {
    if (everyMs === undefined) return;
    const change = await site.look(everyMs, signal);
    if (change === undefined) return;
    const { vendor, peer, address } = site.report();
    this.#parts.log.warn('local model server', { change, address });
    this.#parts.owners.tell(
      changeText(change, t`${serverLabel(vendorOf(vendor).label, peer)} at ${address}`),
    );
    if (change === 'came_back') this.#warmed = '';
  }

  /** Once for each model that becomes the default. */
  #warmDefault(signal: AbortSignal): void {
    const model = this.#model(this.#parts.models.current().defaultModel);
    if (model === undefined || model.name === this.#warmed) return;
    this.#warmed = model.name;
    this.#warm(model, signal);
  }

  #warm(model: LocalModel | undefined, signal: AbortSignal): void {
    if (model === undefined || !this.#parts.live.config.localModels.warmUp) return;
    this.#meter()
      .then((meter) => model.site.warmUp(model.model, { meter }, signal))
      .catch((error) => this.#parts.log.warn('model not warmed up', { model: model.name, error }));
  }

  async #meter() {
    const { modelCalls, owners } = this.#parts;
    const chat = await owners.chat();
    const payer = {
      chat,
      sender: { kind: 'system', source: 'heartbeat' },
      isUnseen: true,
    } as const;
    const call = { role: 'warm_up', maxTokens: 1, inputTokens: () => 1 };
    return chargedMeter(modelCalls, payer, call);
  }

  async #look(): Promise<readonly FoundServer[]> {
    const { models } = this.#parts;
    const { signal } = this.#stop;
    const places = models.current().localServers();
    const found = await discoverLocalModels({ at: places, timeoutMs: LOOK_MS, signal });
    return Promise.all(
      found.map(async (server) => {
        const site = models.sites.at({ apiKey: '', ...places.find(isAt(server)), ...server });
        const names = [...server.models, ...server.handedOn].slice(0, MAX_LISTED);
        const elsewhere = new Set(
          server.handedOn.map((model) => `${prefixOf(server.vendor)}/${model}`),
        );
        const marked = (model: FoundModel): FoundModel =>
          elsewhere.has(model.name) ? { ...model, isHandedOn: true } : model;
        await Promise.all(names.map((model) => site.learn(model, signal)));
        const known = shown(site.report());
        const listed = names.map((model) => `${prefixOf(server.vendor)}/${model}`);
        const rest = listed.filter((name) => !known.models.some((one) => one.name === name));
        return {
          ...known,
          state: 'up' as const,
          models: [
            ...known.models.filter(({ name }) => listed.includes(name)),
            ...rest.map((name) => ({ name })),
          ].map(marked),
        };
      }),
    );
  }
}

const isAnswering = (server: LocalAddress) => async (signal: AbortSignal) => {
  const question = { path: '/models', below: 'apiBase', timeoutMs: LOOK_MS } as const;
  const answer = await askLocal(server, question, signal);
  return answer !== undefined && isOk(answer);
};

const isAt =
  ({ apiBase }: { readonly apiBase: string }) =>
  (other: { readonly apiBase: string }) =>
    other.apiBase === apiBase;

function shown({ models, ...rest }: SiteReport): FoundServer {
  const { vendor, peer } = rest;
  return {
    ...rest,
    label: serverLabel(vendorOf(vendor).label, peer),
    models: models.map(({ model, facts, warmth }) => ({
      name: localModelName(rest, model),
      ...(facts?.contextTokens === undefined ? {} : { contextTokens: facts.contextTokens }),
      ...(facts?.isHandedOn === undefined ? {} : { isHandedOn: facts.isHandedOn }),
      ...(facts?.isLoaded === undefined ? {} : { isLoaded: facts.isLoaded }),
      ...(warmth === undefined ? {} : { warmth }),
    })),
  };
}

function changeText(change: HealthChange, server: string): string {
  return change === 'went_down'
    ? t`${server} no longer answers, so its models cannot be used. /status shows when it is back; /local off switches a conversation to another model.`
    : t`${server} answers again.`;
}
