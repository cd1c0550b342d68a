// Tool servers over real children and addresses, under a toolbox, on a clock that a test moves.

import { fileURLToPath } from 'node:url';
import { expect, onTestFinished } from 'vitest';
import { createToolServers } from '../../src/features/mcp/index.ts';
import type { LoginRows } from '../../src/features/mcp/login.ts';
import { mcpServersSchema, type ToolServersConfig } from '../../src/features/mcp/settings.ts';
import type { ToolServerState } from '../../src/features/mcp/tool-server.ts';
import { ALL_RIGHTS } from '../../src/kernel/access/rights.ts';
import {
  channelName,
  chatId,
  DEFAULT_ACCOUNT,
  sessionKey,
  turnId,
} from '../../src/kernel/message/ids.ts';
import { OWNER_TURN } from '../../src/kernel/message/untrusted.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import type { HostResolver } from '../../src/lib/net/checked-address.ts';
import type { ToolContext } from '../../src/tools/tool.ts';
import { createToolbox } from '../../src/tools/toolbox.ts';
import { createMemoryHost } from '../support/memory-host.ts';
import { createMemoryMedia } from '../support/memory-media.ts';
import { createMovableClock } from '../support/movable-clock.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const CHILD = fileURLToPath(new URL('../support/mcp-server-child.ts', import.meta.url));

/** As a person writes it; defaults are filled in. */
export const serversOf = (written: Readonly<Record<string, unknown>>): ToolServersConfig =>
  mcpServersSchema.parse(written);

export const goodServer = { command: process.execPath, args: [CHILD] };

/** A server without any library: `code` says what it does with each line that it reads. */
export const rawServer = (code: string) => ({
  command: process.execPath,
  args: [
    '-e',
    `const say = (message) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n');
    const started = { protocolVersion: '2025-06-18', capabilities: { tools: { listChanged: true } }, serverInfo: { name: 'raw', version: '1' } };
    const tool = { name: 'go', inputSchema: { type: 'object' } };
    require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
      const { id, method, params } = JSON.parse(line);
      ${code}
      if (method === 'initialize') say({ id, result: started });
      if (method === 'tools/list') say({ id, result: { tools: [tool] } });
      if (method === 'ping') say({ id, result: {} });
    });`,
  ],
});

export async function createMcpRig(
  written: Readonly<Record<string, unknown>>,
  env: Readonly<Record<string, string | undefined>> = { PATH: process.env['PATH'] },
  resolver?: HostResolver,
  options: { readonly logins?: LoginRows } = {},
) {
  const needed: string[] = [];
  const state = { servers: serversOf(written) };
  const clock = createMovableClock();
  const workspace = await temporaryFolder();
  const context: ToolContext = {
    session: sessionKey('telegram:42'),
    turnId: turnId('t1'),
    chat: { channel: channelName('telegram'), account: DEFAULT_ACCOUNT, chat: chatId('42') },
    signal: new AbortController().signal,
    rights: ALL_RIGHTS,
    isTainted: false,
    person: OWNER_TURN,
    say: async () => undefined,
    ...{ clock, workspace },
  };
  const media = createMemoryMedia(clock);
  const servers = createToolServers({
    servers: () => state.servers,
    folderOf: () => workspace,
    redact: (text) => text.replaceAll('planted-secret', '[redacted]'),
    ...{ env, clock, media },
    own: { running: (work) => work() },
    version: '1.0.0',
    logins: options.logins ?? createMemoryHost(clock).state,
    loginNeeded: (name) => void needed.push(name),
    ...(resolver === undefined ? {} : { resolver }),
    log: silentLogger,
  });
  const toolbox = createToolbox({
    tools: () => servers.tools(),
    settings: () => ({ disabled: [], maxResultChars: 10_000, timeoutMs: 60_000 }),
    clock,
    log: silentLogger,
  });
  const stop = new AbortController();
  const running = servers.run(stop.signal);
  const end = async () => {
    stop.abort();
    await running;
  };
  onTestFinished(end);
  const stateOf = (name: string): ToolServerState['kind'] | undefined =>
    servers.report().find((server) => server.name === name)?.state.kind;
  return {
    needed,
    servers,
    toolbox,
    clock,
    context,
    media,
    end,
    state,
    stateOf,
    names: () => toolbox.offered(ALL_RIGHTS).specs.map(({ name }) => name),
    reason: (name: string) => {
      const server = servers.report().find((each) => each.name === name)?.state;
      return server !== undefined && 'reason' in server ? server.reason : '';
    },
    reaches: (name: string, kind: ToolServerState['kind']) =>
      expect.poll(() => stateOf(name), { timeout: 45_000, interval: 10 }).toBe(kind),
    async call(name: string, input: unknown = {}) {
      const bound = toolbox.bind(name, JSON.stringify(input));
      return bound.kind === 'refused' ? bound.outcome : bound.run(context);
    },
  };
}
