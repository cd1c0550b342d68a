// Which requests are permitted: Host and Origin checks, token or login, limits for wrong tokens and
// unauthenticated connections (case H07), and login by one-time code.

import type { IncomingHttpHeaders, IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { Refusal, type RouteSchemas, valid } from '../kernel/http-routes.ts';
import type { AuditLog } from '../kernel/observe/telemetry.ts';
import { RecentMap } from '../lib/async.ts';
import { isLoopbackHost } from '../lib/net/address-rules.ts';
import { t } from '../lib/texts.ts';
import type { Clock } from '../lib/time/clock.ts';
import { type Access, type Credential, isSessionSecret } from './access.ts';

const MAX_WRONG_TOKENS = 10;
const WRONG_TOKEN_WINDOW_MS = 60_000;
/** After too many wrong tokens. */
const LOCK_MS = 5 * 60_000;
/** Clients that are tracked; beyond that the oldest entry is dropped. */
const MAX_CLIENTS = 10_000;

type TokenVerdict =
  | { readonly kind: 'right'; readonly credential: Credential }
  | { readonly kind: 'missing' }
  | { readonly kind: 'wrong' }
  /** A former session secret, or one in its form: too long to guess, so not counted. */
  | { readonly kind: 'ended' }
  /** Too many wrong tokens: this one was not checked. */
  | { readonly kind: 'limited'; readonly retryAfterMs: number };

type Window = { readonly endsAt: number; readonly wrong: number };

/** Checks the credential of a request. */
function createTokenGuard(access: Access, clock: Clock) {
  const windows = new RecentMap<string, Window>(MAX_CLIENTS);

  function windowOf(client: string): Window {
    const window = windows.get(client);
    const now = clock.monotonic();
    if (window !== undefined && window.endsAt > now) return window;
    return { endsAt: now + WRONG_TOKEN_WINDOW_MS, wrong: 0 };
  }

  function countWrong(client: string) {
    const { wrong: before, endsAt } = windowOf(client);
    const wrong = before + 1;
    const isLocked = wrong >= MAX_WRONG_TOKENS;
    windows.set(client, { wrong, endsAt: isLocked ? clock.monotonic() + LOCK_MS : endsAt });
  }

  return async (
    authorization: string | undefined,
    address: string | undefined,
  ): Promise<TokenVerdict> => {
    const offered = /^Bearer ([\x21-\x7e]+)$/i.exec(authorization ?? '')?.[1];
    if (offered === undefined) return { kind: 'missing' };
    // Before the limit: guessing tokens must not lock out a logged-in page.
    const session = await access.bySession(offered);
    if (session !== undefined) return { kind: 'right', credential: session };
    const client = clientKey(address);
    const { wrong, endsAt } = windowOf(client);
    if (wrong >= MAX_WRONG_TOKENS) {
      return { kind: 'limited', retryAfterMs: endsAt - clock.monotonic() };
    }
    const credential = access.byToken(offered);
    if (credential !== undefined) return { kind: 'right', credential };
    if (isSessionSecret(offered)) return { kind: 'ended' };
    countWrong(client);
    return { kind: 'wrong' };
  };
}

/** One key per client: IPv4 also if it is mapped into IPv6, else the IPv6 network (/64). */
export function clientKey(address: string | undefined): string {
  const plain = (address ?? '').toLowerCase().replace(/^::ffff:(?=\d+\.)/, '');
  if (!plain.includes(':')) return plain;
  const [head = '', tail] = plain.split('::');
  const groups = head.split(':').filter((group) => group !== '');
  const rest = tail === undefined ? [] : tail.split(':').filter((group) => group !== '');
  const zeros = Array.from({ length: 8 - groups.length - rest.length }, () => '0');
  return [...groups, ...(tail === undefined ? [] : zeros), ...rest].slice(0, 4).join(':');
}

// Unauthenticated connections get only a few places, per client and in total: the one that has been
// silent longest is closed. One that waits for a response is closed last (case H07).

/** More than the six that a browser opens to one host. */
export const MAX_UNPROVEN_PER_CLIENT = 8;
const MAX_UNPROVEN = 64;

type Connection = { readonly client: string; requests: number };

export type UnprovenConnections = ReturnType<typeof limitUnproven>;

export function limitUnproven(server: Server) {
  // In the order of their last activity.
  const open = new Map<Socket, Connection>();

  function evict(client: string) {
    const all = [...open];
    const ofClient = all.filter(([, connection]) => connection.client === client);
    if (ofClient.length > MAX_UNPROVEN_PER_CLIENT) quietest(ofClient)?.destroy();
    else if (all.length > MAX_UNPROVEN) quietest(all)?.destroy();
  }

  function heard(socket: Socket, change: number) {
    const connection = open.get(socket);
    if (connection === undefined) return;
    connection.requests += change;
    open.delete(socket);
    open.set(socket, connection);
  }

  server.on('connection', (socket) => {
    const client = clientKey(socket.remoteAddress);
    open.set(socket, { client, requests: 0 });
    socket.once('close', () => open.delete(socket));
    evict(client);
  });
  server.on('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
    heard(socket, 1);
    response.once('close', () => heard(socket, -1));
  });
  return {
    /** A valid token or login came over it: it no longer counts. */
    proven: (socket: Socket) => open.delete(socket),
  };
}

