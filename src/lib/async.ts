// Concurrency: serial lanes per key, cached results, bounded maps, semaphores, the memory limit for
// document readers, a gauge of the event loop, and supervision of long-lived tasks.

import { readFileSync } from 'node:fs';
import { totalmem } from 'node:os';
import { performance } from 'node:perf_hooks';
import type { Logger } from './logger.ts';
import { backoffMs, type Clock, following, onAbort, orAborted } from './time/clock.ts';

export type Lanes = ReturnType<typeof createLanes>;

export function createLanes() {
  const tails = new Map<string, Promise<unknown>>();
  return {
    /** Lanes with a task running or waiting. */
    get size(): number {
      return tails.size;
    },
    /** Runs the task after all earlier tasks of the key; a failure does not stop the lane. */
    run<T>(key: string, task: () => Promise<T>): Promise<T> {
      const before = tails.get(key) ?? Promise.resolve();
      const result = before.then(task, task);
      const tail = result.then(ignore, ignore).then(() => {
        if (tails.get(key) === tail) tails.delete(key);
      });
      tails.set(key, tail);
      return result;
    },
  };
}

function ignore() {}

// Results that are read or computed once and kept in memory.

/** Reads on the first call; after a failed read the next call reads again. */
export function readOnce<T>(read: () => Promise<T>): () => Promise<T> {
  let known: Promise<T> | undefined;
  return () => {
    known ??= read();
    const reading = known;
    reading.catch(() => {
      if (known === reading) known = undefined;
    });
    return reading;
  };
}

/** Who asks for the same while it is worked out gets the same answer. */
export function sharedWhileRunning<T>(
  work: (key: string) => Promise<T>,
): (key: string) => Promise<T> {
  const running = new Map<string, Promise<T>>();
  return (key) => {
    const found = running.get(key);
    if (found !== undefined) return found;
    const begun = work(key).finally(() => running.delete(key));
    running.set(key, begun);
    return begun;
  };
}

/** A result computed from an immutable object, kept as long as the object is in use. */
export function rememberedFor<K extends object, V>(work: (key: K) => V): (key: K) => V {
  const known = new WeakMap<K, { readonly value: V }>();
  return (key) => {
    const found = known.get(key) ?? { value: work(key) };
    known.set(key, found);
    return found.value;
  };
}

/** A map of bounded size: beyond it, the entry set longest ago is dropped. */
export class RecentMap<K, V> extends Map<K, V> {
  readonly #max: number;

  constructor(max: number) {
    super();
    this.#max = max;
  }

