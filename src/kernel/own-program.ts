// Runs a command of this program in a process of its own, below the priority of the gateway: long work
// delays no answer.

import { spawn } from 'node:child_process';
import { constants, setPriority } from 'node:os';
import { text } from 'node:stream/consumers';
import type { Environment } from './config/environment.ts';
import { type Home, PROGRAM } from './config/files/home.ts';

type ProgramEnd = {
  /** Undefined if a signal ended it, or it could not be started. */
  readonly code: number | undefined;
  readonly output: string;
  /** What it said beside the output, without the name of the program. */
  readonly said: string;
};

type ProgramOptions = {
  readonly home: Home;
  readonly env: Environment;
  /** Ends the process. */
  readonly signal: AbortSignal;
};

export async function runOwnProgram(
  args: readonly string[],
  { home, env, signal }: ProgramOptions,
): Promise<ProgramEnd> {
  const child = spawn(process.execPath, [PROGRAM, ...args], {
    env: { ...env, NANOBOT_HOME: home.root },
    stdio: ['ignore', 'pipe', 'pipe'],
    signal,
  });
  const ended = new Promise<number | undefined>((settle) => {
    child.once('error', () => settle(undefined));
    child.once('close', (code) => settle(code ?? undefined));
  });
  if (child.pid !== undefined) setPriority(child.pid, constants.priority.PRIORITY_LOW);
  const [code, output, said] = await Promise.all([ended, text(child.stdout), text(child.stderr)]);
  return { code, output, said: said.replace(/^nanobot: /gm, '').trim() };
}
