// The cluster for a command beside the gateway or without one: what is written, not what answers now.
// The gateway reads what was confirmed before it sends anything.

import type { Config } from '../core/config.ts';
import { CLUSTER_SCOPE, ClusterBook } from '../gateway/cluster-book.ts';
import { type ClusterDesk, createClusterDesk } from '../gateway/cluster-desk.ts';
import type { StateStore } from '../store/store.ts';

export function openCluster(store: StateStore, { cluster }: Config): ClusterDesk {
  return createClusterDesk({
    book: new ClusterBook(store.scope(CLUSTER_SCOPE)),
    peers: () =>
      Object.entries(cluster.peers).map(([name, { apiBase }]) => ({
        ...{ name, apiBase, models: [], isUp: undefined, isConfigured: true },
      })),
    decided: async () => undefined,
  });
}
