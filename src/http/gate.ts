// What every request passes before its body is read: is it meant for us (Host), does it come from
// our own page (Origin), may it be here (token or login), is it JSON.

import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyRequest } from 'fastify';
import { isLoopbackHost } from '../lib/net/address-rules.ts';
import type { Clock } from '../lib/time/clock.ts';
import type { Access, Credential } from './access.ts';
import { Refusal } from './failure-reply.ts';
import type { UnprovenConnections } from './token-guard.ts';
import { createTokenGuard, type TokenGuard } from './token-guard.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Needs no token and may be asked for from anywhere: the page's files, /healthz. */
    isOpen?: true;
    /** Takes a form with a file instead of JSON. */
    isUpload?: true;
    /** Brings its own proof in its body. */
    isLogin?: true;
  }
  interface FastifyRequest {
    /** By what it may be here; undefined where nothing is asked for. */
    credential: Credential | undefined;
  }
}

export type GateOptions = HostRules & { readonly access: Access; readonly clock: Clock };

/** Another page could send it without asking first, but not with the proof that is asked for. */
const FORM_TYPE = /^multipart\/form-data; ?boundary=/i;
const JSON_TYPE = /^application\/json(?:; ?charset=utf-8)?$/i;

export function createGate(
  options: GateOptions,
  unproven: UnprovenConnections,
): (request: FastifyRequest) => Promise<void> {
  const guard = createTokenGuard(options.access, options.clock);
  return async (request) => {
    checkHost(request, options);
    const { isOpen, isLogin, isUpload } = request.routeOptions.config;
    if (isOpen === true) return;
    checkOrigin(request);
    if (isLogin !== true) {
      request.credential = await credentialOf(request, guard);
      unproven.proven(request.raw.socket);
    }
    checkType(request, isUpload === true ? FORM_TYPE : JSON_TYPE);
  };
}

function checkHost({ headers, socket }: FastifyRequest, rules: HostRules) {
  if (isHostAllowed(headers.host, socket.localAddress, rules)) return;
  const remedy = 'Add the name to gateway.allowedHosts if it is yours.';
  throw new Refusal(421, 'host_refused', `The gateway does not go by this name. ${remedy}`);
}

function checkOrigin({ headers }: FastifyRequest) {
  if (isSameOrigin(headers)) return;
  throw new Refusal(403, 'origin_refused', 'Only the gateway’s own page may ask this.');
}

async function credentialOf(
  { headers, socket }: FastifyRequest,
  guard: TokenGuard,
): Promise<Credential> {
  const verdict = await guard.check(headers.authorization, socket.remoteAddress);
  switch (verdict.kind) {
    case 'right':
      return verdict.credential;
    case 'missing':
      throw new Refusal(401, 'token_missing', 'Log in: "nanobot link" prints a link for the page.');
    case 'wrong':
      throw new Refusal(401, 'token_wrong', 'This is not the gateway’s token.');
    case 'ended':
      throw new Refusal(401, 'login_ended', 'This login has ended.');
    case 'limited': {
      const retryAfterSecs = Math.ceil(verdict.retryAfterMs / 1000);
      const message = `Too many wrong tokens. Try again in ${retryAfterSecs} seconds.`;
      throw new Refusal(429, 'token_limited', message, { retryAfterSecs });
    }
  }
}

/** A type that a web page elsewhere could send without asking first is refused. */
function checkType({ method, headers }: FastifyRequest, type: RegExp) {
  if (method === 'GET' || type.test(headers['content-type'] ?? '')) return;
  const wanted = type === JSON_TYPE ? 'application/json' : 'multipart/form-data';
  throw new Refusal(415, 'type_refused', `Send "Content-Type: ${wanted}".`);
}

// Whether a request may come from where it says it comes from: pure checks on its headers against
// DNS rebinding (Host) and other web pages (Origin, Sec-Fetch-Site). What a proxy adds is not read.

export type HostRules = {
  /** The address the server was told to listen on. */
  readonly host: string;
  /** Further names under which it may be reached. */
  readonly allowedHosts: readonly string[];
};

/** `[::1]:18790` gives `::1`; undefined where it is no host with an optional port. */
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
 * A browser names the page a request comes from; it has to be ours. Programs name none. Call it for
 * requests whose Host is allowed.
 */
export function isSameOrigin(headers: IncomingHttpHeaders): boolean {
  const { origin, host } = headers;
  const site = headers['sec-fetch-site'];
  if (site !== undefined && site !== 'same-origin' && site !== 'none') return false;
  return origin === undefined || origin === `http://${host}` || origin === `https://${host}`;
}
