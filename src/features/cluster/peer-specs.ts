// Who may be asked as a peer: whom the configuration names, and what an owner confirmed. Also all of them
// for a command that asks once.

import type { Config } from '../../kernel/config/config.ts';
import type { Home } from '../../kernel/config/files/home.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { Peers } from '../../providers/local-site.ts';
import { type HostRow, hostName, openClusterRows } from './cluster-rows.ts';
import type { PeerSpec } from './peer-set.ts';

export function peerSpecs(
  { peers }: Config['cluster'],
  hosts: readonly HostRow[],
): readonly PeerSpec[] {
  const configured = Object.entries(peers).map(([name, peer]) => ({
    ...{ ...peer, name },
    apiBase: peer.apiBase.replace(/\/+$/, ''),
  }));
  const names = new Set(configured.map(({ name }) => name));
  const confirmed = hosts.filter(
    ({ state, address }) => state === 'confirmed' && !names.has(hostName(address)),
  );
  return [...configured, ...confirmed.map(hostSpec)];
}

export function hostSpec({ address, kind, mark }: HostRow): PeerSpec {
  const apiBase = `http://${address}/v1`;
  return { name: hostName(address), apiBase, apiKey: '', kind, plainHttp: false, mark };
}

/** As they are now; undefined where there are to be none. @throws StoreError */
export async function peersOnce(
  { cluster }: Config,
  home: Home,
  clock: Clock,
): Promise<Peers | undefined> {
  if (!cluster.enabled) return undefined;
  const { hasState, withOpenState } = await import('../../app/state.ts');
  const hosts = hasState(home)
    ? await withOpenState(home, clock, ({ rows }) => openClusterRows(rows).hosts.list())
    : [];
  const { PeerSet } = await import('./peer-set.ts');
  const peers = new PeerSet({
    ...{ prefer: () => cluster.prefer, remembered: new Map() },
    isConfirmed: async () => true,
    changed: async () => undefined,
  });
  await peers.replace(peerSpecs(cluster, hosts));
  await peers.looked();
  return peers;
}
