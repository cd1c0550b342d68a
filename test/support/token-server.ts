// An OAuth2 token server on loopback: gives access tokens for a refresh token (RFC 6749 section 6) and
// tells a mail server whose they are (RFC 7662).

import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';

export type TokenServer = AsyncDisposable & {
  readonly tokenUrl: string;
  readonly introspectionUrl: string;
  /** Forms of every request for a token, oldest first. */
  readonly requests: readonly Readonly<Record<string, string>>[];
  readonly accessTokens: readonly string[];
  /** The one refresh token that is taken; undefined: it was withdrawn. */
  refreshToken: string | undefined;
  /** Given out with the next access token, in place of the one above. */
  nextRefreshToken: string | undefined;
  lifetimeSecs: number;
  /** Answers so instead. */
  fault: { readonly status: number; readonly body: string } | undefined;
  /** No mail server takes a token given out so far. */
  revoke(): void;
};

export async function startTokenServer(username: string): Promise<TokenServer> {
  const requests: Record<string, string>[] = [];
  const accessTokens: string[] = [];
  const active = new Set<string>();
  const server = createServer(async (request, response) => {
    const form = await formOf(request);
    const { status, body } = request.url === '/token' ? grant(form) : introspect(form);
    response.writeHead(status, { 'content-type': 'application/json' }).end(body);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  const root = `http://127.0.0.1:${address.port}`;

  const self: TokenServer = {
    tokenUrl: `${root}/token`,
    introspectionUrl: `${root}/introspect`,
    requests,
    accessTokens,
    refreshToken: 'first-refresh-token',
    nextRefreshToken: undefined,
    lifetimeSecs: 3600,
    fault: undefined,
    revoke: () => active.clear(),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };

  function grant(form: Record<string, string>) {
    requests.push(form);
    if (self.fault !== undefined) return self.fault;
    if (form['grant_type'] !== 'refresh_token' || form['refresh_token'] !== self.refreshToken) {
      return { status: 400, body: JSON.stringify({ error: 'invalid_grant' }) };
    }
    const token = `access-token-${accessTokens.length + 1}`;
    accessTokens.push(token);
    active.add(token);
    const next = self.nextRefreshToken;
    if (next !== undefined) self.refreshToken = next;
    self.nextRefreshToken = undefined;
    const rotated = next === undefined ? {} : { refresh_token: next };
    const body = { access_token: token, expires_in: self.lifetimeSecs, ...rotated };
    return { status: 200, body: JSON.stringify(body) };
  }

  function introspect(form: Record<string, string>) {
    const isActive = active.has(form['token'] ?? '');
    return { status: 200, body: JSON.stringify({ active: isActive, username }) };
  }
  return self;
}

async function formOf(request: IncomingMessage): Promise<Record<string, string>> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  return Object.fromEntries(new URLSearchParams(Buffer.concat(chunks).toString()));
}
