// The gateway as a scheduled task of Windows: from the login of its user on, or from the boot on.

import { existsSync } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import {
  fileLogs,
  type LogOptions,
  type ServiceHost,
  type ServiceManager,
  type ServiceUnit,
  xmlText,
} from './manager.ts';

/** What a task reports while it runs, and before its first run. */
const NO_FAILURE = ['0', '267009', '267011'];

/** A word of a command line as programs of Windows take it apart. */
const asWord = (text: string) =>
  /^[^\s"]+$/.test(text)
    ? text
    : `"${text.replace(/(\\*)"/g, '$1$1\\"').replace(/(\\+)$/, '$1$1')}"`;

/** Pure. @see https://learn.microsoft.com/windows/win32/taskschd/task-scheduler-schema */
export function windowsTask(unit: ServiceUnit, isSystem: boolean): string {
  const [program = '', ...args] = unit.command;
  const user = `<UserId>${xmlText(unit.user)}</UserId>`;
  // Without a password and a desktop: only an administrator may create such a task.
  const logon = isSystem ? 'S4U' : 'InteractiveToken';
  const trigger = isSystem
    ? '<BootTrigger><Enabled>true</Enabled></BootTrigger>'
    : `<LogonTrigger><Enabled>true</Enabled>${user}</LogonTrigger>`;
  return `<?xml version="1.0" encoding="UTF-16"?>
<Task version="1.2" xmlns="http://schemas.microsoft.com/windows/2004/02/mit/task">
<RegistrationInfo><Description>${xmlText(`nanobot gateway of ${unit.home}`)}</Description></RegistrationInfo>
<Triggers>${trigger}</Triggers>
<Principals><Principal id="Author">${user}<LogonType>${logon}</LogonType><RunLevel>LeastPrivilege</RunLevel></Principal></Principals>
<Settings>
<MultipleInstancesPolicy>IgnoreNew</MultipleInstancesPolicy>
<DisallowStartIfOnBatteries>false</DisallowStartIfOnBatteries>
<StopIfGoingOnBatteries>false</StopIfGoingOnBatteries>
<StartWhenAvailable>true</StartWhenAvailable>
<IdleSettings><StopOnIdleEnd>false</StopOnIdleEnd><RestartOnIdle>false</RestartOnIdle></IdleSettings>
<ExecutionTimeLimit>PT0S</ExecutionTimeLimit>
<RestartOnFailure><Interval>PT1M</Interval><Count>999</Count></RestartOnFailure>
</Settings>
<Actions Context="Author"><Exec><Command>${xmlText(program)}</Command><Arguments>${xmlText(args.map(asWord).join(' '))}</Arguments><WorkingDirectory>${xmlText(unit.home)}</WorkingDirectory></Exec></Actions>
</Task>
`;
}

export function createWindowsTask(host: ServiceHost): ServiceManager {
  const { name, isSystem, home, must, run } = host;
  const file = join(home, isSystem ? 'system-service.xml' : 'service.xml');
  const start = async () => void (await must('schtasks', '/Run', '/TN', name));
  const end = () => run('schtasks', '/End', '/TN', name);
  return {
    name,
    kind: 'windows',
    isSystem,
    file,
    isInstalled: () => existsSync(file),
    async install(unit) {
      await end();
      await writeFile(file, `\ufeff${windowsTask(unit, isSystem)}`, 'utf16le');
      await must('schtasks', '/Create', '/TN', name, '/XML', file, '/F');
      await start();
      return [];
    },
    async uninstall() {
      await end();
      await must('schtasks', '/Delete', '/TN', name, '/F');
      await rm(file, { force: true });
    },
    async status() {
      // The output of schtasks is translated, that of PowerShell is not.
      const ask = `$t = Get-ScheduledTask '${name}'; "$($t.State) $(($t | Get-ScheduledTaskInfo).LastTaskResult)"`;
      const { stdout } = await must('powershell', '-NoProfile', '-Command', ask);
      const [state = '', result = ''] = stdout.trim().split(' ');
      const stopped = NO_FAILURE.includes(result) ? 'stopped' : 'failed';
      return {
        state: state === 'Running' ? 'running' : stopped,
        detail: `${state}, ${result}`,
        pid: undefined,
        restarts: undefined,
        startsAt: isSystem ? 'boot' : 'login',
      };
    },
    logs: (options: LogOptions) => fileLogs(host, options),
    start,
    stop: async () => void (await must('schtasks', '/End', '/TN', name)),
    async restart() {
      await end();
      await start();
    },
  };
}
