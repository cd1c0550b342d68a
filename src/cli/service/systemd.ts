// The gateway under systemd: the text of its unit, the commands that control it, and the reports of
// the running gateway (ready, alive, stopping) to its service manager.

import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { parseEnv } from 'node:util';
import type { Environment } from '../../kernel/config/environment.ts';
import { t } from '../../lib/texts.ts';
import { CommandFailure, EXIT } from '../terminal.ts';
import type { LogOptions, ServiceHost, ServiceManager, ServiceUnit } from './manager.ts';

const SYSTEM_FOLDER = '/etc/systemd/system';
/** Wrong command line, invalid configuration, home in use or moved: a restart changes none of these. */
const NO_RESTART = '2 3 4';
/** Of a start, which may check a large store first. */
const START_SECS = 180;
const STOP_SECS = 60;
const WATCHDOG_SECS = 120;
const RESTART_SECS = 10;
/** After `su`, in a container, or on a machine without systemd. */
const NO_USER_MANAGER = t`No systemd runs for this user. Log in as this user, not by su or sudo, and repeat this; or make a service of the machine: nanobot service install --system`;
/** Marks a unit whose installation let the services of its user run without a login. */
const LINGER_MARK = 'X-NanobotLinger=yes';

// The text of the unit.

/** Quoted for a list of words; `%` begins a specifier. @see systemd.syntax(7) */
const quoted = (text: string) =>
  `"${text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('%', '%%')}"`;
/** In a command `$` begins a variable as well. */
const asWord = (text: string) =>
  /^[\w./:=@,+-]+$/.test(text) ? text : quoted(text).replaceAll('$', '$$$$');

