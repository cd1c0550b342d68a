// Runs the program of a model server on this machine: starts it where the server does not answer,
// starts it again when it ends, and ends it with the gateway. A server that answered already belongs
// to somebody else and is left alone.

import { once } from 'node:events';
import type { Kernel } from '../../kernel/feature.ts';
import { supervise } from '../../lib/async.ts';
import {
  environmentOf,
  isOver,
  killGroup,
  signalProcess,
  spawnGroup,
} from '../../lib/process-group.ts';
import { orAborted } from '../../lib/time/clock.ts';

type ServerProgram = {
  readonly label: string;
  /** Without a shell. */
  readonly start: readonly string[];
  /** Ends a server that its program left in the background; empty: it is left running. */
  readonly stop: readonly string[];
  isThere(signal: AbortSignal): Promise<boolean>;
  /** It answers since now. */
  started(): void;
};

type ProgramDeps = Pick<Kernel, 'clock' | 'log'> & {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The working folder of the program. */
  readonly folder: string;
};

const WAITS = { minMs: 1000, maxMs: 300_000, stableMs: 60_000 };
/** A server that loads a model before it answers needs its time. */
const START_LIMIT_MS = 120_000;
const LOOK_MS = 250;
const LOOK_AGAIN_MS = 15_000;
/** After the signal to end. */
const GRACE_MS = 10_000;
const PASSED_ON = [
  ...['PATH', 'HOME', 'USER', 'LOGNAME', 'SHELL', 'LANG', 'LC_ALL', 'TZ', 'TMPDIR', 'SystemRoot'],
  ...['XDG_CACHE_HOME', 'XDG_CONFIG_HOME', 'XDG_DATA_HOME', 'XDG_RUNTIME_DIR', 'LD_LIBRARY_PATH'],
];
/** Settings of model servers and of their graphics cards. */
const OWN_SETTINGS = /^(?:OLLAMA|LLAMA|VLLM|CUDA|NVIDIA|HIP|ROCR|HSA|GGML)_\w+$/;
/** Keys are settings of servers too, and are left out. */
const KEYS = /KEY|TOKEN|SECRET|PASS/;

/** Resolves after the signal, once the program has ended. */
export function keepServer(
  program: ServerProgram,
  deps: ProgramDeps,
  signal: AbortSignal,
): Promise<void> {
  const { clock, log } = deps;
  return supervise((inner, works) => oneRun(program, deps, inner, works), {
    ...{ name: `program of ${program.label}`, signal, clock, log, ...WAITS },
    onFailure: () => 'restart',
  });
}

/** @throws Error where the program ends by itself or its server does not answer in time */
async function oneRun(
  program: ServerProgram,
  deps: ProgramDeps,
  signal: AbortSignal,
  works: () => void,
): Promise<void> {
  await whileThere(program, deps, signal);
  if (signal.aborted) return;
  const child = launched(program.start, deps);
  const failed = once(child, 'error').then(([error]) => error as Error);
  const over = new Promise<void>((resolve) => child.once('close', () => resolve()));
  try {
    const isUp = await Promise.race([untilThere(program, deps, child, signal), failed]);
    if (isUp instanceof Error) throw new Error(`it cannot be run (${codeOf(isUp)})`);
    if (signal.aborted) return;
    if (!isUp) throw new Error(isOver(child) ? 'it ended at once' : 'its server does not answer');
    deps.log.info('local model server started', { server: program.label });
    works();
    program.started();
    if (!isOver(child)) await orAborted(over, signal).catch(() => undefined);
    // It may have left its server in the background.
    if (child.exitCode === 0) await whileThere(program, deps, signal);
    if (!signal.aborted) throw new Error('it ended');
  } finally {
    await ended(program, deps, child, over);
  }
}

async function whileThere({ isThere }: ServerProgram, { clock }: ProgramDeps, signal: AbortSignal) {
  while (!signal.aborted && (await isThere(signal))) {
    await clock.sleep(LOOK_AGAIN_MS, signal).catch(() => undefined);
  }
}

async function untilThere(
  { isThere }: ServerProgram,
  { clock }: ProgramDeps,
  child: ReturnType<typeof spawnGroup>,
  signal: AbortSignal,
): Promise<boolean> {
  const until = clock.monotonic() + START_LIMIT_MS;
  for (;;) {
    if (signal.aborted || (await isThere(signal))) return true;
    const hasFailed = child.signalCode !== null || (child.exitCode ?? 0) !== 0;
    if (hasFailed || clock.monotonic() > until) return false;
    await clock.sleep(LOOK_MS, signal).catch(() => undefined);
  }
}

/** By its own program where it runs in the background, else by a signal to its whole group. */
async function ended(
  { label, stop }: ServerProgram,
  deps: ProgramDeps,
  child: ReturnType<typeof spawnGroup>,
  over: Promise<void>,
): Promise<void> {
  if (child.exitCode === 0 && stop.length > 0) {
    const stopping = launched(stop, deps);
    await inGrace(once(stopping, 'close').catch(() => undefined));
    if (!isOver(stopping)) killGroup(stopping);
  }
  if (child.pid === undefined || isOver(child)) return;
  signalProcess(-child.pid, 'SIGTERM');
  await inGrace(over);
  killGroup(child);
  deps.log.info('local model server ended', { server: label });
}

/** In real time: the gateway waits for it. */
function inGrace(work: Promise<unknown>): Promise<unknown> {
  return Promise.race([work, new Promise((late) => setTimeout(late, GRACE_MS).unref())]);
}

function launched([program = '', ...args]: readonly string[], { env, folder }: ProgramDeps) {
  const own = Object.keys(env).filter((name) => OWN_SETTINGS.test(name) && !KEYS.test(name));
  return spawnGroup([program, ...args], {
    cwd: folder,
    env: environmentOf([...PASSED_ON, ...own], env),
    stdio: 'ignore',
  });
}

const codeOf = (error: Error) => ('code' in error ? String(error.code) : 'unknown');
