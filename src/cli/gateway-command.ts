// The command `nanobot gateway` runs everything in the foreground until stopped; `nanobot
// telegram`, `email`, `whatsapp` and `lark` run one channel alone.

import { setFlagsFromString } from 'node:v8';
import { Command, Option } from 'commander';
import { ChannelClosedError } from '../channels/local-channel.ts';
import type { NodeRole } from '../kernel/bus/store/shared.ts';
import type { ConfigOverrides } from '../kernel/config/check.ts';
import type { Environment } from '../kernel/config/environment.ts';
import type { OpenedHome } from '../kernel/config/files/first-run.ts';
import type { ChannelReport, Gateway } from '../kernel/gateway.ts';
import { defined } from '../lib/json/json.ts';
import { silentLogger } from '../lib/logger.ts';
import { t } from '../lib/texts.ts';
import { isZoneUnknown } from '../lib/time/zone-names.ts';
import { DEMO_MODEL, isDemo } from '../providers/rules/model-names.ts';
import { parsePort } from './flag-values.ts';
import { CommandFailure, EXIT, type Terminal, untilStopped } from './terminal.ts';

type ForegroundOptions = {
  readonly overrides: ConfigOverrides;
  readonly channels: 'all' | readonly string[];
  readonly http: boolean;
  readonly role?: NodeRole | undefined;
};

/** Least width; a long account name needs more. */
const NAME_COLUMNS = 10;
/** Longest time after the end of running turns until the process ends. */
const STOP_GRACE_SECS = 40;
const LINK_NOTE = t`The link works once, within 15 minutes. For another: nanobot link`;

/**
 * How V8 runs a gateway after its start: it collects garbage sooner than by default; its middle
 * compiler has all threads, so that few functions wait for it in memory; its last compiler, which
 * takes more than a gateway gains from it, waits for five times as many calls. On the command line
 * each of them would make V8 refuse what was compiled before, by Node too.
 * @see docs/adr/0046-flags-of-v8-after-the-start.md
 */
export const SETTLED_FLAGS = [
  '--memory-saver-mode',
  '--heap-growing-percent=75',
  '--concurrent-maglev-max-threads=4',
  '--invocation-count-for-turbofan=15000',
];
/** Later than load-parts.ts keeps what was compiled. */
const SETTLED_AFTER_MS = 6000;

/** @throws ConfigError, HomeLockedError */
export async function runGateway(terminal: Terminal, options: ForegroundOptions): Promise<void> {
  const { openHome } = await import('../kernel/config/files/first-run.ts');
  const { boot } = await import('../boot.ts');
  const { resumeUpdate } = await import('../features/update/index.ts');
  const { home, env } = terminal;
  await resumeUpdate(terminal);
  const opened = await openHome(home, env, options.overrides);
  const isLogged = opened.loaded.config.logging.stdout && terminal.output.isTTY !== true;
  const logged = (line: string) => void terminal.output.write(line);
  const tell = isLogged ? (line: string) => logged(logLine(terminal, line)) : terminal.tell;
  const service = isSupervised(env)
    ? (await import('./service/systemd.ts')).reportToSystemd(env, terminal.note)
    : undefined;
  const { drainSecs } = opened.loaded.config.gateway;
  const onStop = () => {
    service?.stopping(drainSecs + STOP_GRACE_SECS);
    if (!isLogged)
      terminal.note(t`Stopping; waiting for running answers. Press Ctrl+C again to stop now.`);
  };
  await using gateway = await boot(opened.loaded, {
    home,
    env,
    channels: options.channels,
    http: options.http,
    ...(options.role === undefined ? {} : { role: options.role }),
    foreground: tell,
    ...(isLogged ? { logged } : {}),
    typed: terminal.typed,
  });
  try {
    await untilStopped(onStop, async (signal) => {
      for (const line of await greeting(terminal, opened, gateway, isLogged)) tell(line);
      service?.ready();
      setTimeout(() => setFlagsFromString(SETTLED_FLAGS.join(' ')), SETTLED_AFTER_MS).unref();
      await gateway.run(signal);
    });
  } finally {
    service?.[Symbol.dispose]();
  }
}

/** systemd waits for reports. @see sd_notify(3) */
const isSupervised = (env: Environment) => (env['NOTIFY_SOCKET'] ?? '') !== '';

async function greeting(
  terminal: Terminal,
  opened: OpenedHome,
  gateway: Gateway,
  isLogged: boolean,
): Promise<readonly string[]> {
  const zoneTroubles = await timeZoneTroubles(terminal, opened);
  const problem = gateway.modelProblem();
  const reports = gateway.channels();
  const columns = Math.max(NAME_COLUMNS, ...reports.map(({ name }) => name.length + 1));
  const row = (name: string, text: string) =>
    `  ${terminal.style('bold', name.padEnd(columns))}${text}`;
  // Logs are stored and collected, so they contain no login link.
  const link = isLogged ? gateway.address : await gateway.loginLink();
  const linkNote = isLogged ? t`For a login link: nanobot link` : LINK_NOTE;
  return [
    ...opened.notes.map((note) => terminal.style('dim', note)),
    ...zoneTroubles.map(({ text, remedy }) =>
      row(t`time zone`, terminal.style('yellow', `${text}. ${remedy}`)),
    ),
    row('home', terminal.home.root),
    row('model', modelLine(gateway.model)),
    ...(problem === undefined ? [] : [row('', terminal.style('yellow', problem))]),
    ...(link === undefined ? [] : [row(t`web page`, link), row('', linkNote)]),
    ...reports.map((report) => row(report.name, channelLine(report))),
    ...(isLogged ? [] : [terminal.style('dim', t`Press Ctrl+C to stop.`)]),
  ];
}

