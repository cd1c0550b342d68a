// The HTTP server: its address, and its limits for connections and requests. Answers with the routes
// of routes.ts; refuses to serve without a valid token.

import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TokenProblem, tokenProblem } from '../kernel/config/environment.ts';
import { ConfigError, NanobotError } from '../kernel/message/errors.ts';
import { readOnce } from '../lib/async.ts';
import { systemCode } from '../lib/files/files.ts';
import { nodeHttp } from '../lib/net/safe-fetch.ts';
import { t } from '../lib/texts.ts';
import { limitUnproven } from './authentication.ts';
import type { HttpServerOptions } from './routes.ts';

export interface HttpServer extends AsyncDisposable {
  /** @throws HttpServerError if the address is not available. */
  listen(): Promise<{ readonly address: string }>;
}

export class HttpServerError extends NanobotError {
  override readonly name = 'HttpServerError';
  constructor(message: string, cause: unknown) {
    super('http_server', message, { cause });
  }
}

const MAX_HEADER_BYTES = 16_384;
/** From the first byte of a request to its last. */
const REQUEST_TIMEOUT_MS = 10_000;
const HEADERS_TIMEOUT_MS = 5000;
const TIMEOUT_CHECK_MS = 1000;
/** Longer than the heartbeat of an event stream. */
const IDLE_SOCKET_MS = 60_000;
/** Between two requests. */
const KEEP_ALIVE_MS = 72_000;
const MAX_CONNECTIONS = 1024;

export function createHttpServer(options: HttpServerOptions): HttpServer {
  const closing = new AbortController();
  const server = nodeHttp.createServer({
    requestTimeout: REQUEST_TIMEOUT_MS,
    headersTimeout: HEADERS_TIMEOUT_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    connectionsCheckingInterval: TIMEOUT_CHECK_MS,
    maxHeaderSize: MAX_HEADER_BYTES,
  });
  server.setTimeout(IDLE_SOCKET_MS);
  server.maxConnections = MAX_CONNECTIONS;
  const unproven = limitUnproven(server);
  // The routes and what they need are loaded with the first request: many people open no page.
  const routes = readOnce(async () => {
    const { createRoutes } = await import('./routes.ts');
    return createRoutes(options, server, unproven, closing.signal);
  });
  server.on('request', (request, response) => {
    routes().then(
      (answer) => answer(request, response),
      (error) => {
        options.log.error('routes not loaded', { error });
        response.writeHead(500).end();
      },
    );
  });
  return {
    listen: () => listen(server, options),
    async [Symbol.asyncDispose]() {
      closing.abort();
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      await closed;
    },
  };
}

async function listen(server: Server, { host, port }: HttpServerOptions) {
  try {
    server.listen({ host, port });
    await once(server, 'listening');
  } catch (error) {
    throw new HttpServerError(listenProblem(error, `${host}:${port}`), error);
  }
  const bound = server.address() as AddressInfo;
  return { address: `http://${reachableHost(bound.address)}:${bound.port}` };
}

function listenProblem(error: unknown, where: string): string {
  const code = systemCode(error);
  const remedy = t`Set gateway.port to another one, or 0 for any free port.`;
  if (code === 'EADDRINUSE') return t`${where} is taken by another program. ${remedy}`;
  if (code === 'EACCES') return t`${where} needs more rights than this account has. ${remedy}`;
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND' || code === 'EAI_AGAIN')
    return t`${where} is not an address of this machine. Set gateway.host.`;
  return t`${where} cannot be listened on: ${String(error)}`;
}

/** The address for programs on this machine. */
function reachableHost(address: string): string {
  if (address === '0.0.0.0') return '127.0.0.1';
  if (address === '::') return '[::1]';
  return address.includes(':') ? `[${address}]` : address;
}

const MISSING: TokenProblem = {
  problem: t`the home has no token for the gateway`,
  remedy: t`Start it with "nanobot gateway", which creates one, or set gateway.token.`,
};

/** @throws ConfigError if the token is blank, cannot be sent or is too short for other machines. */
export function assertSafeBinding(host: string, token: string): void {
  const found = tokenProblem(host, token) ?? (token === '' ? MISSING : undefined);
  if (found === undefined) return;
  const { problem, remedy } = found;
  throw new ConfigError(`${problem}. ${remedy}`, [{ path: 'gateway.token', problem, remedy }]);
}
