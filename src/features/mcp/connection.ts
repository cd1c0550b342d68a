// One connection to a tool server: opened, asked for its tools, called, closed. The vendor's client and
// its words stay behind this file; it is loaded when the first server is connected.

import type { Client } from '@modelcontextprotocol/sdk/client/index.js';
import type { CallToolResult, JSONRPCMessage } from '@modelcontextprotocol/sdk/types.js';
import { z } from 'zod';
import { neutralLines } from '../../kernel/message/untrusted.ts';
import type { HostResolver } from '../../lib/net/checked-address.ts';
import { headOf } from '../../lib/text/cut.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { orAborted } from '../../lib/time/clock.ts';
import { codeOf, METHOD_NOT_FOUND } from './call-failure.ts';
import { createFloodGuard } from './flood.ts';
import { linkByHttp } from './http-link.ts';
import type { Link } from './link.ts';
import type { ToolServerConfig } from './settings.ts';
import { StdioTransport } from './stdio-transport.ts';

export type ConnectionDeps = {
  readonly config: ToolServerConfig;
  /** Absolute: where a server on this machine runs. */
  readonly folder: string;
  /** Of the gateway; a server gets what it needs of it. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly version: string;
  readonly clock: Clock;
  readonly resolver?: HostResolver;
};

export type ForeignTool = {
  readonly name: string;
  readonly description: string;
  readonly schema: unknown;
};

export type Connection = {
  /** Resolves when the server is gone or has to be left. */
  readonly ended: Promise<void>;
  /** Why it ended, in words for an owner. */
  fault(): string | undefined;
  /** Resolves when the server has said, since it was asked for them, that its tools are others now. */
  changed(): Promise<void>;
  tools(signal: AbortSignal): Promise<readonly ForeignTool[]>;
  call(name: string, input: Input, options: CallOptions): Promise<CallToolResult>;
  /** Whether it still answers. */
  ping(signal: AbortSignal): Promise<void>;
  /** Nothing more is heard of it; a child has ended with all it started. */
  close(): Promise<void>;
};

type Input = Readonly<Record<string, unknown>>;

export type CallOptions = { readonly signal: AbortSignal; readonly timeoutMs: number };

/** What a program needs to run at all and to find its own files; nothing of ours. */
const PASSED_ON = [
  ...['PATH', 'HOME', 'USER', 'LOGNAME', 'SHELL', 'TERM', 'LANG', 'LC_ALL', 'LC_CTYPE', 'TZ'],
  ...['TMPDIR', 'XDG_CACHE_HOME', 'XDG_CONFIG_HOME', 'XDG_DATA_HOME', 'SystemRoot'],
];
const MAX_PAGES = 20;
const MAX_TOOLS = 200;
const MAX_WORDS_CHARS = 200;
/** The deadlines are ours; those of the vendor only have to come later. */
const LATER_MS = 5000;

/** @throws Error where the server cannot be run or reached, or does not speak the protocol */
export async function connect(deps: ConnectionDeps, signal: AbortSignal): Promise<Connection> {
  const { Client: VendorClient } = await import('@modelcontextprotocol/sdk/client/index.js');
  const vendor = await import('@modelcontextprotocol/sdk/types.js');
  const client = new VendorClient({ name: 'nanobot', version: deps.version });
  const link =
    deps.config.url === '' ? childOf(deps, vendor.JSONRPCMessageSchema) : await linkByHttp(deps);
  const ended = Promise.withResolvers<void>();
  client.onclose = () => ended.resolve();
  let changed = Promise.withResolvers<void>();
  client.setNotificationHandler(vendor.ToolListChangedNotificationSchema, () => changed.resolve());
  try {
    const timeout = deps.config.startupTimeoutSecs * 1000 + LATER_MS;
    await orAborted(client.connect(link.transport, { timeout, signal }), signal);
  } catch (error) {
    await link.close();
    throw new Error(link.fault() ?? wordsOf(error), { cause: error });
  }
  return {
    ended: ended.promise,
    fault: link.fault,
    changed: () => changed.promise,
    tools(listing) {
      changed = Promise.withResolvers<void>();
      return listTools(client, listing);
    },
    call(name, input, { signal: calling, timeoutMs }) {
      const params = { name, arguments: input };
      const options = { signal: calling, timeout: timeoutMs + LATER_MS };
      return client.request({ method: 'tools/call', params }, vendor.CallToolResultSchema, options);
    },
    ping: (pinging) => client.ping({ signal: pinging }).then(nothing, refusedOnly),
    async close() {
      ended.resolve();
      await link.close().catch(nothing);
    },
  };
}

const nothing = () => undefined;

/** An answer, be it that it knows no ping, shows that the server is there. */
function refusedOnly(error: unknown): void {
  if (codeOf(error) !== METHOD_NOT_FOUND) throw error;
}

function childOf(
  { config, folder, env, clock }: ConnectionDeps,
  messages: { parse(value: unknown): JSONRPCMessage },
): Link {
  const passed = PASSED_ON.flatMap((name) => (env[name] ? [[name, env[name]] as const] : []));
  const transport = new StdioTransport({
    argv: [config.command, ...config.args],
    cwd: folder,
    env: { ...Object.fromEntries(passed), ...config.env },
    clock,
    flood: createFloodGuard(clock),
    parse: (line) => messages.parse(JSON.parse(line)),
  });
  return { transport, fault: () => transport.fault, close: () => transport.close() };
}

const listed = z.object({ tools: z.array(z.unknown()), nextCursor: z.string().optional() });
const described = z.object({
  name: z.string().min(1).max(200),
  description: z.string().catch(''),
  inputSchema: z.unknown(),
});

/** A tool that is not described as one is left out; the others are there. */
async function listTools(client: Client, signal: AbortSignal): Promise<readonly ForeignTool[]> {
  const tools = new Map<string, ForeignTool>();
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

/** Of what the vendor or the server says only the beginning, which is about the failure itself. */
function wordsOf(error: unknown): string {
  if (!(error instanceof Error)) return 'it does not answer';
  const words = headOf(neutralLines(error.message).join(' '), MAX_WORDS_CHARS);
  const { cause } = error;
  const code = cause instanceof Error && 'code' in cause ? ` (${String(cause.code)})` : '';
  return `${words}${code}`;
}
