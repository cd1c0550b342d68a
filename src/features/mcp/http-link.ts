// The way to a server at an address (specification of 2025-06-18, transports, streamable HTTP), through
// the guarded way out. A stream of events that ends before its answer came fails the call at once; the
// vendor's transport would wait until the deadline.

import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import type { RequestId } from '@modelcontextprotocol/sdk/types.js';
import type { HostResolver } from '../../lib/net/checked-address.ts';
import { createGuardedFetch, type GuardedFetch } from '../../lib/net/guarded-fetch.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { STREAM_ENDED } from './call-failure.ts';
import { createFloodGuard, TOO_MUCH } from './flood.ts';
import type { Link } from './link.ts';
import { isNear, type ToolServerConfig } from './settings.ts';

export type HttpLinkDeps = {
  readonly config: ToolServerConfig;
  readonly clock: Clock;
  readonly resolver?: HostResolver;
};

const MAX_ANSWER_BYTES = 8_000_000;
/** For a server to be told that nobody listens any more. */
const GOODBYE_MS = 1000;
/** The last event of a stream is read a moment after the stream ended. */
const LAST_EVENT_MS = 1000;
const RETRIES_OF_STREAM = {
  initialReconnectionDelay: 1000,
  maxReconnectionDelay: 30_000,
  reconnectionDelayGrowFactor: 2,
  maxRetries: 2,
};

export async function linkByHttp({ config, clock, resolver }: HttpLinkDeps): Promise<Link> {
  const { StreamableHTTPClientTransport } = await import(
    '@modelcontextprotocol/sdk/client/streamableHttp.js'
  );
  const url = new URL(config.url);
  const guarded = createGuardedFetch({
    origin: url,
    rules: rulesFor(url, config),
    maxBytes: MAX_ANSWER_BYTES,
    ...(resolver === undefined ? {} : { resolver }),
  });
  const closed = new AbortController();
  const broken = (id: RequestId) => {
    const error = { code: STREAM_ENDED, message: 'the stream ended before the answer' };
    clock.sleep(LAST_EVENT_MS, closed.signal).then(
      () => transport.onmessage?.({ jsonrpc: '2.0', id, error }),
      () => undefined,
    );
  };
  const transport = new StreamableHTTPClientTransport(url, {
    fetch: watchedFetch(guarded, broken),
    requestInit: { headers: config.headers },
    reconnectionOptions: RETRIES_OF_STREAM,
  });
  const flood = createFloodGuard(clock);
  let fault: string | undefined;
  transport.onmessage = () => {
    if (flood.take()) return;
    fault = TOO_MUCH;
    void transport.close();
  };
  return {
    // Its optional members are typed without `undefined`.
    transport: transport as Transport,
    fault: () => fault,
    async close() {
      closed.abort();
      const waiting = new AbortController();
      const late = clock.sleep(GOODBYE_MS, waiting.signal).catch(() => undefined);
      await Promise.race([transport.terminateSession().catch(() => undefined), late]);
      waiting.abort();
      await transport.close();
      await guarded.close();
    },
  };
}

function rulesFor(url: URL, { privateNetwork }: ToolServerConfig) {
  const port = Number(url.port) || (url.protocol === 'http:' ? 80 : 443);
  const mayBeNear = privateNetwork || isNear(url.hostname);
  return { ports: [port], allowPrivateHosts: mayBeNear ? [`${url.hostname}:${port}`] : [] };
}

function watchedFetch(guarded: GuardedFetch, broken: (id: RequestId) => void) {
  return async (asked: string | URL, init: RequestInit = {}): Promise<Response> => {
    const answer = await guarded.fetch(asked, init);
    const id = init.method === 'POST' ? requestIdOf(init.body) : undefined;
    const isStream = (answer.headers.get('content-type') ?? '').startsWith('text/event-stream');
    if (id === undefined || !isStream || answer.body === null) return answer;
    const { status, statusText, headers } = answer;
    return new Response(
      watched(answer.body, () => broken(id)),
      { status, statusText, headers },
    );
  };
}

function requestIdOf(body: RequestInit['body']): RequestId | undefined {
  const message: unknown = typeof body === 'string' ? JSON.parse(body) : undefined;
  if (typeof message !== 'object' || message === null || !('id' in message)) return undefined;
  const { id } = message;
  return 'method' in message && (typeof id === 'number' || typeof id === 'string') ? id : undefined;
}

/** `onEnd` is not told of streams whose events have ids: the transport takes those up again. */
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