  override set(key: K, value: V): this {
    this.delete(key);
    super.set(key, value);
    if (this.size <= this.#max) return this;
    const [oldest] = this.keys();
    if (oldest !== undefined) this.delete(oldest);
    return this;
  }
}

// Maps with a bounded number of concurrent tasks; results keep the order of the items.

export async function mapLimited<Item, Result>(
  items: readonly Item[],
  limit: number,
  task: (item: Item) => Promise<Result>,
): Promise<readonly Result[]> {
  const results = new Map<number, Result>();
  const queue = items.entries();
  const worker = async () => {
    for (const [index, item] of queue) results.set(index, await task(item));
  };
  await Promise.all(Array.from({ length: Math.min(limit, items.length) }, worker));
  return items.map((_, index) => results.get(index) as Result);
}

/**
 * A gate that `atOnce` callers pass in each round of the event loop. Of many that come together, the
 * first have done their work and wait for others by the time the last begin.
 */
export function createGate(atOnce: number): () => Promise<void> {
  const waiting: (() => void)[] = [];
  let room = atOnce;

  function next() {
    const passing = waiting.splice(0, atOnce);
    room = atOnce - passing.length;
    if (passing.length > 0) setImmediate(next);
    for (const pass of passing) pass();
  }

  return () => {
    if (room === 0) return new Promise((resolve) => waiting.push(resolve));
    if (room === atOnce) setImmediate(next);
    room -= 1;
    return Promise.resolve();
  };
}

// Work that nothing waits for, e.g. on lines of the log: gathered and done ten times a second, away from
// the path of a message. Also done at the end of the process; what a killed one had gathered is lost.

export type Afterwork = ReturnType<typeof createAfterwork>;

const GATHERED_MS = 100;

export function createAfterwork(clock: Clock) {
  let gathered: (() => void)[] = [];
  let next: Disposable | undefined;

  function finish() {
    next?.[Symbol.dispose]();
    while (gathered.length > 0) {
      const now = gathered;
      gathered = [];
      for (const work of now) work();
    }
    next = undefined;
  }

  process.once('exit', finish);
  return {
    /** In order; what such work adds follows at once. It must not fail. */
    later(work: () => void): void {
      gathered.push(work);
      next ??= clock.timer(GATHERED_MS, finish);
    },
    /** Does what is gathered now, e.g. before files are read that it writes. */
    finish,
    [Symbol.dispose](): void {
      process.off('exit', finish);
      finish();
    },
  };
}

// A counting semaphore, first come first served. Its size may change while permits are in use.

export type Permits = ReturnType<typeof createPermits>;

export function createPermits(initialSize: number) {
  let size = initialSize;
  let used = 0;
  /** Calling a waiter grants its permit. */
  const waiters = new Set<() => void>();

  function grantNext() {
    for (const grant of waiters) {
      if (used >= size) return;
      waiters.delete(grant);
      grant();
    }
  }

  function take(): Disposable {
    used += 1;
    const permit = new DisposableStack();
    permit.defer(() => {
      used -= 1;
      grantNext();
    });
    return permit;
  }

  return {
    /** Resolves with a permit; disposing returns it. Rejects when the signal aborts first. */
    async acquire(signal: AbortSignal): Promise<Disposable> {
      signal.throwIfAborted();
      if (used < size && waiters.size === 0) return take();
      const { promise, resolve, reject } = Promise.withResolvers<Disposable>();
      const onAbort = () => {
        waiters.delete(grant);
        reject(signal.reason);
      };
      const grant = () => {
        signal.removeEventListener('abort', onAbort);
        resolve(take());
      };
      waiters.add(grant);
      signal.addEventListener('abort', onAbort, { once: true });
      return promise;
    },
    resize(next: number): void {
      size = next;
      grantNext();
    },
  };
}

// How much memory the readers of documents, pictures and web pages may use, and how many of them
// run in parallel, derived from the limit of the process: a container's limit, or the machine's
// memory.

export type ReaderMemory = ReturnType<typeof createReaderMemory>;

const MIB = 1_048_576;
/** Memory of the gateway without its readers. */
const GATEWAY_BYTES = 192 * MIB;
const READER_BYTES = 384 * MIB;
/** The smallest heap in which a reader runs. */
const MIN_READER_BYTES = 64 * MIB;
const MAX_READERS = 3;
const TIGHT_BELOW_BYTES = 1024 * MIB;
/** Share of the limit. */
const USED_UP = 0.9;

export function createReaderMemory(limitBytes = processLimit()) {
  const isTight = limitBytes < TIGHT_BELOW_BYTES;
  const room = limitBytes - GATEWAY_BYTES;
  const atOnce = isTight ? 1 : Math.min(MAX_READERS, Math.floor(room / READER_BYTES));
  const permits = createPermits(atOnce);
  return {
    /** Waits for a place for one reader; rejects when the signal aborts first. */
    acquire: (signal: AbortSignal): Promise<Disposable> => permits.acquire(signal),
    /** What one reader may use. */
    bytes: Math.max(MIN_READER_BYTES, Math.floor(room / atOnce)),
    /** Only one reader runs at a time, and its memory is released after it. */
    isTight,
    /** The process as a whole is about to reach its limit. */
    isUsedUp: (): boolean => heldBytes() > limitBytes * USED_UP,
  };
}

/** Zero, or more than the machine has, means no limit. */
function processLimit(): number {
  const limit = process.constrainedMemory();
  return limit > 0 ? Math.min(limit, totalmem()) : totalmem();
}

/** Without cached file pages, which the kernel reclaims by itself. */
function heldBytes(): number {
  try {
    const held = /^RssAnon:\s+(\d+) kB$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1];
    return held === undefined ? process.memoryUsage.rss() : Number(held) * 1024;
  } catch {
    return process.memoryUsage.rss();
  }
}

// How busy the process is.

const BUSY_SPAN_MS = 200;
const BUSY_SHARE = 0.8;

