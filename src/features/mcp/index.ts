// The servers of the configuration, kept as it says: those that are new are connected, those that are
// gone ended, those that changed both. Nothing waits for a server, at the start least of all.

import { isDeepStrictEqual } from 'node:util';
import { aborted } from '../../lib/time/clock.ts';
import type { ToolServers } from './mcp.ts';
import type { ToolServersConfig } from './settings.ts';
import { ToolServer, type ToolServerDeps } from './tool-server.ts';

export type ToolServersDeps = ToolServerDeps & {
  /** Asked at the start and after each change. */
  readonly servers: () => ToolServersConfig;
};

export function createToolServers(deps: ToolServersDeps): ToolServers {
  const servers = new Map<string, ToolServer>();
  const ending = new Set<Promise<void>>();
  const begun = Promise.withResolvers<void>();
  let isRunning = false;

  const end = (server: ToolServer) => {
    servers.delete(server.name);
    const ended = server.stop().finally(() => ending.delete(ended));
    ending.add(ended);
  };

  const configured = () => {
    if (!isRunning) return;
    const wanted = Object.entries(deps.servers()).filter(([, { enabled }]) => enabled);
    for (const server of [...servers.values()]) {
      const config = wanted.find(([name]) => name === server.name)?.[1];
      if (!isDeepStrictEqual(config, server.config)) end(server);
    }
    for (const [name, config] of wanted) {
      if (servers.has(name)) continue;
      const server = new ToolServer(name, config, deps);
      servers.set(name, server);
      server.start();
    }
  };

  const inOrder = () =>
    [...servers.values()].sort((one, other) => (one.name < other.name ? -1 : 1));

  return {
    tools: () => (servers.size === 0 ? [] : inOrder().flatMap(({ tools }) => tools)),
    report: () => inOrder().map((server) => server.report()),
    configured,
    async tried() {
      await begun.promise;
      await Promise.all([...servers.values()].map(({ tried }) => tried));
    },
    async run(signal) {
      isRunning = true;
      configured();
      begun.resolve();
      await aborted(signal);
      isRunning = false;
      for (const server of servers.values()) end(server);
      await Promise.all(ending);
    },
  };
}
