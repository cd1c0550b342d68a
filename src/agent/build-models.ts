// Builds the models: which one answers, and the peers that run some of them.

import { loadedImage } from '../app/build-media.ts';
import { ClusterKeeper, clusterOf } from '../features/cluster/cluster-keeper.ts';
import { openClusterRows } from '../features/cluster/cluster-rows.ts';
import type { EmbeddedStore } from '../kernel/bus/store/store.ts';
import type { Environment } from '../kernel/config/environment.ts';
import type { LiveConfig } from '../kernel/config/files/live-config.ts';
import type { MediaReader } from '../kernel/media/media.ts';
import type { TellOwner } from '../kernel/owners.ts';
import type { OpenRows } from '../kernel/rows.ts';
import type { Logger } from '../lib/logger.ts';
import type { Clock } from '../lib/time/clock.ts';
import { createModels, type ModelForAll, type Models, openModelForAll } from './models.ts';

export type ModelParts = {
  readonly live: LiveConfig;
  readonly env: Environment;
  readonly clock: Clock;
  readonly log: Logger;
  readonly store: Pick<EmbeddedStore, 'scope' | 'revision'>;
  readonly rows: OpenRows;
  readonly reader: MediaReader;
  readonly owners: { readonly tell: TellOwner };
};

export type BuiltModels = {
  readonly models: Models;
  readonly forAll: ModelForAll;
  readonly cluster: ClusterKeeper;
};

/** Where the model that the owner chose for all is kept. */
export const LOCAL_MODELS_SCOPE = 'local-models';

/** @throws StoreError */
export async function buildModels({
  store,
  rows,
  reader,
  ...rest
}: ModelParts): Promise<BuiltModels> {
  const { live, env, clock, log, owners } = rest;
  const forAll = await openModelForAll(store.scope(LOCAL_MODELS_SCOPE), live);
  const loadImage = (id: Parameters<typeof loadedImage>[1]) => loadedImage(reader, id);
  const clustering = { live, clock, log, rows: openClusterRows(rows), tell: owners.tell };
  const cluster = new ClusterKeeper(clustering, await clusterOf(clustering));
  const models = await createModels({ live, env, clock, log, forAll, loadImage, cluster });
  return { models, forAll, cluster };
}
