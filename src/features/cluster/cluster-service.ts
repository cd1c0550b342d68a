// What people see of the cluster and an owner decides about it, in words.

import {
  type Command,
  type CommandTable,
  commandsOf,
  OWNER_ONLY,
} from '../../kernel/commands/command-access.ts';
import type { Config } from '../../kernel/config/config.ts';
import type { Home } from '../../kernel/config/files/home.ts';
import { jsonRows, type OpenRows, type Rows } from '../../kernel/rows.ts';
import { number, rowShape, text, texts } from '../../lib/json/json.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { Peers } from '../../providers/local-site.ts';
import type { LocalVendor } from '../../providers/rules/model-names.ts';
import type { PeerSpec, PeerState } from './peer-set.ts';

export interface ClusterService {
  /** As they were when they were last looked at. */
  seen(): readonly PeerState[];
  list(): Promise<string>;
  confirm(address: string): Promise<string>;
  forget(address: string): Promise<string>;
}

type ClusterServiceDeps = {
  readonly hosts: ClusterRows['hosts'];
  peers(): readonly PeerState[];
  /** What was decided counts from now on. */
  decided(): Promise<void>;
};

const MAX_MODELS = 8;
const HOW = 'confirm the address first; nothing of a conversation goes there before';

export function createClusterService({
  hosts,
  peers,
  decided,
}: ClusterServiceDeps): ClusterService {
  const unknown = (address: string) =>
    `No host at "${address}" was found. The list shows all of them as host:port.`;
  return {
    seen: peers,
    async list() {
      const found = await hosts.list();
      const lines = [
        ...peers()
          .filter(({ isConfigured }) => isConfigured)
          .map(peerLine),
        ...found.map(hostLine),
      ];
      return lines.length === 0 ? 'There are no peers, and no hosts were found.' : lines.join('\n');
    },
    async confirm(address) {
      const row = await hosts.change(address, (host) => host && { ...host, state: 'confirmed' });
      if (row === undefined) return unknown(address);
      await decided();
      return `Confirmed: ${row.address}, as it is now (${modelWords(row.models)}). Its models are called peer:${hostName(row.address)}/<model>. If it changes, it must be confirmed again.`;
    },
    async forget(address) {
      const row = await hosts.change(address, () => 'remove');
      if (row === undefined) return unknown(address);
      await decided();
      return `Forgotten: ${row.address}. It is no longer used; if it is found again it is only listed.`;
    },
  };
}

/** For /status. */
export function peerLines(peers: readonly PeerState[]): readonly string[] {
  return peers.map(peerLine).map((line) => line.replace(/^- /, ''));
}

const STATES = {
  found: `found, not confirmed (${HOW})`,
  confirmed: 'confirmed',
  changed: `no longer confirmed: it has changed (${HOW})`,
} as const;

function peerLine({ name, apiBase, isUp, models }: PeerState): string {
  const state = isUp === undefined ? 'not checked yet' : isUp ? 'answers' : 'does not answer';
  return `- Peer ${name} at ${apiBase}: ${state}; ${modelWords(models)}`;
}

const hostLine = ({ address, state, models }: HostRow) =>
  `- Host ${address}: ${STATES[state]}; ${modelWords(models)}`;

function modelWords(models: readonly string[]): string {
  if (models.length === 0) return 'no models known';
  const more = models.length - MAX_MODELS;
  const shown = models.slice(0, MAX_MODELS).map((model) => model.replace(/[^\w./:@+-]/g, '?'));
  return `${shown.join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}

// Who may be asked as a peer: whom the configuration names, and what an owner confirmed. Also all of them
// for a command that asks once.

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
  const { hasState, withOpenState } = await import('../../kernel/home-state.ts');
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

// The cluster for a command beside the gateway or without one: what is written, and what the gateway saw. The
// gateway reads what was confirmed before it sends anything.

/** `seen`: by the gateway, where one runs. */
export function openCluster(
  rows: OpenRows,
  { cluster }: Config,
  seen: readonly PeerState[] = [],
): ClusterService {
  return createClusterService({
    hosts: openClusterRows(rows).hosts,
    peers: () =>
      Object.entries(cluster.peers).map(([name, { apiBase }]) => ({
        ...{ name, apiBase, models: [], isUp: undefined, isConfigured: true },
        ...seen.find((peer) => peer.name === name && peer.apiBase === apiBase),
      })),
    decided: async () => undefined,
  });
}

// `/cluster`: the machines that run models for us, and those that were found and wait for an owner.

const OFF = 'Peers are switched off (cluster.enabled).';
const HINT = 'Usage: /cluster list, /cluster confirm <host:port> or /cluster forget <host:port>.';

export const CLUSTER_COMMANDS = {
  cluster: {
    summary: 'list or confirm other machines that run models',
    usage: '/cluster [list | confirm <host:port> | forget <host:port>]',
    access: OWNER_ONLY,
    timing: 'immediate',
    isRepeatable: true,
  },
} satisfies CommandTable;

/** `current`: undefined while peers are switched off. */
export function clusterCommands(current: () => ClusterService | undefined): readonly Command[] {
  return commandsOf(CLUSTER_COMMANDS, {
    cluster: (_origin, argument) => cluster(argument, current()),
  });
}

async function cluster(argument: string, service: ClusterService | undefined): Promise<string> {
  if (service === undefined) return OFF;
  const [word = 'list', address = ''] = argument.split(/\s+/).filter((part) => part !== '');
  if (word === 'list') return service.list();
  if (address === '') return HINT;
  if (word === 'confirm') return service.confirm(address);
  return word === 'forget' ? service.forget(address) : HINT;
}

// The hosts that were found, and which of them an owner confirmed, on disk; and what each peer had when
// it was last asked. Others may write beside it (the command line).

const SCOPE = 'cluster';

/** Found; confirmed as it said it was; said something else since then. */
type HostState = 'found' | 'confirmed' | 'changed';

type HostRow = {
  /** `host:port`, its name on disk. */
  readonly address: string;
  readonly state: HostState;
  readonly kind: LocalVendor;
  readonly models: readonly string[];
  /** Of what it said: when it was confirmed, or else last. */
  readonly mark: string;
  /** Epoch milliseconds. */
  readonly seenAt: number;
};

type Had = { readonly apiBase: string; readonly models: readonly string[] };

const HOST = rowShape<HostRow>({
  ...{ address: text, models: texts, state: text, kind: text, mark: text, seenAt: number },
});
const HAD = rowShape<Had>({ apiBase: text, models: texts });

export type ClusterRows = {
  /** By their address. */
  readonly hosts: Rows<HostRow>;
  /** What each peer had when it was last asked, by its name. */
  readonly had: Rows<Had>;
};

export const openClusterRows = (rows: OpenRows): ClusterRows => ({
  hosts: rows({ ...jsonRows(HOST), scope: SCOPE, prefix: 'host:' }),
  had: rows({ ...jsonRows(HAD), scope: SCOPE, prefix: 'had:' }),
});

/** The name of a host that was confirmed: its address, as a name may be written. */
export const hostName = (address: string) => address.replaceAll(':', '-');
