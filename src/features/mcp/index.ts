// Keeps the tool servers as configured: starts new ones, ends removed ones, restarts changed ones.
// Nothing waits for a server, in particular not the start of the gateway.

import { homedir } from 'node:os';
import { resolve } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { type CommandTable, commandsOf, OWNER_ONLY } from '../../kernel/commands/command-access.ts';
import { programVersion } from '../../kernel/config/files/home.ts';
import { type Kernel, port } from '../../kernel/feature.ts';
import type { StatusSource } from '../../kernel/status.ts';
import { readOnce } from '../../lib/async.ts';
import { t } from '../../lib/texts.ts';
import { aborted } from '../../lib/time/clock.ts';
import { PROVENANCE } from '../../tools/files/provenance.ts';
import type { MissingTool } from '../../tools/tool.ts';
import type { ToolServerConfig, ToolServersConfig } from './settings.ts';
import type { ToolServer, ToolServerDeps, ToolServerReport } from './tool-server.ts';

type ToolServersDeps = ToolServerDeps & {
  /** Read at the start and after each change. */
  readonly servers: () => ToolServersConfig;
};

export type ToolServers = ReturnType<typeof createToolServers>;

export function createToolServers(deps: ToolServersDeps) {
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

  /** Loads the MCP client with the first enabled server. */
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
    /** Of all servers that were connected once; tools that cannot run at the moment say so. */
    tools: () => (servers.size === 0 ? [] : inOrder().flatMap(({ tools }) => tools)),
    report: () => inOrder().map((server) => server.report()),
    /** Applies the current configuration; only changed servers reconnect. */
    configured: () =>
      void configured().catch((error) => deps.log.error('tool servers not started', { error })),
    /** Of a hosted server without a configured key. */
    login: (name: string) => servers.get(name)?.login,
    /** Connects a server that waits for its login. */
    loggedIn: (name: string) => servers.get(name)?.loggedIn(),
    /** Ends the login that this address belongs to; undefined: none. @throws LoginFailed */
    async redirected(address: string): Promise<string | undefined> {
      for (const { name, login } of inOrder()) {
        if (!(await login?.isOurs(address))) continue;
        await login?.finish(address);
        servers.get(name)?.loggedIn();
        return name;
      }
      return undefined;
    },
    /** Resolves when `run` has started and every server was connected or failed once. */
    async tried(): Promise<void> {
      await begun.promise;
      await Promise.all([...servers.values()].map(({ tried }) => tried));
    },
    /** Keeps the configured servers connected until aborted, then ends them. */
    async run(signal: AbortSignal): Promise<void> {
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

export const TOOL_SERVERS = port<ToolServers>('tool servers');

export const MCP_COMMANDS = {
  mcp: {
    summary: t`show tool servers, and log in to one`,
    usage: '/mcp [login <server> | logout <server>]',
    // The pasted end of a login is a code.
    access: { ...OWNER_ONLY, audited: true },
    timing: 'immediate',
  },
} satisfies CommandTable;

export function install(kernel: Kernel): void {
  const { live, clock, log, media, env, store, home, owners, add } = kernel;
  const logins = store.scope('tool-server-logins');
  const servers = createToolServers({
    servers: () => live.config.mcpServers,
    folderOf: ({ cwd }: ToolServerConfig) =>
      resolve(live.defaults.workspace, cwd.replace(/^~(?=$|[/\\])/, homedir())),
    redact: live.redact,
    version: programVersion(),
    proxy: () => live.config.network.proxy,
    logins,
    loginNeeded: (name) =>
      owners.tell(
        t`The tool server ${name} needs a login before its tools can be used. Send \`/mcp login ${name}\`.`,
      ),
    ...{ env, clock, log, media, own: kernel.use(PROVENANCE) },
  });
  kernel.provide(TOOL_SERVERS, servers);
  const parts = { servers, home, publicUrl: () => live.config.gateway.publicUrl, clock };
  const configured = () => Object.entries(live.config.mcpServers);
  const loaded = readOnce(() => import('./login-commands.ts'));
  add.command(
    ...commandsOf(MCP_COMMANDS, {
      mcp: async (_origin, argument) =>
        (await loaded()).answerMcp({ ...parts, configured }, argument),
    }),
  );
  add.routes(['POST /api/mcp/connect'], async () => (await loaded()).connectRoute(parts));
  add.routes(['GET /api/mcp/redirect'], async () => (await loaded()).redirectRoute(parts), {
    isOpen: true,
  });
  add.routes(
    [
      'GET /api/v1/tool-servers/events',
      'POST /api/v1/tool-servers/:name',
      'POST /api/v1/tool-servers/:name/remove',
      'POST /api/v1/tool-servers/:name/logout',
    ],
    async () => {
      const { serverRoutes } = await import('./server-routes.ts');
      return serverRoutes(kernel, servers, logins);
    },
  );
  add.reconfigured(() => servers.configured());
  add.task({ name: 'tool servers', run: (signal) => servers.run(signal) });
}

// What /status, the doctor and notices say about tool servers and tools that cannot run.

type ToolingReport = {
  readonly servers: readonly ToolServerReport[];
  /** Enabled, with a missing requirement. */
  readonly missing: readonly MissingTool[];
};

export function toolingStatus(
  { live, clock }: Kernel,
  servers: ToolServers,
  missing: () => readonly MissingTool[],
): StatusSource {
  /** Redacts the reasons: they come from programs, which may repeat a secret they were given. */
  const report = (): ToolingReport => ({
    servers: servers.report().map((server) => ({
      ...server,
      state:
        'reason' in server.state
          ? { ...server.state, reason: live.redact(server.state.reason) }
          : server.state,
    })),
    missing: missing()
      .filter(({ name }) => !name.startsWith('mcp_'))
      .map(({ name, reason }) => ({ name, reason: live.redact(reason) })),
  });
  return {
    async lines(origin) {
      const isForOwner =
        origin === undefined || (origin.role === 'owner' && origin.message.addressing === 'direct');
      return isForOwner ? (await import('./tooling.ts')).toolingLines(report(), clock.now()) : [];
    },
    fields: () => ({ tooling: report() }),
  };
}
