// strace, to watch what a process asks of the disk or to hold it back. Missing or forbidden in some
// places: tests that need it are skipped there.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const ATTACH_MS = 30_000;

/** A call with its arguments as strace prints them; `begin` and `end` are places in the order of all. */
export type SystemCall = {
  readonly thread: number;
  readonly name: string;
  readonly args: string;
  readonly begin: number;
  readonly end: number;
};

/** Of all threads, those that begin later too. Resolves when the process is watched. */
export async function attachStrace(pid: number, args: readonly string[]): Promise<ChildProcess> {
  const strace = spawn('strace', ['-f', ...args, '-p', String(pid)], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let said = '';
  await new Promise<void>((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`strace did not attach: ${said}`)), ATTACH_MS);
    const settle = (act: () => void) => {
      clearTimeout(timer);
      act();
    };
    strace.stderr.on('data', (part: Buffer) => {
      said += part.toString();
      if (/Process \d+ attached/.test(said)) settle(resolve);
    });
    strace.once('error', (error) => settle(() => reject(error)));
    strace.once('exit', () => settle(() => reject(new Error(`strace ended: ${said}`))));
  });
  return strace;
}

/** The process goes on, also with a call that was held back. */
export async function detachStrace(strace: ChildProcess): Promise<void> {
  if (strace.exitCode !== null || strace.signalCode !== null) return;
  const exited = once(strace, 'exit');
  strace.kill('SIGTERM');
  await exited;
}

/** While it lives, nothing that the process writes gets to the disk. */
export async function holdDisk(pid: number): Promise<AsyncDisposable> {
  const held = 'fsync,fdatasync';
  const strace = await attachStrace(pid, [
    ...['-o', '/dev/null', '-e', `trace=${held}`],
    ...['-e', `inject=${held}:delay_enter=3600000000`],
  ]);
  return { [Symbol.asyncDispose]: () => detachStrace(strace) };
}

/** From now on the disk refuses what the process wants synced. */
export async function failDisk(pid: number): Promise<AsyncDisposable> {
  const strace = await attachStrace(pid, [
    ...['-o', '/dev/null', '-e', 'trace=fdatasync', '-e', 'inject=fdatasync:error=EIO'],
  ]);
  return { [Symbol.asyncDispose]: () => detachStrace(strace) };
}

export type Watch = { stop(): Promise<readonly SystemCall[]> };

/** What the process does from now on, with a disk that takes its time; `stop` ends the watching. */
export async function watchCalls(pid: number, calls: readonly string[]): Promise<Watch> {
  const path = join(tmpdir(), `nanobot-strace-${pid}`);
  const strace = await attachStrace(pid, [
    ...['-y', '-s', '10000', '-o', path, '-e', `trace=${calls.join(',')}`],
    ...['-e', 'inject=fdatasync:delay_enter=30000'],
  ]);
  return {
    async stop() {
      await detachStrace(strace);
      const text = await readFile(path, 'utf8');
      await rm(path);
      return parseCalls(text);
    },
  };
}

/** Calls that returned without an error. */
export function parseCalls(text: string): readonly SystemCall[] {
  const calls: SystemCall[] = [];
  const open = new Map<number, { readonly begin: number; readonly line: string }>();
  for (const [place, line] of text.split('\n').entries()) {
    const [, pid, rest = ''] = /^(\d+) +(.*)$/s.exec(line) ?? [];
    const thread = Number(pid);
    if (rest.endsWith(' <unfinished ...>')) {
      open.set(thread, { begin: place, line: rest.slice(0, -' <unfinished ...>'.length) });
      continue;
    }
    const [, resumed] = /^<\.\.\. \w+ resumed>(.*)$/s.exec(rest) ?? [];
    const first = resumed === undefined ? undefined : open.get(thread);
    const [, name, args, result] =
      /^(\w+)\((.*)\) += (-?\d+)/s.exec(first === undefined ? rest : first.line + resumed) ?? [];
    if (name === undefined || args === undefined || Number(result) < 0) continue;
    calls.push({ thread, name, args, begin: first?.begin ?? place, end: place });
  }
  return calls;
}

/** Whether a process may be watched here. */
export async function hasStrace(): Promise<boolean> {
  const sleeper = spawn('sleep', ['60'], { stdio: 'ignore' });
  try {
    await detachStrace(await attachStrace(sleeper.pid ?? 0, ['-o', '/dev/null']));
    return true;
  } catch {
    return false;
  } finally {
    sleeper.kill('SIGKILL');
  }
}
