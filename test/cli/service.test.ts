// What `nanobot service` hands to the service managers: the texts of units. The commands that control them are in
// test/system/service-managers.test.ts; systemd itself runs in test/system/installed.test.ts.

import { execFile, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { JSDOM } from 'jsdom';
import { describe, expect, it } from 'vitest';
import { launchdPlist } from '../../src/cli/service/launchd.ts';
import type { ServiceUnit } from '../../src/cli/service/manager.ts';
import { reportToSystemd, systemdUnit } from '../../src/cli/service/systemd.ts';
import { windowsTask } from '../../src/cli/service/windows.ts';
import { runNanobot, temporaryHome } from './run-nanobot.ts';

const execute = promisify(execFile);
const hasSystemd = await execute('systemd-analyze', ['--version']).then(
  () => true,
  () => false,
);
if (!hasSystemd) console.log('checks by systemd-analyze skipped: systemd is not installed');

const UNIT: ServiceUnit = {
  home: '/tmp',
  command: [process.execPath, '--env-file-if-exists=/tmp/service.env', '/tmp/$a b.js', 'gateway'],
  env: { NANOBOT_HOME: '/tmp', PATH: '/usr/bin:/a "b" 100%' },
  writable: ['/var/tmp'],
  errors: '/tmp/logs/service-errors.log',
  memoryMax: '75%',
  user: 'daemon',
};

describe('systemd', () => {
  it.skipIf(!hasSystemd).each([
    ['a user', false, 9.5],
    ['the machine', true, 4.5],
  ])('accepts the unit of %s, and finds it hardened', async (_whose, isSystem, exposure) => {
    await using home = await temporaryHome();
    const file = join(home.path, 'nanobot-test.service');
    await writeFile(file, systemdUnit(UNIT, 'nanobot-test', isSystem, true));
    const env = { ...process.env, XDG_RUNTIME_DIR: home.path, SYSTEMD_LOG_TARGET: 'console' };
    const verify = [
      'verify',
      '--recursive-errors=no',
      '--man=no',
      isSystem ? '--system' : '--user',
    ];
    const { stderr } = await execute('systemd-analyze', [...verify, file], { env });
    expect(stderr).toBe('');
    const threshold = `--threshold=${exposure * 10}`;
    await execute('systemd-analyze', ['security', '--offline=yes', threshold, file], { env });
  });

  it('may write to the home alone, and lets bubblewrap confine programs', () => {
    const text = systemdUnit(UNIT, 'nanobot-test', true, false);
    expect(text).toContain('ProtectSystem=strict\nReadWritePaths="/tmp" "/var/tmp"\n');
    expect(text).toContain('NoNewPrivileges=yes\n');
    expect(text).toContain('User=daemon\n');
    expect(text).toContain('MemoryMax=75%\n');
    expect(text).not.toMatch(/^(?:RestrictNamespaces|ProtectKernelTunables|ProtectProc)=/m);
  });

  it('quotes what systemd would expand', () => {
    const text = systemdUnit(UNIT, 'nanobot-test', false, false);
    expect(text).toContain('"/tmp/$$a b.js" gateway\n');
    expect(text).toContain('Environment="PATH=/usr/bin:/a \\"b\\" 100%%"\n');
  });

  it.skipIf(!hasSystemd)('hears that the gateway is ready, alive and about to stop', async () => {
    await using home = await temporaryHome();
    const path = join(home.path, 'notify');
    const receive = `use Socket; $| = 1; socket(S, AF_UNIX, SOCK_DGRAM, 0);
      bind(S, sockaddr_un('${path}')); print "bound\\n";
      while (defined recv(S, $m, 4096, 0)) { print join(' ', split("\\n", $m)), "\\n"; }`;
    const receiver = spawn('perl', ['-e', receive], { stdio: ['ignore', 'pipe', 'inherit'] });
    const lines = createInterface(receiver.stdout)[Symbol.asyncIterator]();
    const next = async (pattern: RegExp) => {
      for (;;) {
        const { value, done } = await lines.next();
        if (done === true) throw new Error(`the receiver ended before ${pattern}`);
        if (pattern.test(value)) return;
      }
    };
    await next(/^bound$/);
    const notes: string[] = [];
    const env = { ...process.env, NOTIFY_SOCKET: path, WATCHDOG_USEC: '200000' };
    {
      using reports = reportToSystemd(env, (line) => notes.push(line));
      reports.ready();
      await next(/^READY=1/);
      await next(/^WATCHDOG=1/);
      await next(/^WATCHDOG=1/);
      reports.stopping(60);
      await next(/^STOPPING=1 EXTEND_TIMEOUT_USEC=60000000/);
    }
    receiver.kill();
    expect(notes).toEqual([]);
  });
});

const parsed = (xml: string) => new JSDOM(xml, { contentType: 'application/xml' }).window.document;

describe('launchd', () => {
  /** The structure that the document type of property lists prescribes. */
  function plistValue(element: Element | null): unknown {
    const children = [...(element?.children ?? [])];
    switch (element?.tagName) {
      case 'string':
        return element.textContent;
      case 'integer':
        return Number(element.textContent);
      case 'true':
      case 'false':
        return element.tagName === 'true';
      case 'array':
        return children.map(plistValue);
      case 'dict':
        expect(children.length % 2).toBe(0);
        return Object.fromEntries(
          children.flatMap((key, at) => {
            if (at % 2 === 1) return [];
            expect(key.tagName).toBe('key');
            return [[key.textContent, plistValue(children[at + 1] ?? null)]];
          }),
        );
      default:
        throw new Error(`no element of property lists: ${element?.tagName}`);
    }
  }

  it.each([
    ['agent of a user', false, {}],
    ['daemon of the machine', true, { UserName: 'daemon' }],
  ])('gets a property list as an %s', (_kind, isSystem, more) => {
    const document = parsed(launchdPlist(UNIT, 'local.nanobot', isSystem));
    expect(document.documentElement.tagName).toBe('plist');
    expect(document.documentElement.children).toHaveLength(1);
    expect(plistValue(document.documentElement.firstElementChild)).toEqual({
      Label: 'local.nanobot',
      ProgramArguments: UNIT.command,
      EnvironmentVariables: UNIT.env,
      WorkingDirectory: '/tmp',
      RunAtLoad: true,
      KeepAlive: { SuccessfulExit: false },
      ThrottleInterval: 30,
      ExitTimeOut: 60,
      Umask: 0o077,
      SoftResourceLimits: { Core: 0 },
      StandardOutPath: '/dev/null',
      StandardErrorPath: '/tmp/logs/service-errors.log',
      ...more,
    });
  });
});

describe('the task scheduler of Windows', () => {
  it('gets a task that starts at the login or the boot, and again after a failure', () => {
    const task = parsed(windowsTask({ ...UNIT, command: ['C:\\node.exe', 'C:\\my "x"\\'] }, false));
    const text = (name: string) => task.getElementsByTagName(name)[0]?.textContent;
    expect(task.documentElement.namespaceURI).toMatch(/windows\/2004\/02\/mit\/task$/);
    expect(text('Command')).toBe('C:\\node.exe');
    expect(text('Arguments')).toBe('"C:\\my \\"x\\"\\\\"');
    expect(text('LogonTrigger')).toContain('daemon');
    expect(text('MultipleInstancesPolicy')).toBe('IgnoreNew');
    expect(text('RestartOnFailure')).toBe('PT1M999');
    const ofMachine = parsed(windowsTask(UNIT, true));
    expect(ofMachine.getElementsByTagName('BootTrigger')).toHaveLength(1);
    expect(ofMachine.getElementsByTagName('LogonType')[0]?.textContent).toBe('S4U');
  });
});

describe('the command', () => {
  it('says what to do where no systemd runs for this user', async () => {
    await using home = await temporaryHome();
    const bin = join(home.path, 'bin');
    await mkdir(bin);
    const script = '#!/bin/sh\necho "Failed to connect to bus: No medium found" >&2; exit 1\n';
    await writeFile(join(bin, 'systemctl'), script, { mode: 0o755 });
    const env = { HOME: home.path, PATH: `${bin}:${process.env['PATH']}` };
    const install = await runNanobot(['service', 'install'], { home: home.path, env });
    expect(install).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/No medium found\nNo systemd runs for this user.*--system/),
    });
  });

  it('says what is missing where no service manager answers, and leaves nothing', async () => {
    await using home = await temporaryHome();
    const env = { HOME: home.path, PATH: join(home.path, 'nothing') };
    const install = await runNanobot(['service', 'install'], { home: home.path, env });
    expect(install).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('systemctl is not installed'),
    });
    expect(existsSync(join(home.path, '.config/systemd/user'))).toBe(false);
    const restart = await runNanobot(['service', 'restart'], { home: home.path, env });
    expect(restart).toMatchObject({
      code: 6,
      stderr: expect.stringContaining('Install it: nanobot service install'),
    });
  });
});
