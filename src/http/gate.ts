// What every request passes before its body is read: is it meant for us (Host), does it come from
// our own page (Origin), may it be here (token), is it JSON.

import type { FastifyRequest } from 'fastify';
import type { Clock } from '../lib/clock.ts';
import { Refusal } from './refusal.ts';
import { type HostRules, isForwarded, isHostAllowed, isSameOrigin } from './request-origin.ts';
import { createTokenGuard, type TokenGuard } from './token-guard.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Needs no token and may be asked for from anywhere: the page's files, /healthz. */
    isOpen?: true;
  }
}

export type GateOptions = HostRules & { readonly token: string; readonly clock: Clock };

const JSON_TYPE = /^application\/json(?:; ?charset=utf-8)?$/i;

export function createGate(options: GateOptions): (request: FastifyRequest) => Promise<void> {
  const guard = createTokenGuard(options.token, options.clock);
  return async (request) => {
    checkHost(request, options);
    if (request.routeOptions.config.isOpen === true) return;
    checkOrigin(request);
    if (guard.isRequired) checkToken(request, guard);
    else checkDirect(request);
    checkType(request);
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

function checkToken({ headers, socket }: FastifyRequest, guard: TokenGuard) {
  const verdict = guard.check(headers.authorization, socket.remoteAddress);
  switch (verdict.kind) {
    case 'right':
      return;
    case 'missing':
      throw new Refusal(401, 'token_missing', 'Send gateway.token as "Authorization: Bearer ...".');
    case 'wrong':
      throw new Refusal(401, 'token_wrong', 'This is not the gateway.token of the configuration.');
    case 'limited': {
      const retryAfterSecs = Math.ceil(verdict.retryAfterMs / 1000);
      const message = `Too many wrong tokens. Try again in ${retryAfterSecs} seconds.`;
      throw new Refusal(429, 'token_limited', message, { retryAfterSecs });
    }
  }
}

/** Behind a proxy anyone may be the client, so being on this machine proves nothing. */
function checkDirect({ headers }: FastifyRequest) {
  if (!isForwarded(headers)) return;
  const message = 'Requests through a proxy need a token. Set gateway.token and start again.';
  throw new Refusal(403, 'proxy_without_token', message);
}

/** A type that a web page elsewhere could send without asking first is refused. */
function checkType({ method, headers }: FastifyRequest) {
  if (method === 'GET' || JSON_TYPE.test(headers['content-type'] ?? '')) return;
  throw new Refusal(415, 'type_refused', 'Send "Content-Type: application/json".');
}
