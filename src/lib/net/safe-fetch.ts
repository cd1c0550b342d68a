// HTTP requests to untrusted addresses (no private networks, bounded redirects, size and time),
// with
// decompression under the same size limit.

import type { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import {
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createInflateRaw,
  createZstdDecompress,
} from 'node:zlib';
import type { Client as HttpClient } from 'undici';
import { isDirect, isHomeAddress, readProxy } from './address-rules.ts';
import {
  type AddressRules,
  type CheckedAddress,
  checkAddress,
  type HostResolver,
  pinnedTo,
  readWebUrl,
  SafeFetchError,
  systemResolver,
} from './checked-address.ts';
import { proxyErrorIn } from './proxies.ts';

type BodyLimits = {
  /** Bytes as transferred. */
  readonly maxBytes: number;
  /** Bytes after decompression. */
  readonly maxDecompressedBytes: number;
};

/** The supported encodings, for the request header. */
const ACCEPTED_ENCODINGS = 'gzip, deflate, br, zstd';

const ZLIB_METHOD = 8;

/** @throws SafeFetchError too_large, unreadable; what the source throws */
export async function readBody(
  source: AsyncIterable<Uint8Array>,
  contentEncoding: string,
  limits: BodyLimits,
): Promise<Uint8Array> {
  const raw = counted(source, limits.maxBytes, 'the answer');
  const pieces: Uint8Array[] = [];
  const collect = async (decoded: AsyncIterable<Uint8Array>) => {
    const whole = counted(decoded, limits.maxDecompressedBytes, 'the decompressed answer');
    for await (const piece of whole) pieces.push(piece);
  };
  const encoding = contentEncoding.trim().toLowerCase();
  if (encoding === '' || encoding === 'identity') {
    await collect(raw);
  } else {
    const { first, rest } = await peeked(raw);
    if (first.length > 0) await pipeline(rest, decoderFor(encoding, first), collect).catch(explain);
  }
  return Buffer.concat(pieces);
}

async function* counted(
  source: AsyncIterable<Uint8Array>,
  maximum: number,
  what: string,
): AsyncGenerator<Uint8Array, void, void> {
  let bytes = 0;
  for await (const piece of source) {
    bytes += piece.length;
    if (bytes > maximum) {
      throw new SafeFetchError('too_large', `${what} is larger than ${inWords(maximum)}`);
    }
    yield piece;
  }
}

const inWords = (bytes: number) =>
  bytes < 1_000_000 ? `${bytes.toLocaleString('en-US')} bytes` : `${bytes / 1_000_000} MB`;

async function peeked(source: AsyncGenerator<Uint8Array, void, void>) {
  const next = await source.next();
  const first = next.done === true ? new Uint8Array() : next.value;
  async function* rest() {
    yield first;
    yield* source;
  }
  return { first, rest: rest() };
}

/** A single encoding: several in a row only serve to hide decompression bombs. */
function decoderFor(encoding: string, first: Uint8Array): Transform {
  switch (encoding) {
    case 'gzip':
    case 'x-gzip':
      return createGunzip();
    case 'deflate':
      // Some servers omit the zlib header (RFC 9110 section 8.4.1.2).
      return ((first[0] ?? 0) & 0x0f) === ZLIB_METHOD ? createInflate() : createInflateRaw();
    case 'br':
      return createBrotliDecompress();
    case 'zstd':
      return createZstdDecompress();
    default:
      throw new SafeFetchError('unreadable', 'the answer is compressed in a way we cannot read');
  }
}

function explain(error: unknown): never {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  if (!/^(Z_|ERR_|ZSTD_)/.test(code) || code === 'ERR_STREAM_PREMATURE_CLOSE') throw error;
  throw new SafeFetchError('unreadable', 'the answer is not what its compression says', {
    cause: error,
  });
}

// The only way to request URLs that come from people, models or messages (cases X11 to X14): GET
// and HEAD, public addresses only, pinned for the connection, every redirect checked again, no
// cookies, bounded in time and bytes.

export type SafeFetchOptions = {
  readonly signal: AbortSignal;
  /** Default: GET. */
  readonly method?: 'GET' | 'HEAD';
  /** Sent as JSON by POST; redirects are not followed then. */
  readonly json?: unknown;
  /**
   * Names in lower case. After a redirect to another origin only content negotiation headers are
   * sent.
   */
  readonly headers?: Readonly<Record<string, string>>;
  readonly maxBytes?: number;
  readonly maxDecompressedBytes?: number;
  /** Total, including redirects and body. */
  readonly timeoutMs?: number;
  readonly maxRedirects?: number;
};

export type SafeFetched = {
  /** The URL of the response, after redirects. */
  readonly url: string;
  readonly status: number;
  /** By name in lower case. */
  readonly headers: ReadonlyMap<string, string>;
  /** From the server, e.g. `text/html; charset=utf-8`; empty if missing. */
  readonly contentType: string;
  readonly body: Uint8Array;
};

/** @throws SafeFetchError; the reason of the caller's signal */
export type SafeFetch = (url: string, options: SafeFetchOptions) => Promise<SafeFetched>;

type SafeFetchDeps = {
  /** Read at every request. */
  readonly rules: () => AddressRules;
  /** The setting, read at every request; default: none. */
  readonly proxy?: () => string;
  /** Default: the machine's. */
  readonly resolver?: HostResolver;
};

const MAX_BYTES = 2_000_000;
const MAX_DECOMPRESSED_BYTES = 5_000_000;
const TIMEOUT_MS = 20_000;
const MAX_REDIRECTS = 3;
const MAX_HEADER_BYTES = 16_384;
const USER_AGENT = 'Mozilla/5.0 (compatible; nanobot)';
const REDIRECTS = [301, 302, 303, 307, 308];
/** Headers that may be sent to a host that the caller did not name. */
const HARMLESS_HEADERS = ['accept', 'accept-language', 'range', 'user-agent'];
/** Never sent, for any caller. */
const REFUSED_HEADERS = ['cookie', 'host', 'connection', 'transfer-encoding', 'content-length'];

type Hop = SafeFetched & { readonly location: string | undefined };

export function createSafeFetch(deps: SafeFetchDeps): SafeFetch {
  const { rules, resolver = systemResolver, proxy = () => '' } = deps;
  return async (text, options) => {
    const deadline = AbortSignal.timeout(options.timeoutMs ?? TIMEOUT_MS);
    const signal = AbortSignal.any([options.signal, deadline]);
    try {
      const limits = { ...options, signal, proxy: proxy() };
      return await follow(readWebUrl(text), limits, rules(), resolver);
    } catch (error) {
      options.signal.throwIfAborted();
      throw named(error, deadline, options.timeoutMs ?? TIMEOUT_MS);
    }
  };
}

async function follow(
  start: URL,
  options: Asked,
  rules: AddressRules,
  resolver: HostResolver,
): Promise<SafeFetched> {
  const maxRedirects = options.json === undefined ? (options.maxRedirects ?? MAX_REDIRECTS) : 0;
  let url = start;
  let headers = headersOf(options);
  for (let redirects = 0; ; redirects += 1) {
    const checked = await checkAddress(url, rules, resolver, options.signal);
    const { location, ...answer } = await requestOnce(checked, headers, options);
    if (location === undefined) return answer;
    if (redirects === maxRedirects) {
      throw new SafeFetchError('redirects', `it was redirected more than ${maxRedirects} times`);
    }
    const next = readWebUrl(location, url);
    if (next.origin !== url.origin) headers = only(headers, HARMLESS_HEADERS);
    url = next;
  }
}

type Asked = SafeFetchOptions & { readonly proxy: string };

type RequestHeaders = Readonly<Record<string, string>>;

function headersOf({ headers = {} }: SafeFetchOptions): RequestHeaders {
  const wanted = Object.entries({ 'user-agent': USER_AGENT, ...headers });
  return Object.fromEntries(wanted.filter(([name]) => !REFUSED_HEADERS.includes(name)));
}

function only(headers: RequestHeaders, names: readonly string[]): RequestHeaders {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => names.includes(name)));
}

