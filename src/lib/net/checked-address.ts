// Resolves a host and refuses addresses that requests must not reach; the errors of safe requests.

import { lookup } from 'node:dns/promises';
import { orAborted } from '../time/clock.ts';
import { isAddress, isPublicAddress } from './address-rules.ts';

export type SafeFetchReason =
  | 'bad_url'
  | 'scheme'
  | 'credentials'
  | 'port'
  | 'private_address'
  | 'not_found'
  | 'redirects'
  | 'too_large'
  | 'timeout'
  | 'unreachable'
  | 'unreadable';

/** `message` can be shown to people; it never contains the path or the query of the address. */
export class SafeFetchError extends Error {
  override readonly name = 'SafeFetchError';
  readonly reason: SafeFetchReason;
  constructor(
    reason: SafeFetchReason,
    message: string,
    options: { readonly cause?: unknown } = {},
  ) {
    super(message, options);
    this.reason = reason;
  }
}

// From a URL to the addresses that may be connected to: its form is checked, its name is resolved
// once, and the connection uses the result (cases X11, X12). A name that also points to an internal
// address is refused completely.

/** All addresses of a host name; rejects or returns none if it does not exist. */
export type HostResolver = (host: string) => Promise<readonly string[]>;

export type AddressRules = {
  /** Ports that may be connected to. */
  readonly ports: readonly number[];
  /**
   * `host` or `host:port` as in a URL: may be at any address, and at this port whatever `ports`
   * contains.
   */
  readonly allowPrivateHosts: readonly string[];
};

export type CheckedAddress = { readonly url: URL; readonly addresses: readonly string[] };

const MAX_URL_CHARS = 8192;
const DEFAULT_PORTS: Readonly<Record<string, number>> = { 'http:': 80, 'https:': 443 };

export const systemResolver: HostResolver = async (host) => {
  const found = await lookup(host, { all: true });
  return found.map(({ address }) => address);
};

/** The URL without its fragment. @throws SafeFetchError bad_url, scheme, credentials */
export function readWebUrl(text: string, base?: URL): URL {
  if (text.length > MAX_URL_CHARS) throw new SafeFetchError('bad_url', 'the address is too long');
  const url = URL.parse(text.trim(), base);
  if (url === null) throw new SafeFetchError('bad_url', 'this is not a whole web address');
  if (DEFAULT_PORTS[url.protocol] === undefined) {
    throw new SafeFetchError(
      'scheme',
      'only addresses that begin with http:// or https:// are read',
    );
  }
  if (url.username !== '' || url.password !== '') {
    throw new SafeFetchError('credentials', 'an address must not carry a user name or password');
  }
  url.hash = '';
  return url;
}

/** @throws SafeFetchError port, private_address, not_found; the signal's reason */
export async function checkAddress(
  url: URL,
  rules: AddressRules,
  resolver: HostResolver,
  signal: AbortSignal,
): Promise<CheckedAddress> {
  const port = url.port === '' ? DEFAULT_PORTS[url.protocol] : Number(url.port);
  const allowed = rules.allowPrivateHosts.map((entry) => entry.toLowerCase());
  const isNamedWithPort = allowed.includes(`${url.hostname}:${port}`);
  if (port === undefined || !(isNamedWithPort || rules.ports.includes(port))) {
    const ports = rules.ports.join(', ');
    throw new SafeFetchError('port', `port ${port} is not allowed; allowed: ${ports}`);
  }
  const addresses = await addressesOf(url.hostname, resolver, signal);
  const mayBePrivate = isNamedWithPort || allowed.includes(url.hostname);
  if (!mayBePrivate && !addresses.every(isPublicAddress)) {
    throw new SafeFetchError(
      'private_address',
      `${url.hostname} is on this machine, in a private network or otherwise not on the public internet`,
    );
  }
  return { url, addresses };
}

async function addressesOf(
  hostname: string,
  resolver: HostResolver,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const literal = hostname.replace(/^\[(.*)\]$/, '$1');
  if (isAddress(literal)) return [literal];
  const found = await orAborted(
    resolver(hostname).catch((): readonly string[] => []),
    signal,
  );
  if (found.length > 0) return found;
  throw new SafeFetchError('not_found', `there is no host named ${hostname}`);
}

type Lookup = NonNullable<import('node:net').TcpNetConnectOpts['lookup']>;

/** A lookup for a connection: returns the checked addresses, without another DNS query. */
export function pinnedTo(addresses: () => readonly string[]): Lookup {
  return (_host, options, callback) => {
    const found = addresses().map((address) => ({
      address,
      family: address.includes(':') ? 6 : 4,
    }));
    const [first] = found;
    if (options.all === true) callback(null, found);
    else callback(null, first?.address ?? '', first?.family);
  };
}
