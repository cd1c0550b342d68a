// The cluster for a command beside the gateway or without one: what is written, and what the gateway saw. The gateway reads what was confirmed before it sends anything.

import type { Config } from '../../kernel/config/config.ts';
import type { OpenRows } from '../../kernel/rows.ts';
import { type ClusterDesk, createClusterDesk, type SeenPeer } from './cluster-desk.ts';
import { openClusterRows } from './cluster-rows.ts';

/** `seen`: by the gateway, where one runs. */
export function openCluster(
  rows: OpenRows,
  { cluster }: Config,
  seen: readonly SeenPeer[] = [],
): ClusterDesk {
  return createClusterDesk({
    hosts: openClusterRows(rows).hosts,
    peers: () =>
      Object.entries(cluster.peers).map(([name, { apiBase }]) => ({
        ...{ name, apiBase, models: [], isUp: undefined, isConfigured: true },
        ...seen.find((peer) => peer.name === name && peer.apiBase === apiBase),
      })),
    decided: async () => undefined,
  });
}
