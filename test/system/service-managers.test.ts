// `nanobot service` of the package on other systems: their programs are scripts that write down how they are called.

import { existsSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { runNanobot, temporaryHome } from '../cli/run-nanobot.ts';

/** @param answer a shell script */
async function systemWith(platform: NodeJS.Platform, program: string, answer: string) {
  const user = await temporaryHome();
  const log = join(user.path, 'calls');
  const bin = join(user.path, 'bin');
  await mkdir(bin);
  await mkdir(join(user.path, '.nanobot'));
  const script = `#!/bin/sh\necho ${program} "$@" >> '${log}'\n${answer}\n`;
  for (const name of [program, 'powershell'])
    await writeFile(join(bin, name), script, { mode: 0o755 });
  const env = {
    NANOBOT_HOME: join(user.path, '.nanobot'),
    PATH: `${bin}:${process.env['PATH']}`,
    NODE_OPTIONS: `--import data:text/javascript,Object.defineProperty(process,'platform',{value:'${platform}'})`,
  };
  return {
    ...user,
    async service(...args: readonly string[]): Promise<string> {
      const { code, stdout, stderr } = await runNanobot(['service', ...args], {
        home: user.path,
        env,
      });
      expect({ args, code, stderr }).toMatchObject({ code: 0 });
      return stdout;
    },
    calls: async () => (await readFile(log, 'utf8')).trim().split('\n'),
  };
}

it('launchd is told to load, to start again, to unload, and keeps nothing', async () => {
  await using mac = await systemWith(
    'darwin',
    'launchctl',
    `loaded=$HOME/loaded
    case $1 in bootstrap) touch "$loaded";; bootout) rm "$loaded";; esac
    test $1 != print || { test -e "$loaded" && printf '\\tstate = running\\n\\tpid = 77\\n\\truns = 3\\n'; }`,
  );
  const file = join(mac.path, 'Library/LaunchAgents/local.nanobot.plist');
  expect(await mac.service('install')).toContain(file);
  expect(await readFile(file, 'utf8')).toContain('<key>KeepAlive</key>');
  const status = JSON.parse(await mac.service('status', '--json'));
  expect(status).toMatchObject({ state: 'running', pid: 77, restarts: 2, startsAt: 'login' });
  await mac.service('restart');
  await mac.service('stop');
  await mac.service('start');
  await mac.service('uninstall');
  expect(existsSync(file)).toBe(false);
  const domain = `gui/${process.getuid?.()}`;
  const target = `${domain}/local.nanobot`;
  expect((await mac.calls()).filter((line) => !line.startsWith('launchctl print '))).toEqual([
    `launchctl enable ${target}`,
    `launchctl bootstrap ${domain} ${file}`,
    `launchctl kickstart ${target}`,
    `launchctl kickstart -k ${target}`,
    `launchctl bootout ${target}`,
    `launchctl enable ${target}`,
    `launchctl bootstrap ${domain} ${file}`,
    `launchctl kickstart ${target}`,
    `launchctl bootout ${target}`,
  ]);
});

it('the task scheduler of Windows is told to create, run, end and delete the task, and keeps nothing', async () => {
  await using windows = await systemWith('win32', 'schtasks', 'echo Running 267009');
  await windows.service('install');
  const file = join(windows.path, '.nanobot/service.xml');
  expect((await readFile(file)).subarray(0, 2)).toEqual(Buffer.from([0xff, 0xfe]));
  const status = JSON.parse(await windows.service('status', '--json'));
  expect(status).toMatchObject({ kind: 'windows', state: 'running' });
  await windows.service('uninstall');
  expect(existsSync(file)).toBe(false);
  expect((await windows.calls()).filter((line) => !line.includes('ScheduledTask'))).toEqual([
    'schtasks /End /TN nanobot',
    `schtasks /Create /TN nanobot /XML ${file} /F`,
    'schtasks /Run /TN nanobot',
    'schtasks /End /TN nanobot',
    'schtasks /Delete /TN nanobot /F',
  ]);
});
