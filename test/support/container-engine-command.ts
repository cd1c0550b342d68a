// The command of the stand-in for docker and podman: see container-engine.ts.

import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  appendFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

const IMAGE_NAME = 'programs:1';
const IMAGE_ID = `sha256:${'5'.repeat(64)}`;
const FAILED = 125;
const USR = ['bin', 'sbin', 'lib', 'lib64'];

const [engine = '', folder = '', command = '', ...args] = process.argv.slice(2);
const state = join(folder, 'state');
appendFileSync(
  join(folder, 'calls'),
  `${JSON.stringify({ args: [command, ...args], env: process.env })}\n`,
);

function fail(message: string, code = FAILED): never {
  process.stderr.write(`${engine}: ${message}\n`);
  process.exit(code);
}

type Container = {
  readonly name: string;
  readonly label: string;
  readonly pid: number;
  readonly id: string;
};

const containers = () =>
  readdirSync(state).map(
    (name) => JSON.parse(readFileSync(join(state, name), 'utf8')) as Container,
  );

/** With its first process all others of the name space end. */
function remove({ name, pid }: Container): void {
  for (const each of [childOf(pid), pid]) {
    try {
      if (each > 1) process.kill(each, 'SIGKILL');
    } catch {
      // It is over.
    }
  }
  rmSync(join(state, name), { force: true });
}

/** 0: none. */
function childOf(pid: number): number {
  try {
    return Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ')[0]);
  } catch {
    return 0;
  }
}

const TEXT = { type: 'string' } as const;
const YES = { type: 'boolean' } as const;
const MANY = { type: 'string', multiple: true } as const;
const OF_BOTH = {
  ...{ rm: YES, pull: TEXT, name: TEXT, label: TEXT, 'log-driver': TEXT, network: TEXT },
  ...{ 'read-only': YES, 'cap-drop': TEXT, 'security-opt': TEXT, user: TEXT, hostname: TEXT },
  ...{ ipc: TEXT, 'no-healthcheck': YES, memory: TEXT, 'memory-swap': TEXT, cpus: TEXT },
  ...{ 'pids-limit': TEXT, ulimit: MANY, tmpfs: TEXT, mount: MANY, env: MANY, workdir: TEXT },
  entrypoint: TEXT,
};
const OF_PODMAN = ['--http-proxy=false', '--read-only-tmpfs=false', '--userns=keep-id'];

/** Flags end where the image is named. */
function runFlags() {
  const own = engine === 'podman' ? OF_PODMAN : [];
  const rest = args.filter((each) => !own.includes(each));
  const at = rest.indexOf(IMAGE_ID);
  if (at < 0) fail('Unable to find image locally');
  try {
    return {
      ...parseArgs({ args: rest.slice(0, at), options: OF_BOTH }).values,
      rest: rest.slice(at + 1),
    };
  } catch (error) {
    return fail(String(error));
  }
}

function mountOf(text: string) {
  const fields = Object.fromEntries(text.split(',').map((part) => part.split('=', 2)));
  const {
    type,
    source = '',
    target = '',
    readonly: _,
    ...others
  } = fields as Record<string, string>;
  if (type !== 'bind' || Object.keys(others).length > 0) fail(`invalid mount: ${text}`);
  if (!existsSync(source)) fail('invalid mount config: bind source path does not exist');
  return { source, target, kind: 'readonly' in fields ? '--ro-bind' : '--bind' };
}

function run(): void {
  const flags = runFlags();
  const { name = '', label = '', entrypoint = '', workdir = '/' } = flags;
  const mounts = (flags.mount ?? []).map(mountOf);
  if (new Set(mounts.map(({ target }) => target)).size < mounts.length) {
    fail('Duplicate mount point');
  }
  if (existsSync(join(state, name))) fail('the container name is already in use');
  const complaint = join(folder, 'complaint');
  if (existsSync(complaint)) process.stderr.write(readFileSync(complaint));
  mounts.sort((one, other) => one.target.split('/').length - other.target.split('/').length);
  const [uid = '', gid = ''] = (flags.user ?? '').split(':');
  const [scratch = '', options = ''] = (flags.tmpfs ?? '').split(':');
  const size = /size=(\d+)/.exec(options)?.[1] ?? fail('no size of the scratch');
  const env = (flags.env ?? []).map((each) => {
    const at = each.indexOf('=');
    return at < 0
      ? ([each, process.env[each] ?? ''] as const)
      : ([each.slice(0, at), each.slice(at + 1)] as const);
  });
  const child = spawn(
    'bwrap',
    [
      ...['--unshare-user', '--unshare-pid', '--unshare-ipc', '--unshare-uts', '--new-session'],
      ...(flags.network === 'none' ? ['--unshare-net'] : []),
      ...['--uid', uid, '--gid', gid, '--cap-drop', 'ALL', '--hostname', flags.hostname ?? ''],
      ...['--ro-bind', '/usr', '/usr'],
      ...USR.flatMap((each) => ['--symlink', `usr/${each}`, `/${each}`]),
      ...['--proc', '/proc', '--dev', '/dev', '--size', size, '--tmpfs', scratch],
      ...mounts.flatMap(({ kind, source, target }) => [kind, source, target]),
      ...(flags['read-only'] ? ['--remount-ro', '/'] : []),
      ...['--clearenv', '--setenv', 'PATH', '/usr/local/bin:/usr/bin:/bin'],
      ...env.flatMap(([key, value]) => (value === '' ? [] : ['--setenv', key, value])),
      ...['--chdir', workdir, '--', entrypoint, ...flags.rest],
    ],
    { stdio: ['ignore', 'inherit', 'inherit'], detached: true, env: { PATH: '/usr/bin:/bin' } },
  );
  const { pid = 0 } = child;
  const id = randomBytes(6).toString('hex');
  writeFileSync(join(state, name), JSON.stringify({ name, label, pid, id }));
  // As the commands of both do: passed on to the first process inside.
  process.on('SIGTERM', () => process.kill(childOf(childOf(pid)), 'SIGTERM'));
  child.on('close', (code, signal) => {
    rmSync(join(state, name), { force: true });
    process.exit(signal === null ? (code ?? 0) : 137);
  });
}

function answer(): void {
  switch (command) {
    case 'info':
      console.log(engine === 'podman' ? 'false' : '[name=seccomp,profile=builtin]');
      return;
    case 'image':
      if (args.at(-1) !== IMAGE_NAME) fail('No such image', 1);
      console.log(IMAGE_ID);
      return;
    case 'run':
      run();
      return;
    case 'ps': {
      const [kind = '', value = ''] = args[2]?.split(/=(.*)/s) ?? [];
      const isMeant = (each: Container) =>
        kind === '' || (kind === 'name' ? each.name : each.label) === value;
      for (const { id } of containers().filter(isMeant)) console.log(id);
      return;
    }
    case 'rm': {
      const meant = containers().filter(({ name, id }) => args.includes(name) || args.includes(id));
      if (meant.length === 0) fail('No such container', 1);
      for (const each of meant) remove(each);
      return;
    }
    default:
      fail(`unknown command ${command}`);
  }
}

if (existsSync(join(folder, 'down'))) fail('Cannot connect to the engine', 1);
answer();
