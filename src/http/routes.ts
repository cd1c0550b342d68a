// The routes of the HTTP server: the web page, the chat API of each local channel, health, and the
// routes of features. Every request passes authentication before its body is read; errors are
// answered with a sentence, never with a stack.

import { createHash } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import type { RequestListener, Server } from 'node:http';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { FastifyHelmetOptions } from '@fastify/helmet';
import helmet from '@fastify/helmet';
import { type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from 'fastify';
import type { LocalChannel } from '../channels/local-channel.ts';
import type { ChannelReport } from '../kernel/gateway.ts';
import { Refusal, type Route } from '../kernel/http-routes.ts';
import { NanobotError } from '../kernel/message/errors.ts';
import type { AuditLog, Gauge, MetricsPage } from '../kernel/observe/telemetry.ts';
import type { Typed } from '../kernel/typed-command.ts';
import { readOnce } from '../lib/async.ts';
import type { Logger } from '../lib/logger.ts';
import { t, translatedPage, translation } from '../lib/texts.ts';
import type { Clock } from '../lib/time/clock.ts';
import type { Access } from './access.ts';
import {
  addLoginRoutes,
  createGate,
  LOGIN_ROUTES,
  type UnprovenConnections,
} from './authentication.ts';
import { addChatRoutes, addContributedRoutes, addFileRoutes, failureReply } from './replies.ts';

const MAX_BODY_BYTES = 1_048_576;
/** Its chats are part of the documented API. */
const PAGE_CHANNEL = 'web';

const SECURITY_HEADERS = {
  contentSecurityPolicy: {
    useDefaults: false,
    directives: {
      defaultSrc: ["'none'"],
      scriptSrc: ["'self'"],
      styleSrc: ["'self'"],
      connectSrc: ["'self'"],
      imgSrc: ["'self'", 'data:'],
      mediaSrc: ['data:'],
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
  // The server speaks plain HTTP; a TLS proxy in front of it decides about this.
  strictTransportSecurity: false,
} as const satisfies FastifyHelmetOptions;

// The files of the web page: those of its folder and the built scripts; others cannot be requested.
// They are read once, on the first request.

const PAGE_FOLDER = join(import.meta.dirname, 'page');
/** The bundle includes a copy: the packages are not installed beside it. */
const vendorFile = (name: string, ofPackage: string) =>
  fileURLToPath(
    new URL(
      name,
      import.meta.url.endsWith('.ts') ? import.meta.resolve(ofPackage) : import.meta.url,
    ),
  );

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.mjs': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.webmanifest': 'application/manifest+json',
};

/** Scripts are built. */
const STATIC = new Set(['.html', '.css', '.svg', '.png', '.webmanifest']);

type PageFile = { readonly type: string; readonly body: Buffer; readonly etag: string };

/** URL path to a reader of the file. `typed` gives commands in the form used on this machine. */
function pageFiles(typed: Typed): ReadonlyMap<string, () => Promise<PageFile>> {
  const own = readdirSync(PAGE_FOLDER).filter((name) => STATIC.has(extname(name)));
  return new Map([
    ['/', pageFile(join(PAGE_FOLDER, 'index.html'), (html) => translatedPage(typed(html)))],
    ['/api/docs', pageFile(join(PAGE_FOLDER, 'api-docs.html'), translatedPage)],
    ['/vendor/ttag.js', pageFile(vendorFile('ttag.esm.min.mjs', 'ttag'), (text) => text)],
    ...own.map((name) => [`/${name}`, pageFile(join(PAGE_FOLDER, name), typed)] as const),
    ['/texts.js', pageFile(join(PAGE_FOLDER, 'texts.js'), (js) => js.replace('null', translation))],
  ]);
}

const pageFile = (path: string, typed: Typed): (() => Promise<PageFile>) =>
  readOnce(async () => {
    const content = await readFile(path);
    return served(path, path.endsWith('.png') ? content : Buffer.from(typed(content.toString())));
  });

function served(path: string, body: Buffer): PageFile {
  const etag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 16)}"`;
  return { type: TYPES[extname(path)] ?? 'application/octet-stream', body, etag };
}