function quietest(connections: readonly [Socket, Connection][]): Socket | undefined {
  const quiet = connections.find(([, { requests }]) => requests === 0);
  return (quiet ?? connections[0])?.[0];
}

// What every request passes before its body is read: the Host is ours, the Origin is our own page,
// it has a token or login, and its body is JSON.

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Needs no token and may be requested from anywhere: the page's files, /healthz. */
    isOpen?: true;
    /** Takes a form with a file instead of JSON. */
    isUpload?: true;
    /** Carries its own proof in its body. */
    isLogin?: true;
  }
  interface FastifyRequest {
    /** The accepted credential; undefined if none is needed. */
    credential: Credential | undefined;
  }
}

type GateOptions = HostRules & { readonly access: Access; readonly clock: Clock };

/** Another page could send it without a preflight, but not with the required credential. */
const FORM_TYPE = /^multipart\/form-data; ?boundary=/i;
const JSON_TYPE = /^application\/json(?:; ?charset=utf-8)?$/i;

export function createGate(
  options: GateOptions,
  unproven: UnprovenConnections,
): (request: FastifyRequest) => Promise<void> {
  const judge = createTokenGuard(options.access, options.clock);
  return async (request) => {
    checkHost(request, options);
    const { isOpen, isLogin, isUpload } = request.routeOptions.config;
    if (isOpen === true) return;
    checkOrigin(request);
    if (isLogin !== true) {
      request.credential = await credentialOf(request, judge);
      unproven.proven(request.raw.socket);
    }
    checkType(request, isUpload === true ? FORM_TYPE : JSON_TYPE);
  };
}

function checkHost({ headers, socket }: FastifyRequest, rules: HostRules) {
  if (isHostAllowed(headers.host, socket.localAddress, rules)) return;
  const remedy = t`Add the name to gateway.allowedHosts if it is yours.`;
  throw new Refusal(421, 'host_refused', t`The gateway does not answer under this name. ${remedy}`);
}

function checkOrigin({ headers }: FastifyRequest) {
  if (isSameOrigin(headers)) return;
  throw new Refusal(403, 'origin_refused', t`Only the gateway’s own page may request this.`);
}

async function credentialOf(
  { headers, socket }: FastifyRequest,
  judge: ReturnType<typeof createTokenGuard>,
): Promise<Credential> {
  const verdict = await judge(headers.authorization, socket.remoteAddress);
  switch (verdict.kind) {
    case 'right':
      return verdict.credential;
    case 'missing':
      throw new Refusal(
        401,
        'token_missing',
        t`Log in: "nanobot link" prints a link for the page.`,
      );
    case 'wrong':
      throw new Refusal(401, 'token_wrong', t`Wrong token.`);
    case 'ended':
      throw new Refusal(401, 'login_ended', t`You were logged out.`);
    case 'limited': {
      const retryAfterSecs = Math.ceil(verdict.retryAfterMs / 1000);
      const message = t`Too many wrong tokens. Try again in ${retryAfterSecs} seconds.`;
      throw new Refusal(429, 'token_limited', message, { retryAfterSecs });
    }
  }
}

/** Refuses a type that a foreign web page could send without a preflight. */
function checkType({ method, headers }: FastifyRequest, type: RegExp) {
  if (method === 'GET' || type.test(headers['content-type'] ?? '')) return;
  const wanted = type === JSON_TYPE ? 'application/json' : 'multipart/form-data';
  throw new Refusal(415, 'type_refused', t`Send "Content-Type: ${wanted}".`);
}