async function timeZoneTroubles(terminal: Terminal, { loaded }: OpenedHome) {
  const { timeZone } = loaded.config.sessions;
  if (!isZoneUnknown(terminal.env['TZ'] ?? '', timeZone)) return [];
  const { checkTimeZone } = await import('./doctor/machine-checks.ts');
  return checkTimeZone(terminal, timeZone);
}

/** A line of the start output as a line of the log. */
function logLine({ clock, typed }: Terminal, text: string): string {
  const time = new Date(clock.now()).toISOString();
  return `${JSON.stringify({ level: 'info', time, text: typed(text).trim(), msg: 'notice' })}\n`;
}

function modelLine(model: string): string {
  if (!isDemo(model)) return model;
  return t`${model} (fixed demo answers). Connect a real model: nanobot onboard`;
}

function channelLine({ status }: ChannelReport): string {
  if (status.kind === 'off') return t`off. ${status.remedy}`;
  if (status.kind === 'stopped') return t`stopped: ${status.reason}. ${status.remedy}`;
  if (status.kind === 'degraded') return t`retrying: ${status.reason}`;
  return 'on';
}

// A trial: the program starts in a copy of a home, answers one message by the demo model and ends.
// Nothing leaves the machine: no account, tool server, peer or model is contacted.

const TRIAL_MS = 120_000;
const START_POLL_MS = 20;
const TRIAL_SETTINGS: ConfigOverrides = {
  // Never the database of the home that this one is a copy of.
  'store.engine': 'sqlite',
  'storage.path': '',
  'storage.media.kind': 'files',
  'agents.defaults.model': DEMO_MODEL,
  'agents.defaults.fastModel': DEMO_MODEL,
  'agents.defaults.fallbackModels': [],
  'agents.defaults.workspace': '',
  'agents.mode': 'inline',
  mcpServers: {},
  'cluster.enabled': false,
  'telemetry.otel.endpoint': '',
};

async function tryGateway(terminal: Terminal): Promise<void> {
  const { openHome } = await import('../kernel/config/files/first-run.ts');
  const { programVersion } = await import('../kernel/config/files/home.ts');
  const { boot } = await import('../boot.ts');
  const { countHome } = await import('../features/backup/create.ts');
  const { home, env, clock } = terminal;
  const { openStore } = await import('../kernel/home-state.ts');
  const { loaded } = await openHome(home, env, TRIAL_SETTINGS);
  const store = await openStore(home, { clock, log: silentLogger, setting: loaded.config.store });
  await store[Symbol.asyncDispose]();
  const stored = countHome(home);
  const trialChat = `trial-${process.pid}`;
  await using gateway = await boot(loaded, {
    ...{ home, env, channels: [], http: false, trialChat },
    foreground: terminal.note,
  });
  const done = new AbortController();
  const whole = AbortSignal.any([done.signal, AbortSignal.timeout(TRIAL_MS)]);
  const counts = countHome(home);
  const run = gateway.run(whole);
  const answered = answerIn(gateway, trialChat, whole);
  await Promise.race([answered, run]).finally(() => done.abort());
  await run;
  if (!(await answered)) throw new CommandFailure(EXIT.failure, t`the gateway did not answer`);
  terminal.print(JSON.stringify({ version: programVersion(), stored, counts }));
}

async function answerIn({ terminal }: Gateway, chat: string, signal: AbortSignal) {
  for (;;) {
    try {
      await terminal.submit({ chat, clientId: 'trial', text: 'hello' });
      break;
    } catch (error) {
      // It is still starting.
      if (!(error instanceof ChannelClosedError) || signal.aborted) throw error;
      await new Promise((soon) => setTimeout(soon, START_POLL_MS));
    }
  }
  for await (const event of terminal.events(chat, 0, signal)) {
    if (event.type === 'said' && event.from === 'agent' && event.text !== '') return true;
  }
  return false;
}

type GatewayFlags = {
  readonly host?: string;
  readonly port?: number;
  readonly role?: NodeRole;
  readonly trial?: boolean;
};

export function gatewayCommand(terminal: Terminal): Command {
  return new Command('gateway')
    .description(t`run all channels and the web page until you stop it`)
    .option('--host <host>', t`address to listen on; default: gateway.host`)
    .option('-p, --port <port>', t`port of the web page; default: gateway.port`, parsePort)
    .addOption(
      new Option('--role <role>', t`with several processes on one PostgreSQL: what this one does`)
        .choices(['all', 'channels', 'workers'] satisfies NodeRole[])
        .default('all'),
    )
    .addOption(new Option('--trial', t`start in a copy of a home, answer once and end`).hideHelp())
    .action(({ host, port, role = 'all', trial }: GatewayFlags) => {
      if (trial === true) return tryGateway(terminal);
      const overrides = defined({ 'gateway.host': host, 'gateway.port': port });
      return runGateway(terminal, { overrides, channels: 'all', http: true, role });
    });
}

const alone = (name: string, label: string) => (terminal: Terminal) =>
  new Command(name)
    .description(t`run only the ${label} channel until you stop it`)
    .action(({ token }: { readonly token?: string }) => {
      const given = token === undefined ? {} : { [`channels.${name}.token`]: token };
      const overrides = { ...given, [`channels.${name}.enabled`]: true };
      return runGateway(terminal, { overrides, channels: [name], http: false });
    });

export const telegramCommand = (terminal: Terminal) =>
  alone(
    'telegram',
    'Telegram',
  )(terminal).option('-t, --token <token>', t`bot token; default: channels.telegram.token`);
export const emailCommand = alone('email', 'email');
export const whatsAppCommand = alone('whatsapp', 'WhatsApp');
export const larkCommand = alone('lark', 'Lark');
