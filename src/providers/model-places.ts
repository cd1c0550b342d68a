// Where a model is, by its name: at the vendor of its prefix, on a peer, on a local server that lists it,
// or at the vendor whose models are called so. A bare name never goes to another house because a peer
// that had it is away.

import type { Config, ProviderName } from '../kernel/config/config.ts';
import { isHomeUrl } from '../lib/net/address-rules.ts';
import type { Connection, Connections } from './connections.ts';
import type { Credentials } from './credentials.ts';
import { isHandedOn, type LocalServer } from './local-servers.ts';
import type { LocalServerAddress, LocalSite, LocalSites, Peer, Peers } from './local-site.ts';
import {
  fastModelOf,
  isLocalVendor,
  LOCAL_VENDORS,
  localModelName,
  namesPeer,
  prefixOf,
  type QualifiedModel,
  serverLabel,
  splitModelName,
  splitPeerName,
  vendorsOfBareName,
} from './rules/model-names.ts';
import { vendorOf } from './vendors.ts';

type ModelPlacesDeps = {
  readonly config: Config;
  readonly credentials: Credentials;
  readonly connections: Connections;
  readonly discovered: readonly LocalServer[];
  readonly sites: LocalSites;
  readonly peers: Peers;
};

type ModelPlace = {
  /** With its prefix. */
  readonly name: string;
  /** As the server knows it. */
  readonly model: string;
  readonly vendor: ProviderName;
  /** Of the server, as people know it. */
  readonly label: string;
  /** Undefined where nothing would let us in. */
  readonly connection: Connection | undefined;
  /** Undefined at a vendor's service. */
  readonly site: LocalSite | undefined;
  /** On one's own machines, or on a peer. */
  readonly isHome: boolean;
};

export class ModelPlaces {
  readonly #deps: ModelPlacesDeps;

  constructor(deps: ModelPlacesDeps) {
    this.#deps = deps;
  }

  /** Undefined where nobody is known to have it. */
  find(name: string): ModelPlace | undefined {
    const { peers } = this.#deps;
    if (namesPeer(name)) {
      const named = splitPeerName(name);
      const peer = named && peers.named(named.peer);
      return named && peer && this.#onPeer(peer, named.model);
    }
    const prefixed = splitModelName(name);
    if (prefixed !== undefined) return this.#preferred(prefixed) ?? this.#at(prefixed);
    return this.#bare(name);
  }

  /** A cheaper one beside it; the same where there is none. */
  fast(name: string): string {
    const place = this.find(name);
    if (place === undefined || place.site !== undefined) return name;
    return fastModelOf(place.vendor) ?? name;
  }

  localServers(): readonly LocalServerAddress[] {
    return LOCAL_VENDORS.flatMap((vendor) => {
      const access = this.#deps.credentials.accessTo(vendor);
      return access === undefined ? [] : [{ vendor, ...access }];
    });
  }

  /** Said to be on a server of one's own, and a peer that is there has the very same. */
  #preferred({ vendor, model }: QualifiedModel): ModelPlace | undefined {
    const { peers } = this.#deps;
    if (peers.prefer !== 'peer' || !isLocalVendor(vendor)) return undefined;
    const peer = peers.having(model, 'up');
    return peer && this.#onPeer(peer, model);
  }

  #bare(name: string): ModelPlace | undefined {
    const { peers, discovered, config, credentials } = this.#deps;
    const server = discovered.find(({ models, handedOn }) =>
      [...models, ...handedOn].includes(name),
    );
    const peer = peers.having(name, 'up') ?? peers.having(name, 'known');
    const isLocal = server !== undefined && (peers.prefer === 'local' || peer === undefined);
    if (isLocal) return this.#at({ vendor: server.vendor, model: name });
    if (peer !== undefined) return this.#onPeer(peer, name);
    const vendor =
      vendorsOfBareName(name).find((cloud) => credentials.accessTo(cloud) !== undefined) ??
      LOCAL_VENDORS.find((local) => config.providers[local].apiBase !== '');
    return vendor === undefined ? undefined : this.#at({ vendor, model: name });
  }

  #at({ vendor, model }: QualifiedModel): ModelPlace {
    const { connections, credentials, sites } = this.#deps;
    const access = isLocalVendor(vendor) ? credentials.accessTo(vendor) : undefined;
    const isLocal = isLocalVendor(vendor) && access !== undefined;
    const site = isLocal ? sites.at({ vendor, ...access }) : undefined;
    return {
      name: `${prefixOf(vendor)}/${model}`,
      ...{ model, vendor, label: vendorOf(vendor).label },
      connection: connections.to(vendor),
      site,
      isHome: isLocal && isHomeUrl(access.apiBase) && !isHandedOn(model, site?.facts(model)),
    };
  }

  #onPeer(peer: Peer, model: string): ModelPlace {
    const { connections, sites } = this.#deps;
    const site = sites.at(peer);
    return {
      name: localModelName(peer, model),
      ...{ model, vendor: peer.vendor, label: serverLabel('', peer.peer) },
      connection: connections.toPeer(peer),
      site,
      isHome: !isHandedOn(model, site.facts(model)),
    };
  }
}