// Whether a request may come from its stated source: pure checks on its headers against DNS
// rebinding (Host) and foreign web pages (Origin, Sec-Fetch-Site). Headers added by a proxy are not
// read.

type HostRules = {
  /** The address the server listens on. */
  readonly host: string;
  /** Further names of the server. */
  readonly allowedHosts: readonly string[];
};

/** `[::1]:18790` gives `::1`; undefined if it is no host with an optional port. */
function hostNameOf(host: string | undefined): string | undefined {
  const match = /^(?:\[([0-9a-f:.]+)\]|([a-z0-9_.-]+))(?::\d{1,5})?$/i.exec(host ?? '');
  return (match?.[1] ?? match?.[2])?.toLowerCase();
}

/** `localAddress`: where the connection arrived; an address cannot be rebound as a name can. */
export function isHostAllowed(
  host: string | undefined,
  localAddress: string | undefined,
  rules: HostRules,
): boolean {
  const name = hostNameOf(host);
  if (name === undefined) return false;
  const allowed = [rules.host, ...rules.allowedHosts].map((entry) => hostNameOf(entry) ?? entry);
  return (
    isLoopbackHost(name) ||
    allowed.includes(name) ||
    name === localAddress?.replace(/^::ffff:/, '').toLowerCase()
  );
}

/**
 * A browser names the page that sends a request; it must be ours. Programs name none. Call it for
 * requests whose Host is allowed.
 */
function isSameOrigin(headers: IncomingHttpHeaders): boolean {
  const { origin, host } = headers;
  const site = headers['sec-fetch-site'];
  if (site !== undefined && site !== 'same-origin' && site !== 'none') return false;
  return origin === undefined || origin === `http://${host}` || origin === `https://${host}`;
}

// Login of a page: the holder of the token creates a one-time code, the page redeems it.
//
// POST /api/links   {revokeAll?}; {code, expiresAt}; only with the token
// POST /api/login   {code}; {session}: the secret that the page sends from now on

type LoginRoutesOptions = {
  readonly access: Access;
  /** Ends every login and, if the gateway generated its token, that token. */
  readonly revokeAll: () => Promise<void>;
  readonly audit: AuditLog;
};

/** The request is unauthenticated, so its body has room for a code only. */
const MAX_LOGIN_BYTES = 1024;

const linkBody = z.strictObject({ revokeAll: z.boolean().default(false) });
const loginBody = z.strictObject({
  code: z.string().regex(/^[A-Za-z0-9_-]{43}$/, 'is not a code'),
});

/** For the OpenAPI document. */
export const LOGIN_ROUTES: Readonly<Record<string, RouteSchemas>> = {
  'POST /api/links': {
    summary: t`Make a link that logs a browser in, once; needs the token`,
    ...{ body: linkBody, status: 201 },
    answer: z.object({ code: z.string(), expiresAt: z.number().describe('Epoch milliseconds.') }),
  },
  'POST /api/login': {
    summary: t`Log in by the code of a link; needs nothing else`,
    body: loginBody,
    answer: z.object({ session: z.string().describe('The bearer token from now on.') }),
  },
};

export function addLoginRoutes(
  app: FastifyInstance,
  { access, revokeAll, audit }: LoginRoutesOptions,
) {
  app.post('/api/links', async (request, reply) => {
    const { revokeAll: isAnew } = valid(linkBody, request.body);
    if (request.credential?.kind !== 'token') {
      throw new Refusal(403, 'token_needed', t`Making links needs the gateway’s token.`);
    }
    if (isAnew) await revokeAll();
    audit.note({ kind: 'login', fields: { what: isAnew ? 'all ended' : 'link made' } });
    return reply
      .code(201)
      .header('cache-control', 'no-store')
      .send(await access.makeCode());
  });

  const config = { isLogin: true } as const;
  app.post('/api/login', { config, bodyLimit: MAX_LOGIN_BYTES }, async (request, reply) => {
    const { code } = valid(loginBody, request.body);
    const session = await access.redeem(code);
    if (session === undefined) {
      audit.note({ kind: 'login', fields: { what: 'link refused', from: request.ip } });
      const message = t`This link was used already or has expired. Make another: nanobot link`;
      throw new Refusal(401, 'link_over', message);
    }
    audit.note({ kind: 'login', fields: { what: 'page let in', from: request.ip } });
    return reply.header('cache-control', 'no-store').send({ session });
  });
}
