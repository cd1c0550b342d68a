// The main thread's side of reading pages: starts the thread at the first page, gives each a limited
// time and memory, and stops the thread that exceeds them or has nothing to do.

import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import { ToolError } from '../../kernel/message/errors.ts';
import { createReaderMemory, type ReaderMemory } from '../../lib/async.ts';
import { type Clock, orAborted } from '../../lib/time/clock.ts';
import type { FromReader, PageSource, ReadPage, ToReader } from './readable-page.ts';

const READ_LIMIT_MS = 10_000;
const START_LIMIT_MS = 30_000;
/** The thread costs memory while nobody reads. */
const IDLE_LIMIT_MS = 60_000;
const MAX_HEAP_MB = 384;
const MAX_STACK_MB = 8;

const BROKEN = 'the page cannot be read';

const WORKER_URL = new URL(`./reading-worker${extname(import.meta.url)}`, import.meta.url);

type PageReaderDeps = {
  readonly clock: Clock;
  /** Longest time for one page; 10 s where it is left out. */
  readonly limitMs?: number;
  /** Shared with other readers; its own where it is left out. */
  readonly memory?: ReaderMemory;
};

export class PageReader implements AsyncDisposable {
  readonly #clock: Clock;
  readonly #limitMs: number;
  readonly #memory: ReaderMemory;
  #worker: Worker | undefined;
  #idle: Disposable | undefined;
  /** Pages are read one after the other. */
  #last: Promise<unknown> = Promise.resolve();

  constructor({ clock, limitMs = READ_LIMIT_MS, memory = createReaderMemory() }: PageReaderDeps) {
    this.#clock = clock;
    this.#limitMs = limitMs;
    this.#memory = memory;
  }

  /** @throws ToolError where the page cannot be read; the signal's reason */
  async read(page: PageSource, signal: AbortSignal): Promise<ReadPage> {
    const turn = this.#last.then(() => {
      signal.throwIfAborted();
      return this.#readNow(page, signal);
    });
    this.#last = turn.catch(() => undefined);
    return orAborted(turn, signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stop();
  }

  async #readNow(page: PageSource, signal: AbortSignal): Promise<ReadPage> {
    this.#idle?.[Symbol.dispose]();
    const permit = await this.#memory.acquire(signal);
    try {
      if (this.#worker === undefined) {
        this.#worker = startWorker(this.#memory.bytes);
        const started = await this.#answer(this.#worker, START_LIMIT_MS, signal);
        if (started.kind !== 'ready') throw new ToolError('execution', BROKEN);
      }
      this.#worker.postMessage({ kind: 'read', page } satisfies ToReader);
      const answer = await this.#answer(this.#worker, this.#limitMs, signal);
      if (answer.kind === 'read') return answer.page;
      throw new ToolError('execution', answer.kind === 'failed' ? answer.problem : BROKEN);
    } catch (error) {
      // Whatever it is busy with, nobody waits for it any more.
      await this.#stop();
      throw error;
    } finally {
      if (this.#memory.isTight) await this.#stop();
      else this.#idle = this.#clock.timer(IDLE_LIMIT_MS, () => void this.#stop());
      permit[Symbol.dispose]();
    }
  }

  /** What the thread says next. */
  async #answer(worker: Worker, limitMs: number, signal: AbortSignal): Promise<FromReader> {
    const next = Promise.withResolvers<FromReader>();
    const fail = (problem: string) => next.resolve({ kind: 'failed', problem });
    const onBroken = () => fail('the page takes too much memory to read');
    worker.once('message', next.resolve).once('error', onBroken).once('exit', onBroken);
    const deadline = this.#clock.timer(limitMs, () => fail('the page takes too long to read'));
    try {
      return await orAborted(next.promise, signal);
    } finally {
      deadline[Symbol.dispose]();
      worker.off('message', next.resolve).off('error', onBroken).off('exit', onBroken);
    }
  }

  async #stop(): Promise<void> {
    const worker = this.#worker;
    this.#worker = undefined;
    this.#idle?.[Symbol.dispose]();
    await worker?.terminate();
  }
}

function startWorker(maxBytes: number): Worker {
  const worker = new Worker(WORKER_URL, {
    env: {},
    resourceLimits: {
      maxOldGenerationSizeMb: Math.min(MAX_HEAP_MB, Math.floor(maxBytes / 1_048_576)),
      stackSizeMb: MAX_STACK_MB,
    },
    stdout: true,
    stderr: true,
  });
  // A thread that is being stopped may still fail.
  worker.on('error', () => undefined);
  worker.unref();
  return worker;
}
