// Builds the tool servers of the configuration, and what status and doctor are told of tools that
// cannot work.

import { homedir } from 'node:os';
import { resolve } from 'node:path';
import type { Foundations } from '../../app/foundations.ts';
import type { Environment } from '../../kernel/config/environment.ts';
import { programVersion } from '../../kernel/config/files/package-files.ts';
import type { MissingTool } from '../../tools/tool.ts';
import { createToolServers } from './index.ts';
import type { ToolServerReport, ToolServers } from './mcp.ts';
import type { ToolServerConfig } from './settings.ts';

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
  /** The configuration changed. */
  configured(): void;
};

export function buildToolServers(
  { live, clock, log, media }: Foundations,
  env: Environment,
): ToolServers {
  return createToolServers({
    servers: () => live.config.mcpServers,
    folderOf: ({ cwd }: ToolServerConfig) =>
      resolve(live.defaults.workspace, cwd.replace(/^~(?=$|[/\\])/, homedir())),
    redact: (text) => live.redact(text),
    version: programVersion(),
    ...{ env, clock, log, media },
  });
}

/** Reasons are partly words of programs, which may hold a secret they were given. */
export function toolingOf(
  servers: ToolServers,
  missing: () => readonly MissingTool[],
  redact: (text: string) => string,
): Tooling {
  return {
    configured: () => servers.configured(),
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
