// An OAuth2 authorization server on loopback, as strict as the large providers: consent with PKCE and
// state (RFC 6749, RFC 7636, RFC 8252), codes for other devices (RFC 8628), refresh tokens that may be
// void after their first use, and introspection for a mail server (RFC 7662).

import { createHash, randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage } from 'node:http';
import { closed, portOf } from './listening.ts';

type Form = Readonly<Record<string, string>>;
type Answer = { readonly status: number; readonly body?: string; readonly location?: string };

export type TokenServer = AsyncDisposable & {
  readonly root: string;
  readonly tokenUrl: string;
  readonly authorizeUrl: string;
  readonly deviceUrl: string;
  readonly introspectionUrl: string;
  /** Forms of every request for a token, oldest first. */
  readonly requests: readonly Form[];
  readonly accessTokens: readonly string[];
  /** What a strict server refuses of our requests. */
  readonly violations: readonly string[];
  /** The one refresh token that is taken; undefined: it was withdrawn. */
  refreshToken: string | undefined;
  /** Given out with the next access token, in place of the one above. */
  nextRefreshToken: string | undefined;
  /** Every refresh token is void after its first use, as one that is used twice voids the grant. */
  rotates: boolean;
  lifetimeSecs: number;
  /** Answers so instead. */
  fault: { readonly status: number; readonly body: string } | undefined;
  /** Runs before a token request is answered. */
  hold: (() => Promise<void>) | undefined;
  /** What the person decides on the consent page. */
  decision: 'allow' | 'deny';
  /** The person entered the code of the other device. */
  isDeviceAllowed: boolean;
  /** Seconds between two polls. */
  interval: number;
  /** No mail server takes a token given out so far. */
  revoke(): void;
};

export const CLIENT = { clientId: 'the-client', clientSecret: 'client-secret' } as const;
const USER_CODE = 'WDJB-MJHT';

