// The environment of this process: whether it runs in a container, which files are on read-only
// mounts, and which variables a program gets; and programs as process groups.

import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readFile, realpath } from 'node:fs/promises';

const MARKS = ['/.dockerenv', '/run/.containerenv'];
/** Set by podman and by our image; by every Kubernetes. */
const VARIABLES = ['container', 'KUBERNETES_SERVICE_HOST'];

/** In a container all other users belong to the same image. */
export const isContained = (env: Readonly<Record<string, string | undefined>>): boolean =>
  VARIABLES.some((name) => (env[name] ?? '') !== '') || MARKS.some((path) => existsSync(path));

/** The variables of these names that are set: a program gets no other part of our environment. */
export const environmentOf = (
  names: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): NodeJS.ProcessEnv =>
  Object.fromEntries(names.flatMap((name) => (env[name] ? [[name, env[name]]] : [])));

/** False if the system does not report it. */
export async function isOnReadOnlyMount(path: string): Promise<boolean> {
  try {
    const real = await realpath(path);
    const mounts = (await readFile('/proc/self/mountinfo', 'utf8')).split('\n');
    // proc(5): the fifth field is the mount point, the sixth its options; later mounts cover
    // earlier ones.
    const [nearest] = mounts
      .map((line) => line.split(' '))
      .map(([, , , , point = '', options = '']) => ({ point: unescaped(point), options }))
      .filter(({ point }) => `${real}/`.startsWith(point === '/' ? '/' : `${point}/`))
      .toReversed()
      .toSorted((one, other) => other.point.length - one.point.length);
    return nearest?.options.split(',').includes('ro') ?? false;
  } catch {
    return false;
  }
}

const unescaped = (point: string) =>
  point.replace(/\\([0-7]{3})/g, (_, octal: string) =>
    String.fromCharCode(Number.parseInt(octal, 8)),
  );

// Programs of this machine in a process group of their own, so that one signal reaches all they
// started and did not detach. The caller decides what to stop, and when.

/** Without a shell; in a new session, so that the group has the number of the process. */
export function spawnGroup(
  [program, ...args]: readonly [string, ...string[]],
  options: Omit<SpawnOptions, 'detached' | 'shell'>,
): ChildProcess {
  return spawn(program, args, {
    ...options,
    shell: false,
    detached: process.platform !== 'win32',
    windowsHide: true,
  });
}

/** Ends the program with all it has started. */
export function killGroup(child: ChildProcess): void {
  if (child.pid === undefined) return;
  if (process.platform === 'win32') child.kill('SIGKILL');
  else signalProcess(-child.pid, 'SIGKILL');
}

/** Ignores a process that no longer exists. */
export function signalProcess(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    return;
  }
}

export function isOver(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null;
}
