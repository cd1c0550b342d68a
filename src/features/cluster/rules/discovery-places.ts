// Where model servers are looked for: single addresses and small nets, as they are configured, never
// beyond one's own nets.

import { isHomeAddress } from '../../../lib/net/address-rules.ts';

export type DiscoveryHost = {
  /** IPv4. */
  readonly host: string;
  /** Left out: all that are configured. */
  readonly port?: number;
};

const ENTRY = /^(\d{1,3}(?:\.\d{1,3}){3})(?:\/(\d{1,2})|:(\d{1,5}))?$/;
const WIDEST_NET = 24;
const BITS = 32;

/** Undefined where it is no address, too wide a net, or none of one's own. */
export function discoveryHosts(entry: string): readonly DiscoveryHost[] | undefined {
  const [, host = '', bits, port] = ENTRY.exec(entry.trim()) ?? [];
  if (!isHomeAddress(host)) return undefined;
  if (port !== undefined) {
    const at = Number(port);
    return at >= 1 && at <= 65_535 ? [{ host, port: at }] : undefined;
  }
  if (bits === undefined) return [{ host }];
  const length = Number(bits);
  if (length < WIDEST_NET || length > BITS) return undefined;
  const size = 2 ** (BITS - length);
  const parts = host.split('.').map(Number);
  const last = parts.pop() ?? 0;
  const first = last - (last % size);
  return Array.from({ length: size }, (_, index) => first + index)
    .filter((one) => size <= 2 || (one !== first && one !== first + size - 1))
    .map((one) => ({ host: [...parts, one].join('.') }));
}

/** `host:port`, each once; this machine first. */
export function discoveryPlaces(
  addresses: readonly string[],
  ports: readonly number[],
): readonly string[] {
  const hosts = ['127.0.0.1', ...addresses].flatMap((entry) => discoveryHosts(entry) ?? []);
  const places = hosts.flatMap(({ host, port }) =>
    (port === undefined ? ports : [port]).map((each) => `${host}:${each}`),
  );
  return [...new Set(places)];
}
