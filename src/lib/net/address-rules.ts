// Rules about network addresses: public, private, loopback, what counts as the home network, and
// proxies.

import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import { t } from '../texts.ts';

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
  return URL.canParse(url) && isHomeHost(new URL(url).hostname);
}

function isHomeHost(name: string): boolean {
  const host = bareHost(name);
  if (isLoopbackHost(host) || isHomeAddress(host)) return true;
  return !V4.test(host) && !host.includes(':') && LOCAL_NAME.test(host);
}

/** In lower case, without the brackets of an IPv6 address. */
function bareHost(host: string): string {
  return host.toLowerCase().replace(/^\[(.*)\]$/, '$1');
}

// Hosts that a list such as that of the variable NO_PROXY names.

/**
 * `entry`: a name, which includes its subdomains, an address, a block such as `10.0.0.0/8`, or `*`
 * for every host; a port may follow.
 */
function isNamedBy(entry: string, host: string, port: number): boolean {
  const [, written = '', ofPort] = /^(\[.*\]|[^:]*|.*:.*:.*?)(?::(\d+))?$/.exec(entry) ?? [];
  if (ofPort !== undefined && Number(ofPort) !== port) return false;
  const [named, asked] = [bareHost(written), bareHost(host)];
  if (named === '*' || named === asked) return named !== '';
  if (isAddress(asked)) return named.includes('/') && isInBlock(asked, named);
  const domain = named.replace(/^\*?\./, '');
  return domain !== '' && (asked === domain || asked.endsWith(`.${domain}`));
}

function isInBlock(address: string, block: string): boolean {
  if (!ipaddr.isValidCIDR(block)) return false;
  const [range, bits] = ipaddr.parseCIDR(block);
  const parsed = ipaddr.parse(address);
  return parsed.kind() === range.kind() && parsed.match(range, bits);
}

// Proxies: how a setting names one, which hosts are reached without it, and the errors of
// connections through it.

export type ProxyAddress = {
  readonly kind: 'http' | 'https' | 'socks5' | 'socks5h';
  readonly host: string;
  readonly port: number;
  /** Both empty: no login. */
  readonly username: string;
  readonly password: string;
  /** Path of the setting that names it, for messages. */
  readonly setting: string;
  /** Hosts that are reached without it. */
  readonly except: readonly string[];
};

/** The proxy of all connections that have none of their own. */
export const GENERAL_PROXY = 'network.proxy';
/** In place of a proxy: none, whatever the general one is. */
export const NO_PROXY_AT_ALL = 'direct';

/** The last @ ends the login, so that a password from the environment may contain one. */
const FORM = /^(https?|socks5h?):\/\/(?:(\S*)@)?(\[[\da-f:.]+\]|[\w.-]+):(\d{1,5})\/?$/i;
const MAX_PORT = 65_535;

/**
 * `text`: a URL, after which the loaded configuration adds the path of the setting and the hosts
 * that are reached without the proxy, separated by spaces. Undefined: no proxy.
 */
export function readProxy(text: string): ProxyAddress | undefined {
  const [url = '', setting = GENERAL_PROXY, except = ''] = text.split(' ');
  const [, kind, login = '', host, digits] = FORM.exec(url) ?? [];
  const port = Number(digits);
  if (kind === undefined || host === undefined || port < 1 || port > MAX_PORT) return undefined;
  const [, username = '', password = ''] = /^([^:]*):?(.*)$/s.exec(login) ?? [];
  return {
    kind: kind.toLowerCase() as ProxyAddress['kind'],
    ...{ host: bareHost(host), port, setting },
    ...{ username: decoded(username), password: decoded(password) },
    except: except.split(',').filter((entry) => entry !== ''),
  };
}

/** As it is written where it is no percent-encoding. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Parts of the text of a proxy that must not be shown; none if it has no password. */
export function proxySecrets(text: string): readonly string[] {
  const { username = '', password = '' } = readProxy(text) ?? {};
  const [, login = ''] = FORM.exec(text.split(' ')[0] ?? '')?.slice(1) ?? [];
  if (login === '') return [];
  const basic = Buffer.from(`${username}:${password}`).toString('base64');
  return [login, basic, ...(password === '' ? [] : [password])];
}

/**
 * Through the general proxy, this machine and the home network are reached directly; a proxy of one
 * channel or provider is for all its addresses.
 */
export function isDirect({ setting, except }: ProxyAddress, host: string, port: number): boolean {
  if (setting === GENERAL_PROXY && isHomeHost(host)) return true;
  return except.some((entry) => isNamedBy(entry, host, port));
}

/** `message` names the setting, the proxy and the remedy, and never contains a login. */
export class ProxyError extends Error {
  override readonly name = 'ProxyError';
  readonly code: 'proxy_unreachable' | 'proxy_login' | 'proxy_refused';
  readonly problem: string;
  readonly remedy: string;
  constructor(code: ProxyError['code'], proxy: ProxyAddress, what: string, remedy: string) {
    const shown = shownProxy(proxy);
    const problem = t`the proxy ${shown} ${what}`;
    super(`${problem}. ${remedy}`);
    this.code = code;
    this.problem = problem;
    this.remedy = remedy;
  }
}

/** Without its login. */
export function shownProxy({ host, port, setting }: ProxyAddress): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port} (${setting})`;
}
