// The set of usable peers, with the models of each and whether it answered the last check. A peer
// that an owner confirmed must keep its identity: it is checked again before each request, and is
// refused where the identity differs.

import { z } from 'zod';
import { mapLimited } from '../../lib/async.ts';
import { isAddress, isHomeAddress } from '../../lib/net/address-rules.ts';
import {
  type HostResolver,
  SafeFetchError,
  systemResolver,
} from '../../lib/net/checked-address.ts';
import { createGuardedFetch } from '../../lib/net/guarded-fetch.ts';
import { t } from '../../lib/texts.ts';
import {
  askLocal,
  canChat,
  isOk,
  type LocalAddress,
  type LocalFetch,
} from '../../providers/local-servers.ts';
import type { Peer, Peers } from '../../providers/local-site.ts';
import type { LocalVendor } from '../../providers/rules/model-names.ts';

export type PeerSpec = {
  readonly name: string;
  readonly apiBase: string;
  readonly apiKey: string;
  readonly kind: LocalVendor;
  readonly plainHttp: boolean;
  /** Identity when it was confirmed; left out where the peer is configured. */
  readonly mark?: string;
};

type PeerSetDeps = {
  prefer(): Peers['prefer'];
  /** Models of each peer at its last check, by name; survives restarts. */
  readonly remembered: ReadonlyMap<string, readonly string[]>;
  /** Whether the stored confirmation still covers this peer; the command line may change it. */
  isConfirmed(spec: PeerSpec): Promise<boolean>;
  /** Called when the identity differs from the confirmed one. */
  changed(spec: PeerSpec, said: ServerSaid): Promise<void>;
  readonly resolver?: HostResolver;
};

export type PeerState = ReturnType<PeerSet['states']>[number];

type Member = {
  readonly spec: PeerSpec;
  readonly peer: Peer;
  readonly connection: PeerFetch;
  isUp: boolean | undefined;
  models: readonly string[];
};

const FIRST_LOOK_MS = 2500;
const SENDING_MS = 3000;

/** The peer is not the one that was confirmed; nothing was sent. */
class PeerUnconfirmedError extends Error {
  override readonly name = 'PeerUnconfirmedError';
  constructor(peer: string) {
    super(t`the peer ${peer} is not the one that was confirmed`);
  }
}

export class PeerSet implements Peers {
  readonly #deps: PeerSetDeps;
  readonly #members = new Map<string, Member>();
  #firstLook: Promise<void> | undefined;
  #isLooked = false;

  constructor(deps: PeerSetDeps) {
    this.#deps = deps;
  }

  get prefer(): Peers['prefer'] {
    return this.#deps.prefer();
  }

  named(name: string): Peer | undefined {
    return this.#members.get(name)?.peer;
  }

  having(model: string, state: 'up' | 'known'): Peer | undefined {
    const members = [...this.#members.values()].filter(
      ({ isUp }) => state === 'known' || isUp === true,
    );
    return members.find(({ models }) => models.includes(model))?.peer;
  }

  looked(): Promise<void> | undefined {
    if (this.#isLooked) return undefined;
    this.#firstLook ??= this.look(AbortSignal.timeout(FIRST_LOOK_MS));
    return this.#firstLook;
  }

  /** `isUp`: undefined before the first check. */
  states() {
    return [...this.#members.values()].map(({ spec, isUp, models }) => ({
      ...{ name: spec.name, apiBase: spec.apiBase, isUp, models },
      isConfigured: spec.mark === undefined,
    }));
  }

  /** Peers that are missing in `specs` are not used from now on. */
  async replace(specs: readonly PeerSpec[]): Promise<void> {
    const gone = [...this.#members.values()].filter(
      ({ spec }) => !specs.some((one) => isSame(one, spec)),
    );
    for (const { spec } of gone) this.#members.delete(spec.name);
    for (const spec of specs) {
      if (this.#members.has(spec.name)) continue;
      this.#members.set(spec.name, this.#open(spec));
      // The next choice of a model waits for a check.
      this.#isLooked = false;
      this.#firstLook = undefined;
    }
    // Not awaited: responses in progress may take long.
    for (const { connection } of gone) connection.close().catch(() => undefined);
  }

  /** Checks all peers. Never throws. */
  async look(signal: AbortSignal): Promise<void> {
    await Promise.all(
      [...this.#members.values()].map(async (member) => {
        const { spec, peer } = member;
        const said = await askWhatItHas(peer, signal);
        if (signal.aborted && said === undefined) return;
        member.isUp = said !== undefined;
        if (said === undefined) return;
        if (await this.#isAsConfirmed(spec, said)) member.models = said.models;
      }),
    ).catch(() => undefined);
    this.#isLooked = true;
  }

  #open(spec: PeerSpec): Member {
    const { name, apiBase, apiKey, kind, plainHttp } = spec;
    const { resolver, remembered } = this.#deps;
    const connection = createPeerFetch({
      ...{ apiBase, plainHttp },
      beforeSending: (fetch) => this.#prove(spec, fetch),
      ...(resolver === undefined ? {} : { resolver }),
    });
    const peer = { peer: name, vendor: kind, apiBase, apiKey, fetch: connection.fetch };
    return { spec, peer, connection, isUp: undefined, models: remembered.get(name) ?? [] };
  }

  /** @throws PeerUnconfirmedError also where the peer was removed while a call held it */
  async #prove(spec: PeerSpec, fetch: Peer['fetch']): Promise<void> {
    const known = this.#members.get(spec.name);
    if (known === undefined || !isSame(known.spec, spec)) throw new PeerUnconfirmedError(spec.name);
    if (spec.mark === undefined) return;
    if (!(await this.#deps.isConfirmed(spec))) {
      this.#drop(spec);
      throw new PeerUnconfirmedError(spec.name);
    }
    const plain = { apiBase: spec.apiBase, apiKey: '', ...(fetch === undefined ? {} : { fetch }) };
    const said = await askWhatItHas(plain, AbortSignal.timeout(SENDING_MS));
    if (said === undefined || !(await this.#isAsConfirmed(spec, said))) {
      throw new PeerUnconfirmedError(spec.name);
    }
  }

  async #isAsConfirmed(spec: PeerSpec, said: ServerSaid): Promise<boolean> {
    if (spec.mark === undefined || spec.mark === said.mark) return true;
    this.#drop(spec);
    await this.#deps.changed(spec, said);
    return false;
  }

  #drop(spec: PeerSpec): void {
    const member = this.#members.get(spec.name);
    if (member !== undefined && isSame(member.spec, spec)) this.#members.delete(spec.name);
  }
}

