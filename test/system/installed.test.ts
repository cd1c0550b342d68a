// install.sh from a packed file into an empty home: it brings Node from a mirror, the service runs under a
// real systemd, and removing it leaves nothing but the home.

import { execFile } from 'node:child_process';
import {
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeNodeMirror } from '../support/node-mirror.ts';
import { startUserSystemd, type UserSystemd } from '../support/systemd.ts';

const SCRIPT = join(import.meta.dirname, '../../install.sh');
const TARBALL = process.env['NANOBOT_TEST_TARBALL'] ?? '';
const TOOLS =
  'sh env sed grep mkdir mktemp dirname rm mv ln cat chmod tar gzip uname ldd sha256sum curl';
const execute = promisify(execFile);

let folder: string;
let home: string;
let env: NodeJS.ProcessEnv;
let systemd: UserSystemd | undefined;

type Ran = { readonly code: number; readonly stdout: string; readonly stderr: string };
const run = (program: string, ...args: readonly string[]): Promise<Ran> =>
  execute(program, args, { env, cwd: folder }).then(
    ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
    ({ code, stdout, stderr }) => ({ code, stdout, stderr }),
  );
const nanobot = (...args: readonly string[]) => run(join(home, '.local/bin/nanobot'), ...args);
const install = (...args: readonly string[]) => run('/bin/sh', SCRIPT, ...args);
const release = () => join(folder, 'mirror/latest-v24.x');
const sums = () => join(release(), 'SHASUMS256.txt');

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'nanobot-installed-'));
  home = join(folder, "ann's home 100%");
  const bin = join(folder, 'bin');
  await mkdir(home);
  await mkdir(bin);
  for (const tool of TOOLS.split(' ')) {
    const { stdout } = await execute('sh', ['-c', `command -v ${tool}`]);
    await symlink(stdout.trim(), join(bin, tool));
  }
  await makeNodeMirror(join(folder, 'mirror'));
  const cache = (await execute('npm', ['config', 'get', 'cache'])).stdout.trim();
  env = {
    ...{ PATH: bin, HOME: home, NANOBOT_PACKAGE: TARBALL, npm_config_cache: cache },
    ...{
      NANOBOT_NODE_MIRROR: `file://${join(folder, 'mirror')}`,
      npm_config_prefer_offline: 'true',
    },
    ...{ NANOBOT__gateway__port: '0', NANOBOT__agents__defaults__model: 'demo/demo' },
  };
});

afterAll(async () => {
  await systemd?.[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
});

describe.skipIf(process.platform !== 'linux')('install.sh', () => {
  it('installs nothing where the checksum of Node is wrong', async () => {
    const right = await readFile(sums(), 'utf8');
    await writeFile(sums(), `${'0'.repeat(64)}${right.slice(64)}`);
    expect(await install()).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('the checksum of node-'),
    });
    await writeFile(sums(), right);
    expect(await readdir(join(home, '.local/share/nanobot'))).toEqual(['versions']);
  });

  it('takes the Node for macOS there, and changes nothing where npm fails', async () => {
    const mac = join(folder, 'mac');
    await mkdir(mac);
    for (const tool of TOOLS.split(' ').filter((each) => !/^(?:uname|sha256sum)$/.test(each)))
      await symlink(join(folder, 'bin', tool), join(mac, tool));
    await symlink(
      (await execute('sh', ['-c', 'command -v shasum'])).stdout.trim(),
      `${mac}/shasum`,
    );
    const uname = '#!/bin/sh\ncase $1 in -s) echo Darwin;; -m) echo arm64;; esac\n';
    await writeFile(join(mac, 'uname'), uname, { mode: 0o755 });
    const listed = await readFile(sums(), 'utf8');
    const [, sum = '', ours = ''] = /^(\w+) +(\S+)/.exec(listed) ?? [];
    const theirs = ours.replace(/linux-\w+/, 'darwin-arm64');
    await rename(join(release(), ours), join(release(), theirs));
    await writeFile(sums(), `${'0'.repeat(64)}  ${ours}\n${sum}  ${theirs}\n`);
    const onMac = { ...env, PATH: mac, NANOBOT_PACKAGE: join(folder, 'missing.tgz') };
    await expect(execute('/bin/sh', [SCRIPT], { env: onMac })).rejects.toMatchObject({
      stderr: expect.stringMatching(/npm cannot install .*missing.tgz; nothing is changed/),
    });
    const prefix = join(home, '.local/share/nanobot');
    expect((await readdir(prefix)).sort()).toEqual(['node', 'versions']);
    await rm(join(prefix, 'node'), { recursive: true });
    await rename(join(release(), theirs), join(release(), ours));
    await writeFile(sums(), listed);
  });

  it('brings Node and the package, and may run again', async () => {
    for (const _time of [1, 2]) {
      const { code, stdout, stderr } = await install();
      expect({ code, stderr }).toMatchObject({ code: 0 });
      expect(stdout).toMatch(/^Installed nanobot \d+\.\d+\.\d+: /m);
    }
    const prefix = join(home, '.local/share/nanobot');
    expect((await readdir(prefix)).sort()).toEqual(['current', 'node', 'versions']);
    expect((await nanobot('status')).stdout).toContain('Start it: nanobot gateway');
  });

  it('runs the gateway as a service, and no second one in the same home', async () => {
    systemd = await startUserSystemd(home);
    if (systemd === undefined) {
      console.log('service tests skipped: systemd cannot run here');
      return;
    }
    env = { ...env, ...systemd.env, PATH: `${env['PATH']}:${dirname('/usr/bin/systemctl')}` };
    env = { ...env, ANTHROPIC_API_KEY: "secret'key" };
    expect(await nanobot('service', 'install')).toMatchObject({ code: 0, stderr: '' });
    expect(await systemd.show('nanobot', 'ActiveState')).toBe('active');
    const unit = await readFile(join(systemd.unitFolder, 'nanobot.service'), 'utf8');
    expect(unit).not.toContain('secret');
    expect(unit).toContain('/.local/share/nanobot/current/node_modules/.bin/nanobot');
    const verify = ['verify', '--user', '--recursive-errors=no', '--man=no'];
    const file = join(systemd.unitFolder, 'nanobot.service');
    expect(await run('systemd-analyze', ...verify, file)).toEqual({
      ...{ code: 0, stdout: '', stderr: '' },
    });
    const status = await nanobot('service', 'status', '--json');
    const { pid } = JSON.parse(status.stdout);
    const second = await nanobot('gateway');
    expect(second.code).toBe(4);
    expect(second.stderr).toContain('the service nanobot already uses');
    expect(second.stderr).toContain('nanobot service stop');
    process.kill(pid, 'SIGKILL');
    await systemd.systemctl('restart', 'nanobot');
    expect(await systemd.show('nanobot', 'MainPID')).not.toBe(String(pid));
    expect(await nanobot('service', 'stop')).toMatchObject({ code: 0 });
    expect(await systemd.show('nanobot', 'Result')).toBe('success');
    expect(await nanobot('service', 'start')).toMatchObject({ code: 0 });
  });

  it('leaves nothing but the home', async () => {
    expect(await install('--uninstall')).toMatchObject({ code: 0, stderr: '' });
    const args = [home, '-not', '-type', 'd', '-not', '-path', join(home, '.nanobot/*')];
    expect((await execute('find', args)).stdout).toBe('');
    if (systemd === undefined) return;
    expect(await systemd.show('nanobot', 'LoadState')).toBe('not-found');
    expect(await readdir(join(home, '.nanobot'))).toContain('config.json');
  });
});
