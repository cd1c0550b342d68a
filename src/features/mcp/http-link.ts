// The transports to hosted servers (MCP specification 2025-06-18, transports) through the guarded
// fetch: streamable HTTP, and HTTP with SSE for older servers. A stream that ends before its response
// fails the call at once; the vendor's transport would wait for the deadline.

import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import type { RequestId } from '@modelcontextprotocol/sdk/types.js';
import { inTime } from '../../lib/async.ts';
import type { HostResolver } from '../../lib/net/checked-address.ts';
import { createGuardedFetch } from '../../lib/net/guarded-fetch.ts';
import { t } from '../../lib/texts.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { LoginNeeded, type ServerLogin } from './login.ts';
import { isNear, type ToolServerConfig } from './settings.ts';
import { createFloodGuard, TOO_MUCH } from './stdio-transport.ts';

const MAX_ANSWER_BYTES = 8_000_000;
/** Time for the request that ends the session on the server. */
const GOODBYE_MS = 1000;
/** The last event of a stream is read a moment after the stream ended. */
const LAST_EVENT_MS = 1000;
const RETRIES_OF_STREAM = {
  initialReconnectionDelay: 1000,
  maxReconnectionDelay: 30_000,
  reconnectionDelayGrowFactor: 2,
  maxRetries: 2,
};
const UNAUTHORIZED = 401;
/** How servers that only know SSE answer the first POST (transports, backwards compatibility). */
const OLDER = [400, 404, 405];

export type HostedDeps = {
  readonly config: ToolServerConfig;
  readonly clock: Clock;
  /** The setting; default: none. */
  readonly proxy?: (() => string) | undefined;
  readonly resolver?: HostResolver | undefined;
  /** Of a server that may be logged in to. */
  readonly login?: Pick<ServerLogin, 'token' | 'renew'> | undefined;
};

/** A vendor transport with what only that transport knows. */
export type Link = {
  readonly transport: Transport;
  /** Why the connection ended, for an owner; undefined where unknown. */
  fault(): string | undefined;
  /** The server refused a request for want of a login. */
  needsLogin?(): boolean;
  close(): Promise<void>;
};

/**
 * Our own code, from the range left to implementations: one response was lost, the server is still
 * reachable.
 */
export const STREAM_ENDED = -32_050;

type Fetch = (asked: string | URL, init?: RequestInit) => Promise<Response>;

const nothing = () => undefined;

export function isOlderServer(error: unknown): boolean {
  return error instanceof Error && 'code' in error && OLDER.includes(Number(error.code));
}

export async function linkByHttp(deps: HostedDeps): Promise<Link> {
  const { StreamableHTTPClientTransport } = await import(
    '@modelcontextprotocol/sdk/client/streamableHttp.js'
  );
  const { config, clock } = deps;
  const wire = openWire(deps, () => void transport.close());
  const closed = new AbortController();
  const broken = (id: RequestId) => {
    const error = { code: STREAM_ENDED, message: t`the stream ended before the answer` };
    const tell = () => transport.onmessage?.({ jsonrpc: '2.0', id, error });
    clock.sleep(LAST_EVENT_MS, closed.signal).then(tell, nothing);
  };
  const transport = new StreamableHTTPClientTransport(new URL(config.url), {
    fetch: watchedFetch(wire.fetch, broken),
    requestInit: { headers: config.headers },
    reconnectionOptions: RETRIES_OF_STREAM,
  });
  return {
    // The SDK types optional members without `undefined`.
    transport: transport as Transport,
    fault: limitMessages(transport as Transport, clock),
    needsLogin: wire.needsLogin,
    async close() {
      closed.abort();
      await inTime(clock, GOODBYE_MS, transport.terminateSession().catch(nothing));
      await transport.close();
      await wire.close();
    },
  };
}