const isSame = (one: PeerSpec, other: PeerSpec) => JSON.stringify(one) === JSON.stringify(other);

// HTTP access to a peer: only its origin, the address checked for every request and pinned for the
// connection, no redirects, and plain HTTP only within the local networks.

type PeerFetchDeps = {
  readonly apiBase: string;
  /** Allows plain HTTP outside the local networks. */
  readonly plainHttp: boolean;
  /** Runs before any request other than GET. @throws where the request is not allowed */
  beforeSending(ask: LocalFetch): Promise<void>;
  /** Default: the system resolver. */
  readonly resolver?: HostResolver;
};

type PeerFetch = ReturnType<typeof createPeerFetch>;

/** Of one event of a stream, or of a whole response. */
const MAX_BYTES = 8_000_000;

export function createPeerFetch(deps: PeerFetchDeps) {
  const { plainHttp, resolver = systemResolver, beforeSending } = deps;
  const origin = new URL(deps.apiBase);
  const { hostname, protocol } = origin;
  const port = origin.port || (protocol === 'https:' ? '443' : '80');
  const isOpen = protocol === 'http:' && !plainHttp;

  async function checked(host: string): Promise<readonly string[]> {
    const literal = hostname.replace(/^\[(.*)\]$/, '$1');
    const addresses = isAddress(literal) ? [literal] : await resolver(host);
    if (!isOpen || addresses.every(isHomeAddress)) return addresses;
    throw new SafeFetchError(
      'private_address',
      `${hostname} is outside your own networks, and anybody can read what is sent by http`,
    );
  }

  const guarded = createGuardedFetch({
    ...{ origin, maxBytes: MAX_BYTES, resolver: checked },
    rules: { ports: [], allowPrivateHosts: [`${hostname}:${port}`] },
  });
  const ask: LocalFetch = async (url, init) => {
    // A literal address is not resolved, so it is checked here.
    await checked(hostname);
    return guarded.fetch(url, init);
  };
  const fetch: LocalFetch = async (url, init) => {
    const isQuestion = (init?.method ?? 'GET').toUpperCase() === 'GET';
    if (!isQuestion) await beforeSending(ask);
    return ask(url, init);
  };
  /** Resolves when the requests in progress have ended. */
  return { fetch, close: () => guarded.finish() };
}

// Probes a server for its models. Sends neither an API key nor any text of a conversation. Also
// probes configured places for servers.

export type ServerSaid = {
  readonly kind: LocalVendor;
  /** Chat models, in the server's order. */
  readonly models: readonly string[];
  /** Identity: a fingerprint of the parts of the response that are stable between requests. */
  readonly mark: string;
};

export type FoundHost = ServerSaid & {
  /** `host:port`. */
  readonly address: string;
};

const AT_ONCE = 20;
const TIMEOUT_MS = 3000;

const modelList = z.object({
  object: z.literal('list'),
  data: z
    .array(
      z.object({
        id: z.string().min(1).max(200),
        owned_by: z.string().max(200).optional().catch(undefined),
      }),
    )
    .max(10_000),
});

/** Vendor by the `owned_by` value of its models. */
const KINDS: Readonly<Record<string, LocalVendor>> = {
  library: 'ollama',
  organization_owner: 'lmstudio',
  vllm: 'vllm',
};

/** Undefined where it does not respond like a model server. */
export async function askWhatItHas(
  server: LocalAddress,
  signal: AbortSignal,
): Promise<ServerSaid | undefined> {
  const question = { path: '/models', below: 'apiBase', timeoutMs: TIMEOUT_MS } as const;
  const said = await askLocal(server, question, signal);
  const answer = modelList.safeParse(said !== undefined && isOk(said) ? said.body : undefined);
  // A server that is just starting lists no models; that does not change its identity.
  if (!answer.success || answer.data.data.length === 0) return undefined;
  const { data } = answer.data;
  const kind = data.map(({ owned_by: owner = '' }) => KINDS[owner]).find((each) => each);
  const each = data.map(({ id, owned_by: owner = '' }) => `${id}\n${owner}`).sort();
  return {
    kind: kind ?? 'local',
    models: data.map(({ id }) => id).filter(canChat),
    mark: JSON.stringify(each),
  };
}

/** The places that answer with models; all others are left out. */
export async function findHosts(
  places: readonly string[],
  signal: AbortSignal,
): Promise<readonly FoundHost[]> {
  const found = await mapLimited(places, AT_ONCE, async (address) => {
    if (signal.aborted) return [];
    const said = await askWhatItHas({ apiBase: `http://${address}/v1`, apiKey: '' }, signal);
    return said === undefined || said.models.length === 0 ? [] : [{ address, ...said }];
  });
  return found.flat();
}