type BuiltFiles = ReadonlyMap<string, PageFile>;

/** The scripts of the page, under /built/. The bundle includes them; a checkout builds them. */
function builtFiles(typed: Typed): () => Promise<BuiltFiles> {
  return readOnce(async () => {
    const files = await (import.meta.url.endsWith('.ts') ? buildNow() : readBuilt());
    return new Map(
      [...files].map(([name, text]) => [name, served(name, Buffer.from(typed(text)))]),
    );
  });
}

async function readBuilt() {
  const folder = join(PAGE_FOLDER, 'built');
  const read = readdirSync(folder).map(
    async (name) => [name, await readFile(join(folder, name), 'utf8')] as const,
  );
  return new Map(await Promise.all(read));
}

async function buildNow() {
  // By an address that is computed: the bundle must not contain the compiler.
  const script = new URL('../../scripts/page.ts', import.meta.url).href;
  const { buildPage }: typeof import('../../scripts/page.ts') = await import(script);
  return (await buildPage()).files;
}

export type HttpServerOptions = {
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  /** Required for everything but the page's own files and /healthz. */
  readonly access: Access;
  /** Ends every login, and a token that the gateway generated. */
  readonly revokeAll: () => Promise<void>;
  /** Names of the server besides its own address and loopback. */
  readonly allowedHosts: readonly string[];
  /** By the name in their path: /api/<name>/chats. */
  readonly localChannels: Readonly<Record<string, LocalChannel>>;
  /** Stops the running turn in a chat of a local channel. */
  readonly stop: (localChannel: string, chat: string) => Promise<void>;
  readonly health: () => Health;
  /** Of features. */
  readonly routes: readonly Route[];
  /** Absent if it is off. */
  readonly metrics: MetricsPage | undefined;
  readonly gauges: () => Promise<readonly Gauge[]>;
  readonly audit: AuditLog;
  /**
   * Gives commands in the page's texts the form in which the person who started the gateway types
   * them.
   */
  readonly typed: Typed;
  /** Masks the values of secrets in responses. */
  readonly redact: (text: string) => string;
  readonly log: Logger;
  readonly clock: Clock;
};

/** zod validates the input; by default fastify would load two compilers of JSON Schema. */
const NO_COMPILERS = { buildValidator: noSchemas, buildSerializer: noSchemas };

function noSchemas(): never {
  throw new NanobotError('route_schema', t`no route of this server has a schema`);
}

export async function createRoutes(
  options: HttpServerOptions,
  server: Server,
  unproven: UnprovenConnections,
  closing: AbortSignal,
): Promise<RequestListener> {
  const app = fastify({
    logger: false,
    trustProxy: false,
    exposeHeadRoutes: false,
    bodyLimit: MAX_BODY_BYTES,
    serverFactory: () => server,
    schemaController: { compilersFactory: NO_COMPILERS },
  });
  app.register(helmet, SECURITY_HEADERS);
  app.decorateRequest('credential', undefined);
  app.addHook('onRequest', createGate(options, unproven));
  app.addHook('onSend', async (_request, _reply, payload) =>
    typeof payload === 'string' ? options.redact(payload) : payload,
  );
  app.setErrorHandler(failureReply(options.log));
  app.setNotFoundHandler((_request, reply) =>
    reply.code(404).send({ error: { code: 'not_found', message: t`Not found.` } }),
  );
  addHealthRoutes(app, options);
  addMetricsRoute(app, options);
  addPage(app, options.typed);
  app.get('/api/v1/openapi.json', async (_request, reply) => {
    const { openApiDocument } = await import('./openapi.ts');
    reply.header('cache-control', 'no-store');
    const { CHAT_ROUTES } = await import('./chat-schemas.ts');
    return openApiDocument(options.routes, { ...CHAT_ROUTES, ...LOGIN_ROUTES });
  });
  addLoginRoutes(app, options);
  addContributedRoutes(app, options.routes, { clock: options.clock, closing });
  for (const [name, localChannel] of Object.entries(options.localChannels)) {
    for (const base of [`/api/${name}`, ...(name === PAGE_CHANNEL ? ['/api/v1'] : [])]) {
      addChatRoutes(app, `${base}/chats`, {
        localChannel,
        clock: options.clock,
        stop: (chat) => options.stop(name, chat),
        closing,
      });
      if (localChannel.files !== undefined) addFileRoutes(app, `${base}/files`, localChannel.files);
    }
  }
  await app.ready();
  return app.routing;
}

