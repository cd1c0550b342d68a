// The command `nanobot mcp`: the tool servers, as the running gateway sees them, and their logins.

import { Command } from 'commander';
import {
  CommandFailure,
  EXIT,
  type Terminal,
  textTable,
  untilStopped,
} from '../../cli/terminal.ts';
import { t } from '../../lib/texts.ts';
import { orAborted } from '../../lib/time/clock.ts';
import type { ServerLogin } from './login.ts';
import type { ReportedToolServer } from './tooling.ts';

export function mcpCommand(terminal: Terminal): Command {
  const command = new Command('mcp').description(t`tool servers (MCP)`);
  command
    .command('list')
    .description(t`list tool servers with their status and tools`)
    .option('--json', t`print as JSON`)
    .action(({ json }: { readonly json?: boolean }) => list(terminal, json === true));
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

const CONSENT_TIMEOUT_MS = 15 * 60_000;
const LOOK_MS = 500;
const CONNECT_TIMEOUT_MS = 5000;
const REDIRECT_PATH = '/mcp';
const GATEWAY_PATH = '/api/mcp/redirect';

async function logIn(terminal: Terminal, name: string): Promise<void> {
  const { createAsker } = await import('../../cli/onboard/asker.ts');
  const { findRunningGateway, withOpenState } = await import('../../kernel/home-state.ts');
  const { consentSecrets, listenForRedirect, readRedirect } = await import(
    '../../lib/net/oauth-redirect.ts'
  );
  const { config, gateway, network } = await serverOf(terminal, name);
  const running = await findRunningGateway(terminal.home);
  const asker = createAsker(terminal, terminal.interactive);
  const { state } = consentSecrets();
  const listener = await listenForRedirect(REDIRECT_PATH, state);
  const asking = new AbortController();
  try {
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
      asker.say(t`Open this address in ${where} and allow the access:\n${link.href}`);
      const check = (answer: string) =>
        readRedirect(answer, state).kind === 'foreign'
          ? t`This is not the address of this login.`
          : undefined;
      const message = t`Is the browser on another machine? Paste the address at which it ends`;
      const pasted = asker.interactive
        ? [asker.text({ ...{ message, check, flag: '' }, signal: asking.signal })]
        : [];
      const address = await untilStopped(
        () => undefined,
        (stop) => {
          const signal = AbortSignal.any([stop, AbortSignal.timeout(CONSENT_TIMEOUT_MS)]);
          // The gateway ends a login at its public address by itself.
          const ended = untilEnded(login, state, terminal.clock, signal);
          return orAborted(Promise.race([listener.redirect, ended, ...pasted]), signal);
        },
      ).catch(cancelled);
      if (address !== undefined) await login.finish(address);
    });
    await connectRunning(terminal, name);
    asker.say(t`Logged in to ${name}.`);
  } finally {
    asking.abort();
    await listener[Symbol.asyncDispose]();
  }
}

async function untilEnded(
  login: ServerLogin,
  state: string,
  clock: Terminal['clock'],
  signal: AbortSignal,
): Promise<undefined> {
  while (await login.isOurs(`?state=${state}`)) await clock.sleep(LOOK_MS, signal);
  if (!(await login.isLoggedInBy(state)))
    throw new CommandFailure(EXIT.failure, t`the login failed`);
}

function cancelled(error: unknown): never {
  const name = error instanceof Error ? error.name : '';
  if (name === 'AbortError') throw new CommandFailure(EXIT.interrupted, t`Cancelled.`);
  if (name !== 'TimeoutError') throw error;
  throw new CommandFailure(EXIT.failure, t`nobody allowed the access within 15 minutes`);
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
