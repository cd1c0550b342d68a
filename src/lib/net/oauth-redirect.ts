// The end of an OAuth consent (RFC 6749, RFC 7636, RFC 8252): the secrets of one attempt, the redirect
// to a port of this machine, and the address that a person pastes where the browser cannot reach it.

import { hash, randomBytes, timingSafeEqual } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';

const SECRET_BYTES = 32;
const REQUEST_TIMEOUT_MS = 10_000;

type ConsentSecrets = {
  readonly state: string;
  readonly verifier: string;
  /** S256 of the verifier. */
  readonly challenge: string;
};

export function consentSecrets(): ConsentSecrets {
  const state = randomBytes(SECRET_BYTES).toString('base64url');
  const verifier = randomBytes(SECRET_BYTES).toString('base64url');
  const challenge = hash('sha256', verifier, 'base64url');
  return { state, verifier, challenge };
}

type Redirect =
  | { readonly kind: 'code'; readonly code: string }
  /** The person or the server refused; `error` is a code of RFC 6749 section 4.1.2.1. */
  | { readonly kind: 'refused'; readonly error: string }
  /** It does not belong to this attempt, or is no redirect at all. */
  | { readonly kind: 'foreign' };

/** Reads the address at which the browser ended: whole, or from its path on. */
export function readRedirect(address: string, state: string): Redirect {
  const url = URL.parse(address.trim(), 'http://127.0.0.1/');
  const given = Buffer.from(url?.searchParams.get('state') ?? '');
  const expected = Buffer.from(state);
  const isOurs = given.length === expected.length && timingSafeEqual(given, expected);
  if (url === null || !isOurs) return { kind: 'foreign' };
  const code = url.searchParams.get('code') ?? '';
  if (code !== '') return { kind: 'code', code };
  const error = url.searchParams.get('error') ?? '';
  return { kind: 'refused', error: /^[a-z_]{1,60}$/.test(error) ? error : 'invalid_answer' };
}

interface RedirectListener extends AsyncDisposable {
  readonly port: number;
  /** The address of the redirect of this attempt; others are answered and ignored. */
  readonly redirect: Promise<string>;
}

/** Only programs on this machine reach it, and only with the state it learns something. */
export async function listenForRedirect(path: string, state: string): Promise<RedirectListener> {
  const { promise, resolve } = Promise.withResolvers<string>();
  const server = createServer({ requestTimeout: REQUEST_TIMEOUT_MS }, (request, response) => {
    const { pathname } = URL.parse(request.url ?? '/', 'http://127.0.0.1/') ?? { pathname: '' };
    const found: Redirect =
      request.method === 'GET' && pathname === path
        ? readRedirect(request.url ?? '', state)
        : { kind: 'foreign' };
    const status = { code: 200, refused: 200, foreign: 400 }[found.kind];
    response.writeHead(status, redirectHeaders()).end(redirectPage(found));
    if (found.kind !== 'foreign') resolve(request.url ?? '');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const port = address === null || typeof address === 'string' ? 0 : address.port;
  return {
    port,
    redirect: promise,
    async [Symbol.asyncDispose]() {
      server.close();
      server.closeIdleConnections();
    },
  };
}

/** The address has the code: it goes to no other page and into no cache. */
const redirectHeaders = () => ({
  'content-type': 'text/html; charset=utf-8',
  'cache-control': 'no-store',
  'referrer-policy': 'no-referrer',
  'content-security-policy': "default-src 'none'",
  connection: 'close',
});

const PAGE_TEXTS: Readonly<Record<Redirect['kind'], string>> = {
  code: 'The login is complete. You can close this page.',
  refused: 'The login was refused. You can close this page.',
  foreign: 'This is not the login that was requested. Request a new link and open that one.',
};

export const redirectPage = ({ kind }: Redirect) =>
  `<!doctype html><meta name="viewport" content="width=device-width"><title>nanobot</title><p>${PAGE_TEXTS[kind]}</p>\n`;
