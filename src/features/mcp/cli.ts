// The command `nanobot mcp`: the tool servers, as the running gateway sees them.

import { Command } from 'commander';
import { type Terminal, textTable } from '../../cli/terminal.ts';
import { t } from '../../lib/texts.ts';
import type { ReportedToolServer } from './tooling.ts';

export function mcpCommand(terminal: Terminal): Command {
  const command = new Command('mcp').description(t`tool servers (MCP)`);
  command
    .command('list')
    .description(t`list tool servers with their status and tools`)
    .option('--json', t`print as JSON`)
    .action(({ json }: { readonly json?: boolean }) => list(terminal, json === true));
  return command;
}

type Row = { readonly name: string; readonly state: string; readonly tools: readonly string[] };

async function list(terminal: Terminal, asJson: boolean): Promise<void> {
  const rows = await rowsOf(terminal);
  if (asJson) return terminal.printJson(rows);
  if (rows.length === 0) {
    terminal.tell(t`No tool servers. Add them under mcpServers in config.json.`);
    return;
  }
  for (const line of textTable(rows.map(({ name, state }) => [name, state]))) terminal.tell(line);
  for (const { name, tools } of rows) {
    if (tools.length > 0)
      terminal.tell(`\n${name}:\n${tools.map((tool) => `  ${tool}`).join('\n')}`);
  }
}

async function rowsOf({ home, env, clock }: Terminal): Promise<readonly Row[]> {
  const { loadConfig } = await import('../../kernel/config/files/config-file.ts');
  const { findRunningGateway } = await import('../../kernel/home-state.ts');
  const { reportTooling, toolServerLine } = await import('./tooling.ts');
  const { config } = await loadConfig(home, env);
  const running = await findRunningGateway(home);
  const tooling = await reportTooling(running, config.gateway.token);
  const lineOf = (server: ReportedToolServer) => toolServerLine(server, clock.now());
  return Object.entries(config.mcpServers).map(([name, { enabled }]) => {
    const server = tooling?.servers.find((each) => each.name === name);
    if (server !== undefined) return { name, state: lineOf(server), tools: server.tools };
    if (!enabled) return { name, state: 'off', tools: [] };
    const state = tooling === undefined ? t`the gateway is not running` : t`not started yet`;
    return { name, state, tools: [] };
  });
}
