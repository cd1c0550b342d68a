// The command `nanobot mcp`: the tool servers, as the running gateway sees them, and their logins.

import { Command, Option } from 'commander';
import { CommandFailure, EXIT, type Terminal, textTable } from '../../cli/terminal.ts';
import { defined } from '../../lib/json/json.ts';
import { t } from '../../lib/texts.ts';
import { TRUSTS } from './rules/views.ts';
import type { ToolServerFlags } from './setup.ts';
import type { ReportedToolServer } from './tooling.ts';

export function mcpCommand(terminal: Terminal): Command {
  const command = new Command('mcp').description(t`tool servers (MCP)`);
  command
    .command('list')
    .description(t`list tool servers with their status and tools`)
    .option('--json', t`print as JSON`)
    .action(({ json }: { readonly json?: boolean }) => list(terminal, json === true));
  command
    .command('add')
    .description(t`connect a tool server, list its tools and save it`)
    .argument('[name]', t`a short name for it`)
    .argument('[command...]', t`after --: the command that starts it on this machine`)
    .option('--url <url>', t`the address of a hosted server`)
    .option('--key <key>', t`API key of a hosted server`)
    .option('--env <variables...>', t`variables for the command, as NAME=value`)
    .addOption(new Option('--trust <kind>', t`how often its tools are asked about`).choices(TRUSTS))
    .action((name: string | undefined, words: readonly string[], flags: ToolServerFlags) =>
      add(terminal, {
        ...flags,
        ...defined({ name }),
        ...(words.length > 0 ? { command: words } : {}),
      }),
    );
  command
    .command('remove')
    .description(t`remove a tool server, with its tokens`)
    .argument('<server>', t`its name in mcpServers`)
    .action((name: string) => remove(terminal, name));
  command
    .command('login')
    .description(t`log in to a hosted tool server in a browser`)
    .argument('<server>', t`its name in mcpServers`)
    .action((name: string) => logIn(terminal, name));
  command
    .command('logout')
    .description(t`delete the tokens of a hosted tool server`)
    .argument('<server>', t`its name in mcpServers`)
    .action((name: string) => logOut(terminal, name));
  return command;
}

async function add(terminal: Terminal, flags: ToolServerFlags): Promise<void> {
  const { openHome } = await import('../../kernel/config/files/first-run.ts');
  const { createAsker } = await import('../../cli/onboard/asker.ts');
  const { addToolServer } = await import('./setup.ts');
  await openHome(terminal.home, terminal.env);
  const asker = createAsker(terminal, terminal.interactive, 'nanobot mcp add');
  const { name, needsLogin } = await addToolServer(terminal, asker, flags);
  terminal.tell(t`The tool server ${name} is saved.`);
  if (!needsLogin) return;
  if (asker.interactive) await logIn(terminal, name);
  else terminal.tell(t`Log in: nanobot mcp login ${name}`);
}

async function remove(terminal: Terminal, name: string): Promise<void> {
  const { withOpenState } = await import('../../kernel/home-state.ts');
  const { LOGIN_SCOPE } = await import('./login.ts');
  const { removeToolServer } = await import('./setup.ts');
  await withOpenState(terminal.home, terminal.clock, ({ store }) =>
    removeToolServer(terminal, name, store.scope(LOGIN_SCOPE)),
  );
  terminal.tell(t`Removed the tool server ${name}.`);
}

const CONNECT_TIMEOUT_MS = 5000;
const REDIRECT_PATH = '/mcp';
const GATEWAY_PATH = '/api/mcp/redirect';

async function logIn(terminal: Terminal, name: string): Promise<void> {
  const { createAsker } = await import('../../cli/onboard/asker.ts');
  const { findRunningGateway, withOpenState } = await import('../../kernel/home-state.ts');
  const { consentSecrets, listenForRedirect } = await import('../../lib/net/oauth-redirect.ts');
  const { followConsent } = await import('./follow-consent.ts');
  const { config, gateway, network } = await serverOf(terminal, name);
  const running = await findRunningGateway(terminal.home);
  const asker = createAsker(terminal, terminal.interactive);
  const { state } = consentSecrets();
  await using listener = await listenForRedirect(REDIRECT_PATH, state);
  await withOpenState(terminal.home, terminal.clock, async ({ store }) => {
    const { LOGIN_SCOPE, ServerLogin } = await import('./login.ts');
    const rows = store.scope(LOGIN_SCOPE);
    const parts = { name, config, rows, clock: terminal.clock, proxy: () => network.proxy };
    const login = new ServerLogin(parts);
    const own = `http://127.0.0.1:${listener.port}${REDIRECT_PATH}`;
    const isOutside = running !== undefined && gateway.publicUrl !== '';
    const redirectUrl = isOutside ? `${new URL(GATEWAY_PATH, gateway.publicUrl)}` : own;
    const link = await login.begin(redirectUrl, state);
    const where = isOutside ? 'a browser' : t`a browser on this machine`;
    const { clock } = terminal;
    const { redirect } = listener;
    await followConsent(asker, { login, link, state, where, clock, redirect });
  });
  await connectRunning(terminal, name);
  asker.say(t`Logged in to ${name}.`);
}

async function logOut(terminal: Terminal, name: string): Promise<void> {
  const { withOpenState } = await import('../../kernel/home-state.ts');
  const { LOGIN_SCOPE } = await import('./login.ts');
  await serverOf(terminal, name);
  await withOpenState(terminal.home, terminal.clock, ({ store }) =>
    store.scope(LOGIN_SCOPE).delete(name),
  );
  terminal.tell(t`Logged out of ${name}.`);
}

/** @throws CommandFailure where it is not configured, or needs no login */
async function serverOf({ home, env }: Terminal, name: string) {
  const { loadConfig } = await import('../../kernel/config/files/config-file.ts');
  const { mayLogIn } = await import('./login.ts');
  const { mcpServers, gateway, network } = (await loadConfig(home, env)).config;
  const config = mcpServers[name];
  if (config === undefined) {
    throw new CommandFailure(
      EXIT.notFound,
      t`there is no mcpServers.${name}; list: nanobot mcp list`,
    );
  }
  if (mayLogIn(config)) return { config, gateway, network };
  const problem = config.url === '' ? t`is a program on this machine` : t`has a key in its headers`;
  throw new CommandFailure(EXIT.usage, t`${name} ${problem} and needs no login`);
}

async function connectRunning(terminal: Terminal, name: string): Promise<void> {
  const { findRunningGateway, tellGateway } = await import('../../kernel/home-state.ts');
  const { loadConfig } = await import('../../kernel/config/files/config-file.ts');
  const running = await findRunningGateway(terminal.home);
  if (running?.address === undefined) return;
  const { token } = (await loadConfig(terminal.home, terminal.env)).config.gateway;
  const signal = AbortSignal.timeout(CONNECT_TIMEOUT_MS);
  const gateway = { address: running.address, token };
  await tellGateway(gateway, '/api/mcp/connect', { server: name }, signal).catch(() => undefined);
}

type Row = { readonly name: string; readonly state: string; readonly tools: readonly string[] };

async function list(terminal: Terminal, asJson: boolean): Promise<void> {
  const rows = await rowsOf(terminal);
  if (asJson) return terminal.printJson(rows);
  if (rows.length === 0) {
    terminal.tell(t`No tool servers. Add one: nanobot mcp add`);
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
