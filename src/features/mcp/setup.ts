// Sets up a tool server: by a command or an address. It is saved once it was connected and listed its tools,
// or asked for a login.

import { homedir } from 'node:os';
import { resolve } from 'node:path';
import type { Config } from '../../kernel/config/config.ts';
import { readRawConfig, saveConfig } from '../../kernel/config/files/config-file.ts';
import { programVersion } from '../../kernel/config/files/home.ts';
import type { JsonObject } from '../../kernel/config/json.ts';
import { withoutValue } from '../../kernel/config/json-paths.ts';
import { NanobotError } from '../../kernel/message/errors.ts';
import { neutralLines } from '../../kernel/message/untrusted.ts';
import { defined } from '../../lib/json/json.ts';
import { commandWords } from '../../lib/text/command-line.ts';
import { headOf } from '../../lib/text/cut.ts';
import { msgid, ngettext, t } from '../../lib/texts.ts';
import { orAborted } from '../../lib/time/clock.ts';
import {
  type Asker,
  addressProblem,
  currentConfig,
  type SetupHost,
  save,
  tryOut,
} from '../setup/asker.ts';
import { connect, type RemoteToolSpec } from './connection.ts';
import { LoginNeeded, type LoginRows, mayLogIn, ServerLogin } from './login.ts';
import type { TRUSTS } from './rules/views.ts';
import { SERVER_NAME, type ToolServerConfig } from './settings.ts';

export type ToolServerFlags = {
  readonly name?: string;
  readonly command?: readonly string[];
  readonly url?: string;
  /** Sent as a bearer token. */
  readonly key?: string;
  /** `NAME=value`. */
  readonly env?: readonly string[];
  readonly trust?: (typeof TRUSTS)[number];
};

const VARIABLE = /^[A-Za-z_]\w*=/;
const MAX_LINE_CHARS = 120;
const MAX_TOOLS_SHOWN = 30;

type Added = { readonly name: string; readonly needsLogin: boolean };

export async function addToolServer(
  host: SetupHost,
  asker: Asker,
  flags: ToolServerFlags,
): Promise<Added> {
  const { mcpServers } = await currentConfig(host);
  const problemOf = (text: string) => {
    if (!SERVER_NAME.test(text)) return t`Use at most 32 letters, digits and "-".`;
    return Object.hasOwn(mcpServers, text)
      ? t`There is already a server with this name.`
      : undefined;
  };
  const {
    name = await asker.text({
      message: t`A short name for it, e.g. notes`,
      flag: '<name>',
      check: problemOf,
    }),
  } = flags;
  const problem = problemOf(name);
  if (problem !== undefined) throw new NanobotError('tool_server_name', problem);
  const entry = await entryOf(asker, flags);
  const draft = await tryOut(host, { [`mcpServers.${name}`]: entry });
  const config = draft.mcpServers[name];
  if (config === undefined)
    throw new NanobotError('tool_server_name', t`This name cannot be used.`);
  const tools = await asker.untilStopped((signal) =>
    asker.during(
      t`Connecting to ${name}`,
      () => triedOut(host, draft, name, config, signal),
      (found) => foundText(name, found),
    ),
  );
  if (tools !== undefined) asker.say(toolLines(tools));
  const trust = flags.trust ?? (await askTrust(asker));
  await save(host, { [`mcpServers.${name}`]: { ...entry, trust } });
  return { name, needsLogin: tools === undefined };
}

async function entryOf(asker: Asker, flags: ToolServerFlags): Promise<JsonObject> {
  const isHosted =
    flags.url !== undefined ||
    (flags.command === undefined &&
      (await asker.choose(
        t`Where does it run?`,
        [
          { value: 'command', label: t`On this machine`, hint: t`a command starts it` },
          { value: 'url', label: t`Elsewhere`, hint: t`it has an address` },
        ],
        'command',
      )) === 'url');
  return isHosted ? hostedEntry(asker, flags) : programEntry(asker, flags);
}

async function hostedEntry(asker: Asker, flags: ToolServerFlags): Promise<JsonObject> {
  const url =
    flags.url ??
    (await asker.text({
      message: t`Its address, e.g. https://mcp.example.org/mcp`,
      flag: '--url',
      check: addressProblem,
    }));
  const isAsked = flags.url === undefined || asker.interactive;
  const key =
    flags.key ??
    (isAsked
      ? await asker.secret({
          message: t`API key (leave empty if it needs none, or has a login)`,
          flag: '--key',
          optional: true,
          initial: '',
        })
      : '');
  return key === '' ? { url } : { url, headers: { Authorization: `Bearer ${key}` } };
}

