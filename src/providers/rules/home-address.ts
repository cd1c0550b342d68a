// Whether an address belongs to one's own machines: this one, the net at home or at work, a private
// overlay. Judged on the text; a name counts only where no public name looks like it.

import { isLoopbackHost } from '../../lib/net/address-rules.ts';

const V4 = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/;
/** Unique local addresses, RFC 4193. */
const LOCAL_V6 = /^f[cd][0-9a-f]{2}:[0-9a-f:]*$/;
/** Names that no public registry hands out. */
const LOCAL_NAME = /^(?:[a-z0-9_-]+|.+\.(?:local|lan|home|internal|localdomain|home\.arpa))$/;

/** An IP address, in full and without brackets. RFC 1918, and RFC 6598 for overlays such as Tailscale's. */
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

/** The host of a server's address, by its text alone: nothing is looked up. */
export function isHomeUrl(url: string): boolean {
  if (!URL.canParse(url)) return false;
  const host = new URL(url).hostname.toLowerCase().replace(/^\[(.*)\]$/, '$1');
  if (isLoopbackHost(host) || isHomeAddress(host)) return true;
  return !V4.test(host) && !host.includes(':') && LOCAL_NAME.test(host);
}
