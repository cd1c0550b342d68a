// The cluster for a command beside the gateway or without one: what is written, and what the gateway saw. The gateway reads what was confirmed before it sends anything.

import type { StateStore } from '../../kernel/bus/store/store.ts';
import type { Config } from '../../kernel/config/config.ts';
import { CLUSTER_SCOPE, ClusterBook } from './cluster-book.ts';
import { type ClusterDesk, createClusterDesk, type SeenPeer } from './cluster-desk.ts';

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