/** Whether the event loop had hardly a pause in the last span, so that further work would wait. */
export function createBusyGauge(clock: Clock): () => boolean {
  let at = clock.monotonic();
  let before = performance.eventLoopUtilization();
  let isBusy = false;
  return () => {
    const now = clock.monotonic();
    if (now - at < BUSY_SPAN_MS) return isBusy;
    isBusy = performance.eventLoopUtilization(before).utilization > BUSY_SHARE;
    before = performance.eventLoopUtilization();
    at = now;
    return isBusy;
  };
}

// Keeps a long-lived task running: a failure becomes a log line and a wait, never a crash, until
// the caller aborts or the task reports that a restart is useless.

type SuperviseOptions = {
  readonly name: string;
  readonly signal: AbortSignal;
  readonly clock: Clock;
  readonly log: Logger;
  readonly minMs: number;
  readonly maxMs: number;
  /** A run this long counts as healthy and resets the backoff. */
  readonly stableMs: number;
  /** `stop` ends the supervision. */
  onFailure(error: unknown, retryInMs: number): 'restart' | 'stop';
};

/**
 * Failures within `stableMs` after which restarts are delayed even if the task works in between.
 */
const MAX_QUICK_RESTARTS = 10;

/** The run calls `works` once it has done something useful: this resets its earlier failures. */
export async function supervise(
  run: (signal: AbortSignal, works: () => void) => Promise<void>,
  options: SuperviseOptions,
): Promise<void> {
  const { signal, clock, stableMs } = options;
  let failures = 0;
  let recent: readonly number[] = [];
  while (!signal.aborted) {
    const startedAt = clock.monotonic();
    let hasWorked = false;
    try {
      await run(signal, () => {
        hasWorked = true;
      });
      return;
    } catch (error) {
      if (signal.aborted) return;
      const now = clock.monotonic();
      recent = [...recent.filter((at) => now - at < stableMs), now];
      const isFlapping = recent.length > MAX_QUICK_RESTARTS;
      const isForgiven = now - startedAt >= stableMs || (hasWorked && !isFlapping);
      failures = isForgiven ? 1 : failures + 1;
      const waitMs = backoffMs(failures, { ...options, random: Math.random });
      options.log.warn('task failed', { task: options.name, failures, waitMs, error });
      if (options.onFailure(error, waitMs) === 'stop') return;
      await clock.sleep(waitMs, signal).catch(() => undefined);
    }
  }
}

// A change that others wait for: they check a condition, and if it does not hold, wait for the next
// change.

export type Change = ReturnType<typeof createChange>;

export function createChange() {
  const waiting = new Set<() => void>();
  return {
    notify(): void {
      for (const resume of [...waiting]) resume();
    },
    /** Resolves at the next change. @throws the signal's reason */
    next(signal: AbortSignal): Promise<void> {
      const { promise, resolve } = Promise.withResolvers<void>();
      waiting.add(resolve);
      return orAborted(promise, signal).finally(() => waiting.delete(resolve));
    },
  };
}

// Deadlines for calls of a vendor's library that takes no signal and may never answer.

/**
 * The work's result; rejects with the error of `late` if the deadline or the signal comes first.
 * The signal given to the work aborts then.
 */
export async function within<T>(
  {
    clock,
    ms,
    signal,
  }: { readonly clock: Clock; readonly ms: number; readonly signal: AbortSignal },
  work: (signal: AbortSignal) => Promise<T>,
  late: () => Error,
): Promise<T> {
  const ending = following(signal);
  const ended = Promise.withResolvers<never>();
  ended.promise.catch(() => undefined);
  using _ending = onAbort(ending.signal, () => ended.reject(late()));
  using _timer = clock.timer(ms, () => ending.abort());
  try {
    const result = work(ending.signal);
    // After the deadline a result is ignored.
    result.catch(() => undefined);
    return await Promise.race([result, ended.promise]);
  } finally {
    ending.abort();
  }
}

/** The answer, or `late` after this many milliseconds. @throws what the call throws in time */
export async function inTime<T>(clock: Clock, ms: number, answer: Promise<T>): Promise<T | 'late'> {
  const { promise, resolve } = Promise.withResolvers<'late'>();
  using _timer = clock.timer(ms, () => resolve('late'));
  return await Promise.race([answer, promise]);
}
