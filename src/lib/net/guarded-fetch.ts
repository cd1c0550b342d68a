// A `fetch` for one origin that the owner configured, for vendors' libraries with their own
// protocol: the address is checked at every request and pinned for the connection (cases X11, X12),
// no redirect is followed, and the response is bounded, however it is sent.

import type { Agent } from 'undici';
import {
  type AddressRules,
  checkAddress,
  type HostResolver,
  readWebUrl,
  SafeFetchError,
  systemResolver,
} from './checked-address.ts';
import { connectorFor } from './safe-fetch.ts';

type GuardedFetchDeps = {
  /** Only this scheme, host and port are requested. */
  readonly origin: URL;
  readonly rules: AddressRules;
  /** The setting; default: none. */
  readonly proxy?: string;
  /** Longest response; of an endless stream of events, the longest event. */
  readonly maxBytes: number;
  /** Default: the machine's. */
  readonly resolver?: HostResolver;
};

const MAX_HEADER_BYTES = 16_384;
const MAX_CONNECTIONS = 16;
/** Headers about the encoded body, invalid once it is decoded. */
const OF_THE_BODY = ['content-encoding', 'content-length', 'transfer-encoding', 'set-cookie'];
const NO_BODY = [101, 204, 205, 304];
const NEWLINE = 0x0a;
const RETURN = 0x0d;

export function createGuardedFetch(deps: GuardedFetchDeps) {
  const { origin, rules, proxy = '', resolver = systemResolver, maxBytes } = deps;
  let addresses: readonly string[] = [];
  let agent: Promise<Agent> | undefined;
  const open = async () => {
    // Loaded with the first request: most gateways never make one.
    const { Agent: PinnedAgent } = await import('undici');
    return new PinnedAgent({
      connect: await connectorFor(proxy, origin, () => addresses),
      connections: MAX_CONNECTIONS,
      maxHeaderSize: MAX_HEADER_BYTES,
      bodyTimeout: 0,
      allowH2: false,
    });
  };
  return {
    async fetch(asked: string | URL, init: RequestInit = {}): Promise<Response> {
      const url = readWebUrl(String(asked));
      if (url.origin !== origin.origin) {
        throw new SafeFetchError('redirects', 'it leads to another server');
      }
      const signal = init.signal ?? new AbortController().signal;
      addresses = (await checkAddress(url, rules, resolver, signal)).addresses;
      agent ??= open();
      const { fetch } = await import('undici');
      // The same standard, typed twice: by undici and by Node's own copy of it.
      const request = { ...init, redirect: 'manual', dispatcher: await agent } as object;
      const answer = (await fetch(url.href, request)) as unknown as Response;
      return bounded(answer, maxBytes);
    },
    /** Closes all its connections. */
    async close(): Promise<void> {
      await (await agent)?.destroy();
    },
    /** The same after the current requests end; no new request is possible. */
    async finish(): Promise<void> {
      await (await agent)?.close();
    },
  };
}

function bounded(answer: Response, maxBytes: number): Response {
  const { status, statusText } = answer;
  const headers = new Headers(answer.headers);
  for (const name of OF_THE_BODY) headers.delete(name);
  const isStream = (headers.get('content-type') ?? '').startsWith('text/event-stream');
  const body =
    NO_BODY.includes(status) || answer.body === null
      ? null
      : answer.body.pipeThrough(counter(maxBytes, isStream));
  return new Response(body, { status, statusText, headers });
}

/** For events, only the bytes between two blank lines count together. */
function counter(maxBytes: number, isStream: boolean): TransformStream<Uint8Array, Uint8Array> {
  let bytes = 0;
  let isLineStart = false;
  return new TransformStream({
    transform(chunk, controller) {
      for (let index = 0; isStream && index < chunk.length; index += 1) {
        const byte = chunk[index];
        bytes += 1;
        if (byte === NEWLINE && isLineStart) bytes = 0;
        if (bytes > maxBytes) break;
        if (byte !== RETURN) isLineStart = byte === NEWLINE;
      }
      if (!isStream) bytes += chunk.length;
      if (bytes > maxBytes) {
        const text = `the answer is larger than ${maxBytes.toLocaleString('en-US')} bytes`;
        return controller.error(new SafeFetchError('too_large', text));
      }
      controller.enqueue(chunk);
    },
  });
}
