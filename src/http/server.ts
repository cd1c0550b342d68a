// The HTTP server: the web page, the chat API of each built-in channel, channels, people and health.
// Every request passes authentication before its body is read; errors are answered with a sentence,
// never with a stack. It refuses to serve without a valid token.

import { createHash } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { FastifyHelmetOptions } from '@fastify/helmet';
import helmet from '@fastify/helmet';
import { type FastifyInstance, fastify } from 'fastify';
import type { SpendingGuard } from '../agent/spending.ts';
import type { Door } from '../channels/door.ts';
import { addLendingRoutes } from '../features/cluster/lending-routes.ts';
import { addSelfTestRoutes, type SelfTest } from '../features/health/self-test-routes.ts';
import { addPeopleRoutes, type PeopleControl } from '../features/people/people-routes.ts';
import { type TokenProblem, tokenProblem } from '../kernel/config/environment.ts';
import { ConfigError, NanobotError } from '../kernel/message/errors.ts';
import type { AuditLog, GaugeValues, MetricsPage } from '../kernel/observe/telemetry.ts';
import type { Typed } from '../kernel/typed-command.ts';
import { readOnce } from '../lib/async.ts';
import type { Logger } from '../lib/logger.ts';
import type { Clock } from '../lib/time/clock.ts';
import type { Access } from './access.ts';
import { addLoginRoutes, createGate, limitUnproven } from './authentication.ts';
import {
  addChannelRoutes,
  addMetricsRoute,
  type ChannelControl,
  type GatewayStatus,
  readinessOf,
} from './channel-routes.ts';
import { addChatRoutes, addFileRoutes } from './chat-routes.ts';
import { failureReply } from './replies.ts';

const SECURITY_HEADERS = {
  contentSecurityPolicy: {
    useDefaults: false,
    directives: {
      defaultSrc: ["'none'"],
      scriptSrc: ["'self'"],
      styleSrc: ["'self'"],
      connectSrc: ["'self'"],
      imgSrc: ["'self'", 'data:'],
      manifestSrc: ["'self'"],
      baseUri: ["'none'"],
      formAction: ["'none'"],
      frameAncestors: ["'none'"],
      requireTrustedTypesFor: ["'script'"],
      trustedTypes: ["'none'"],
    },
  },
  referrerPolicy: { policy: 'no-referrer' },
  xFrameOptions: { action: 'deny' },
  // The server speaks plain HTTP; whoever puts TLS before it decides about this.
  strictTransportSecurity: false,
} as const satisfies FastifyHelmetOptions;

// The files of the web page, each named here: what is not in the table cannot be asked for. They are
// read once, when first asked for.

const PAGE_FOLDER = join(import.meta.dirname, 'page');
const MARKED = new URL('marked.esm.js', import.meta.resolve('marked'));

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.webmanifest': 'application/manifest+json',
};

type PageFile = { readonly type: string; readonly body: Buffer; readonly etag: string };

/** URL path to a reader of the file. `typed` names commands as they are typed on this machine. */
function pageFiles(typed: Typed): ReadonlyMap<string, () => Promise<PageFile>> {
  const own = readdirSync(PAGE_FOLDER).filter((name) => TYPES[extname(name)] !== undefined);
  return new Map([
    ['/', pageFile(join(PAGE_FOLDER, 'index.html'), typed)],
    ['/vendor/marked.js', pageFile(fileURLToPath(MARKED), (text) => text)],
    ...own.map((name) => [`/${name}`, pageFile(join(PAGE_FOLDER, name), typed)] as const),
  ]);
}

const pageFile = (path: string, typed: Typed): (() => Promise<PageFile>) =>
  readOnce(async () => {
    const body = Buffer.from(typed(await readFile(path, 'utf8')));
    const etag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 16)}"`;
    return { type: TYPES[extname(path)] ?? 'application/octet-stream', body, etag };
  });

export type HttpServerOptions = {
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  /** Asked for everything but the page's own files and /healthz. */
  readonly access: Access;
  /** Ends every login, and a token that the gateway made itself. */
  readonly revokeAll: () => Promise<void>;
  /** Names under which the server may be reached besides its own address and loopback. */
  readonly allowedHosts: readonly string[];
  /** By the name in their path: /api/<name>/chats. */
  readonly doors: Readonly<Record<string, Door>>;
  /** Stops what runs in a chat of a door. */
  readonly stop: (door: string, chat: string) => Promise<void>;
  readonly status: () => GatewayStatus;
  readonly control: ChannelControl;
  readonly people: PeopleControl;
  /** Counts the calls of other processes. */
  readonly spending: Pick<SpendingGuard, 'reserve'>;
  readonly selfTest: SelfTest;
  /** Left out where it is switched off. */
  readonly metrics: MetricsPage | undefined;
  readonly gauges: () => Promise<GaugeValues>;
  readonly audit: AuditLog;
  /** Names commands in the page's texts as the person who started the gateway types them. */
  readonly typed: Typed;
  /** Masks the values of secrets in what is answered. */
  readonly redact: (text: string) => string;
  readonly log: Logger;
  readonly clock: Clock;
};

export interface HttpServer extends AsyncDisposable {
  /** @throws HttpServerError when the address cannot be had. */
  listen(): Promise<{ readonly address: string }>;
}

export class HttpServerError extends NanobotError {
  override readonly name = 'HttpServerError';
  constructor(message: string, cause: unknown) {
    super('http_server', message, { cause });
  }
}

