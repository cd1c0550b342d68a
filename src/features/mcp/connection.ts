// One connection to a tool server: open, list tools, call, close. The vendor's client is loaded when
// the first server is connected.

import type { Client } from '@modelcontextprotocol/sdk/client/index.js';
import type { JSONRPCMessage } from '@modelcontextprotocol/sdk/types.js';
import { z } from 'zod';
import { ToolError, type ToolFailureKind } from '../../kernel/message/errors.ts';
import { neutralLines } from '../../kernel/message/untrusted.ts';
import { systemCode } from '../../lib/files/files.ts';
import { SafeFetchError } from '../../lib/net/checked-address.ts';
import { environmentOf } from '../../lib/process-group.ts';
import { headOf } from '../../lib/text/cut.ts';
import { t } from '../../lib/texts.ts';
import { orAborted } from '../../lib/time/clock.ts';
import {
  type HostedDeps,
  isOlderServer,
  type Link,
  linkByHttp,
  linkBySse,
  STREAM_ENDED,
} from './http-link.ts';
import { LoginNeeded } from './login.ts';
import { createFloodGuard, StdioTransport } from './stdio-transport.ts';

export type ConnectionDeps = HostedDeps & {
  /** Absolute path; the working folder of a server that runs on this machine. */
  readonly folder: string;
  /** The gateway's environment; a server gets only what it needs of it. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly version: string;
};

export type RemoteToolSpec = {
  readonly name: string;
  readonly description: string;
  readonly schema: unknown;
  /** What the server says of its effects: words for an owner, which decide nothing. */
  readonly annotations?: z.infer<typeof annotations> | undefined;
};

export type Connection = Awaited<ReturnType<typeof connect>>;

type Input = Readonly<Record<string, unknown>>;

export type CallOptions = { readonly signal: AbortSignal; readonly timeoutMs: number };

/** What a program needs to start and to find its own files; none of our variables. */
const PASSED_ON = [
  ...['PATH', 'HOME', 'USER', 'LOGNAME', 'SHELL', 'TERM', 'LANG', 'LC_ALL', 'LC_CTYPE', 'TZ'],
  ...['TMPDIR', 'XDG_CACHE_HOME', 'XDG_CONFIG_HOME', 'XDG_DATA_HOME', 'SystemRoot'],
];
const MAX_PAGES = 20;
const MAX_TOOLS = 200;
const MAX_WORDS_CHARS = 200;
/** Our deadlines apply; the vendor's only have to be later. */
const LATER_MS = 5000;

/**
 * @throws LoginNeeded; Error where the server cannot be started or reached, or does not speak the
 * protocol
 */
export async function connect(deps: ConnectionDeps, signal: AbortSignal) {
  const vendor = await import('@modelcontextprotocol/sdk/types.js');
  const { client, link } = await opened(deps, vendor.JSONRPCMessageSchema, signal);
  const ended = Promise.withResolvers<void>();
  client.onclose = () => ended.resolve();
  let changed = Promise.withResolvers<void>();
  client.setNotificationHandler(vendor.ToolListChangedNotificationSchema, () => changed.resolve());
  return {
    /** Resolves when the connection has ended or has to be closed. */
    ended: ended.promise,
    /** Why it ended, for an owner. */
    fault: link.fault,
    needsLogin: () => link.needsLogin?.() === true,
    /** Resolves when the server reports a changed tool list after the last listing. */
    changed: () => changed.promise,
    tools(listing: AbortSignal) {
      changed = Promise.withResolvers<void>();
      return listTools(client, listing);
    },
    call(name: string, input: Input, { signal: calling, timeoutMs }: CallOptions) {
      const params = { name, arguments: input };
      const options = { signal: calling, timeout: timeoutMs + LATER_MS };
      return client.request({ method: 'tools/call', params }, vendor.CallToolResultSchema, options);
    },
    /** Rejects where the server does not respond. */
    ping: (pinging: AbortSignal) => client.ping({ signal: pinging }).then(nothing, refusedOnly),
    /** Closes the connection; a child process has ended with all its descendants. */
    async close() {
      ended.resolve();
      await link.close().catch(nothing);
    },
  };
}

const nothing = () => undefined;

/** A hosted server that refuses the newer transport is an older one, and is asked over SSE. */
async function opened(deps: ConnectionDeps, messages: Messages, signal: AbortSignal) {
  if (deps.config.url === '') return handshake(deps, childOf(deps, messages), signal);
  try {
    return await handshake(deps, await linkByHttp(deps), signal);
  } catch (error) {
    if (!(error instanceof Error && isOlderServer(error.cause))) throw error;
    signal.throwIfAborted();
    return handshake(deps, await linkBySse(deps), signal);
  }
}

async function handshake({ version, config }: ConnectionDeps, link: Link, signal: AbortSignal) {
  const { Client: VendorClient } = await import('@modelcontextprotocol/sdk/client/index.js');
  const client = new VendorClient({ name: 'nanobot', version });
  try {
    const timeout = config.startupTimeoutSecs * 1000 + LATER_MS;
    await orAborted(client.connect(link.transport, { timeout, signal }), signal);
    return { client, link };
  } catch (error) {
    await link.close();
    if (link.needsLogin?.() === true) throw new LoginNeeded();
    throw new Error(link.fault() ?? wordsOf(error), { cause: error });
  }
}

