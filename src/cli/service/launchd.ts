// The gateway under launchd of macOS: an agent of one user, which runs while that user is logged
// in, or a daemon of the system, which runs from the boot on.

import { existsSync } from 'node:fs';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  fileLogs,
  type LogOptions,
  type ServiceHost,
  type ServiceManager,
  type ServiceUnit,
  xmlText,
} from './manager.ts';

/** launchd restarts after every failure, also after one that a restart does not repair. */
const THROTTLE_SECS = 30;
const STOP_SECS = 60;
/** 0077: files of the service are private. */
const UMASK = 63;

type PlistValue =
  | string
  | number
  | boolean
  | readonly PlistValue[]
  | { readonly [key: string]: PlistValue };

function plist(value: PlistValue): string {
  if (typeof value === 'string') return `<string>${xmlText(value)}</string>`;
  if (typeof value === 'number') return `<integer>${value}</integer>`;
  if (typeof value === 'boolean') return value ? '<true/>' : '<false/>';
  if (Array.isArray(value)) return `<array>${value.map(plist).join('')}</array>`;
  const entries = Object.entries(value).map(
    ([key, each]) => `<key>${xmlText(key)}</key>${plist(each)}`,
  );
  return `<dict>\n${entries.join('\n')}\n</dict>`;
}

/** Pure. @see launchd.plist(5) */
export function launchdPlist(unit: ServiceUnit, label: string, isSystem: boolean): string {
  const content = plist({
    Label: label,
    ProgramArguments: unit.command,
    EnvironmentVariables: unit.env,
    WorkingDirectory: unit.home,
    ...(isSystem ? { UserName: unit.user } : {}),
    RunAtLoad: true,
    KeepAlive: { SuccessfulExit: false },
    ThrottleInterval: THROTTLE_SECS,
    ExitTimeOut: STOP_SECS,
    Umask: UMASK,
    SoftResourceLimits: { Core: 0 },
    // The log is in files of its own, which are limited.
    StandardOutPath: '/dev/null',
    StandardErrorPath: unit.errors,
  });
  return `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
${content}
</plist>
`;
}

export function createLaunchd(host: ServiceHost): ServiceManager {
  const { isSystem, userHome, run, must } = host;
  const label = `local.${host.name}`;
  const file = isSystem
    ? join('/Library/LaunchDaemons', `${label}.plist`)
    : join(userHome, 'Library/LaunchAgents', `${label}.plist`);
  const domain = isSystem ? 'system' : `gui/${host.uid}`;
  const target = `${domain}/${label}`;
  const isLoaded = async () => (await run('launchctl', 'print', target)).code === 0;
  const unload = async () => {
    if (!(await isLoaded())) return;
    await must('launchctl', 'bootout', target);
    // It is unloaded when its process has ended.
    for (let waited = 0; waited < STOP_SECS && (await isLoaded()); waited++) await sleep(1000);
  };
  const start = async () => {
    await must('launchctl', 'enable', target);
    if (!(await isLoaded())) await must('launchctl', 'bootstrap', domain, file);
    await must('launchctl', 'kickstart', target);
  };
  return {
    name: label,
    kind: 'launchd',
    isSystem,
    file,
    isInstalled: () => existsSync(file),
    async install(unit) {
      await unload();
      await mkdir(dirname(file), { recursive: true });
      await writeFile(file, launchdPlist(unit, label, isSystem), { mode: 0o644 });
      await start();
      return [];
    },
    async uninstall() {
      await unload();
      await rm(file, { force: true });
    },
    async status() {
      const { code, stdout } = await run('launchctl', 'print', target);
      const is = (key: string) => new RegExp(`^\\s*${key} = (.*)$`, 'm').exec(stdout)?.[1] ?? '';
      const pid = Number(is('pid')) || undefined;
      const lastExit = Number.parseInt(is('last exit code'), 10) || 0;
      const stopped = lastExit === 0 ? 'stopped' : 'failed';
      return {
        state: pid !== undefined ? 'running' : stopped,
        detail: code === 0 ? is('state') : 'not loaded',
        pid,
        restarts: Math.max(0, (Number(is('runs')) || 1) - 1),
        startsAt: isSystem ? 'boot' : 'login',
      };
    },
    logs: (options: LogOptions) => fileLogs(host, options),
    start,
    // Loaded but stopped it would start again: it ends only when it is unloaded.
    stop: unload,
    async restart() {
      if (await isLoaded()) await must('launchctl', 'kickstart', '-k', target);
      else await start();
    },
  };
}
