// The services of a machine, by its manager: systemd, launchd or the tasks of Windows. A home has one
// at most, named after it; two homes have two.

import { execFile } from 'node:child_process';
import { hash } from 'node:crypto';
import { existsSync, readdirSync, realpathSync } from 'node:fs';
import { homedir, userInfo } from 'node:os';
import { join } from 'node:path';
import type { Environment } from '../../kernel/config/environment.ts';
import type { Home } from '../../kernel/config/files/home.ts';
import { t } from '../../lib/texts.ts';
import { CommandFailure, EXIT, type Terminal } from '../terminal.ts';

/** What a service manager starts. */
export type ServiceUnit = {
  readonly home: string;
  readonly command: readonly string[];
  /** Secrets are in the file that the command names. */
  readonly env: Readonly<Record<string, string>>;
  /** Folders besides the home to which the gateway writes. */
  readonly writable: readonly string[];
  /** Where its errors go if the manager keeps no log. */
  readonly errors: string;
  /** As systemd writes it, e.g. `1G` or `75%`. */
  readonly memoryMax: string;
  readonly user: string;
};

export type ServiceStatus = {
  readonly state: 'running' | 'stopped' | 'failed';
  /** In the words of the manager. */
  readonly detail: string;
  readonly pid: number | undefined;
  /** Since it was started by a person or the boot; undefined if the manager does not count. */
  readonly restarts: number | undefined;
  readonly startsAt: 'boot' | 'login';
};

export type LogOptions = { readonly lines: number; readonly follow: boolean };

/** Controls the service of one home. @throws CommandFailure with what the manager said */
export interface ServiceManager {
  /** As the manager knows it. */
  readonly name: string;
  readonly kind: 'systemd' | 'launchd' | 'windows';
  /** Of the machine, not of one user. */
  readonly isSystem: boolean;
  /** Its definition. */
  readonly file: string;
  isInstalled(): boolean;
  /** Replaces what was installed, and starts it. Resolves with what a person has to know. */
  install(unit: ServiceUnit): Promise<readonly string[]>;
  /** Stops it first. */
  uninstall(): Promise<void>;
  status(): Promise<ServiceStatus>;
  /** The command that prints the log. */
  logs(options: LogOptions): readonly string[];
  restart(): Promise<void>;
  stop(): Promise<void>;
  start(): Promise<void>;
}

/** What a manager knows of the machine. */
export type ServiceHost = {
  readonly name: string;
  readonly isSystem: boolean;
  readonly home: string;
  readonly logs: string;
  readonly env: Environment;
  readonly uid: number;
  readonly userName: string;
  readonly userHome: string;
  run(program: string, ...args: readonly string[]): Promise<Ran>;
  /** @throws CommandFailure where the program fails */
  must(program: string, ...args: readonly string[]): Promise<Ran>;
};

type Ran = { readonly code: number; readonly stdout: string; readonly stderr: string };

const HASH_CHARS = 8;
export const ERRORS_FILE = 'service-errors.log';

/** `nanobot` for the usual home of a user; no two other homes have the same name. */
function nameOf(root: string, isSystem: boolean): string {
  if (!isSystem && root === realPathOf(join(homedir(), '.nanobot'))) return 'nanobot';
  return `nanobot-${hash('sha256', root).slice(0, HASH_CHARS)}`;
}

export function realPathOf(path: string): string {
  return existsSync(path) ? realpathSync(path) : path;
}

export async function managerOf(
  home: Home,
  isSystem: boolean,
  given: Environment,
): Promise<ServiceManager> {
  const root = realPathOf(home.root);
  const { uid, username, homedir: userHome } = userInfo();
  const runtime = `/run/user/${uid}`;
  // Missing after `su`, and where cron or ssh without PAM starts a command.
  const env =
    given['XDG_RUNTIME_DIR'] === undefined && existsSync(runtime)
      ? { ...given, XDG_RUNTIME_DIR: runtime }
      : given;
  const run = runner(env);
  const host: ServiceHost = {
    name: nameOf(root, isSystem),
    isSystem,
    home: root,
    logs: home.logs,
    env,
    uid,
    userName: username,
    userHome: given['HOME'] || userHome,
    run,
    async must(program, ...args) {
      const ran = await run(program, ...args);
      if (ran.code === 0) return ran;
      const said = (ran.stderr || ran.stdout).trim();
      throw new CommandFailure(EXIT.failure, t`"${[program, ...args].join(' ')}" failed: ${said}`);
    },
  };
  switch (process.platform) {
    case 'darwin':
      return (await import('./launchd.ts')).createLaunchd(host);
    case 'win32':
      return (await import('./windows.ts')).createWindowsTask(host);
    default:
      return (await import('./systemd.ts')).createSystemd(host);
  }
}

export const runner =
  (env: Environment) =>
  (program: string, ...args: readonly string[]): Promise<Ran> =>
    new Promise((resolve) => {
      execFile(program, args, { env: { ...env } }, (error, stdout, stderr) => {
        const code = error === null ? 0 : typeof error.code === 'number' ? error.code : 1;
        const isMissing = error?.code === 'ENOENT';
        resolve({ code, stdout, stderr: isMissing ? t`${program} is not installed` : stderr });
      });
    });

/** The service that runs the gateway of this home; undefined if none is installed. */
export async function installedService(
  home: Home,
  env: Environment = process.env,
): Promise<ServiceManager | undefined> {
  for (const isSystem of [false, true]) {
    const manager = await managerOf(home, isSystem, env);
    if (manager.isInstalled()) return manager;
  }
  return undefined;
}

/** @throws CommandFailure with the line that does it */
export function needRoot(
  { isSystem }: ServiceManager,
  { home }: Terminal,
  command: readonly string[],
): void {
  const { uid } = userInfo();
  if (!isSystem || uid === 0 || process.platform === 'win32') return;
  const program = `${process.execPath} ${process.argv[1]}`;
  // What Node compiles would stay in the home of root.
  const line = `sudo env NODE_DISABLE_COMPILE_CACHE=1 PATH="$PATH" NANOBOT_HOME=${realPathOf(home.root)} ${program} ${command.join(' ')}`;
  throw new CommandFailure(EXIT.failure, t`a service of the machine needs root. Run: ${line}`);
}

// Parts of the managers whose services write files.

export const xmlText = (text: string) =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

/** Prints the newest log file, and the errors of starts. */
export function fileLogs({ logs }: ServiceHost, { lines, follow }: LogOptions): readonly string[] {
  const names = existsSync(logs) ? readdirSync(logs).sort() : [];
  const newest = names.filter((name) => /^nanobot\.[\d-]+\.log$/.test(name)).at(-1);
  const files = [ERRORS_FILE, ...(newest === undefined ? [] : [newest])]
    .map((name) => join(logs, name))
    .filter((path) => existsSync(path));
  if (process.platform !== 'win32') {
    return ['tail', '-n', String(lines), ...(follow ? ['-F'] : []), ...files];
  }
  const wait = follow ? ' -Wait' : '';
  const paths = files.map((path) => `'${path.replaceAll("'", "''")}'`).join(', ');
  return ['powershell', '-NoProfile', '-Command', `Get-Content ${paths} -Tail ${lines}${wait}`];
}