/** The stream of events is the connection: it is not resumed, because the session ends with it. */
export async function linkBySse(deps: HostedDeps): Promise<Link> {
  const { SSEClientTransport } = await import('@modelcontextprotocol/sdk/client/sse.js');
  const { config, clock } = deps;
  const wire = openWire(deps, () => void transport.close());
  const events: Fetch = async (asked, init) => {
    const answer = await wire.fetch(asked, init);
    if (!answer.ok || answer.body === null) return answer;
    return new Response(
      watched(answer.body, () => void transport.close()),
      answer,
    );
  };
  const transport = new SSEClientTransport(new URL(config.url), {
    eventSourceInit: { fetch: events },
    fetch: wire.fetch,
    requestInit: { headers: config.headers },
  });
  return {
    transport: transport as Transport,
    fault: limitMessages(transport as Transport, clock),
    needsLogin: wire.needsLogin,
    async close() {
      await transport.close();
      await wire.close();
    },
  };
}

/** Returns why the connection was closed here, if it was. */
function limitMessages(transport: Transport, clock: Clock): () => string | undefined {
  const flood = createFloodGuard(clock);
  let fault: string | undefined;
  transport.onmessage = () => {
    if (flood.take()) return;
    fault = TOO_MUCH;
    void transport.close();
  };
  return () => fault;
}

/** Requests to the server's own origin, with the token of its login. */
function openWire({ config, proxy, resolver, login }: HostedDeps, end: () => void) {
  const url = new URL(config.url);
  const guarded = createGuardedFetch({
    origin: url,
    rules: rulesFor(url, config),
    proxy: proxy?.() ?? '',
    maxBytes: MAX_ANSWER_BYTES,
    ...(resolver === undefined ? {} : { resolver }),
  });
  let isLoginNeeded = false;
  const withToken = (init: RequestInit, token: string | undefined): RequestInit => {
    if (token === undefined) return init;
    const headers = new Headers(init.headers);
    headers.set('authorization', `Bearer ${token}`);
    return { ...init, headers };
  };
  const fetch: Fetch = async (asked, init = {}) => {
    if (login === undefined) return guarded.fetch(asked, init);
    const token = await login.token();
    const answer = await guarded.fetch(asked, withToken(init, token));
    if (answer.status !== UNAUTHORIZED) return answer;
    await answer.body?.cancel();
    const next = token === undefined ? undefined : await login.renew(token);
    const again =
      next === undefined ? undefined : await guarded.fetch(asked, withToken(init, next));
    if (again !== undefined && again.status !== UNAUTHORIZED) return again;
    await again?.body?.cancel();
    isLoginNeeded = true;
    // The request that was refused fails first.
    setImmediate(end);
    throw new LoginNeeded();
  };
  return { fetch, needsLogin: () => isLoginNeeded, close: () => guarded.close() };
}

function rulesFor(url: URL, { privateNetwork }: ToolServerConfig) {
  const port = Number(url.port) || (url.protocol === 'http:' ? 80 : 443);
  const mayBeNear = privateNetwork || isNear(url.hostname);
  return { ports: [port], allowPrivateHosts: mayBeNear ? [`${url.hostname}:${port}`] : [] };
}

function watchedFetch(send: Fetch, broken: (id: RequestId) => void): Fetch {
  return async (asked, init = {}) => {
    const answer = await send(asked, init);
    const id = init.method === 'POST' ? requestIdOf(init.body) : undefined;
    const isStream = (answer.headers.get('content-type') ?? '').startsWith('text/event-stream');
    if (id === undefined || !isStream || answer.body === null) return answer;
    return new Response(
      watched(answer.body, () => broken(id)),
      answer,
    );
  };
}

function requestIdOf(body: RequestInit['body']): RequestId | undefined {
  const message: unknown = typeof body === 'string' ? JSON.parse(body) : undefined;
  if (typeof message !== 'object' || message === null || !('id' in message)) return undefined;
  const { id } = message;
  return 'method' in message && (typeof id === 'number' || typeof id === 'string') ? id : undefined;
}

/** `onEnd` is not called for streams whose events have ids: the transport resumes those. */
function watched(body: ReadableStream<Uint8Array>, onEnd: () => void): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  let hasIds = false;
  const end = () => {
    if (!hasIds) onEnd();
  };
  return new ReadableStream({
    async pull(controller) {
      try {
        const { done, value } = await reader.read();
        if (value !== undefined) {
          hasIds ||= /^id:/m.test(new TextDecoder().decode(value));
          controller.enqueue(value);
        }
        if (!done) return;
        controller.close();
        end();
      } catch (error) {
        controller.error(error);
        end();
      }
    },
    cancel: (reason) => reader.cancel(reason),
  });
}