/** systemd takes no quotes and backslashes in the name of the program that it starts. */
const commandLine = (command: readonly string[]) =>
  (/["'\\]/.test(command[0] ?? '') ? ['/usr/bin/env', ...command] : command).map(asWord).join(' ');

/** What a unit of any user may be denied; none of it hinders bubblewrap. */
const HARDENED = `NoNewPrivileges=yes
LockPersonality=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
SystemCallArchitectures=native
SystemCallFilter=~@clock @cpu-emulation @module @obsolete @raw-io @reboot @swap
SystemCallErrorNumber=EPERM
UMask=0077
LimitCORE=0`;

/** What only the manager of the system can set up. */
const hardenedSystem = ({ home, writable, user }: ServiceUnit, name: string) => `
User=${user}
ProtectSystem=strict
ReadWritePaths=${[home, ...writable].map(quoted).join(' ')}
CacheDirectory=${name}
CacheDirectoryMode=0700
Environment=XDG_CACHE_HOME=%C/${name}
PrivateTmp=yes
ProtectControlGroups=yes
ProtectKernelModules=yes
CapabilityBoundingSet=
# bubblewrap, the sandbox of the agent's programs, makes name spaces, names its own host and mounts /proc:
# RestrictNamespaces, ProtectHostname, ProtectKernelTunables, ProtectKernelLogs and ProtectProc prevent that.`;

/** Pure. `isSystem`: for the manager of the system, not for that of one user. */
export function systemdUnit(
  unit: ServiceUnit,
  name: string,
  isSystem: boolean,
  hasLinger: boolean,
): string {
  const { home, command, env, memoryMax } = unit;
  const environment = Object.entries({ ...env, NANOBOT__logging__stdout: 'true' })
    .map(([key, value]) => `Environment=${quoted(`${key}=${value}`)}`)
    .join('\n');
  const edit = `systemctl ${isSystem ? '' : '--user '}edit ${name}`;
  return `# Written by "nanobot service install", which replaces it. Additions: ${edit}
[Unit]
Description=nanobot gateway of ${home.replaceAll('%', '%%')}
${isSystem ? 'Wants=network-online.target\nAfter=network-online.target\n' : ''}StartLimitIntervalSec=0

[Service]
Type=notify
# systemd-notify, which the gateway calls, is a process of its own.
NotifyAccess=all
ExecStart=${commandLine(command)}
${environment}
Restart=on-failure
RestartSec=${RESTART_SECS}
RestartPreventExitStatus=${NO_RESTART}
WatchdogSec=${WATCHDOG_SECS}
TimeoutStartSec=${START_SECS}
TimeoutStopSec=${STOP_SECS}
# The gateway ends its own programs; only it gets the signal.
KillMode=mixed
MemoryMax=${memoryMax}
OOMPolicy=continue
${HARDENED}${isSystem ? hardenedSystem(unit, name) : ''}

[Install]
WantedBy=${isSystem ? 'multi-user' : 'default'}.target
${hasLinger ? `${LINGER_MARK}\n` : ''}`;
}

// The commands.

export function createSystemd(host: ServiceHost): ServiceManager {
  const { name, isSystem, env, userHome, run, must } = host;
  const own = join(env['XDG_CONFIG_HOME'] || join(userHome, '.config'), 'systemd/user');
  const file = join(isSystem ? SYSTEM_FOLDER : own, `${name}.service`);
  const scope = isSystem ? [] : ['--user'];
  const control = (...args: readonly string[]) =>
    must('systemctl', ...scope, ...args).catch((error: Error) => {
      if (isSystem || !/connect to .*bus/.test(error.message)) throw error;
      throw new CommandFailure(EXIT.failure, `${error.message}\n${NO_USER_MANAGER}`);
    });
  const isMarked = () =>
    existsSync(file) && readFileSync(file, 'utf8').split('\n').includes(LINGER_MARK);

  const isLingering = async () =>
    (await run('loginctl', 'show-user', host.userName, '--property=Linger')).stdout.includes('yes');

  /** Services of this user's other homes need it too. */
  const isLast = async () =>
    !(await readdir(dirname(file))).some((each) => /^nanobot(?:-[0-9a-f]+)?\.service$/.test(each));

  /** Whether this installation switched it on, and what a person has to know. */
  async function linger(): Promise<{ readonly isOurs: boolean; readonly notes: string[] }> {
    if (isSystem || (await isLingering())) return { isOurs: isMarked(), notes: [] };
    await run('loginctl', 'enable-linger');
    if (await isLingering()) return { isOurs: true, notes: [] };
    const remedy = `sudo loginctl enable-linger ${host.userName}`;
    return {
      isOurs: false,
      notes: [
        t`The service stops when you log out, and starts when you log in. To let it run always: ${remedy}`,
      ],
    };
  }

  return {
    name,
    kind: 'systemd',
    isSystem,
    file,
    isInstalled: () => existsSync(file),
    async install(unit) {
      await control('daemon-reload');
      const { isOurs, notes } = await linger();
      await mkdir(dirname(file), { recursive: true });
      await writeFile(file, systemdUnit(unit, name, isSystem, isOurs), { mode: 0o644 });
      await control('daemon-reload');
      await control('enable', name);
      await control('restart', name);
      return notes;
    },
    async uninstall() {
      const isLinger = isMarked();
      await control('disable', name);
      // Refused for a unit that could not be loaded.
      await run('systemctl', ...scope, 'stop', name);
      await rm(file, { force: true });
      await rm(`${file}.d`, { recursive: true, force: true });
      await control('daemon-reload');
      await run('systemctl', ...scope, 'reset-failed', name);
      if (isSystem) await rm(join('/var/cache', name), { recursive: true, force: true });
      if (isLinger && (await isLast())) await run('loginctl', 'disable-linger');
    },
    async status() {
      const fields = 'ActiveState,SubState,MainPID,NRestarts,Result,UnitFileState';
      const { stdout } = await control('show', name, `--property=${fields}`);
      const said = parseEnv(stdout);
      const is = (key: string) => said[key] ?? '';
      const state = is('ActiveState');
      return {
        state: state === 'active' ? 'running' : state === 'failed' ? 'failed' : 'stopped',
        detail: state === 'failed' ? is('Result') : is('SubState'),
        pid: Number(is('MainPID')) || undefined,
        restarts: Number(is('NRestarts')),
        startsAt:
          is('UnitFileState') === 'enabled' && (isSystem || (await isLingering()))
            ? 'boot'
            : 'login',
      };
    },
    logs: ({ lines, follow }: LogOptions) => [
      'journalctl',
      ...scope,
      ...['--unit', name, '--lines', String(lines), '--output', 'cat', '--no-pager'],
      ...(follow ? ['--follow'] : []),
    ],
    start: async () => void (await control('start', name)),
    stop: async () => void (await control('stop', name)),
    restart: async () => void (await control('restart', name)),
  };
}

// Reports of the running gateway. Node has no datagram sockets of Unix, so the program of systemd
// that sends them is called. @see sd_notify(3)

/** While the event loop runs, it says so twice within the time after which it counts as hung. */
export function reportToSystemd(env: Environment, note: (line: string) => void) {
  const send = (...what: readonly string[]) =>
    execFile('systemd-notify', what, { env: { ...env } }, (error) => {
      if (error !== null) note(t`systemd-notify failed: ${error.message}`);
    });
  const isForUs = (env['WATCHDOG_PID'] ?? String(process.pid)) === String(process.pid);
  const intervalMs = isForUs ? Number(env['WATCHDOG_USEC'] ?? 0) / 2000 : 0;
  const timer = intervalMs > 0 ? setInterval(() => send('WATCHDOG=1'), intervalMs) : undefined;
  return {
    ready: () => void send('--ready'),
    /** The manager waits so long for the end. */
    stopping: (secs: number) => void send('STOPPING=1', `EXTEND_TIMEOUT_USEC=${secs * 1_000_000}`),
    [Symbol.dispose]: () => clearInterval(timer),
  };
}
