// Builds the models: which one answers, and the care of those that run on one's own machines.

import { loadedImage } from '../app/build-media.ts';
import type { Collections } from '../app/collections.ts';
import { ClusterKeeper, clusterOf } from '../features/cluster/cluster-keeper.ts';
import {
  type BuiltLocalModels,
  buildLocalModels,
} from '../features/local-models/build-local-models.ts';
import { buildLocalOnly } from '../features/local-models/build-local-only.ts';
import type { EmbeddedStore } from '../kernel/bus/store/store.ts';
import type { Environment } from '../kernel/config/environment.ts';
import type { LiveConfig } from '../kernel/config/files/live-config.ts';
import type { Routes } from '../kernel/intake/routes.ts';
import type { MediaReader } from '../kernel/media/media.ts';
import type { ChatRef } from '../kernel/message/message.ts';
import type { Logger } from '../lib/logger.ts';
import type { Clock } from '../lib/time/clock.ts';
import { createModels, type Models, openModelForAll } from './models.ts';
import type { SpendingGuard } from './spending.ts';

export type ModelParts = {
  readonly live: LiveConfig;
  readonly env: Environment;
  readonly clock: Clock;
  readonly log: Logger;
  readonly store: Pick<EmbeddedStore, 'scope' | 'revision'>;
  readonly collections: Collections;
  readonly reader: MediaReader;
};

/** Built later than the models. */
export type ModelCare = () => {
  readonly spending: SpendingGuard;
  ownerChat(): Promise<ChatRef>;
  tell(text: string): void;
  readonly routes: Pick<Routes, 'sessionOf'>;
};

/** Where the model that the owner chose for all is kept. */
export const LOCAL_MODELS_SCOPE = 'local-models';

/** @throws StoreError */
export async function buildModels(
  { store, collections, reader, ...rest }: ModelParts,
  care: ModelCare,
): Promise<{ readonly models: Models; readonly local: BuiltLocalModels }> {
  const { live, env, clock, log } = rest;
  const forAll = await openModelForAll(store.scope(LOCAL_MODELS_SCOPE), live);
  const loadImage = (id: Parameters<typeof loadedImage>[1]) => loadedImage(reader, id);
  const clustering = { live, clock, log, store, tell: (text: string) => care().tell(text) };
  const cluster = new ClusterKeeper(clustering, await clusterOf(clustering));
  const models = await createModels({ live, env, clock, log, forAll, loadImage, cluster });
  const only = buildLocalOnly({ live, store, collections, models, routes: () => care().routes });
  const local = buildLocalModels({ live, clock, log, models, forAll, care, only });
  return { models, local: withCluster(local, cluster) };
}

function withCluster(local: BuiltLocalModels, cluster: ClusterKeeper): BuiltLocalModels {
  return {
    only: local.only,
    desk: {
      ...local.desk,
      get cluster() {
        return cluster.current?.desk;
      },
    },
    async status(session) {
      return [...(await local.status(session)), ...(cluster.current?.status() ?? [])];
    },
    background: [...local.background, { name: 'cluster', run: (signal) => cluster.run(signal) }],
  };
}
