// One connection per vendor, made when one of its models is first resolved (the SDK loads with the
// first call), and the health that all callers of a model share: a pause the vendor asks for, and a
// circuit breaker.

import type { Config, ProviderName } from '../kernel/config/config.ts';
import type { ProviderFailure } from '../kernel/message/errors.ts';
import type { Clock } from '../lib/time/clock.ts';
import { createAnthropicProvider } from './anthropic/anthropic.ts';
import type { Access, Credentials } from './credentials.ts';
import type { LocalFetch } from './local-http.ts';
import type { Peer } from './local-site.ts';
import { createOpenaiProvider } from './openai/openai.ts';
import type { LLMProvider } from './provider.ts';
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

export interface ProviderHealth {
  /** Milliseconds to wait before the next call; 0 = none. */
  waitMs(): number;
  noteFailure(failure: ProviderFailure): void;
  /** A call ended with this, after its last try. */
  noteGivenUp(failure: ProviderFailure): void;
  /** The last call failed, and no other succeeded since. */
  isFailing(): boolean;
  /** Why the model is left alone for now, after several failed calls in a row. */
  restsAfter(): ProviderFailure | undefined;
  noteSuccess(): void;
}

export function createProviderHealth(clock: Clock, policy: BreakerPolicy): ProviderHealth {
  let quietUntil = 0;
  let breaker = CLOSED;
  let last: ProviderFailure | undefined;
  return {
    waitMs: () => Math.max(0, quietUntil - clock.monotonic()),
    noteFailure(failure) {
      const waitMs = Math.min(hintOf(failure) ?? 0, LONGEST_HINTED_WAIT_MS);
      quietUntil = Math.max(quietUntil, clock.monotonic() + waitMs);
    },
    noteGivenUp(failure) {
      if (!isOutage(failure)) return;
      breaker = afterFailure(breaker, policy, clock.monotonic());
      last = failure;
    },
    isFailing: () => breaker.failures > 0,
    restsAfter: () => (isOpen(breaker, clock.monotonic()) ? last : undefined),
    noteSuccess() {
      quietUntil = 0;
      breaker = CLOSED;
    },
  };
}

// One connection per vendor, made when a model of it is first resolved. Connecting costs nothing yet:
// the vendor's package is loaded and its HTTP agent opened by the first call.

export type Connection = {
  readonly provider: LLMProvider;
  readonly apiBase: string;
  /** Vendors limit each model on its own. */
  healthOf(model: string): ProviderHealth;
  mannersOf(model: string): Manners;
};

export interface Connections {
  /** Undefined when nothing is known that would let us in. */
  to(vendor: ProviderName): Connection | undefined;
  toPeer(peer: Peer): Connection;
}

type ConnectionsDeps = {
  readonly credentials: Credentials;
  readonly timeouts: Config['timeouts'];
  readonly circuit: BreakerPolicy;
  readonly clock: Clock;
  readonly images: ImageSource;
};

export function createConnections(deps: ConnectionsDeps): Connections {
  const open = new Map<ProviderName, Connection>();
  const peers = new WeakMap<Peer, Connection>();
  return {
    to(vendor) {
      const connection = open.get(vendor) ?? connect(vendor, deps);
      if (connection !== undefined) open.set(vendor, connection);
      return connection;
    },
    toPeer(peer) {
      const connection = peers.get(peer) ?? connectTo(peer, deps);
      peers.set(peer, connection);
      return connection;
    },
  };
}

function connect(vendor: ProviderName, deps: ConnectionsDeps): Connection | undefined {
  const access = deps.credentials.accessTo(vendor);
  return access && connectTo({ vendor, ...access }, deps);
}

type Server = Access & { readonly vendor: ProviderName; readonly fetch?: LocalFetch };

function connectTo(
  { vendor, apiBase, apiKey, fetch }: Server,
  { clock, timeouts, images, circuit }: ConnectionsDeps,
): Connection {
  const row = vendorOf(vendor);
  const create = row.dialect === 'anthropic' ? createAnthropicProvider : createOpenaiProvider;
  const callTimeouts = {
    firstTokenMs: timeouts.firstTokenSecs * 1000,
    idleMs: timeouts.streamIdleSecs * 1000,
    wholeCallMs: timeouts.modelCallSecs * 1000,
  };
  const healths = new Map<string, ProviderHealth>();
  const manners = new Map<string, Manners>();
  return {
    provider: create({
      ...{ vendor: row, apiBase, apiKey, clock, timeouts: callTimeouts, images },
      ...(fetch === undefined ? {} : { fetch }),
    }),
    apiBase,
    healthOf(model) {
      const health = healths.get(model) ?? createProviderHealth(clock, circuit);
      healths.set(model, health);
      return health;
    },
    mannersOf(model) {
      const own = manners.get(model) ?? new Manners();
      manners.set(model, own);
      return own;
    },
  };
}
