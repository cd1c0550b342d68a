// Reads a document in a thread of its own, which is stopped when it takes too long or too much
// memory: what a stranger sends can cost no more than that.

import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { ReaderMemory } from '../../../lib/async.ts';
import type { Clock } from '../../../lib/time/clock.ts';
import type { DocumentReading } from '../media.ts';
import { DAMAGED, TOO_LARGE, TOO_SLOW, tooLargeHere } from './sections.ts';

const DEADLINE_MS = 20_000;
const MIB = 1_048_576;
const MAX_STACK_MB = 4;
/** Heap and what is kept outside of it, such as what a PDF unpacks. */
const MAX_MEMORY_BYTES = 384_000_000;
/** Of the memory: the rest is for what is kept outside. */
const HEAP_SHARE = 2 / 3;
const LOOK_MS = 50;

const WORKER_URL = new URL(`./extract-worker${extname(import.meta.url)}`, import.meta.url);

type ExtractOptions = {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly memory: Pick<ReaderMemory, 'bytes' | 'isUsedUp'>;
};

/** @throws the signal's reason */
export async function extract(
  content: Uint8Array,
  { clock, signal, memory }: ExtractOptions,
): Promise<DocumentReading> {
  signal.throwIfAborted();
  const maxBytes = Math.min(MAX_MEMORY_BYTES, memory.bytes);
  const tooLarge = memory.bytes < MAX_MEMORY_BYTES ? tooLargeHere(memory.bytes) : TOO_LARGE;
  // The content is copied into the thread, and every reader unpacks or decodes it there.
  if (2 * content.length > maxBytes) return { kind: 'unreadable', reason: tooLarge };
  const worker = new Worker(WORKER_URL, {
    env: {},
    resourceLimits: {
      maxOldGenerationSizeMb: Math.floor((maxBytes * HEAP_SHARE) / MIB),
      stackSizeMb: MAX_STACK_MB,
    },
    stdout: true,
    stderr: true,
  });
  worker.stdout.resume();
  worker.stderr.resume();
  const { promise, resolve, reject } = Promise.withResolvers<DocumentReading>();
  const unreadable = (reason: string) => resolve({ kind: 'unreadable', reason });
  const stop = () => reject(signal.reason);
  signal.addEventListener('abort', stop, { once: true });
  worker.once('message', resolve);
  worker.on('error', (error) => unreadable(isOutOfMemory(error) ? tooLarge : DAMAGED));
  worker.once('exit', () => unreadable(DAMAGED));
  const deadline = clock.timer(DEADLINE_MS, () => unreadable(TOO_SLOW));
  const looking = setInterval(() => {
    if (memory.isUsedUp()) unreadable(tooLarge);
    void memoryOf(worker).then((bytes) => {
      if (bytes > maxBytes) unreadable(tooLarge);
    });
  }, LOOK_MS);
  try {
    // A copy, because a buffer may share its memory with others.
    const own = new Uint8Array(content);
    worker.postMessage(own, [own.buffer]);
    return await promise;
  } finally {
    clearInterval(looking);
    deadline[Symbol.dispose]();
    signal.removeEventListener('abort', stop);
    await worker.terminate();
  }
}

/** A thread that is gone takes nothing. */
async function memoryOf(worker: Worker): Promise<number> {
  try {
    const { total_physical_size, external_memory } = await worker.getHeapStatistics();
    return total_physical_size + external_memory;
  } catch {
    return 0;
  }
}

const isOutOfMemory = (error: unknown) =>
  error instanceof Error && 'code' in error && error.code === 'ERR_WORKER_OUT_OF_MEMORY';
