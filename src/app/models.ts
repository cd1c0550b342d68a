// The model registry in force: built again when the configuration changed. Local model servers are
// looked for only where neither the configuration nor the environment names a model.

import type { Environment } from '../core/environment.ts';
import type { MediaId } from '../core/ids.ts';
import { isDemo } from '../core/model-names.ts';
import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../lib/logger.ts';
import { createModelRegistry, discoverLocalModels, type LoadedImage } from '../providers/index.ts';
import type { ModelRegistry } from '../providers/provider.ts';
import type { LiveConfig } from './live-config.ts';

const DISCOVERY_DEADLINE_MS = 500;

export interface Models {
  current(): ModelRegistry;
  rebuild(): Promise<void>;
}

export type ModelsDeps = {
  readonly live: LiveConfig;
  readonly env: Environment;
  readonly clock: Clock;
  readonly log: Logger;
  readonly loadImage: (id: MediaId) => Promise<LoadedImage>;
};

export async function createModels(deps: ModelsDeps): Promise<Models> {
  const { live, ...rest } = deps;
  const options = () => ({ ...rest, config: live.config, random: Math.random });

  async function build(): Promise<ModelRegistry> {
    const registry = createModelRegistry(options());
    if (!isDemo(registry.defaultModel)) return registry;
    const signal = AbortSignal.timeout(DISCOVERY_DEADLINE_MS);
    const discovered = await discoverLocalModels({ signal });
    return discovered.length === 0 ? registry : createModelRegistry({ ...options(), discovered });
  }

  let registry = await build();
  return {
    current: () => registry,
    async rebuild() {
      registry = await build();
    },
  };
}