const MAX_BODY_BYTES = 1_048_576;
const MAX_HEADER_BYTES = 16_384;
/** From the first byte of a request to its last. */
const REQUEST_TIMEOUT_MS = 10_000;
const HEADERS_TIMEOUT_MS = 5000;
const TIMEOUT_CHECK_MS = 1000;
/** Longer than the heartbeat of an event stream. */
const IDLE_SOCKET_MS = 60_000;
const MAX_CONNECTIONS = 1024;

/** What comes in is checked by zod; left alone, fastify would load two compilers of JSON Schema. */
const NO_COMPILERS = { buildValidator: noSchemas, buildSerializer: noSchemas };

function noSchemas(): never {
  throw new NanobotError('route_schema', 'no route of this server has a schema');
}

export function createHttpServer(options: HttpServerOptions): HttpServer {
  const closing = new AbortController();
  const app = fastify({
    logger: false,
    trustProxy: false,
    exposeHeadRoutes: false,
    bodyLimit: MAX_BODY_BYTES,
    requestTimeout: REQUEST_TIMEOUT_MS,
    connectionTimeout: IDLE_SOCKET_MS,
    forceCloseConnections: true,
    http: {
      headersTimeout: HEADERS_TIMEOUT_MS,
      connectionsCheckingInterval: TIMEOUT_CHECK_MS,
      maxHeaderSize: MAX_HEADER_BYTES,
    },
    schemaController: { compilersFactory: NO_COMPILERS },
  });
  app.server.maxConnections = MAX_CONNECTIONS;
  const unproven = limitUnproven(app.server);
  app.register(helmet, SECURITY_HEADERS);
  app.decorateRequest('credential', undefined);
  app.addHook('onRequest', createGate(options, unproven));
  app.addHook('onSend', async (_request, _reply, payload) =>
    typeof payload === 'string' ? options.redact(payload) : payload,
  );
  app.setErrorHandler(failureReply(options.log));
  app.setNotFoundHandler((_request, reply) =>
    reply.code(404).send({ error: { code: 'not_found', message: 'There is nothing here.' } }),
  );
  addHealthRoutes(app, options);
  addMetricsRoute(app, options);
  addPage(app, options.typed);
  addLoginRoutes(app, options);
  addChannelRoutes(app, { ...options, closing: closing.signal });
  addPeopleRoutes(app, options);
  addSelfTestRoutes(app, { ...options, closing: closing.signal });
  addLendingRoutes(app, { ...options, closing: closing.signal });
  for (const [name, door] of Object.entries(options.doors)) {
    addChatRoutes(app, `/api/${name}/chats`, {
      door,
      clock: options.clock,
      stop: (chat) => options.stop(name, chat),
      closing: closing.signal,
    });
    if (door.files !== undefined) addFileRoutes(app, `/api/${name}/files`, door.files);
  }
  return {
    listen: () => listen(app, options),
    async [Symbol.asyncDispose]() {
      closing.abort();
      await app.close();
    },
  };
}

function addHealthRoutes(app: FastifyInstance, { status, clock }: HttpServerOptions) {
  app.get('/healthz', { config: { isOpen: true } }, async () => ({ status: 'alive' }));
  app.get('/readyz', async (_request, reply) => {
    const readiness = readinessOf(status(), clock.now());
    return reply.code(readiness.ready ? 200 : 503).send(readiness);
  });
  app.get('/api/status', async () => status());
}

function addPage(app: FastifyInstance, typed: Typed) {
  for (const [path, read] of pageFiles(typed)) {
    app.get(path, { config: { isOpen: true } }, async (request, reply) => {
      const { type, body, etag } = await read();
      reply.header('etag', etag).header('cache-control', 'no-cache');
      if (request.headers['if-none-match'] === etag) return reply.code(304).send();
      return reply.type(type).send(body);
    });
  }
}

async function listen(app: FastifyInstance, { host, port }: HttpServerOptions) {
  try {
    await app.listen({ host, port });
  } catch (error) {
    throw new HttpServerError(listenProblem(error, `${host}:${port}`), error);
  }
  const bound = app.server.address() as AddressInfo;
  return { address: `http://${reachableHost(bound.address)}:${bound.port}` };
}

function listenProblem(error: unknown, where: string): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  const remedy = 'Set gateway.port to another one, or 0 for any free port.';
  if (code === 'EADDRINUSE') return `${where} is taken by another program. ${remedy}`;
  if (code === 'EACCES') return `${where} may not be used by this account. ${remedy}`;
  if (code === 'EADDRNOTAVAIL') return `${where} is no address of this machine. Set gateway.host.`;
  return `${where} cannot be listened on: ${String(error)}`;
}

/** The address for programs on this machine. */
function reachableHost(address: string): string {
  if (address === '0.0.0.0') return '127.0.0.1';
  if (address === '::') return '[::1]';
  return address.includes(':') ? `[${address}]` : address;
}

const MISSING: TokenProblem = {
  problem: 'the home has no token for the gateway',
  remedy: 'Start it by "nanobot gateway", which makes one, or set gateway.token.',
};

/** @throws ConfigError when the token is blank, cannot be sent or is too short for other machines. */
export function assertSafeBinding(host: string, token: string): void {
  const found = tokenProblem(host, token) ?? (token === '' ? MISSING : undefined);
  if (found === undefined) return;
  const { problem, remedy } = found;
  throw new ConfigError(`${problem}. ${remedy}`, [{ path: 'gateway.token', problem, remedy }]);
}
