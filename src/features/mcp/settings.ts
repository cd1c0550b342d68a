// Configuration of tool servers (Model Context Protocol), in the format that MCP clients share,
// with its checks.

import { z } from 'zod';
import {
  flag,
  isWebAddress,
  type Problems,
  seconds,
  secret,
  unless,
} from '../../kernel/config/settings-fields.ts';
import { isLoopbackHost } from '../../lib/net/address-rules.ts';
import { t } from '../../lib/texts.ts';

/** No `_`: in the name of a tool the first one separates server and tool. */
export const SERVER_NAME = /^[A-Za-z0-9][A-Za-z0-9-]{0,31}$/;
const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]{0,127}$/;
/**
 * RFC 9110 section 5.6.2, without the dot and the star, which have a meaning in configuration
 * paths.
 */
const HEADER = /^[A-Za-z0-9!#$%&'+^_`|~-]{1,128}$/;
/** The gateway sets these; a configured value would break the connection. */
const OUR_HEADERS = /^(?:host|content-length|content-type|transfer-encoding|connection|accept)$/i;
const PRIVATE =
  /^(?:10\.|192\.168\.|172\.(?:1[6-9]|2\d|3[01])\.)[\d.]+$|^\[f[cd][0-9a-f]{2}:[0-9a-f:]+\]$/;
const MAX_SERVERS = 30;

const access = z.enum(['read', 'web', 'write', 'send', 'execute']);
const patterns = z.array(z.string().min(1).max(200)).max(200);

const server = z.strictObject({
  enabled: flag(true).describe('Use this server.'),
  command: z
    .string()
    .max(4096)
    .default('')
    .describe('Program that starts a server on this machine.'),
  args: z.array(z.string()).max(200).default([]).describe('Arguments of the program.'),
  env: z
    .record(z.string().regex(VARIABLE, 'Use letters, digits and "_"'), secret())
    .default({})
    .describe('Environment variables, in addition to PATH, HOME, the language and similar ones.'),
  cwd: z.string().max(4096).default('').describe('Working directory. Empty: the workspace.'),
  url: z.string().max(4096).default('').describe('Address of a hosted server.'),
  headers: z
    .record(z.string().regex(HEADER, 'Use the name of an HTTP header'), secret())
    .default({})
    .describe('HTTP headers of every request, e.g. Authorization.'),
  oauth: z
    .strictObject({
      clientId: z
        .string()
        .max(2000)
        .default('')
        .describe('Client id. Empty: registered by itself.'),
      clientSecret: secret().default('').describe('Client secret. Empty for a public client.'),
      scope: z.string().max(2000).default('').describe('Scope. Empty: what the server asks for.'),
    })
    .prefault({})
    .describe('The login with OAuth of a url that wants one; the owner gives it with /mcp login.'),
  privateNetwork: flag(false).describe('Allow a url in a private network.'),
  enabledTools: patterns
    .default(['*'])
    .describe('The only tools of this server that the agent gets; * matches any text.'),
  disabledTools: patterns.default([]).describe('Tools of this server that the agent does not get.'),
  timeoutSecs: seconds(1, 3600, 60).describe('Longest run of one tool call.'),
  startupTimeoutSecs: seconds(1, 600, 30).describe('Longest wait until the server has started.'),
  access: access
    .default('execute')
    .describe(
      'What its tools do, which decides who may use them and when an owner approves a call. The ' +
        'server’s own statements (readOnlyHint, destructiveHint) only change the words of the question.',
    ),
  toolAccess: z
    .record(z.string().min(1).max(200), access)
    .default({})
    .describe('The same for single tools, by their name on the server.'),
  trust: z
    .enum(['read_only', 'ask_once', 'always_ask'])
    .default('ask_once')
    .describe(
      'How often an owner is asked. read_only: its tools change nothing and run without an approval; ' +
        'ask_once: the first approval of a tool stays valid; always_ask: each call needs an approval. ' +
        'Each call needs one while untrusted content is in view.',
    ),
  taints: flag(true).describe(
    'Treat results as untrusted content. false: only if nobody else can write them.',
  ),
});

export const mcpServersSchema = z
  .record(
    z.string().regex(SERVER_NAME, 'Use at most 32 letters, digits and "-" in the name of a server'),
    server.prefault({}),
  )
  .default({})
  .describe('Tool servers (Model Context Protocol) by name.');

export type ToolServerConfig = z.infer<typeof server>;
export type ToolServersConfig = Readonly<Record<string, ToolServerConfig>>;

export function toolServerConflicts({
  mcpServers,
}: {
  readonly mcpServers: ToolServersConfig;
}): Problems {
  const entries = Object.entries(mcpServers);
  const problem = t`${entries.length} servers; at most ${MAX_SERVERS} are allowed`;
  const remedy = t`Remove servers that you do not need.`;
  return [
    ...unless(entries.length <= MAX_SERVERS, 'mcpServers', problem, remedy),
    ...entries.flatMap(([name, one]) => problemsOf(`mcpServers.${name}`, one)),
  ];
}

function problemsOf(path: string, one: ToolServerConfig): Problems {
  const { command, url, headers } = one;
  if ((command === '') === (url === '')) {
    const problem =
      command === '' ? t`neither command nor url is set` : t`both command and url are set`;
    return [{ path, problem, remedy: t`Set one of them.` }];
  }
  if (url === '') return [];
  const ours = Object.keys(headers).find((name) => OUR_HEADERS.test(name));
  if (ours === undefined) return urlProblems(`${path}.url`, one);
  const problem = t`the connection sets ${ours} itself`;
  return [{ path: `${path}.headers.${ours}`, problem, remedy: t`Remove it.` }];
}

function urlProblems(path: string, { url, privateNetwork }: ToolServerConfig): Problems {
  const parsed = URL.parse(url);
  if (parsed === null || !isWebAddress(url)) {
    const problem = t`"${url}" is not an http or https address`;
    return [{ path, problem, remedy: t`Use an address such as https://example.org/mcp.` }];
  }
  if (parsed.username !== '' || parsed.password !== '') {
    const problem = t`the address contains a user name or password`;
    return [{ path, problem, remedy: t`Use an Authorization header in headers instead.` }];
  }
  return unless(
    parsed.protocol === 'https:' || isNear(parsed.hostname) || privateNetwork,
    path,
    t`others could read and change the traffic to this server`,
    t`Use https, or set privateNetwork if it is in your own network.`,
  );
}

/**
 * Loopback, or an address of a private network (RFC 1918, RFC 4193): plain HTTP is the owner's
 * choice.
 */
export function isNear(hostname: string): boolean {
  return isLoopbackHost(hostname) || PRIVATE.test(hostname);
}