async function programEntry(asker: Asker, flags: ToolServerFlags): Promise<JsonObject> {
  const words =
    flags.command ??
    commandWords(
      await asker.text({
        message: t`The command, e.g. npx -y @modelcontextprotocol/server-memory`,
        flag: '<name> -- <command>',
        check: (text) =>
          (commandWords(text) ?? []).length === 0 ? t`A quote is not closed.` : undefined,
      }),
    ) ??
    [];
  const isAsked = flags.env === undefined && flags.command === undefined;
  const given = isAsked
    ? (commandWords(
        await asker.secret({
          message: t`Variables with its keys, as NAME=value, separated by spaces (leave empty if it needs none)`,
          flag: '--env',
          optional: true,
          check: (text) =>
            (commandWords(text) ?? ['']).every((word) => VARIABLE.test(word))
              ? undefined
              : t`Write NAME=value.`,
        }),
      ) ?? [])
    : (flags.env ?? []);
  const strange = given.find((word) => !VARIABLE.test(word));
  if (strange !== undefined) throw new NanobotError('tool_server_env', t`Write NAME=value.`);
  const env = Object.fromEntries(
    given.map((word) => [word.slice(0, word.indexOf('=')), word.slice(word.indexOf('=') + 1)]),
  );
  const [command = '', ...args] = words;
  return { command, args, ...(given.length === 0 ? {} : { env }) };
}

const askTrust = (asker: Asker) =>
  asker.choose<(typeof TRUSTS)[number]>(
    t`How often should it ask you before it uses a tool of this server?`,
    [
      { value: 'ask_once', label: t`Once for each tool` },
      { value: 'always_ask', label: t`Each time` },
      { value: 'read_only', label: t`Never`, hint: t`its tools change nothing` },
    ],
    'ask_once',
  );

/** The tools that it lists; undefined: it asks for a login. @throws NanobotError */
async function triedOut(
  { env, clock, home }: SetupHost,
  draft: Config,
  name: string,
  config: ToolServerConfig,
  stop: AbortSignal,
): Promise<readonly RemoteToolSpec[] | undefined> {
  const proxy = () => draft.network.proxy;
  const login = mayLogIn(config)
    ? new ServerLogin({ name, config, rows: NO_ROWS, clock, proxy })
    : undefined;
  const workspace = draft.agents.defaults.workspace || home.workspace;
  const folder = resolve(workspace, config.cwd.replace(/^~(?=$|[/\\])/, homedir()));
  const seconds = config.startupTimeoutSecs;
  const signal = AbortSignal.any([stop, AbortSignal.timeout(seconds * 1000)]);
  try {
    const deps = { config, folder, env, clock, proxy, login, version: programVersion() };
    const connection = await orAborted(connect(deps, signal), signal);
    try {
      return await orAborted(connection.tools(signal), signal);
    } finally {
      await connection.close();
    }
  } catch (error) {
    if (error instanceof LoginNeeded) return undefined;
    stop.throwIfAborted();
    const why = signal.aborted ? t`it did not answer within ${seconds} s` : reasonOf(error);
    throw new NanobotError('tool_server_failed', t`${name} is not connected: ${why}`, {
      cause: error,
    });
  }
}

const reasonOf = (error: unknown) => (error instanceof Error ? error.message : t`no reason given`);

/** Nobody logged in to a server that is not configured yet. */
const NO_ROWS: LoginRows = {
  get: async () => undefined,
  set: async () => undefined,
  swap: async () => true,
  delete: async () => undefined,
};

function foundText(name: string, tools: readonly RemoteToolSpec[] | undefined): string {
  if (tools === undefined) return t`${name} answers and asks for a login.`;
  const { length } = tools;
  return ngettext(
    msgid`${name} is connected and has ${length} tool.`,
    `${name} is connected and has ${length} tools.`,
    length,
  );
}

/** The words of a server are untrusted: bounded, one line each. */
function toolLines(tools: readonly RemoteToolSpec[]): string {
  const lines = tools.slice(0, MAX_TOOLS_SHOWN).map(({ name, description }) => {
    const [first = ''] = neutralLines(description);
    return headOf(first === '' ? name : `${name}: ${first}`, MAX_LINE_CHARS);
  });
  const more = tools.length - lines.length;
  return [...lines, ...(more > 0 ? [t`and ${more} more`] : [])].join('\n');
}

/** @throws NanobotError where it is not configured; ConfigError */
export async function changeToolServer(
  host: SetupHost,
  name: string,
  change: { readonly enabled?: boolean; readonly trust?: (typeof TRUSTS)[number] },
): Promise<void> {
  await requireServer(host, name);
  const entries = Object.entries(defined(change));
  await save(
    host,
    Object.fromEntries(entries.map(([key, value]) => [`mcpServers.${name}.${key}`, value])),
  );
}

/** Also deletes its tokens. @throws NanobotError where it is not configured */
export async function removeToolServer(
  host: SetupHost,
  name: string,
  logins: Pick<LoginRows, 'delete'>,
): Promise<void> {
  await requireServer(host, name);
  const { home, env } = host;
  await saveConfig(home, withoutValue(await readRawConfig(home), `mcpServers.${name}`), env);
  await logins.delete(name);
}

async function requireServer(host: SetupHost, name: string): Promise<void> {
  if (Object.hasOwn((await currentConfig(host)).mcpServers, name)) return;
  throw new NanobotError('tool_server_unknown', t`There is no tool server ${name}.`);
}