// Liveness, readiness (a running channel has stalled when it completes no poll, IDLE or ping for a
// while) and the metrics for Prometheus, which require the gateway's token: a login of the page is
// not enough.

/** What readiness is judged by. */
export type Health = {
  readonly channels: readonly Pick<ChannelReport, 'name' | 'status' | 'waiting'>[];
  /** How long the disk has been delaying a write of the store. */
  readonly storeWaitMs: number;
};

/** A channel that completed nothing for this long has stalled. */
const STALLED_MS = 150_000;
/** A disk that delays a write for this long has a problem. */
const SLOW_STORE_MS = 5000;

/** A channel that is off does not count; one that is starting or failing is not ready. */
export function readinessOf({ channels, storeWaitMs }: Health, now: number) {
  const judged = channels.map(({ name, status, waiting }) => {
    const held = waiting === undefined ? {} : { waiting };
    if (status.kind !== 'running') return { name, ready: status.kind === 'off', status, ...held };
    // Since the last completed poll, IDLE or ping.
    const idleMs = Math.max(0, now - status.activeAt);
    return { name, ready: idleMs <= STALLED_MS, status, ...held, idleMs };
  });
  const store = { ready: storeWaitMs <= SLOW_STORE_MS, waitMs: storeWaitMs };
  const ready = store.ready && judged.every((channel) => channel.ready);
  return { ready, store, channels: judged };
}

function addHealthRoutes(app: FastifyInstance, { health, clock }: HttpServerOptions) {
  app.get('/healthz', { config: { isOpen: true } }, async () => ({ status: 'alive' }));
  app.get('/readyz', async (_request, reply) => {
    const readiness = readinessOf(health(), clock.now());
    return reply.code(readiness.ready ? 200 : 503).send(readiness);
  });
}

function addMetricsRoute(app: FastifyInstance, { metrics: page, gauges }: HttpServerOptions) {
  if (page === undefined) return;
  app.get('/metrics', async (request, reply) => {
    if (request.credential?.kind !== 'token') {
      const message = 'Metrics need the gateway token: send it as a bearer token.';
      throw new Refusal(403, 'token_needed', message);
    }
    return reply
      .header('cache-control', 'no-store')
      .type(page.contentType)
      .send(await page.render(await gauges()));
  });
}

function addPage(app: FastifyInstance, typed: Typed) {
  for (const [path, read] of pageFiles(typed)) {
    app.get(path, { config: { isOpen: true } }, async (request, reply) =>
      sendFile(await read(), request, reply),
    );
  }
  const built = builtFiles(typed);
  app.get('/built/:name', { config: { isOpen: true } }, async (request, reply) => {
    const { name } = request.params as { readonly name: string };
    const file = (await built()).get(name);
    if (file === undefined) return reply.callNotFound();
    return sendFile(file, request, reply);
  });
}

function sendFile({ type, body, etag }: PageFile, request: FastifyRequest, reply: FastifyReply) {
  reply.header('etag', etag).header('cache-control', 'no-cache');
  if (request.headers['if-none-match'] === etag) return reply.code(304).send();
  return reply.type(type).send(body);
}
