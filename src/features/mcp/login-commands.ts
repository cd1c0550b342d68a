// The login to a hosted tool server from a chat: a link to the consent page, which ends at the gateway
// or at an address that the owner sends back.

import { z } from 'zod';
import type { Kernel } from '../../kernel/feature.ts';
import { findRunningGateway } from '../../kernel/home-state.ts';
import { Refusal, type RouteHandlers, valid } from '../../kernel/http-routes.ts';
import { consentSecrets, redirectPage } from '../../lib/net/oauth-redirect.ts';
import { t } from '../../lib/texts.ts';
import type { ToolServers } from './index.ts';
import { LoginFailed, type ServerLogin } from './login.ts';
import type { ToolServerConfig } from './settings.ts';
import { toolServerLine } from './tooling.ts';

type LoginParts = Pick<Kernel, 'home' | 'clock'> & {
  readonly servers: ToolServers;
  readonly publicUrl: () => string;
};

const USAGE = t`Usage: /mcp [login <server> | logout <server>]`;
const REDIRECT_PATH = '/api/mcp/redirect';
const GATEWAY_PORT = 18_790;

type Configured = { configured(): readonly (readonly [string, ToolServerConfig])[] };

export async function answerMcp(parts: LoginParts & Configured, argument: string): Promise<string> {
  const [verb = '', name = '', address = '', ...rest] = argument.split(/\s+/);
  if (verb === '') return listed(parts);
  if (name === '' || rest.length > 0) return USAGE;
  if (verb === 'logout' && address === '') return logOut(parts.servers, name);
  if (verb !== 'login') return USAGE;
  if (address !== '') return ended(parts.servers, name, address);
  const login = loginOf(parts.servers, name);
  const { state } = consentSecrets();
  const link = await login.begin(await redirectUrl(parts), state);
  return [
    t`To give me access to ${name}, open this link and allow it. It leads to ${link.host} and is valid for 15 minutes.`,
    link.href,
    t`If the browser ends at a page that it cannot load, send me that page's address: \`/mcp login ${name} <address>\``,
  ].join('\n\n');
}

async function ended(servers: ToolServers, name: string, address: string): Promise<string> {
  await loginOf(servers, name).finish(address);
  servers.loggedIn(name);
  return t`Logged in to ${name}. /mcp shows its tools.`;
}

async function logOut(servers: ToolServers, name: string): Promise<string> {
  await loginOf(servers, name).forget();
  return t`Logged out of ${name}. Its tools stop at the next request.`;
}

function listed({ servers, configured, clock }: LoginParts & Configured): string {
  const reports = servers.report();
  const lines = configured().map(([name, { enabled }]) => {
    const report = reports.find((server) => server.name === name);
    if (report === undefined) return `- **${name}**: ${enabled ? t`not started yet` : 'off'}`;
    const tools = report.tools.length === 0 ? '' : `: ${report.tools.join(', ')}`;
    return `- **${name}**: ${toolServerLine({ ...report, tools: [...report.tools] }, clock.now())}${tools}`;
  });
  return lines.length === 0
    ? t`No tool servers. Add one on the web page under Setup, or by: nanobot mcp add`
    : lines.join('\n');
}

function loginOf(servers: ToolServers, name: string): ServerLogin {
  const login = servers.login(name);
  if (login !== undefined) return login;
  throw new LoginFailed(
    t`${name} is no hosted tool server without a key of its own; /mcp lists all.`,
  );
}

/** The gateway itself, where browsers elsewhere reach it, else for a browser on this machine. */
export async function redirectUrl({
  home,
  publicUrl,
}: Pick<LoginParts, 'home' | 'publicUrl'>): Promise<string> {
  const outside = publicUrl();
  if (outside !== '') return new URL(REDIRECT_PATH, outside).href;
  const { address = '' } = (await findRunningGateway(home)) ?? {};
  return `http://127.0.0.1:${URL.parse(address)?.port || GATEWAY_PORT}${REDIRECT_PATH}`;
}

/** For a login that a command ended in the store. */
export const connectRoute = ({ servers }: LoginParts): RouteHandlers<'POST /api/mcp/connect'> => ({
  'POST /api/mcp/connect': ({ body }) => {
    servers.loggedIn(valid(z.object({ server: z.string() }), body).server);
    return { body: {} };
  },
});

/** Open to every browser: only the state of a login that was begun makes it do anything. */
export const redirectRoute = ({ servers }: LoginParts): RouteHandlers<'GET /api/mcp/redirect'> => ({
  'GET /api/mcp/redirect': async ({ address }) => {
    try {
      const name = await servers.redirected(address);
      if (name === undefined) return { status: 400, page: redirectPage({ kind: 'foreign' }) };
      return { page: redirectPage({ kind: 'code', code: '' }) };
    } catch (error) {
      if (!(error instanceof LoginFailed)) throw new Refusal(500, 'login', t`The login failed.`);
      return { status: 400, page: redirectPage({ kind: 'refused', error: '' }) };
    }
  },
});