/** Any response, also "method not found", shows that the server is alive. */
function refusedOnly(error: unknown): void {
  if (codeOf(error) !== METHOD_NOT_FOUND) throw error;
}

type Messages = { parse(value: unknown): JSONRPCMessage };

function childOf({ config, folder, env, clock }: ConnectionDeps, messages: Messages): Link {
  const transport = new StdioTransport({
    argv: [config.command, ...config.args],
    cwd: folder,
    env: { ...environmentOf(PASSED_ON, env), ...config.env },
    clock,
    flood: createFloodGuard(clock),
    parse: (line) => messages.parse(JSON.parse(line)),
  });
  return { transport, fault: () => transport.fault, close: () => transport.close() };
}

const listed = z.object({ tools: z.array(z.unknown()), nextCursor: z.string().optional() });
const hint = z.boolean().optional().catch(undefined);
const annotations = z.object({ readOnlyHint: hint, destructiveHint: hint });
const described = z.object({
  name: z.string().min(1).max(200),
  description: z.string().catch(''),
  inputSchema: z.unknown(),
  annotations: annotations.optional().catch(undefined),
});

/** Leaves out a tool with an invalid description and keeps the others. */
async function listTools(client: Client, signal: AbortSignal): Promise<readonly RemoteToolSpec[]> {
  const tools = new Map<string, RemoteToolSpec>();
  let cursor: string | undefined;
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const params = cursor === undefined ? {} : { cursor };
    const found = await client.request({ method: 'tools/list', params }, listed, { signal });
    for (const each of found.tools) {
      const tool = described.safeParse(each).data;
      if (tools.size >= MAX_TOOLS) return [...tools.values()];
      if (tool === undefined) continue;
      tools.set(tool.name, { ...tool, schema: tool.inputSchema });
    }
    cursor = found.nextCursor;
    if (cursor === undefined) break;
  }
  return [...tools.values()];
}

/** Only the beginning of the message of the vendor or server, which describes the failure. */
function wordsOf(error: unknown): string {
  if (!(error instanceof Error)) return t`it does not answer`;
  const words = headOf(neutralLines(error.message).join(' '), MAX_WORDS_CHARS);
  const code = systemCode(error.cause);
  return code === undefined ? words : `${words} (${String(code)})`;
}

// Classifies failed tool calls. The server's text is bounded here and marked as untrusted content
// by the toolbox.

/** Error codes of JSON-RPC 2.0, section 5.1, and of the MCP SDK. */
const METHOD_NOT_FOUND = -32_601;
const INVALID_PARAMS = -32_602;
const CONNECTION_CLOSED = -32_000;
const REQUEST_TIMEOUT = -32_001;
const MAX_CHARS = 2000;

export type CallFailure = {
  readonly error: ToolError;
  /** The connection cannot be used any more. */
  readonly isLost: boolean;
};

/** `redact` masks secrets in the server's text. */
export function callFailure(
  error: unknown,
  server: string,
  redact: (text: string) => string,
): CallFailure {
  if (error instanceof ToolError) return { error, isLost: false };
  if (error instanceof LoginNeeded) {
    const text = t`${server} ${error.message} by the owner`;
    return { error: new ToolError('permission', text, { cause: error }), isLost: true };
  }
  const code = codeOf(error);
  const isLost = isConnectionLost(error, code);
  if (isLost || code === STREAM_ENDED) return { error: lost(server, error), isLost };
  const [kind, text] = toldBy(error, code, server);
  // A 404 means that the server forgot the session (transports, session management).
  return { error: new ToolError(kind, redact(text), { cause: error }), isLost: code === 404 };
}

/** An error without a code is a broken connection. */
function isConnectionLost(error: unknown, code: number | undefined): boolean {
  if (code !== undefined) return code === CONNECTION_CLOSED;
  return !isTooLarge(error) && !isUnreadable(error);
}

const isTooLarge = (error: unknown) =>
  error instanceof SafeFetchError && error.reason === 'too_large';
const isUnreadable = (error: unknown) => error instanceof Error && 'issues' in error;

function toldBy(
  error: unknown,
  code: number | undefined,
  server: string,
): readonly [ToolFailureKind, string] {
  const words = headOf(error instanceof Error ? error.message : '', MAX_CHARS);
  if (isUnreadable(error))
    return ['execution', t`${server} answered in a form that cannot be read`];
  switch (code) {
    case METHOD_NOT_FOUND:
      return ['not_found', words];
    case INVALID_PARAMS:
      return ['invalid_arguments', words];
    case REQUEST_TIMEOUT:
      return ['timeout', t`${server} did not answer in time`];
    case 401:
    case 403:
      return ['permission', t`${server} refuses the login that is configured for it`];
    default:
      return ['execution', words];
  }
}

const lost = (server: string, cause: unknown) =>
  new ToolError(
    'execution',
    `the connection to ${server} was lost while this ran: it may or may not have been done`,
    { cause, isTransient: true },
  );

export function codeOf(error: unknown): number | undefined {
  const code = systemCode(error);
  return typeof code === 'number' ? code : undefined;
}
