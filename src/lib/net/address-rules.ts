// Rules about network addresses: public, private, loopback, and what counts as the home network.

import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

type Address = ReturnType<typeof ipaddr.parse>;
type Block = ReturnType<typeof ipaddr.parseCIDR>;

/** The only block global IPv6 addresses come from (RFC 4291 section 2.4). */
const GLOBAL_V6 = ipaddr.parseCIDR('2000::/3');
/** IPv4 hosts behind a translator: the embedded IPv4 address decides (RFC 6052 section 2.1). */
const NAT64 = ipaddr.parseCIDR('64:ff9b::/96');
/** A service of the host at a public address: the platform agent of Azure's machines. */
const METADATA: readonly Block[] = [ipaddr.parseCIDR('168.63.129.16/32')];
/** Interface ids that carry an IPv4 address to tunnel to (ISATAP, RFC 5214 section 6.1). */
const ISATAP = 0x5efe;
const V4_BYTES = 4;

/** False for anything but a full address. */
export function isPublicAddress(text: string): boolean {
  return isAddress(text) && isPublic(ipaddr.parse(text));
}

export function isAddress(text: string): boolean {
  return isIP(text) !== 0;
}

function isPublic(address: Address): boolean {
  if (address.kind() === 'ipv6' && address.match(NAT64)) {
    return isPublic(ipaddr.fromByteArray(address.toByteArray().slice(-V4_BYTES)));
  }
  if (address.range() !== 'unicast') return false;
  if (METADATA.some((block) => block[0].kind() === address.kind() && address.match(block))) {
    return false;
  }
  return address.kind() === 'ipv4' || (address.match(GLOBAL_V6) && !isTunnel(address));
}

function isTunnel(address: Address): boolean {
  const [high = 0, low = 0] = address.toByteArray().slice(-6, -V4_BYTES);
  const universal = address.toByteArray().at(8) ?? 0;
  return high * 256 + low === ISATAP && (universal & ~2) === 0;
}

// Whether a host name or address stays on this machine.

const LOOPBACK_V4 = /^127(?:\.\d{1,3}){3}$/;

export function isLoopbackHost(host: string): boolean {
  const name = host.toLowerCase().replace(/^\[(.*)\]$/, '$1');
  return name === 'localhost' || name === '::1' || LOOPBACK_V4.test(name);
}

// Whether an address belongs to the person's own machines: this one, the network at home or at
// work, a private overlay. Judged by its text; a name counts only if no public name can look like
// it.

const V4 = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/;
/** Unique local addresses, RFC 4193. */
const LOCAL_V6 = /^f[cd][0-9a-f]{2}:[0-9a-f:]*$/;
/** Names that no public registry assigns. */
const LOCAL_NAME = /^(?:[a-z0-9_-]+|.+\.(?:local|lan|home|internal|localdomain|home\.arpa))$/;

/** A full IP address without brackets. RFC 1918, and RFC 6598 for overlays such as Tailscale's. */
export function isHomeAddress(address: string): boolean {
  const text = address.toLowerCase();
  if (isLoopbackHost(text)) return text !== 'localhost';
  const parts = V4.exec(text)?.slice(1).map(Number);
  if (parts === undefined) return LOCAL_V6.test(text);
  const [a = 0, b = 0] = parts;
  if (parts.some((part) => part > 255)) return false;
  return (
    a === 10 ||
    (a === 172 && b >= 16 && b <= 31) ||
    (a === 192 && b === 168) ||
    (a === 100 && b >= 64 && b <= 127)
  );
}

/** The host of a server's URL, by its text alone, without a lookup. */
export function isHomeUrl(url: string): boolean {
  if (!URL.canParse(url)) return false;
  const host = new URL(url).hostname.toLowerCase().replace(/^\[(.*)\]$/, '$1');
  if (isLoopbackHost(host) || isHomeAddress(host)) return true;
  return !V4.test(host) && !host.includes(':') && LOCAL_NAME.test(host);
}
