// The command `nanobot service`: runs the gateway of a home as a service of the machine.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, realpathSync, statSync } from 'node:fs';
import { chown, mkdir } from 'node:fs/promises';
import { userInfo } from 'node:os';
import { delimiter, join, sep } from 'node:path';
import { parseEnv } from 'node:util';
import { Command, InvalidArgumentError } from 'commander';
import type { Environment } from '../../kernel/config/environment.ts';
import type { Home } from '../../kernel/config/files/home.ts';
import { textIfThere, writeAtomic } from '../../lib/files/files.ts';
import { t } from '../../lib/texts.ts';
import { type Finding, type Machine, ok, warn } from '../doctor/machine-checks.ts';
import { holderText } from '../explain-error.ts';
import { parseLimit } from '../flag-values.ts';
import { CommandFailure, EXIT, type Terminal } from '../terminal.ts';
import {
  ERRORS_FILE,
  installedService,
  type LogOptions,
  managerOf,
  needRoot,
  realPathOf,
  runner,
  type ServiceManager,
  type ServiceStatus,
  type ServiceUnit,
} from './manager.ts';

const LOG_LINES = 50;
/** Those of `npm start` and of the image. */
export const RUNTIME_FLAGS = ['--min-semi-space-size=4', '--max-semi-space-size=4'];
/**
 * One pool of memory for all threads, whose free end goes back. Pieces of 16 KB and more are mapped
 * by themselves: V8's compilers take thousands at once, and would leave holes in the pool. The pool
 * has no spare room, which malloc would use for them first.
 */
export const RUNTIME_ENV = {
  MALLOC_ARENA_MAX: '1',
  MALLOC_TRIM_THRESHOLD_: '131072',
  MALLOC_MMAP_THRESHOLD_: '16384',
  MALLOC_TOP_PAD_: '0',
};
const ENVIRONMENT_FILE = 'service.env';

// The command line of the service, and its environment.

/** Of the PATH, without those that npm adds. */
const programFolders = (env: Environment) =>
  (env['PATH'] ?? '')
    .split(delimiter)
    .filter((folder) => folder !== '' && !folder.includes('node_modules'));

/** Stays the same when Node is updated, if the PATH leads there. */
function nodePath(env: Environment): string {
  const paths = programFolders(env).map((folder) => join(folder, 'node'));
  const real = realpathSync(process.execPath);
  return paths.find((path) => realPathOf(path) === real) ?? process.execPath;
}

/** Not secret, needed before the environment file is read, or given to programs that it starts. */
const PLAIN_VARIABLES = ['PATH', 'TZ', 'LANG', 'NODE_EXTRA_CA_CERTS', 'NANOBOT_TRANSLATION'];
/** They may contain a password. */
const PROXY_VARIABLES = ['http_proxy', 'https_proxy', 'no_proxy', 'all_proxy'];

function unitOf(
  { env, home }: Terminal,
  manager: ServiceManager,
  options: Pick<ServiceUnit, 'memoryMax' | 'user'> & { readonly workspace: string },
): ServiceUnit {
  const root = realPathOf(home.root);
  const isInside = options.workspace.startsWith(root + sep);
  const plain = PLAIN_VARIABLES.flatMap((name) => (env[name] ? [[name, env[name]]] : []));
  const [, script = ''] = process.argv;
  return {
    home: root,
    command: [
      nodePath(env),
      ...RUNTIME_FLAGS,
      `--env-file-if-exists=${join(root, ENVIRONMENT_FILE)}`,
      script,
      'gateway',
    ],
    env: {
      ...RUNTIME_ENV,
      ...Object.fromEntries(plain),
      PATH: programFolders(env).join(delimiter),
      ...identity(root, manager),
    },
    writable: isInside ? [] : [options.workspace],
    errors: join(home.logs, ERRORS_FILE),
    memoryMax: options.memoryMax,
    user: options.user,
  };
}

const identity = (root: string, { name }: ServiceManager) => ({
  NANOBOT_HOME: root,
  NANOBOT_SERVICE: name,
});

/**
 * Keeps the keys that are in the environment of this shell, which a service has not; resolves with
 * their names.
 */
