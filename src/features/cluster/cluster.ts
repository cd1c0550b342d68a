// Builds the configured and confirmed peers, checks them and runs discovery where it is enabled.
// Loaded only where the cluster is enabled. Reads the configuration at each use.

import { createSocket } from 'node:dgram';
import { networkInterfaces } from 'node:os';
import type { LiveConfig } from '../../kernel/config/files/live-config.ts';
import type { Kernel } from '../../kernel/feature.ts';
import { isHomeAddress } from '../../lib/net/address-rules.ts';
import { t } from '../../lib/texts.ts';
import { addressOf } from '../../providers/local-site.ts';
import { LOCAL_VENDORS } from '../../providers/rules/model-names.ts';
import { vendorOf } from '../../providers/vendors.ts';
import {
  type ClusterRows,
  type ClusterService,
  createClusterService,
  hostName,
  hostSpec,
  peerLines,
  peerSpecs,
} from './cluster-service.ts';
import { type FoundHost, findHosts, PeerSet, type PeerSpec } from './peer-set.ts';
import { announcedPorts, serviceQuestion } from './rules/mdns.ts';
import { discoveryPlaces } from './settings.ts';

export type ClusterParts = Pick<Kernel, 'live' | 'clock' | 'log'> & {
  readonly rows: ClusterRows;
  tell(text: string): void;
};

/** @throws StoreError */
export async function buildCluster(parts: ClusterParts): Promise<Cluster> {
  const cluster = new Cluster(parts, await rememberedOf(parts));
  await cluster.taken();
  return cluster;
}

async function rememberedOf({ live, rows }: ClusterParts) {
  const had = await Promise.all(
    peerSpecs(live.config.cluster, []).map(async ({ name, apiBase }) => {
      const had = await rows.had.get(name);
      return [name, had?.apiBase === apiBase ? had.models : []] as const;
    }),
  );
  const hosts = (await rows.hosts.list()).map(
    ({ address, models }) => [hostName(address), models] as const,
  );
  return new Map([...hosts, ...had]);
}

/** Time to wait for answers to an mDNS query. */
const LISTEN_MS = 5000;

export class Cluster {
  readonly peers: PeerSet;
  readonly service: ClusterService;
  readonly status = () => peerLines(this.peers.states());
  readonly #parts: ClusterParts;
  readonly #had = new Map<string, string>();

  constructor(parts: ClusterParts, remembered: ReadonlyMap<string, readonly string[]>) {
    this.#parts = parts;
    this.peers = new PeerSet({
      ...{ prefer: () => this.#settings.prefer, remembered },
      isConfirmed: async ({ apiBase, mark }) => {
        const row = await parts.rows.hosts.get(new URL(apiBase).host);
        return row?.state === 'confirmed' && row.mark === mark;
      },
      changed: (spec, said) => this.#changed(spec, said),
    });
    this.service = createClusterService({
      hosts: parts.rows.hosts,
      peers: () => this.peers.states(),
      decided: () => this.taken(),
    });
  }

  get #settings(): LiveConfig['config']['cluster'] {
    return this.#parts.live.config.cluster;
  }

  /** Checks the peers and runs discovery, as currently configured, until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const searching = this.#settings.discovery.enabled ? [this.#search(signal)] : [];
    await Promise.all([this.#look(signal), ...searching]);
  }

  /**
   * Replaces the set of usable peers with what is configured and confirmed now.
   * @throws StoreError
   */
  async taken(): Promise<void> {
    await this.peers.replace(peerSpecs(this.#settings, await this.#parts.rows.hosts.list()));
  }

  async #look(signal: AbortSignal): Promise<void> {
    const { clock } = this.#parts;
    while (!signal.aborted) {
      await this.taken();
      await this.peers.look(signal);
      await this.#remember();
      await clock.sleep(this.#settings.everySecs * 1000, signal).catch(() => undefined);
    }
  }

  /** A model name without prefix keeps its peer, also after a restart. */
  async #remember(): Promise<void> {
    for (const { name, apiBase, models, isConfigured } of this.peers.states()) {
      const had = JSON.stringify(models);
      if (!isConfigured || models.length === 0 || this.#had.get(name) === had) continue;
      await this.#parts.rows.had.change(name, () => ({ apiBase, models }));
      this.#had.set(name, had);
    }
  }

  async #search(signal: AbortSignal): Promise<void> {
    const { addresses, ports, everySecs } = this.#settings.discovery;
    while (!signal.aborted) {
      const known = [...this.#ownServers(), ...this.#configured()];
      const announced = await this.#announced(signal);
      const all = new Set([...discoveryPlaces(addresses, ports), ...announced]);
      const places = [...all].filter((place) => !known.includes(place));
      const found = await findHosts(places, signal);
      for (const host of found) await this.#noteFound(host);
      await this.#parts.clock.sleep(everySecs * 1000, signal).catch(() => undefined);
    }
  }

  async #announced(signal: AbortSignal): Promise<readonly string[]> {
    const { mdns: services, ports } = this.#settings.discovery;
    if (services.length === 0) return [];
    const places: string[] = [];
    const heard = new AbortController();
    const found = (place: string) => void places.push(place);
    const deadline = this.#parts.clock.timer(LISTEN_MS, () => heard.abort());
    const either = AbortSignal.any([signal, heard.signal]);
    await searchByMdns({ services, ports, found }, either);
    deadline[Symbol.dispose]();
    return places;
  }

  #configured(): readonly string[] {
    return Object.values(this.#settings.peers).map(({ apiBase }) => new URL(apiBase).host);
  }

  /** Local servers need no confirmation, so discovery ignores them. */
  #ownServers(): readonly string[] {
    const { providers } = this.#parts.live.config;
    return LOCAL_VENDORS.map((vendor) =>
      addressOf(providers[vendor].apiBase || vendorOf(vendor).apiBase),
    );
  }

