// The peers that may be asked now, what each has, and whether it answered when it was last asked. One
// that an owner confirmed is held to what it said then: before anything is sent it is asked again, and
// where it says otherwise it is out.

import { z } from 'zod';
import { mapLimited } from '../../lib/async.ts';
import { isAddress, isHomeAddress } from '../../lib/net/address-rules.ts';
import {
  type HostResolver,
  SafeFetchError,
  systemResolver,
} from '../../lib/net/checked-address.ts';
import { createGuardedFetch } from '../../lib/net/guarded-fetch.ts';
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
  /** What it said when it was confirmed; left out: the configuration names it. */
  readonly mark?: string;
};

type PeerSetDeps = {
  prefer(): Peers['prefer'];
  /** Models that each had when it was last asked, by its name; over restarts. */
  readonly remembered: ReadonlyMap<string, readonly string[]>;
  /** Still confirmed as it is, whoever changed it meanwhile. */
  isConfirmed(spec: PeerSpec): Promise<boolean>;
  /** It says something else than when it was confirmed. */
  changed(spec: PeerSpec, said: ServerSaid): Promise<void>;
  readonly resolver?: HostResolver;
};

export type PeerState = ReturnType<PeerSet['states']>[number];

type Member = {
  readonly spec: PeerSpec;
  readonly peer: Peer;
  readonly door: PeerFetch;
  isUp: boolean | undefined;
  models: readonly string[];
};

const FIRST_LOOK_MS = 2500;
const SENDING_MS = 3000;

/** Nothing was sent: it is not what was confirmed. */
class PeerUnconfirmedError extends Error {
  override readonly name = 'PeerUnconfirmedError';
  constructor(peer: string) {
    super(`the peer ${peer} is not the one that was confirmed`);
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

  /** `isUp`: undefined before it was asked. */
  states() {
    return [...this.#members.values()].map(({ spec, isUp, models }) => ({
      ...{ name: spec.name, apiBase: spec.apiBase, isUp, models },
      isConfigured: spec.mark === undefined,
    }));
  }

  /** Those left out may not be asked from now on. */
  async replace(specs: readonly PeerSpec[]): Promise<void> {
    const gone = [...this.#members.values()].filter(
      ({ spec }) => !specs.some((one) => isSame(one, spec)),
    );
    for (const { spec } of gone) this.#members.delete(spec.name);
    for (const spec of specs) {
      if (this.#members.has(spec.name)) continue;
      this.#members.set(spec.name, this.#open(spec));
      // What it has is asked for before the next model is chosen.
      this.#isLooked = false;
      this.#firstLook = undefined;
    }
    // An answer under way may take its time.
    for (const { door } of gone) door.close().catch(() => undefined);
  }

  /** Asks all of them what they have. Never throws. */
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
    const door = createPeerFetch({
      ...{ apiBase, plainHttp },
      beforeSending: (fetch) => this.#prove(spec, fetch),
      ...(resolver === undefined ? {} : { resolver }),
    });
    const peer = { peer: name, vendor: kind, apiBase, apiKey, fetch: door.fetch };
    return { spec, peer, door, isUp: undefined, models: remembered.get(name) ?? [] };
  }

  /** @throws PeerUnconfirmedError also where it was taken out while it was held by a call. */
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

// How a peer is asked: at its one origin, with the address checked at every request and pinned for the
// connection, no redirect followed, and plain http only where it stays in one's own nets.

type PeerFetchDeps = {
  readonly apiBase: string;
  /** http may leave one's own nets. */
  readonly plainHttp: boolean;
  /** Before anything but a question is sent. @throws where it must not be */
  beforeSending(ask: LocalFetch): Promise<void>;
  /** Default: the machine's. */
  readonly resolver?: HostResolver;
};

type PeerFetch = ReturnType<typeof createPeerFetch>;

/** Of one event of a stream, or of an answer. */
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
    // A literal address is not looked up, and so is looked at here.
    await checked(hostname);
    return guarded.fetch(url, init);
  };
  const fetch: LocalFetch = async (url, init) => {
    const isQuestion = (init?.method ?? 'GET').toUpperCase() === 'GET';
    if (!isQuestion) await beforeSending(ask);
    return ask(url, init);
  };
  /** Resolves when what is under way has come to its end. */
  return { fetch, close: () => guarded.finish() };
}

// What a server says of itself when it is asked for its models, and nothing else is sent: no key, no
// word of a conversation. Also the search for servers at configured places.

export type ServerSaid = {
  readonly kind: LocalVendor;
  /** That can chat, in the server's order. */
  readonly models: readonly string[];
  /** Of all it says that stays the same from one question to the next. */
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

/** By whom a model is said to be owned. */
const KINDS: Readonly<Record<string, LocalVendor>> = {
  library: 'ollama',
  organization_owner: 'lmstudio',
  vllm: 'vllm',
};

/** Undefined where it does not answer as a model server does. */
export async function askWhatItHas(
  server: LocalAddress,
  signal: AbortSignal,
): Promise<ServerSaid | undefined> {
  const question = { path: '/models', below: 'apiBase', timeoutMs: TIMEOUT_MS } as const;
  const said = await askLocal(server, question, signal);
  const answer = modelList.safeParse(said !== undefined && isOk(said) ? said.body : undefined);
  // Servers that are just starting have nothing yet: that is no other server.
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

/** Those that have models; whoever is absent, slow, redirects or answers oddly is left out. */
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
