// The model registry in force: built again when the configuration changed, or the owner chose another
// model for all. Local model servers are looked for only where neither the configuration nor the
// environment names a model.

import type { Environment } from '../core/environment.ts';
import type { MediaId } from '../core/ids.ts';
import { isDemo } from '../core/model-names.ts';
import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../lib/logger.ts';
import {
  createLocalSites,
  createModelRegistry,
  discoverLocalModels,
  type LoadedImage,
  type LocalSites,
  type Peers,
  type VendorRegistry,
} from '../providers/index.ts';
import type { LiveConfig } from './live-config.ts';
import type { ModelForAll } from './model-for-all.ts';

const DISCOVERY_DEADLINE_MS = 500;

export interface Models {
  current(): VendorRegistry;
  rebuild(): Promise<void>;
  /** Calls `hear` after every rebuild. */
  onRebuilt(hear: () => void): void;
  readonly sites: LocalSites;
}

export type ModelsDeps = {
  readonly live: LiveConfig;
  readonly env: Environment;
  readonly clock: Clock;
  readonly log: Logger;
  readonly forAll: ModelForAll;
  readonly loadImage: (id: MediaId) => Promise<LoadedImage>;
  /** Other machines; left out: there are none. */
  readonly cluster?: {
    readonly peers: Peers | undefined;
    /** Takes up what is configured now. */
    configured(): Promise<void>;
  };
};

export async function createModels(deps: ModelsDeps): Promise<Models> {
  const { live, forAll, cluster, ...rest } = deps;
  const places = (vendor: keyof typeof live.config.localModels.places) =>
    live.config.localModels.places[vendor];
  const sites = createLocalSites({ clock: deps.clock, places });
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
    if (!isDemo(registry.defaultModel)) return registry;
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
