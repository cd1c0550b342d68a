// How a peer is asked: at its one origin, with the address checked at every request and pinned for the
// connection, no redirect followed, and plain http only where it stays in one's own nets.

import { isAddress, isHomeAddress } from '../../lib/net/address-rules.ts';
import {
  type HostResolver,
  SafeFetchError,
  systemResolver,
} from '../../lib/net/checked-address.ts';
import { createGuardedFetch } from '../../lib/net/guarded-fetch.ts';
import type { LocalFetch } from '../../providers/local-http.ts';

export type PeerFetchDeps = {
  readonly apiBase: string;
  /** http may leave one's own nets. */
  readonly plainHttp: boolean;
  /** Before anything but a question is sent. @throws where it must not be */
  beforeSending(ask: LocalFetch): Promise<void>;
  /** Default: the machine's. */
  readonly resolver?: HostResolver;
};

export type PeerFetch = {
  readonly fetch: LocalFetch;
  /** When what is under way has come to its end. */
  close(): Promise<void>;
};

/** Of one event of a stream, or of an answer. */
const MAX_BYTES = 8_000_000;

export function createPeerFetch(deps: PeerFetchDeps): PeerFetch {
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
      `${hostname} leads beyond your own nets, and what is sent by http anybody can read`,
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
  return {
    async fetch(url, init) {
      const isQuestion = (init?.method ?? 'GET').toUpperCase() === 'GET';
      if (!isQuestion) await beforeSending(ask);
      return ask(url, init);
    },
    close: () => guarded.finish(),
  };
}
