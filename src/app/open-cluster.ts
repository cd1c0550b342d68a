// The cluster for a command beside the gateway or without one: what is written, and what the gateway saw. The gateway reads what was confirmed before it sends anything.

import type { Config } from '../core/config.ts';
import { CLUSTER_SCOPE, ClusterBook } from '../gateway/cluster-book.ts';
import { type ClusterDesk, createClusterDesk, type SeenPeer } from '../gateway/cluster-desk.ts';
import type { StateStore } from '../store/store.ts';

/** `seen`: by the gateway, where one runs. */
export function openCluster(
  store: StateStore,
  { cluster }: Config,
  seen: readonly SeenPeer[] = [],
): ClusterDesk {
  return createClusterDesk({
    book: new ClusterBook(store.scope(CLUSTER_SCOPE)),
    peers: () =>
      Object.entries(cluster.peers).map(([name, { apiBase }]) => ({
        ...{ name, apiBase, models: [], isUp: undefined, isConfigured: true },
        ...seen.find((peer) => peer.name === name && peer.apiBase === apiBase),
      })),
    decided: async () => undefined,
  });
}
