// The peers that may be asked now, what each has, and whether it answered when it was last asked. One
// that an owner confirmed is held to what it said then: before anything is sent it is asked again, and
// where it says otherwise it is out.

import type { HostResolver } from '../../lib/net/checked-address.ts';
import type { Peer, Peers } from '../../providers/local-site.ts';
import type { LocalVendor } from '../../providers/rules/model-names.ts';
import { createPeerFetch, type PeerFetch } from './peer-fetch.ts';
import { askWhatItHas, type ServerSaid } from './peer-probe.ts';

export type PeerSpec = {
  readonly name: string;
  readonly apiBase: string;
  readonly apiKey: string;
  readonly kind: LocalVendor;
  readonly plainHttp: boolean;
  /** What it said when it was confirmed; left out: the configuration names it. */
  readonly mark?: string;
};

export type PeerSetDeps = {
  prefer(): Peers['prefer'];
  /** Models that each had when it was last asked, by its name; over restarts. */
  readonly remembered: ReadonlyMap<string, readonly string[]>;
  /** Still confirmed as it is, whoever changed it meanwhile. */
  isConfirmed(spec: PeerSpec): Promise<boolean>;
  /** It says something else than when it was confirmed. */
  changed(spec: PeerSpec, said: ServerSaid): Promise<void>;
  readonly resolver?: HostResolver;
};

export type PeerState = {
  readonly name: string;
  readonly apiBase: string;
  readonly isConfigured: boolean;
  /** Undefined before it was asked. */
  readonly isUp: boolean | undefined;
  readonly models: readonly string[];
};

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
export class PeerUnconfirmedError extends Error {
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

  states(): readonly PeerState[] {
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
      await this.#drop(spec);
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
    await this.#drop(spec);
    await this.#deps.changed(spec, said);
    return false;
  }

  async #drop(spec: PeerSpec): Promise<void> {
    const member = this.#members.get(spec.name);
    if (member !== undefined && isSame(member.spec, spec)) this.#members.delete(spec.name);
  }
}

const isSame = (one: PeerSpec, other: PeerSpec) => JSON.stringify(one) === JSON.stringify(other);
