// One connection per vendor, created when one of its models is first resolved (the SDK loads with
// the first call), and the health that all callers of a model share: a pause that the vendor asks
// for, and a circuit breaker.

import type { Config, ProviderName } from '../kernel/config/config.ts';
import type { ProviderFailure } from '../kernel/message/errors.ts';
import { defined } from '../lib/json/json.ts';
import type { Clock } from '../lib/time/clock.ts';
import type { Access, Credentials } from './credentials.ts';
import type { LocalFetch } from './local-servers.ts';
import type { Peer } from './local-site.ts';
import { createOpenaiProvider } from './openai/openai.ts';
import type { LLMProvider } from './provider.ts';
import { basedAt, type ProviderDeps } from './provider-call.ts';
import {
  afterFailure,
  type BreakerPolicy,
  CLOSED,
  hintOf,
  isOpen,
  isOutage,
  LONGEST_HINTED_WAIT_MS,
} from './rules/provider-failure.ts';
import type { ImageSource } from './seen-images.ts';
import { Manners, vendorOf } from './vendors.ts';

/** Starts with the clock; one successful call clears it. */
export class ProviderHealth {
  readonly #clock: Clock;
  readonly #policy: BreakerPolicy;
  #quietUntil = 0;
  #breaker = CLOSED;
  #last: ProviderFailure | undefined;

  constructor(clock: Clock, policy: BreakerPolicy) {
    this.#clock = clock;
    this.#policy = policy;
  }

  /** Milliseconds to wait before the next call; 0 = none. */
  waitMs(): number {
    return Math.max(0, this.#quietUntil - this.#clock.monotonic());
  }

  noteFailure(failure: ProviderFailure): void {
    const waitMs = Math.min(hintOf(failure) ?? 0, LONGEST_HINTED_WAIT_MS);
    this.#quietUntil = Math.max(this.#quietUntil, this.#clock.monotonic() + waitMs);
  }

  /** Records the failure of a call after its last try. */
  noteGivenUp(failure: ProviderFailure): void {
    if (!isOutage(failure)) return;
    this.#breaker = afterFailure(this.#breaker, this.#policy, this.#clock.monotonic());
    this.#last = failure;
  }

  /** The last call failed, and none has succeeded since. */
  isFailing(): boolean {
    return this.#breaker.failures > 0;
  }

  /** Why the model is not called for now, after several consecutive failures. */
  restsAfter(): ProviderFailure | undefined {
    return isOpen(this.#breaker, this.#clock.monotonic()) ? this.#last : undefined;
  }

  noteSuccess(): void {
    this.#quietUntil = 0;
    this.#breaker = CLOSED;
  }
}

// One connection per vendor, created when a model of it is first resolved. Creating it is free: the
// first call loads the vendor's package and opens its HTTP agent.

export type Connection = ReturnType<typeof connectTo>;
export type Connections = ReturnType<typeof createConnections>;

type ConnectionsDeps = {
  readonly credentials: Credentials;
  readonly timeouts: Config['timeouts'];
  readonly circuit: BreakerPolicy;
  readonly clock: Clock;
  readonly images: ImageSource;
};

export function createConnections(deps: ConnectionsDeps) {
  const toVendor = remembered((vendor: ProviderName) => {
    const access = deps.credentials.accessTo(vendor);
    return access && connectTo({ vendor, ...access }, deps);
  });
  const peers = new WeakMap<Peer, Connection>();
  return {
    /** Undefined if no credentials are known. */
    to: toVendor,
    toPeer(peer: Peer): Connection {
      const connection = peers.get(peer) ?? connectTo(peer, deps);
      peers.set(peer, connection);
      return connection;
    },
  };
}

type Server = Omit<Access, 'proxy'> & {
  readonly vendor: ProviderName;
  /** A peer has none. */
  readonly proxy?: string;
  readonly fetch?: LocalFetch;
};

function connectTo(
  { vendor, apiBase, apiKey, proxy = '', fetch }: Server,
  { clock, timeouts, images, circuit }: ConnectionsDeps,
) {
  const row = vendorOf(vendor);
  const create = row.dialect === 'anthropic' ? anthropicProvider : createOpenaiProvider;
  const callTimeouts = {
    firstTokenMs: timeouts.firstTokenSecs * 1000,
    idleMs: timeouts.streamIdleSecs * 1000,
    wholeCallMs: timeouts.modelCallSecs * 1000,
  };
  return {
    provider: create({
      ...{ vendor: row, apiBase, apiKey, proxy, clock, timeouts: callTimeouts, images },
      ...defined({ fetch }),
    }),
    apiBase,
    /** Vendors limit each model separately. */
    healthOf: remembered((_model: string) => new ProviderHealth(clock, circuit)),
    mannersOf: remembered((_model: string) => new Manners()),
  };
}

const anthropicProvider = (deps: ProviderDeps) =>
  loadedProvider({ name: deps.vendor.name, ...basedAt(deps.apiBase) }, async () =>
    (await import('./anthropic/anthropic.ts')).createAnthropicProvider(deps),
  );

/** A provider whose module is loaded with the first call. */
export function loadedProvider(
  facts: Pick<LLMProvider, 'name' | 'base'>,
  load: () => Promise<LLMProvider>,
): LLMProvider {
  let loaded: Promise<LLMProvider> | undefined;
  return {
    ...facts,
    async *stream(request, signal) {
      loaded ??= load();
      yield* (await loaded).stream(request, signal);
    },
  };
}

/** Calls `make` once for each key. */
function remembered<Key, Value>(make: (key: Key) => Value): (key: Key) => Value {
  const made = new Map<Key, Value>();
  return (key) => {
    const value = made.get(key) ?? make(key);
    made.set(key, value);
    return value;
  };
}