async function keepVariables(
  { env, home }: Terminal,
  manager: ServiceManager,
): Promise<readonly string[]> {
  const { PROVIDER_NAMES } = await import('../../providers/settings.ts');
  const { vendorOf } = await import('../../providers/vendors.ts');
  const config = (await textIfThere(home.config)) ?? '';
  const referenced = config.matchAll(/\$\{(\w+)\}|"env"\s*:\s*"(\w+)"/g);
  const wanted = new Set([
    ...PROVIDER_NAMES.flatMap((name) => vendorOf(name).keyVariables),
    ...PROXY_VARIABLES.flatMap((name) => [name, name.toUpperCase()]),
    ...[...referenced].map(([, written, named]) => written ?? named ?? ''),
    'NANOBOT_GATEWAY_TOKEN',
    'NANOBOT_REGISTRY',
  ]);
  const set = Object.entries(env).filter(
    ([name, value]) => value && (wanted.has(name) || name.startsWith('NANOBOT__')),
  );
  // A task of Windows has no environment of its own.
  const own = manager.kind === 'windows' ? identity(realPathOf(home.root), manager) : {};
  const path = join(home.root, ENVIRONMENT_FILE);
  const before = parseEnv((await textIfThere(path)) ?? '');
  const after: Environment = { ...before, ...Object.fromEntries(set), ...own };
  const lines = Object.entries(after).map(([name, value = '']) => `${name}=${inQuotes(value)}\n`);
  if (lines.length > 0) {
    await writeAtomic(path, lines.join(''));
    const { uid, gid } = statSync(home.root);
    await chown(path, uid, gid);
  }
  return set.map(([name]) => name);
}

/** @see https://nodejs.org/api/environment_variables.html#dotenv */
function inQuotes(value: string): string {
  const quote = ["'", '`', '"'].find((each) => !value.includes(each)) ?? '';
  return quote + value + quote;
}

// The command.

type InstallFlags = { readonly system?: boolean; readonly memoryMax?: string };

export function serviceCommand(terminal: Terminal): Command {
  const command = new Command('service').description(
    t`run the gateway as a service that survives logout and reboot`,
  );
  const install = command
    .command('install')
    .description(t`install the service and start it; again: apply changes`)
    .option('--system', t`a service of the machine instead of this user; needs root`)
    .action((flags: InstallFlags) => installService(terminal, flags));
  if (process.platform === 'linux') {
    install.option('--memory-max <size>', t`most memory, e.g. 1G or 75%`, parseMemory, '75%');
  }
  command
    .command('uninstall')
    .description(t`stop the service and remove it; the home stays`)
    .action(async () => {
      const manager = await serviceFor(terminal, 'uninstall');
      await manager.uninstall();
      terminal.tell(t`The service ${manager.name} is removed. ${terminal.home.root} stays.`);
    });
  command
    .command('status')
    .description(t`show whether the service runs`)
    .option('--json', t`print as JSON`)
    .action(({ json }: { readonly json?: boolean }) => showStatus(terminal, json === true));
  command
    .command('logs')
    .description(t`print the end of the log`)
    .option('-n, --lines <n>', t`number of lines`, parseLimit, LOG_LINES)
    .option('-f, --follow', t`go on until Ctrl+C`)
    .action(({ lines, follow }: { readonly lines: number; readonly follow?: boolean }) =>
      showLogs(terminal, { lines, follow: follow === true }),
    );
  for (const [action, description, done] of [
    ['start', t`start the service`, t`The service is started.`],
    ['stop', t`stop the service until the next boot or login`, t`The service is stopped.`],
    ['restart', t`stop the service and start it`, t`The service is restarted.`],
  ] as const) {
    command
      .command(action)
      .description(description)
      .action(async () => {
        const manager = await serviceFor(terminal, action);
        if (action !== 'stop') await checkHolder(terminal, manager);
        await explained(terminal, manager, () => manager[action]());
        terminal.tell(done);
      });
  }
  return command;
}

function parseMemory(text: string): string {
  if (/^(?:\d+(?:\.\d+)?[KMGT]|\d{1,2}%|infinity)$/.test(text)) return text;
  throw new InvalidArgumentError(t`Write a size such as 512M, 2G or 75%.`);
}

async function installService(terminal: Terminal, flags: InstallFlags): Promise<void> {
  const { loadConfig } = await import('../../kernel/config/files/config-file.ts');
  const { home, env } = terminal;
  const isSystem = flags.system === true;
  const manager = await managerOf(home, isSystem, env);
  const other = await managerOf(home, !isSystem, env);
  if (other.isInstalled()) {
    const message = t`${home.root} already has the service ${other.name} (${other.file}). Remove it first: nanobot service uninstall`;
    throw new CommandFailure(EXIT.homeHeld, message);
  }
  needRoot(manager, terminal, ['service', 'install', '--system']);
  await checkHolder(terminal, manager);
  if (isSystem && !existsSync(home.root)) {
    const message = t`${home.root} does not exist; its owner is who the service runs as. Create it: nanobot onboard`;
    throw new CommandFailure(EXIT.notFound, message);
  }
  await mkdir(home.logs, { recursive: true, mode: 0o700 });
  const { workspace } = (await loadConfig(home, env)).config.agents.defaults;
  const kept = await keepVariables(terminal, manager);
  const { memoryMax = 'infinity' } = flags;
  const unit = unitOf(terminal, manager, { memoryMax, user: await ownerOf(home), workspace });
  const notes = await explained(terminal, manager, () => manager.install(unit));
  terminal.tell(t`The gateway runs as the service ${manager.name}: ${manager.file}`);
  if (kept.length > 0) {
    const file = join(home.root, ENVIRONMENT_FILE);
    terminal.tell(t`Variables of this shell are kept for it in ${file}: ${kept.join(', ')}`);
  }
  for (const note of notes) terminal.tell(note);
  terminal.tell(t`Its log: nanobot service logs. For a login link: nanobot link`);
}

