// Lets a gateway in its own process live later than this test: from its start on, and later still each
// time it is told so. What fell due in between then fires at once, as on a machine that slept. As a
// preload (`node --import`) it takes the first shift from the environment.

import { syncBuiltinESMExports } from 'node:module';
import type { TimerOptions } from 'node:timers';
import promised from 'node:timers/promises';
import { promisify } from 'node:util';
import { isMainThread } from 'node:worker_threads';

const VARIABLE = 'NANOBOT_TEST_CLOCK_SHIFT_MS';
/** For what the process starts: the time of its start, which then goes on as anywhere. */
const INHERITED = 'NANOBOT_TEST_CLOCK_INHERITED_MS';
/** Shorter waits pass in real time, among them the ticks by which HTTP clients count. */
const LEAST_WAIT_MS = 500;

/** What a child process needs in its environment to live this much later. */
export const laterBy = (ms: number): Readonly<Record<string, string>> => ({
  NODE_OPTIONS: `--import ${import.meta.url}`,
  [VARIABLE]: String(ms),
});

/** Whether a process with this environment can be told to live later still. */
export const canSkip = (env: Readonly<Record<string, string>>): boolean => VARIABLE in env;

/** What tells it: by its IPC channel, and answered when it is done. */
export type Skip = { readonly skipMs: number };

/** A timer of Node with what says when it fires. */
type Timer = NodeJS.Timeout & { _destroyed: boolean; _idleStart: number; _idleTimeout: number };

const { [VARIABLE]: shift, [INHERITED]: inherited } = process.env;
if (isMainThread && (shift ?? inherited) !== undefined) {
  // Its own child processes have other things to say over their channels.
  delete process.env[VARIABLE];
  const skip = liveLater(Number(shift ?? inherited));
  if (shift !== undefined) listen(skip);
}

function liveLater(shiftMs: number): (ms: number) => void {
  const real = { set: globalThis.setTimeout, now: Date.now, passed: performance.now };
  let skippedMs = 0;
  process.env[INHERITED] = String(shiftMs);
  Date.now = () => real.now() + shiftMs + skippedMs;
  globalThis.Date = new Proxy(Date, {
    construct: (target, args, made) =>
      Reflect.construct(target, args.length === 0 ? [Date.now()] : args, made),
  });
  performance.now = () => real.passed.call(performance) + skippedMs;
  const waiting = new Set<Timer>();
  const set = (fn: (...args: unknown[]) => void, ms?: number, ...args: unknown[]) => {
    const timer = real.set(fn, ms, ...args) as Timer;
    if (timer._idleTimeout >= LEAST_WAIT_MS) waiting.add(timer);
    return timer;
  };
  Object.assign(globalThis, {
    setTimeout: Object.assign(set, { [promisify.custom]: promisedTimer }),
  });
  promised.setTimeout = promisedTimer;
  syncBuiltinESMExports();

  return (ms) => {
    skippedMs += ms;
    process.env[INHERITED] = String(shiftMs + skippedMs);
    const probe = real.set(() => undefined, 1) as Timer;
    clearTimeout(probe);
    const dueAt = (timer: Timer) => timer._idleStart + timer._idleTimeout;
    for (const timer of [...waiting].toSorted((one, other) => dueAt(one) - dueAt(other))) {
      if (timer._destroyed) {
        waiting.delete(timer);
        continue;
      }
      timer._idleTimeout = Math.max(1, dueAt(timer) - probe._idleStart - ms);
      timer.refresh();
    }
  };
}

function listen(skip: (ms: number) => void): void {
  process.on('message', (message: Partial<Skip>) => {
    if (message.skipMs === undefined) return;
    skip(message.skipMs);
    process.send?.(message);
  });
  // The gateway ends when it has nothing left to do, whoever could still tell it something.
  process.channel?.unref();
}

/** As Node's own, on the timers of this process that can be skipped. */
async function promisedTimer<T = void>(
  ms?: number,
  value?: T,
  { signal, ref = true }: TimerOptions = {},
): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const onAbort = () => reject(signal?.reason);
  signal?.throwIfAborted();
  signal?.addEventListener('abort', onAbort, { once: true });
  const timer = setTimeout(resolve, ms);
  if (!ref) timer.unref();
  try {
    await promise;
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', onAbort);
  }
  return value as T;
}
