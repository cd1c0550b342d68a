// Runs a program of this machine on audio: without a shell, without secrets in its environment, in
// a temporary folder of its own, ended with all its descendants at the deadline.

import type { ChildProcess } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Environment } from '../../kernel/config/environment.ts';
import { environmentOf, isOver, killGroup, spawnGroup } from '../../lib/process-group.ts';
import { t } from '../../lib/texts.ts';
import { type Clock, orAborted, withDeadline } from '../../lib/time/clock.ts';
import type { Argv } from './rules/voice-engine.ts';
import { VoiceError } from './voice.ts';

/** What a program needs to run and to use the audio of this machine; none of our variables. */
const PASSED_ON = [
  ...['PATH', 'HOME', 'USER', 'LOGNAME', 'LANG', 'LC_ALL', 'TMPDIR', 'SystemRoot'],
  ...['XDG_RUNTIME_DIR', 'XDG_CACHE_HOME', 'PULSE_SERVER'],
];

type ProgramRun = {
  readonly argv: Argv;
  readonly folder: string;
  readonly env: Environment;
  readonly timeoutMs: number;
  /** Written to its stdin. */
  readonly input?: string;
  /** Of its stdout; more is an error. */
  readonly maxOutputBytes: number;
};

/** The arguments with the placeholders in braces filled in. */
export function filledIn([program, ...args]: Argv, values: Readonly<Record<string, string>>): Argv {
  const fill = (part: string) =>
    part.replace(/\{(\w+)\}/g, (written, name: string) =>
      Object.hasOwn(values, name) ? (values[name] ?? written) : written,
    );
  return [program, ...args.map(fill)];
}

export const minimalEnvironment = (env: Environment) => environmentOf(PASSED_ON, env);

/** Readable only by this user; deleted afterwards. */
export async function inPrivateFolder<T>(work: (folder: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'nanobot-voice-'));
  try {
    return await work(folder);
  } finally {
    await rm(folder, { recursive: true, force: true, maxRetries: 3 });
  }
}

/** Returns its stdout. @throws VoiceError, the signal's reason */
export async function runProgram(
  run: ProgramRun,
  clock: Clock,
  signal: AbortSignal,
): Promise<Uint8Array> {
  signal.throwIfAborted();
  const child = spawnGroup(run.argv, {
    cwd: run.folder,
    env: minimalEnvironment(run.env),
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  const stop = () => killGroup(child);
  // A program that does not read its input breaks the pipe, which is not an error.
  child.stdin?.on('error', () => undefined);
  child.stdin?.end(run.input ?? '');
  const late = () => new VoiceError('voice_timeout', t`the program took too long`);
  try {
    return await withDeadline(clock, run.timeoutMs, late, signal, (whole) =>
      orAborted(outputOf(child, run.maxOutputBytes, stop), whole),
    );
  } finally {
    if (!isOver(child)) stop();
    child.stdout?.destroy();
  }
}

function outputOf(child: ChildProcess, maxBytes: number, stop: () => void): Promise<Uint8Array> {
  const parts: Buffer[] = [];
  let size = 0;
  child.stdout?.on('data', (part: Buffer) => {
    size += part.length;
    if (size > maxBytes) stop();
    else parts.push(part);
  });
  return new Promise((resolve, reject) => {
    child.on('error', (cause: NodeJS.ErrnoException) => {
      const detail = cause.code ?? 'unknown';
      const reason = 'the program cannot be run';
      reject(new VoiceError('voice_command_missing', reason, { detail }));
    });
    // A descendant that is still running may hold stdout open.
    child.on('exit', stop);
    child.on('close', (code) => {
      if (code === 0 && size <= maxBytes) return resolve(Buffer.concat(parts));
      const detail = code === null ? 'stopped' : `exit code ${code}`;
      reject(new VoiceError('voice_command_failed', t`the program failed`, { detail }));
    });
  });
}