  async #noteFound({ address, kind, models, mark }: FoundHost): Promise<void> {
    const { clock, log, rows } = this.#parts;
    const row = await rows.hosts.get(address);
    if (row?.mark === mark) return;
    const said = { address, kind, models, mark, seenAt: clock.now() };
    if (row?.state === 'confirmed') return this.#changed(hostSpec(row), said);
    if (row === undefined) log.info('model server found', { address });
    await rows.hosts.change(address, (known) =>
      known?.state === 'confirmed' ? undefined : { ...said, state: known?.state ?? 'found' },
    );
  }

  async #changed({ apiBase, mark }: PeerSpec, said: Omit<FoundHost, 'address'>): Promise<void> {
    const address = new URL(apiBase).host;
    const { kind, models } = said;
    const seenAt = this.#parts.clock.now();
    // Reported once, and not if an owner confirmed the new identity in the meantime.
    const changed = await this.#parts.rows.hosts.change(address, (row) =>
      row?.state !== 'confirmed' || row.mark !== mark
        ? undefined
        : { address, kind, models, mark: said.mark, seenAt, state: 'changed' },
    );
    if (changed === undefined) return;
    await this.taken();
    this.#parts.log.warn('identity of a confirmed host changed', { address });
    this.#parts.tell(
      t`The model server at ${address} has changed since it was confirmed, so it is no longer used. /cluster list shows what it has now; /cluster confirm ${address} accepts it.`,
    );
  }
}

// Discovers model servers on the local networks by multicast DNS. Only a query is sent; a host that
// answers is merely a candidate to be probed.

type MdnsSearch = {
  readonly services: readonly string[];
  /** Ports for a host that announces none. */
  readonly ports: readonly number[];
  /** Destination of the query; default: the multicast address on all local networks. */
  readonly to?: { readonly address: string; readonly port: number };
  /** Called with `host:port`, once for each. */
  found(place: string): void;
};

const EVERYBODY = { address: '224.0.0.251', port: 5353 };
/** Maximum number of places, however many hosts answer. */
const MAX_PLACES = 64;

/**
 * Listens until the signal aborts. Never throws: a network that cannot be queried yields nothing.
 */
export async function searchByMdns(search: MdnsSearch, signal: AbortSignal): Promise<void> {
  const to = search.to ?? EVERYBODY;
  const from = search.to === undefined ? ownAddresses() : [search.to.address];
  await Promise.all(from.map((address) => askFrom(address, to, search, signal)));
}

/** The addresses of this machine in its local networks. */
function ownAddresses(): readonly string[] {
  const all = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
  return all
    .filter(({ family, internal, address }) => {
      return family === 'IPv4' && !internal && isHomeAddress(address);
    })
    .map(({ address }) => address);
}

async function askFrom(
  own: string,
  { address, port }: typeof EVERYBODY,
  { services, ports, found }: MdnsSearch,
  signal: AbortSignal,
): Promise<void> {
  if (signal.aborted) return;
  const over = Promise.withResolvers<void>();
  const end = () => over.resolve();
  const socket = createSocket('udp4');
  const told = new Set<string>();
  signal.addEventListener('abort', end, { once: true });
  socket.on('error', end);
  socket.on('message', (packet, { address: host }) => {
    if (!isHomeAddress(host)) return;
    const said = announcedPorts(packet, services);
    for (const each of said === undefined || said.length > 0 ? (said ?? []) : ports) {
      const place = `${host}:${each}`;
      if (told.has(place) || told.size >= MAX_PLACES) continue;
      told.add(place);
      found(place);
    }
  });
  socket.bind(0, own, () => {
    try {
      if (address === EVERYBODY.address) socket.setMulticastInterface(own);
      socket.send(serviceQuestion(services), port, address, (error) => {
        if (error !== null) end();
      });
    } catch {
      end();
    }
  });
  await over.promise;
  signal.removeEventListener('abort', end);
  socket.close();
}
