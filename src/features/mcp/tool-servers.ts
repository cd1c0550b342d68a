// The servers of the configuration, kept as it says: those that are new are connected, those that are
// gone ended, those that changed both. Nothing waits for a server, at the start least of all.

import { homedir } from 'node:os';
import { resolve } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { programVersion } from '../../kernel/config/files/package-files.ts';
import { type Kernel, port } from '../../kernel/feature.ts';
import { aborted } from '../../lib/time/clock.ts';
import type { MissingTool } from '../../tools/tool.ts';
import type { ToolServerReport, ToolServers } from './mcp.ts';
import type { ToolServerConfig, ToolServersConfig } from './settings.ts';
import type { ToolServer, ToolServerDeps } from './tool-server.ts';

export type ToolServersDeps = ToolServerDeps & {
  /** Asked at the start and after each change. */
  readonly servers: () => ToolServersConfig;
};

export function createToolServers(deps: ToolServersDeps): ToolServers {
  const servers = new Map<string, ToolServer>();
  let loaded: typeof import('./tool-server.ts') | undefined;
  const ending = new Set<Promise<void>>();
  const begun = Promise.withResolvers<void>();
  let isRunning = false;

  const end = (server: ToolServer) => {
    servers.delete(server.name);
    const ended = server.stop().finally(() => ending.delete(ended));
    ending.add(ended);
  };

  /** Loads what speaks to servers with the first of them. */
  const configured = async () => {
    if (!isRunning) return;
    if (loaded === undefined && Object.values(deps.servers()).some(({ enabled }) => enabled)) {
      loaded = await import('./tool-server.ts');
    }
    if (isRunning && loaded !== undefined) connectWanted(loaded);
  };

  const connectWanted = (program: typeof import('./tool-server.ts')) => {
    const wanted = Object.entries(deps.servers()).filter(([, { enabled }]) => enabled);
    for (const server of [...servers.values()]) {
      const config = wanted.find(([name]) => name === server.name)?.[1];
      if (!isDeepStrictEqual(config, server.config)) end(server);
    }
    for (const [name, config] of wanted) {
      if (servers.has(name)) continue;
      const server = new program.ToolServer(name, config, deps);
      servers.set(name, server);
      server.start();
    }
  };

  const inOrder = () =>
    [...servers.values()].sort((one, other) => (one.name < other.name ? -1 : 1));

  return {
    tools: () => (servers.size === 0 ? [] : inOrder().flatMap(({ tools }) => tools)),
    report: () => inOrder().map((server) => server.report()),
    configured: () =>
      void configured().catch((error) => deps.log.error('tool servers not configured', { error })),
    async tried() {
      await begun.promise;
      await Promise.all([...servers.values()].map(({ tried }) => tried));
    },
    async run(signal) {
      isRunning = true;
      await configured();
      begun.resolve();
      await aborted(signal);
      isRunning = false;
      for (const server of servers.values()) end(server);
      await Promise.all(ending);
    },
  };
}

// Builds the tool servers of the configuration, and what status and doctor are told of tools that
// cannot work.

export type ToolingReport = {
  readonly servers: readonly ToolServerReport[];
  /** Switched on, and unable to work. */
  readonly missing: readonly MissingTool[];
};

/** What the gateway does with tools besides handing them to the agent. */
export type Tooling = {
  report(): ToolingReport;
  /** Resolves when every server was tried once. */
  tried(): Promise<void>;
};

export const TOOL_SERVERS = port<ToolServers>('tool servers');

export function install(kernel: Kernel): void {
  const { live, clock, log, media, env, add } = kernel;
  const servers = createToolServers({
    servers: () => live.config.mcpServers,
    folderOf: ({ cwd }: ToolServerConfig) =>
      resolve(live.defaults.workspace, cwd.replace(/^~(?=$|[/\\])/, homedir())),
    redact: (text) => live.redact(text),
    version: programVersion(),
    ...{ env, clock, log, media },
  });
  kernel.provide(TOOL_SERVERS, servers);
  add.reconfigured(() => servers.configured());
  add.task({ name: 'tool servers', run: (signal) => servers.run(signal) });
}

/** Reasons are partly words of programs, which may hold a secret they were given. */
export function toolingOf(
  servers: ToolServers,
  missing: () => readonly MissingTool[],
  redact: (text: string) => string,
): Tooling {
  return {
    tried: () => servers.tried(),
    report: () => ({
      servers: servers.report().map((server) => ({
        ...server,
        state:
          'reason' in server.state
            ? { ...server.state, reason: redact(server.state.reason) }
            : server.state,
      })),
      missing: missing()
        .filter(({ name }) => !name.startsWith('mcp_'))
        .map(({ name, reason }) => ({ name, reason: redact(reason) })),
    }),
  };
}
