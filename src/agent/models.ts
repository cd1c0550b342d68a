// The current model registry: rebuilt when the configuration changes or the owner chooses another
// default model. Local model servers are detected only where neither configuration nor environment
// names a model.

import { openClusterRows } from '../features/cluster/cluster-service.ts';
import { ClusterKeeper, clusterOf } from '../features/cluster/index.ts';
import type { KeyValueStore } from '../kernel/bus/store/store.ts';
import type { LiveConfig } from '../kernel/config/files/live-config.ts';
import { type Kernel, port } from '../kernel/feature.ts';
import { loadedImage } from '../kernel/media/files.ts';
import type { MediaId } from '../kernel/message/ids.ts';
import type { Answered, QuestionHandler } from '../kernel/questions/question-rows.ts';
import { readOnce } from '../lib/async.ts';
import { jsonRow, rowShape, text } from '../lib/json/json.ts';
import { t } from '../lib/texts.ts';
import { discoverLocalModels } from '../providers/local-servers.ts';
import { createLocalSites, type LocalSites, type Peers } from '../providers/local-site.ts';
import type { ModelRegistry } from '../providers/provider.ts';
import { createModelRegistry, type VendorRegistry } from '../providers/registry.ts';
import { isDemo } from '../providers/rules/model-names.ts';
import type { LoadedImage } from '../providers/seen-images.ts';

const DISCOVERY_DEADLINE_MS = 500;

export interface Models {
  current(): VendorRegistry;
  rebuild(): Promise<void>;
  /** Calls `hear` after every rebuild. */
  onRebuilt(hear: () => void): void;
  readonly sites: LocalSites;
}

export type ModelsDeps = Pick<Kernel, 'live' | 'env' | 'clock' | 'log'> & {
  readonly forAll: ModelForAll;
  readonly loadImage: (id: MediaId) => Promise<LoadedImage>;
  /** Other machines; left out: none. */
  readonly cluster?: {
    readonly peers: Peers | undefined;
    /** Applies the current configuration. */
    configured(): Promise<void>;
  };
};

export async function createModels(deps: ModelsDeps): Promise<Models> {
  const { live, forAll, cluster, ...rest } = deps;
  const places = (vendor: keyof typeof live.config.localModels.places) =>
    live.config.localModels.places[vendor];
  const sites = createLocalSites({
    ...{ clock: deps.clock, places },
    memoryGb: () => live.config.localModels.memoryGb,
  });
  const options = () => ({
    ...rest,
    ...(cluster?.peers === undefined ? {} : { peers: cluster.peers }),
    sites,
    preferred: forAll.current(),
    config: live.config,
    random: Math.random,
  });

  async function build(): Promise<VendorRegistry> {
    const registry = createModelRegistry(options());
    if (live.defaults.model !== '' || !isDemo(registry.defaultModel)) return registry;
    const signal = AbortSignal.timeout(DISCOVERY_DEADLINE_MS);
    const discovered = await discoverLocalModels({ signal });
    return discovered.length === 0 ? registry : createModelRegistry({ ...options(), discovered });
  }

  let registry = await build();
  let rebuilt = () => {};
  return {
    sites,
    current: () => registry,
    async rebuild() {
      await cluster?.configured();
      registry = await build();
      rebuilt();
    },
    onRebuilt(hear) {
      rebuilt = hear;
    },
  };
}

// The default model that the owner set with /local default. It applies until the configured model
// changes.

const KEY = 'default';

export interface ModelForAll {
  /** Empty: the configured one. */
  current(): string;
  set(model: string | undefined): Promise<void>;
}

type Row = { readonly model: string; readonly configured: string };

const ROW = rowShape<Row>({ model: text, configured: text });

export async function openModelForAll(
  state: KeyValueStore,
  live: LiveConfig,
): Promise<ModelForAll> {
  let row = jsonRow(await state.get(KEY), ROW);
  return {
    current: () => (row?.configured === live.defaults.model ? row.model : ''),
    async set(model) {
      const next = model === undefined ? undefined : { model, configured: live.defaults.model };
      if (next === undefined) await state.delete(KEY);
      else await state.set(KEY, JSON.stringify(next));
      row = next;
    },
  };
}

/** The current model registry; read at each turn, because the configuration may change it. */
export const MODELS = port<{ current(): ModelRegistry }>('models');
export const MODEL_SERVERS = port<Models>('model servers');
export const MODEL_FOR_ALL = port<ModelForAll>('model for all');
export const CLUSTER = port<ClusterKeeper>('cluster');

/** Scope of the stored default model. */
export const LOCAL_MODELS_SCOPE = 'local-models';

/** @throws StoreError */
export async function install(kernel: Kernel): Promise<void> {
  const { live, env, clock, log, store, reader, owners, settings, add } = kernel;
  const forAll = await openModelForAll(store.scope(LOCAL_MODELS_SCOPE), live);
  const loadImage: ModelsDeps['loadImage'] = (id) => loadedImage(reader, id);
  const clustering = { live, clock, log, rows: openClusterRows(kernel.rows), tell: owners.tell };
  const cluster = new ClusterKeeper(clustering, await clusterOf(clustering));
  const models = await createModels({ live, env, clock, log, forAll, loadImage, cluster });
  kernel.provide(MODEL_FOR_ALL, forAll);
  kernel.provide(CLUSTER, cluster);
  kernel.provide(MODELS, models);
  kernel.provide(MODEL_SERVERS, models);
  add.reconfigured(() => models.rebuild());
  const fallback = readOnce(async () =>
    (await import('../features/fallback/index.ts')).createFallback(kernel),
  );
  add.modelGuard({
    name: 'fallback',
    reserve: async (call, signal, next) =>
      live.defaults.fallback === 'ask'
        ? (await fallback()).reserve(call, signal, next)
        : next(call, signal),
  });
  const answers: QuestionHandler = {
    answer: async (...asked) => (await fallback()).handler.answer(...asked),
    expired: async (asked): Promise<Answered | undefined> =>
      (await (await fallback()).handler.expired?.(asked)) ?? undefined,
  };
  add.answers('fallback', answers, 'approval');
  add.status({
    async lines(origin) {
      const chosen = origin === undefined ? {} : await settings.get(origin.session);
      const { model = models.current().defaultModel } = chosen;
      const { thinkingBudget = live.defaults.thinkingBudget } = chosen;
      return [
        t`Model: ${model}`,
        t`Thinking: ${thinkingBudget === 0 ? t`off` : t`${thinkingBudget} tokens`}`,
      ];
    },
    fields: () => ({ model: models.current().defaultModel }),
  });
}