/** The name of the user to whom the home belongs. */
async function ownerOf({ root }: Home): Promise<string> {
  const { uid, username } = userInfo();
  const owner = statSync(root).uid;
  if (process.platform === 'win32' || owner === uid) return username;
  const { stdout } = await runner(process.env)('id', '-un', String(owner));
  return stdout.trim() || String(owner);
}

/** @throws CommandFailure where no service is installed, or this user may not control it */
async function serviceFor(terminal: Terminal, action: string): Promise<ServiceManager> {
  const manager = await installedService(terminal.home, terminal.env);
  if (manager === undefined) {
    const message = t`no service is installed for ${terminal.home.root}. Install it: nanobot service install`;
    throw new CommandFailure(EXIT.notFound, message);
  }
  if (action !== 'status' && action !== 'logs') needRoot(manager, terminal, ['service', action]);
  return manager;
}

/** @throws CommandFailure where another process than this service holds the home */
async function checkHolder({ home }: Terminal, manager: ServiceManager): Promise<void> {
  const { findHomeHolder } = await import('../../kernel/bus/store/home-lock.ts');
  const holder = await findHomeHolder(home.lock);
  if (holder === undefined || holder['service'] === manager.name) return;
  const message = t`${holderText(holder)} already uses ${home.root}. Stop it first: the service starts a gateway of its own.`;
  throw new CommandFailure(EXIT.homeHeld, message);
}

/** Says where the reason is if the service does not start. */
async function explained<Result>(
  terminal: Terminal,
  manager: ServiceManager,
  work: () => Promise<Result>,
): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (manager.isInstalled()) terminal.note(t`Why it does not run: nanobot service logs`);
    throw error;
  }
}

async function showStatus(terminal: Terminal, json: boolean): Promise<void> {
  const manager = await serviceFor(terminal, 'status');
  const status = await manager.status();
  const { name, kind, isSystem, file } = manager;
  if (json) terminal.printJson({ name, kind, isSystem, file, ...status });
  else for (const line of statusLines(manager, status)) terminal.tell(line);
  if (status.state !== 'running') throw new CommandFailure(EXIT.failure);
}

function statusLines(manager: ServiceManager, status: ServiceStatus): readonly string[] {
  const { state, detail, pid, restarts, startsAt } = status;
  const remedy = {
    running: '',
    stopped: t`. Start it: nanobot service start`,
    failed: t`. Why: nanobot service logs`,
  }[state];
  const when = startsAt === 'boot' ? t`starts at boot` : t`starts when you log in`;
  return [
    t`Service  ${manager.name} (${manager.kind}), ${when}`,
    t`State    ${state} (${detail})${pid === undefined ? '' : t`, process ${pid}`}${remedy}`,
    ...(restarts === undefined ? [] : [t`Restarts ${restarts}`]),
    t`File     ${manager.file}`,
  ];
}

async function showLogs(terminal: Terminal, options: LogOptions): Promise<void> {
  const manager = await serviceFor(terminal, 'logs');
  const [program = '', ...args] = manager.logs(options);
  const child = spawn(program, args, { stdio: ['ignore', 'inherit', 'inherit'] });
  const [code] = await once(child, 'exit');
  if (code !== 0) throw new CommandFailure(EXIT.failure);
}

/** The finding of `nanobot doctor`; none without a service. */
export async function checkService({ home, env }: Machine): Promise<readonly Finding[]> {
  const manager = await installedService(home, env);
  if (manager === undefined) return [];
  const { state, detail, startsAt } = await manager.status();
  if (state !== 'running') {
    const text = t`the service ${manager.name} does not run (${detail})`;
    return [warn('service', text, t`Start it: nanobot service start. Why: nanobot service logs`)];
  }
  if (startsAt === 'boot' || manager.kind !== 'systemd') {
    return [ok('service', t`${manager.name} runs and starts by itself`)];
  }
  const remedy = t`To let it run always: sudo loginctl enable-linger ${userInfo().username}`;
  return [warn('service', t`${manager.name} stops when you log out`, remedy)];
}