/**
 * Connects to checked addresses only, also through a proxy: it is told an address, never a name. An
 * address of the home network is reached directly.
 */
export async function connectorFor(setting: string, url: URL, checked: () => readonly string[]) {
  const proxy = readProxy(setting);
  const port = Number(url.port) || (url.protocol === 'https:' ? 443 : 80);
  const isHere = proxy === undefined || isDirect(proxy, url.hostname, port);
  if (isHere || checked().some(isHomeAddress)) return { lookup: pinnedTo(checked) };
  const { connectorThrough } = await import('./tunnel.ts');
  return connectorThrough(proxy, checked);
}

/** A connection of its own per hop: nothing is shared or kept alive. */
async function requestOnce(
  { url, addresses }: CheckedAddress,
  headers: RequestHeaders,
  options: Asked,
): Promise<Hop> {
  const { signal, json } = options;
  const method = json === undefined ? (options.method ?? 'GET') : 'POST';
  // Loaded with the first request: most gateways never make one.
  const { Client } = await import('undici');
  const client: HttpClient = new Client(url.origin, {
    connect: await connectorFor(options.proxy, url, () => addresses),
    maxHeaderSize: MAX_HEADER_BYTES,
    allowH2: false,
  });
  try {
    const answer = await client.request({
      method,
      path: `${url.pathname}${url.search}`,
      headers: {
        ...headers,
        'accept-encoding': ACCEPTED_ENCODINGS,
        ...(json === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(json === undefined ? {} : { body: JSON.stringify(json) }),
      reset: true,
      signal,
    });
    const received = receivedHeaders(answer.headers);
    const hop = {
      url: url.href,
      status: answer.statusCode,
      headers: received,
      contentType: received.get('content-type') ?? '',
    };
    const location = REDIRECTS.includes(hop.status) ? received.get('location') : undefined;
    answer.body.on('error', () => undefined);
    if (location !== undefined) return { ...hop, location, body: new Uint8Array() };
    const encoding = method === 'HEAD' ? '' : (received.get('content-encoding') ?? '');
    const body = await readBody(answer.body, encoding, {
      maxBytes: options.maxBytes ?? MAX_BYTES,
      maxDecompressedBytes: options.maxDecompressedBytes ?? MAX_DECOMPRESSED_BYTES,
    });
    return { ...hop, location: undefined, body };
  } finally {
    await client.destroy().catch(() => undefined);
  }
}

function receivedHeaders(
  headers: Readonly<Record<string, string | string[] | undefined>>,
): ReadonlyMap<string, string> {
  const received = new Map<string, string>();
  for (const [name, value] of Object.entries(headers)) {
    if (value === undefined || name === 'set-cookie') continue;
    received.set(name.toLowerCase(), typeof value === 'string' ? value : value.join(', '));
  }
  return received;
}

function named(error: unknown, deadline: AbortSignal, timeoutMs: number): SafeFetchError {
  if (error instanceof SafeFetchError) return error;
  if (deadline.aborted) {
    const text = `the server did not answer whole within ${timeoutMs / 1000} s`;
    return new SafeFetchError('timeout', text, { cause: error });
  }
  const proxy = proxyErrorIn(error);
  if (proxy !== undefined) {
    return new SafeFetchError('unreachable', proxy.message, { cause: error });
  }
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  if (code === 'UND_ERR_HEADERS_OVERFLOW') {
    return new SafeFetchError('too_large', 'the headers of the answer are too large');
  }
  const detail = /^[A-Z_]{1,40}$/.test(code) ? ` (${code})` : '';
  return new SafeFetchError('unreachable', `the server could not be reached${detail}`, {
    cause: error,
  });
}

// A body read completely, unless it is too long.

/** Undefined if it is longer; the rest is not fetched then. @throws what the connection throws */
export async function boundedBody(
  body: ReadableStream<Uint8Array> | null,
  maxBytes: number,
): Promise<Buffer | undefined> {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of body ?? []) {
    bytes += part.length;
    if (bytes > maxBytes) return undefined;
    parts.push(part);
  }
  return Buffer.concat(parts);
}

// Node's HTTP without its fetch. An ES import of `node:http` reads every name it exports, and three
// of them load the built-in fetch: some 9 MB that an idle gateway does not need.

export const nodeHttp = process.getBuiltinModule('node:http');
