// The tool servers' part of the configuration (Model Context Protocol), in the shape that programs of
// this kind share, and what of it may be wrong.

import { z } from 'zod';
import { isWebAddress, type Problems, unless } from '../../kernel/config/problems.ts';
import { flag, seconds, secret } from '../../kernel/config/settings-fields.ts';
import { isLoopbackHost } from '../../lib/net/address-rules.ts';

/** No `_`: the tool's name begins behind the first one. */
const NAME = /^[A-Za-z0-9][A-Za-z0-9-]{0,31}$/;
const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]{0,127}$/;
/** RFC 9110 section 5.6.2, without the dot and the star, which mean something in paths. */
const HEADER = /^[A-Za-z0-9!#$%&'+^_`|~-]{1,128}$/;
/** Sent by us; a value of the owner's would break the connection. */
const OUR_HEADERS = /^(?:host|content-length|content-type|transfer-encoding|connection|accept)$/i;
const PRIVATE =
  /^(?:10\.|192\.168\.|172\.(?:1[6-9]|2\d|3[01])\.)[\d.]+$|^\[f[cd][0-9a-f]{2}:[0-9a-f:]+\]$/;
const MAX_SERVERS = 30;

const access = z.enum(['read', 'web', 'write', 'send', 'execute']);
const patterns = z.array(z.string().min(1).max(200)).max(200);

const server = z.strictObject({
  enabled: flag(true),
  command: z.string().max(4096).default('').describe('Program of a server on this machine.'),
  args: z.array(z.string()).max(200).default([]),
  env: z
    .record(z.string().regex(VARIABLE, 'Use letters, digits and "_"'), secret())
    .default({})
    .describe('Its environment, besides PATH, HOME, the language and the like.'),
  cwd: z.string().max(4096).default('').describe('Where it runs; empty: the workspace.'),
  url: z
    .string()
    .max(4096)
    .default('')
    .describe('Address of a server that is reached by streamable HTTP.'),
  headers: z
    .record(z.string().regex(HEADER, 'Write the name of an HTTP header'), secret())
    .default({})
    .describe('Sent with every request to the url, e.g. Authorization.'),
  privateNetwork: flag(false).describe('The name in the url may lead into a private network.'),
  enabledTools: patterns
    .default(['*'])
    .describe('The only tools of it that the agent gets; * stands for any text.'),
  disabledTools: patterns.default([]).describe('Tools of it that the agent does not get.'),
  timeoutSecs: seconds(1, 3600, 60).describe('Longest run of one of its tools.'),
  startupTimeoutSecs: seconds(1, 600, 30).describe('Longest wait until it answers.'),
  access: access
    .default('execute')
    .describe(
      'What its tools do to the world, which decides who may have them run and when an owner is ' +
        'asked. What the server says of itself does not count.',
    ),
  toolAccess: z
    .record(z.string().min(1).max(200), access)
    .default({})
    .describe('The same for single tools, by the name the server gives them.'),
  taints: flag(true).describe(
    'Its results are words of others; false only where nobody else writes them.',
  ),
});

export const mcpServersSchema = z
  .record(
    z.string().regex(NAME, 'Name the server with at most 32 letters, digits and "-"'),
    server.prefault({}),
  )
  .default({})
  .describe('Servers of the Model Context Protocol whose tools the agent gets, by name.');

export type ToolServerConfig = z.infer<typeof server>;
export type ToolServersConfig = Readonly<Record<string, ToolServerConfig>>;

export function toolServerConflicts({
  mcpServers,
}: {
  readonly mcpServers: ToolServersConfig;
}): Problems {
  const entries = Object.entries(mcpServers);
  const problem = `${entries.length} servers are more than ${MAX_SERVERS}`;
  const remedy = 'Leave out those that are not needed.';
  return [
    ...unless(entries.length <= MAX_SERVERS, 'mcpServers', problem, remedy),
    ...entries.flatMap(([name, one]) => problemsOf(`mcpServers.${name}`, one)),
  ];
}

function problemsOf(path: string, one: ToolServerConfig): Problems {
  const { command, url, headers } = one;
  if ((command === '') === (url === '')) {
    const problem = command === '' ? 'it has neither command nor url' : 'it has command and url';
    return [{ path, problem, remedy: 'Give it one of them.' }];
  }
  if (url === '') return [];
  const ours = Object.keys(headers).find((name) => OUR_HEADERS.test(name));
  if (ours === undefined) return urlProblems(`${path}.url`, one);
  const problem = `${ours} is set by the connection itself`;
  return [{ path: `${path}.headers.${ours}`, problem, remedy: 'Remove it.' }];
}

function urlProblems(path: string, { url, privateNetwork }: ToolServerConfig): Problems {
  const parsed = URL.parse(url);
  if (parsed === null || !isWebAddress(url)) {
    const problem = `"${url}" is no http or https address`;
    return [{ path, problem, remedy: 'Write it like https://example.org/mcp.' }];
  }
  if (parsed.username !== '' || parsed.password !== '') {
    const problem = 'a login stands in the address';
    return [{ path, problem, remedy: 'Put it into headers, as Authorization.' }];
  }
  return unless(
    parsed.protocol === 'https:' || isNear(parsed.hostname) || privateNetwork,
    path,
    'what is said to this server could be read and changed on the way',
    'Use https; or set privateNetwork, where it is your own net.',
  );
}

/** Written as an address of a private network (RFC 1918, RFC 4193), it is the owner's own choice. */
export function isNear(hostname: string): boolean {
  return isLoopbackHost(hostname) || PRIVATE.test(hostname);
}
