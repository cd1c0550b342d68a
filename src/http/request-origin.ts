// Whether a request may come from where it says it comes from: pure checks on its headers against
// DNS rebinding (Host) and other web pages (Origin, Sec-Fetch-Site). What a proxy adds is not read.

import type { IncomingHttpHeaders } from 'node:http';
import { isLoopbackHost } from '../core/loopback.ts';

export type HostRules = {
  /** The address the server was told to listen on. */
  readonly host: string;
  /** Further names under which it may be reached. */
  readonly allowedHosts: readonly string[];
};

/** `[::1]:18790` gives `::1`; undefined where it is no host with an optional port. */
function hostNameOf(host: string | undefined): string | undefined {
  const match = /^(?:\[([0-9a-f:.]+)\]|([a-z0-9_.-]+))(?::\d{1,5})?$/i.exec(host ?? '');
  return (match?.[1] ?? match?.[2])?.toLowerCase();
}

/** `localAddress`: where the connection arrived; an address cannot be rebound as a name can. */
export function isHostAllowed(
  host: string | undefined,
  localAddress: string | undefined,
  rules: HostRules,
): boolean {
  const name = hostNameOf(host);
  if (name === undefined) return false;
  const allowed = [rules.host, ...rules.allowedHosts].map((entry) => hostNameOf(entry) ?? entry);
  return (
    isLoopbackHost(name) ||
    allowed.includes(name) ||
    name === localAddress?.replace(/^::ffff:/, '').toLowerCase()
  );
}

/**
 * A browser names the page a request comes from; it has to be ours. Programs name none. Call it for
 * requests whose Host is allowed.
 */
export function isSameOrigin(headers: IncomingHttpHeaders): boolean {
  const { origin, host } = headers;
  const site = headers['sec-fetch-site'];
  if (site !== undefined && site !== 'same-origin' && site !== 'none') return false;
  return origin === undefined || origin === `http://${host}` || origin === `https://${host}`;
}