export async function startTokenServer(
  username: string,
  now: () => number = Date.now,
): Promise<TokenServer> {
  const requests: Form[] = [];
  const accessTokens: string[] = [];
  const violations: string[] = [];
  const active = new Map<string, number>();
  const codes = new Map<string, Form>();
  const voided = new Set<string>();
  let device: { readonly code: string; polledAt: number; interval: number } | undefined;
  const server = createServer(async (request, response) => {
    const { status, body, location } = await answer(request);
    const type = { 'content-type': 'application/json' };
    response.writeHead(status, { ...type, ...(location === undefined ? {} : { location }) });
    response.end(body);
  });
  const port = await portOf(server);
  const root = `http://127.0.0.1:${port}`;

  const self: TokenServer = {
    root,
    tokenUrl: `${root}/token`,
    authorizeUrl: `${root}/authorize`,
    deviceUrl: `${root}/device`,
    introspectionUrl: `${root}/introspect`,
    requests,
    accessTokens,
    violations,
    refreshToken: 'first-refresh-token',
    nextRefreshToken: undefined,
    rotates: false,
    lifetimeSecs: 3600,
    fault: undefined,
    hold: undefined,
    decision: 'allow',
    isDeviceAllowed: false,
    interval: 5,
    revoke: () => active.clear(),
    async [Symbol.asyncDispose]() {
      await closed(server);
    },
  };

  async function answer(request: IncomingMessage): Promise<Answer> {
    const url = new URL(request.url ?? '/', root);
    if (url.pathname === '/authorize' && request.method === 'GET') {
      return authorize(Object.fromEntries(url.searchParams));
    }
    const form = await formOf(request);
    if (url.pathname === '/token') {
      requests.push(form);
      await self.hold?.();
      return self.fault ?? grant(form);
    }
    if (url.pathname === '/device') return deviceCode(form);
    if (url.pathname === '/introspect') return introspect(form);
    return refuse('not_found', `${request.method} ${url.pathname}`);
  }

  function refuse(error: string, problem: string): Answer {
    violations.push(problem);
    return { status: 400, body: JSON.stringify({ error }) };
  }

  function authorize(asked: Form): Answer {
    const { redirect_uri: redirect = '', state = '', code_challenge: challenge = '' } = asked;
    const target = URL.parse(redirect);
    const isLoopback =
      target?.protocol === 'http:' && ['127.0.0.1', 'localhost'].includes(target.hostname);
    if (asked['client_id'] !== CLIENT.clientId) return refuse('invalid_client', 'client id');
    if (target === null || !isLoopback) return refuse('invalid_request', 'redirect_uri');
    if (asked['response_type'] !== 'code') return refuse('invalid_request', 'response_type');
    if (state.length < 22) return refuse('invalid_request', 'state is short or missing');
    if (asked['code_challenge_method'] !== 'S256' || !/^[\w-]{43}$/.test(challenge)) {
      return refuse('invalid_request', 'code_challenge');
    }
    if (asked['scope'] !== 'mail') return refuse('invalid_scope', 'scope');
    if (asked['login_hint'] !== username) return refuse('invalid_request', 'login_hint');
    target.searchParams.set('state', state);
    if (self.decision === 'deny') {
      target.searchParams.set('error', 'access_denied');
    } else {
      const code = randomBytes(16).toString('hex');
      codes.set(code, asked);
      target.searchParams.set('code', code);
    }
    return { status: 302, location: target.href };
  }

  function deviceCode(form: Form): Answer {
    if (form['client_id'] !== CLIENT.clientId) return refuse('invalid_client', 'client id');
    if (form['scope'] !== 'mail') return refuse('invalid_scope', 'scope');
    device = { code: randomBytes(16).toString('hex'), polledAt: now(), interval: self.interval };
    const body = {
      device_code: device.code,
      user_code: USER_CODE,
      verification_uri: `${root}/activate`,
      expires_in: 900,
      interval: self.interval,
    };
    return { status: 200, body: JSON.stringify(body) };
  }

  function grant(form: Form): Answer {
    if (form['client_id'] !== CLIENT.clientId) return refuse('invalid_client', 'client id');
    switch (form['grant_type']) {
      case 'refresh_token':
        return refreshed(form);
      case 'authorization_code':
        return exchanged(form);
      case 'urn:ietf:params:oauth:grant-type:device_code':
        return polled(form);
      default:
        return refuse('unsupported_grant_type', `grant_type ${form['grant_type']}`);
    }
  }

  function refreshed(form: Form): Answer {
    const { refresh_token: token = '' } = form;
    if (voided.has(token)) {
      self.refreshToken = undefined;
      return refuse('invalid_grant', 'a refresh token was used twice');
    }
    if (token !== self.refreshToken) {
      return { status: 400, body: JSON.stringify({ error: 'invalid_grant' }) };
    }
    if (!self.rotates && self.nextRefreshToken === undefined) return issued(undefined);
    if (self.rotates) voided.add(token);
    self.refreshToken = self.nextRefreshToken ?? `refresh-token-${accessTokens.length + 2}`;
    self.nextRefreshToken = undefined;
    return issued(self.refreshToken);
  }

  function exchanged(form: Form): Answer {
    const asked = codes.get(form['code'] ?? '');
    codes.delete(form['code'] ?? '');
    const verifier = form['code_verifier'] ?? '';
    const challenge = createHash('sha256').update(verifier).digest('base64url');
    if (form['client_secret'] !== CLIENT.clientSecret) return refuse('invalid_client', 'secret');
    if (asked === undefined) return refuse('invalid_grant', 'an unknown or used code');
    if (asked['redirect_uri'] !== form['redirect_uri']) {
      return refuse('invalid_grant', 'another redirect_uri');
    }
    if (verifier.length < 43 || asked['code_challenge'] !== challenge) {
      return refuse('invalid_grant', 'code_verifier');
    }
    self.refreshToken = `refresh-token-${accessTokens.length + 2}`;
    return issued(self.refreshToken);
  }

  function polled(form: Form): Answer {
    if (device === undefined || form['device_code'] !== device.code) {
      return refuse('invalid_grant', 'an unknown device code');
    }
    const isEarly = now() - device.polledAt < device.interval * 1000;
    device.polledAt = now();
    if (isEarly) {
      device.interval += 5;
      violations.push('polled too soon');
      return { status: 400, body: JSON.stringify({ error: 'slow_down' }) };
    }
    if (self.decision === 'deny') {
      return { status: 400, body: JSON.stringify({ error: 'access_denied' }) };
    }
    if (!self.isDeviceAllowed) {
      return { status: 400, body: JSON.stringify({ error: 'authorization_pending' }) };
    }
    device = undefined;
    self.refreshToken = `refresh-token-${accessTokens.length + 2}`;
    return issued(self.refreshToken);
  }

  function issued(refreshToken: string | undefined): Answer {
    const token = `access-token-${accessTokens.length + 1}`;
    accessTokens.push(token);
    active.set(token, now() + self.lifetimeSecs * 1000);
    const rotated = refreshToken === undefined ? {} : { refresh_token: refreshToken };
    const body = { access_token: token, expires_in: self.lifetimeSecs, ...rotated };
    return { status: 200, body: JSON.stringify(body) };
  }

  function introspect(form: Form): Answer {
    // A lifetime below a second only makes the client ask again.
    const ends = active.get(form['token'] ?? '') ?? 0;
    const isActive = ends > 0 && (self.lifetimeSecs < 1 || now() < ends);
    return { status: 200, body: JSON.stringify({ active: isActive, username }) };
  }
  return self;
}

async function formOf(request: IncomingMessage): Promise<Form> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  return Object.fromEntries(new URLSearchParams(Buffer.concat(chunks).toString()));
}
