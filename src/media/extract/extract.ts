// Reads a document in a thread of its own, which is stopped when it takes too long or too much
// memory: what a stranger sends can cost no more than that.

import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { Clock } from '../../lib/clock.ts';
import type { DocumentReading } from '../reader.ts';
import { DAMAGED, TOO_LARGE, TOO_SLOW } from './problem.ts';

const DEADLINE_MS = 20_000;
const MAX_HEAP_MB = 256;
const MAX_STACK_MB = 4;
/** The limit above leaves out what is kept outside of the heap, such as what a PDF unpacks. */
const MAX_MEMORY_BYTES = 384_000_000;
const LOOK_MS = 50;

const WORKER_URL = new URL(`./extract-worker${extname(import.meta.url)}`, import.meta.url);

/** @throws the signal's reason */
export async function extract(
  content: Uint8Array,
  { clock, signal }: { readonly clock: Clock; readonly signal: AbortSignal },
): Promise<DocumentReading> {
  signal.throwIfAborted();
  const worker = new Worker(WORKER_URL, {
    env: {},
    resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MB, stackSizeMb: MAX_STACK_MB },
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
  worker.on('error', (error) => unreadable(isOutOfMemory(error) ? TOO_LARGE : DAMAGED));
  worker.once('exit', () => unreadable(DAMAGED));
  const deadline = clock.timer(DEADLINE_MS, () => unreadable(TOO_SLOW));
  const looking = setInterval(() => {
    void memoryOf(worker).then((bytes) => {
      if (bytes > MAX_MEMORY_BYTES) unreadable(TOO_LARGE);
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
