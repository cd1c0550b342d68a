// Programs of this machine in a process group of their own, so that one signal reaches all they started
// and did not detach. Who has to be stopped, and when, is the caller's business.

import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';

/** Without a shell; in a new session, so that the group bears the number of the process. */
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

/** A process that is gone already is none to complain about. */
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
