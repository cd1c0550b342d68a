// A hosted MCP server of the protocol's own SDK behind a strict OAuth 2.1 authorization server on
// another port: discovery (RFC 9728, RFC 8414), dynamic registration (RFC 7591), PKCE, resource
// indicators (RFC 8707), the issuer in the answer (RFC 9207), and refresh tokens that are void after
// their first use. `/mcp` speaks streamable HTTP, `/sse` only the older HTTP with SSE.

import { createHash, randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { SSEServerTransport } from '@modelcontextprotocol/sdk/server/sse.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { z } from 'zod';
import { closed, portOf } from './listening.ts';

type Json = Readonly<Record<string, unknown>>;
type Form = Readonly<Record<string, string>>;
type Reply = { readonly status: number; readonly body?: Json; readonly location?: string };

export type McpOAuthServer = Awaited<ReturnType<typeof startMcpOAuthServer>>;

export async function startMcpOAuthServer(now: () => number = Date.now) {
  const clients = new Map<string, readonly string[]>();
  const codes = new Map<string, Form>();
  const access = new Map<string, number>();
  const refresh = new Map<string, { readonly client: string; isUsed: boolean }>();
  const sessions = new Map<string, StreamableHTTPServerTransport>();
  const streams = new Map<string, SSEServerTransport>();
  let issued = 0;
  const state = {
    /** What a strict server refuses of our requests. */
    violations: [] as string[],
    /** The path of every request to the authorization server. */
    asked: [] as string[],
    lifetimeSecs: 3600,
    isProtected: true,
    /** Metadata in place of the right ones. */
    resourceMetadata: {} as Json,
    serverMetadata: {} as Json,
    /** The `iss` of the next redirect, in place of its own. */
    iss: undefined as string | undefined,
  };

  const mcp = createServer((request, response) => void answerMcp(request, response));
  const auth = createServer((request, response) => void answerAuth(request, response));
  const root = await listening(mcp);
  const issuer = await listening(auth);

  function refuse(error: string, problem: string): Reply {
    state.violations.push(problem);
    return { status: 400, body: { error } };
  }

  async function answerMcp(request: IncomingMessage, response: ServerResponse) {
    const { pathname, searchParams } = new URL(request.url ?? '/', root);
    const text = Buffer.concat(await Array.fromAsync(request)).toString();
    if (pathname.startsWith('/.well-known/oauth-protected-resource/')) {
      const path = pathname.slice('/.well-known/oauth-protected-resource'.length);
      const known = { resource: `${root}${path}`, authorization_servers: [issuer] };
      return reply(response, {
        status: 200,
        body: { ...known, scopes_supported: ['tools'], ...state.resourceMetadata },
      });
    }
    const token = /^Bearer (\S+)$/.exec(request.headers.authorization ?? '')?.[1] ?? '';
    if (state.isProtected && now() >= (access.get(token) ?? 0)) {
      const metadata = `${root}/.well-known/oauth-protected-resource${pathname}`;
      const challenge = `Bearer resource_metadata="${metadata}", scope="tools"`;
      response.writeHead(401, { 'www-authenticate': challenge }).end(`no entry for ${token}`);
      return;
    }
    if (pathname === '/sse' && request.method === 'GET') {
      const transport = new SSEServerTransport('/messages', response);
      streams.set(transport.sessionId, transport);
      await toolServer().connect(transport);
      return;
    }
    if (pathname === '/messages') {
      const transport = streams.get(searchParams.get('sessionId') ?? '');
      if (transport === undefined) return reply(response, { status: 404 });
      return transport.handlePostMessage(request, response, JSON.parse(text));
    }
    if (pathname !== '/mcp') return reply(response, { status: 405 });
    const id = String(request.headers['mcp-session-id'] ?? '');
    const known = sessions.get(id);
    const body = text === '' ? undefined : JSON.parse(text);
    if (known === undefined && body?.method !== 'initialize') {
      return reply(response, { status: 404 });
    }
    await (known ?? (await session())).handleRequest(request, response, body);
  }

  async function session() {
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: () => crypto.randomUUID(),
      onsessioninitialized: (id) => void sessions.set(id, transport),
    });
    await toolServer().connect(transport as never);
    return transport;
  }

  async function answerAuth(request: IncomingMessage, response: ServerResponse) {
    const url = new URL(request.url ?? '/', issuer);
    const text = Buffer.concat(await Array.fromAsync(request)).toString();
    state.asked.push(url.pathname);
    reply(response, await authReply(url, text));
  }

  function authReply(url: URL, text: string): Reply {
    switch (url.pathname) {
      case '/.well-known/oauth-authorization-server':
        return { status: 200, body: { ...metadata(), ...state.serverMetadata } };
      case '/register':
        return register(JSON.parse(text));
      case '/authorize':
        return authorize(Object.fromEntries(url.searchParams));
      case '/token':
        return grant(Object.fromEntries(new URLSearchParams(text)));
      default:
        return { status: 404 };
    }
  }

  const metadata = () => ({
    issuer,
    authorization_endpoint: `${issuer}/authorize`,
    token_endpoint: `${issuer}/token`,
    registration_endpoint: `${issuer}/register`,
    response_types_supported: ['code'],
    grant_types_supported: ['authorization_code', 'refresh_token'],
    token_endpoint_auth_methods_supported: ['none'],
    code_challenge_methods_supported: ['S256'],
    authorization_response_iss_parameter_supported: true,
  });

  function register(asked: Json): Reply {
    const found = z.object({
      client_name: z.string().min(1),
      redirect_uris: z.array(z.url({ protocol: /^https?$/ })).length(1),
      grant_types: z.array(z.enum(['authorization_code', 'refresh_token'])),
      response_types: z.tuple([z.literal('code')]),
      token_endpoint_auth_method: z.literal('none'),
    });
    const parsed = found.safeParse(asked);
    const [redirect = ''] = parsed.data?.redirect_uris ?? [];
    const isLoopback = new URL(redirect || issuer).hostname === '127.0.0.1';
    if (!parsed.success || !(redirect.startsWith('https:') || isLoopback)) {
      return refuse('invalid_client_metadata', 'registration');
    }
    const id = `client-${clients.size + 1}`;
    clients.set(id, parsed.data.redirect_uris);
    return { status: 201, body: { ...asked, client_id: id } };
  }

  function authorize(asked: Form): Reply {
    const { client_id: client = '', redirect_uri: redirect = '', state: secret = '' } = asked;
    if (clients.get(client)?.includes(redirect) !== true) {
      return refuse('invalid_request', 'redirect_uri that is not registered');
    }
    const isRight =
      asked['response_type'] === 'code' &&
      asked['code_challenge_method'] === 'S256' &&
      /^[\w-]{43}$/.test(asked['code_challenge'] ?? '') &&
      secret.length >= 22 &&
      asked['scope'] === 'tools' &&
      (asked['resource'] ?? '').startsWith(root);
    if (!isRight) return refuse('invalid_request', `authorization ${JSON.stringify(asked)}`);
    const code = randomBytes(16).toString('hex');
    codes.set(code, asked);
    const target = new URL(redirect);
    target.searchParams.set('code', code);
    target.searchParams.set('state', secret);
    target.searchParams.set('iss', state.iss ?? issuer);
    return { status: 302, location: target.href };
  }

  function grant(form: Form): Reply {
    const { client_id: client = '', refresh_token: old = '', code = '' } = form;
    if (!clients.has(client)) return refuse('invalid_client', 'client');
    if (form['grant_type'] === 'refresh_token') {
      const known = refresh.get(old);
      if (known === undefined) return { status: 400, body: { error: 'invalid_grant' } };
      if (known.client !== client) return refuse('invalid_grant', "another client's token");
      if (known.isUsed) return refuse('invalid_grant', 'a refresh token was used twice');
      known.isUsed = true;
      return tokens(client);
    }
    const asked = codes.get(code);
    codes.delete(code);
    const challenge = createHash('sha256')
      .update(form['code_verifier'] ?? '')
      .digest('base64url');
    const isRight =
      asked !== undefined &&
      asked['client_id'] === client &&
      asked['redirect_uri'] === form['redirect_uri'] &&
      asked['resource'] === form['resource'] &&
      asked['code_challenge'] === challenge;
    return isRight ? tokens(client) : refuse('invalid_grant', `code ${JSON.stringify(form)}`);
  }

  function tokens(client: string): Reply {
    issued += 1;
    access.set(`mcp-access-${issued}`, now() + state.lifetimeSecs * 1000);
    refresh.set(`mcp-refresh-${issued}`, { client, isUsed: false });
    const body = {
      access_token: `mcp-access-${issued}`,
      refresh_token: `mcp-refresh-${issued}`,
      token_type: 'Bearer',
      expires_in: state.lifetimeSecs,
    };
    return { status: 200, body };
  }

  return {
    root,
    issuer,
    state,
    url: `${root}/mcp`,
    sseUrl: `${root}/sse`,
    issued: () => issued,
    /** The owner withdraws the consent. */
    revoke() {
      access.clear();
      refresh.clear();
    },
    /** No access token is taken any more; refresh tokens are. */
    expire: () => access.clear(),
    endStreams: () => mcp.closeAllConnections(),
    async [Symbol.asyncDispose]() {
      for (const server of [mcp, auth]) {
        await closed(server);
      }
    },
  };
}

function toolServer(): McpServer {
  const server = new McpServer({ name: 'hosted', version: '1' });
  const tool = { description: 'Greets.', inputSchema: { name: z.string() } };
  server.registerTool('greet', tool, ({ name }) => ({
    content: [{ type: 'text', text: `hello ${name}` }],
  }));
  return server;
}

function reply(response: ServerResponse, { status, body, location }: Reply): void {
  const to = location === undefined ? {} : { location };
  response.writeHead(status, { 'content-type': 'application/json', ...to });
  response.end(body === undefined ? undefined : JSON.stringify(body));
}

async function listening(server: Server): Promise<string> {
  return `http://127.0.0.1:${await portOf(server)}`;
}
