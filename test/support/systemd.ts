// A real service manager of systemd for one user, in name spaces and control groups of its own: nothing of it
// reaches the systemd of this machine. It needs root, as the tests of memory limits do.

import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'vitest';

const PROGRAM = '/lib/systemd/systemd';
const GROUPS = '/sys/fs/cgroup';
const HIERARCHIES = ['systemd', 'unified', 'memory', 'cpu', 'pids'];
/** What every unit depends on. */
const TARGETS = ['basic', 'default', 'shutdown', 'exit', 'sysinit', 'multi-user', 'network-online'];
const execute = promisify(execFile);

export interface UserSystemd extends AsyncDisposable {
  /** What `systemctl --user` needs to find it. */
  readonly env: Readonly<Record<string, string>>;
  readonly unitFolder: string;
  systemctl(...args: readonly string[]): Promise<string>;
  /** One property of a unit. */
  show(unit: string, property: string): Promise<string>;
}

/** Undefined where this machine cannot run one. */
export async function startUserSystemd(home: string): Promise<UserSystemd | undefined> {
  if (process.getuid?.() !== 0 || !existsSync(PROGRAM)) return undefined;
  const folder = await mkdtemp(join(tmpdir(), 'nanobot-systemd-'));
  const runtime = join(folder, 'run');
  const targets = join(folder, 'targets');
  const unitFolder = join(home, '.config/systemd/user');
  for (const path of [runtime, targets, unitFolder]) await mkdir(path, { recursive: true });
  const isLeaf = (name: string) => ['shutdown', 'exit'].includes(name);
  for (const name of TARGETS) {
    const text = isLeaf(name) ? '[Unit]\nDefaultDependencies=no\n' : '[Unit]\n';
    await writeFile(join(targets, `${name}.target`), text);
  }
  const group = `nanobot-test-${process.pid}`;
  const isUnified = existsSync(join(GROUPS, 'cgroup.controllers'));
  const hierarchies = isUnified ? [GROUPS] : HIERARCHIES.map((name) => join(GROUPS, name));
  const groups = hierarchies.filter((path) => existsSync(path)).map((path) => join(path, group));
  const enter = groups.map((path) => `mkdir ${path} && echo 0 > ${path}/cgroup.procs`).join(' && ');
  const inside = `mount --make-rprivate / && mount -t tmpfs tmpfs /run && mkdir -p /run/systemd/system && exec ${PROGRAM} --user --unit=default.target`;
  const env = { XDG_RUNTIME_DIR: runtime, HOME: home, PATH: process.env['PATH'] ?? '' };
  const child = spawn('sh', ['-c', `${enter} && exec unshare -C -m sh -c '${inside}'`], {
    env: { ...env, SYSTEMD_UNIT_PATH: `${unitFolder}:${targets}`, SYSTEMD_LOG_TARGET: 'console' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let said = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (part: Buffer) => {
      said += part.toString();
    });
  }
  const exited = once(child, 'exit');
  const systemctl = async (...args: readonly string[]) =>
    (await execute('systemctl', ['--user', ...args], { env })).stdout.trim();
  const end = async () => {
    await systemctl('kill', '--signal=KILL', 'nanobot*').catch(() => undefined);
    child.kill('SIGKILL');
    await exited;
    await rm(folder, { recursive: true, force: true });
    // Files of a control group cannot be removed, and need not be.
    await execute('find', [...groups, '-depth', '-type', 'd', '-delete']).catch(() => undefined);
  };
  const isUp = await Promise.race([
    expect
      .poll(() => systemctl('is-active', 'default.target').catch(() => ''))
      .toBe('active')
      .then(
        () => true,
        () => false,
      ),
    exited.then(() => false),
  ]);
  if (!isUp) {
    await end();
    console.log(`no systemd of a user here: ${said}`);
    return undefined;
  }
  return {
    env,
    unitFolder,
    systemctl,
    show: (unit, property) => systemctl('show', unit, '--value', `--property=${property}`),
    [Symbol.asyncDispose]: end,
  };
}
