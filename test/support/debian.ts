// A Debian with its own systemd as process 1, in name spaces and control groups of its own: what debootstrap
// makes, and nothing else. It shares the network of this machine. Needs root.

import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, vi } from 'vitest';

const MIRROR = 'http://deb.debian.org/debian';
/** What every installation of Debian has, and what its sandbox needs. */
const PACKAGES = 'systemd,systemd-sysv,dbus,libpam-systemd,wget,ca-certificates,procps,bubblewrap';
/** Kept between runs. */
const BASE = join(tmpdir(), 'nanobot-bare-debian');
const GROUPS = '/sys/fs/cgroup';
const HIERARCHIES = ['systemd', 'unified', 'memory', 'cpu', 'pids'];
const MAX_OUTPUT_BYTES = 64 * 1024 * 1024;
/** A busy machine boots slowly. */
const WAIT = { timeout: 120_000, interval: 50 };
const execute = promisify(execFile);

/** Why none can be started; undefined where one can. */
export async function whyNoDebian(): Promise<string | undefined> {
  if (process.getuid?.() !== 0) return 'it needs root';
  if (!existsSync(join(GROUPS, 'systemd'))) return 'it needs control groups of version 1';
  const found = await execute('sh', ['-c', 'command -v debootstrap unshare nsenter']).catch(
    () => undefined,
  );
  return found === undefined ? 'debootstrap is not installed' : undefined;
}

export type Ran = { readonly code: number; readonly said: string };

export interface Debian extends AsyncDisposable {
  /** Its files, as this machine sees them. */
  readonly root: string;
  /** In a shell of this user, as after a login. */
  run(user: string, command: string): Promise<Ran>;
  /** As `run`, until it ends or the machine does. */
  start(user: string, command: string): ChildProcess;
  /** Without a shutdown, as after a power cut. */
  reboot(): Promise<void>;
}

export async function startDebian(): Promise<Debian> {
  const folder = await mkdtemp(join(tmpdir(), 'nanobot-debian-'));
  const root = join(folder, 'root');
  if (!existsSync(BASE)) {
    const made = join(folder, 'base');
    const args = ['--variant=minbase', `--include=${PACKAGES}`, 'bookworm', made, MIRROR];
    await execute('debootstrap', args, { maxBuffer: MAX_OUTPUT_BYTES });
    await rename(made, BASE);
  }
  await execute('cp', ['-a', BASE, root]);
  await writeFile(join(root, 'etc/machine-id'), '');
  const group = `nanobot-debian-${process.pid}`;
  let machine = await boot(root, group);

  const enter = (user: string, command: string) => [
    ...['--target', machine.init, '--mount', '--uts', '--ipc', '--pid', '--cgroup'],
    ...['--root', '--wd=/', '--', 'runuser', '-l', user, '-c', command],
  ];
  return {
    root,
    run: (user, command) =>
      execute('nsenter', enter(user, command), { maxBuffer: MAX_OUTPUT_BYTES }).then(
        ({ stdout, stderr }) => ({ code: 0, said: stdout + stderr }),
        ({ code, stdout, stderr }) => ({ code, said: stdout + stderr }),
      ),
    start: (user, command) => spawn('nsenter', enter(user, command), { stdio: 'ignore' }),
    async reboot() {
      await machine.end();
      machine = await boot(root, group);
    },
    async [Symbol.asyncDispose]() {
      await machine.end();
      await rm(folder, { recursive: true, force: true });
      const groups = HIERARCHIES.map((name) => join(GROUPS, name, group)).filter(existsSync);
      // Files of a control group cannot be removed, and need not be.
      await execute('find', [...groups, '-depth', '-type', 'd', '-delete']).catch(() => undefined);
    },
  };
}

/** What a container engine mounts. */
const MOUNTS = `set -e
mount --bind "$1" "$1" && cd "$1"
mount -t proc proc proc
mount -t sysfs -o ro sysfs sys
for at in run tmp sys/fs/cgroup; do mount -t tmpfs tmpfs $at; done
chmod 1777 tmp
cd sys/fs/cgroup
mkdir systemd unified memory cpu pids
mount -t cgroup -o none,name=systemd cgroup systemd
mount -t cgroup2 cgroup2 unified
for each in memory cpu pids; do mount -t cgroup -o $each cgroup $each; done
cd "$1"
mount -t tmpfs -o mode=755 tmpfs dev
for each in null zero full random urandom tty; do touch dev/$each; mount --bind /dev/$each dev/$each; done
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
ln -s pts/ptmx dev/ptmx
mount -t tmpfs tmpfs dev/shm
hostname bare
mkdir -p .before
# After a chroot the kernel would refuse user name spaces.
pivot_root . .before
exec env -i container=other PATH=/usr/sbin:/usr/bin:/sbin:/bin sh -c 'umount -l /.before; rmdir /.before; exec /sbin/init'`;

async function boot(root: string, group: string) {
  const enter = HIERARCHIES.map(
    (name) =>
      `mkdir -p ${GROUPS}/${name}/${group} && echo 0 > ${GROUPS}/${name}/${group}/cgroup.procs`,
  ).join(' && ');
  const spaces = '--mount --uts --ipc --pid --cgroup --fork --kill-child --propagation private';
  const line = `${enter} && exec unshare ${spaces} sh -c "$0" sh "$1"`;
  const child = spawn('sh', ['-c', line, MOUNTS, root], { stdio: 'ignore' });
  const ended = once(child, 'exit');
  const { pid = 0 } = child;
  const end = async () => {
    child.kill('SIGKILL');
    await ended;
  };
  let init = '';
  await vi.waitFor(async () => {
    [init = ''] = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ');
    expect(readFileSync(`/proc/${init}/comm`, 'utf8')).toBe('systemd\n');
    const there = ['--target', init, '--mount', '--pid', '--root', '--wd=/'];
    const asked = execute('nsenter', [...there, 'systemctl', 'is-system-running']);
    const { stdout } = await asked.catch((error: { readonly stdout: string }) => error);
    expect(stdout).toMatch(/running|degraded/);
  }, WAIT);
  return { init, end };
}
