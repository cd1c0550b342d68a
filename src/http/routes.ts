// The routes of the HTTP server: the web page, the chat API of each local channel, health, and the
// routes of features. Every request passes authentication before its body is read; errors are
// answered with a sentence, never with a stack.

import type { RequestListener, Server } from 'node:http';
import type { FastifyHelmetOptions } from '@fastify/helmet';
import helmet from '@fastify/helmet';
import { type FastifyInstance, fastify } from 'fastify';
import type { LocalChannel } from '../channels/local-channel.ts';
import type { Kernel } from '../kernel/feature.ts';
import type { ChannelReport } from '../kernel/gateway.ts';
import { Refusal, type Route } from '../kernel/http-routes.ts';
import { NanobotError } from '../kernel/message/errors.ts';
import type { AuditLog, Gauge, MetricsPage } from '../kernel/observe/telemetry.ts';
import type { Typed } from '../kernel/typed-command.ts';
import { t } from '../lib/texts.ts';
import type { Access } from './access.ts';
import {
  addLoginRoutes,
  createGate,
  LOGIN_ROUTES,
  type UnprovenConnections,
} from './authentication.ts';
import { addPage } from './page-files.ts';
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
      frameSrc: ["'self'"],
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

export type HttpServerOptions = Pick<Kernel, 'log' | 'clock'> & {
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
