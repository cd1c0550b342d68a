// Lists the machines of the cluster and applies an owner's decisions about them, for the chat
// command, the command line and /status.

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
import { t } from '../../lib/texts.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { Peers } from '../../providers/local-site.ts';
import type { LocalVendor } from '../../providers/rules/model-names.ts';
import type { PeerSpec, PeerState } from './peer-set.ts';

export type ClusterService = ReturnType<typeof createClusterService>;

type ClusterServiceDeps = {
  readonly hosts: ClusterRows['hosts'];
  peers(): readonly PeerState[];
  /** Applies the change at once. */
  decided(): Promise<void>;
};

const MAX_MODELS = 8;
const HOW = t`confirm the address first; nothing of a conversation goes there before`;

export const unknownHost = (address: string) =>
  t`No host at "${address}" was found. The list shows all of them as host:port.`;

export function createClusterService({ hosts, peers, decided }: ClusterServiceDeps) {
  return {
    /** As of the last health check. */
    seen: peers,
    async list(): Promise<string> {
      const found = await hosts.list();
      const lines = [
        ...peers()
          .filter(({ isConfigured }) => isConfigured)
          .map(peerLine),
        ...found.map(hostLine),
      ];
      return lines.length === 0
        ? t`There are no peers, and no hosts were found.`
        : lines.join('\n');
    },
    /** Undefined: no such host was found. */
    async confirm(address: string): Promise<string | undefined> {
      const row = await hosts.change(address, (host) => host && { ...host, state: 'confirmed' });
      if (row === undefined) return undefined;
      await decided();
      return t`Confirmed: ${row.address}, as it is now (${modelWords(row.models)}). Its models are called peer:${hostName(row.address)}/<model>. If it changes, it must be confirmed again.`;
    },
    /** Undefined: no such host was found. */
    async forget(address: string): Promise<string | undefined> {
      const row = await hosts.change(address, () => 'remove');
      if (row === undefined) return undefined;
      await decided();
      return t`Forgotten: ${row.address}. It is no longer used; if it is found again it is only listed.`;
    },
  };
}

/** For /status. */
export function peerLines(peers: readonly PeerState[]): readonly string[] {
  return peers.map(peerLine).map((line) => line.replace(/^- /, ''));
}

const STATES = {
  found: t`found, not confirmed (${HOW})`,
  confirmed: 'confirmed',
  changed: t`no longer confirmed: it has changed (${HOW})`,
} as const;

function peerLine({ name, apiBase, isUp, models }: PeerState): string {
  const state = isUp === undefined ? t`not checked yet` : isUp ? 'answers' : t`does not answer`;
  return t`- Peer ${name} at ${apiBase}: ${state}; ${modelWords(models)}`;
}

const hostLine = ({ address, state, models }: HostRow) =>
  t`- Host ${address}: ${STATES[state]}; ${modelWords(models)}`;

function modelWords(models: readonly string[]): string {
  if (models.length === 0) return t`no models known`;
  const more = models.length - MAX_MODELS;
  const shown = models.slice(0, MAX_MODELS).map((model) => model.replace(/[^\w./:@+-]/g, '?'));
  return `${shown.join(', ')}${more > 0 ? t` and ${more} more` : ''}`;
}

// The peers that may be used: the configured ones and those that an owner confirmed.

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

/**
 * The current peers, for a command that asks once; undefined where there are none.
 * @throws StoreError
 */
export async function peersOnce(
  { cluster }: Config,
  home: Home,
  clock: Clock,
): Promise<Peers | undefined> {
  if (!cluster.enabled) return undefined;
  const { hasState, withOpenState } = await import('../../kernel/home-state.ts');
  const hosts = (await hasState(home))
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

// The cluster service for a command that runs beside the gateway or without one: it reads the
// stored rows and the states that the gateway reports. The gateway reads confirmations again before
// it sends anything.

/** `seen`: the states that a running gateway reports. */
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

// The command `/cluster`: lists peers and discovered hosts, confirms or forgets a host.

const OFF = t`Peers are switched off (cluster.enabled).`;
const HINT = t`Usage: /cluster list, /cluster confirm <host:port> or /cluster forget <host:port>.`;

export const CLUSTER_COMMANDS = {
  cluster: {
    summary: t`list or confirm other machines that run models`,
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
  if (word !== 'confirm' && word !== 'forget') return HINT;
  return (await service[word](address)) ?? unknownHost(address);
}

// Stored rows: discovered hosts with the owner's decisions, and the models of each peer at its last
// check. The command line may write them while the gateway runs.

const SCOPE = 'cluster';

/** `changed`: the host identifies itself differently than when it was confirmed. */
type HostState = 'found' | 'confirmed' | 'changed';

type HostRow = {
  /** `host:port`; the key of the row. */
  readonly address: string;
  readonly state: HostState;
  readonly kind: LocalVendor;
  readonly models: readonly string[];
  /**
   * Identity of the server (see `ServerSaid.mark`): when it was confirmed, or else at the last
   * check.
   */
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
  /** By address. */
  readonly hosts: Rows<HostRow>;
  /** The models of each peer at its last check, by peer name. */
  readonly had: Rows<Had>;
};

export const openClusterRows = (rows: OpenRows): ClusterRows => ({
  hosts: rows({ ...jsonRows(HOST), scope: SCOPE, prefix: 'host:' }),
  had: rows({ ...jsonRows(HAD), scope: SCOPE, prefix: 'had:' }),
});

/** The peer name of a confirmed host: its address with `:` replaced. */
export const hostName = (address: string) => address.replaceAll(':', '-');
