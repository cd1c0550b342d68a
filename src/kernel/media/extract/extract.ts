// Reads a document in a thread of its own, which is stopped when it takes too long or too much
// memory: this bounds the cost of untrusted content.

import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { ReaderMemory } from '../../../lib/async.ts';
import { systemCode } from '../../../lib/files/files.ts';
import { headOf } from '../../../lib/text/cut.ts';
import { t } from '../../../lib/texts.ts';
import { type Clock, onAbort } from '../../../lib/time/clock.ts';
import type { DocumentReading, DocumentSection } from '../media.ts';

const DEADLINE_MS = 20_000;
const MIB = 1_048_576;
const MAX_STACK_MB = 4;
/** Heap and external memory, such as unpacked parts of a PDF. */
const MAX_MEMORY_BYTES = 384_000_000;
/** The heap's share of the memory: the rest is external. */
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
  using _stopping = onAbort(signal, () => reject(signal.reason));
  worker.once('message', resolve);
  worker.on('error', (error) => unreadable(isOutOfMemory(error) ? tooLarge : DAMAGED));
  worker.once('exit', () => unreadable(DAMAGED));
  using _deadline = clock.timer(DEADLINE_MS, () => unreadable(TOO_SLOW));
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
    await worker.terminate();
  }
}

/** A thread that has ended uses nothing. */
async function memoryOf(worker: Worker): Promise<number> {
  try {
    const { total_physical_size, external_memory } = await worker.getHeapStatistics();
    return total_physical_size + external_memory;
  } catch {
    return 0;
  }
}

const isOutOfMemory = (error: unknown) => systemCode(error) === 'ERR_WORKER_OUT_OF_MEMORY';

// Limits and errors of document extraction (cases E19 to E21 and X10), and the sections collected
// up to the limit.

/** `message` is for people, without a full stop. */
export class DocumentProblem extends Error {
  override readonly name = 'DocumentProblem';
}

export const MAX_ARCHIVE_ENTRIES = 1000;
/** Of one part and of all parts together, unpacked. */
export const MAX_UNPACKED_BYTES = 100_000_000;
export const MAX_RATIO = 100;
/** Small parts may have a better compression ratio. */
export const FREE_UNPACKED_BYTES = 1_000_000;
/** No more of a text is ever read. */
export const MAX_TEXT_CHARS = 2_000_000;
const MAX_SECTIONS = 2000;

export const DAMAGED = t`it is damaged, or is not what its name says`;
export const LOCKED = t`it is protected by a password`;
export const TOO_LARGE = t`reading it needs more memory than allowed`;
/** For a process with less memory than a document may use. */
export const tooLargeHere = (bytes: number) =>
  t`reading it takes more than the ${Math.floor(bytes / 1_000_000)} MB of memory that one file may take here; send a smaller file, or give the gateway more memory`;
const TOO_SLOW = t`reading it takes too long`;
export const ARCHIVE = t`it is an archive, and archives are not unpacked`;
export const UNKNOWN = t`this kind of file cannot be read as text`;

// Collects the sections of a document up to the text limit.

export class Sections {
  readonly #sections: DocumentSection[] = [];
  #room = MAX_TEXT_CHARS;
  #isCut = false;

  /** Whether more would be dropped. */
  get isFull(): boolean {
    return this.#isCut;
  }

  get count(): number {
    return this.#sections.length;
  }

  /** How much of a text is kept at most. */
  get room(): number {
    return this.#room;
  }

  add(title: string, text: string): void {
    if (this.#room === 0 || this.#sections.length >= MAX_SECTIONS) this.#isCut = true;
    if (this.#isCut) return;
    const tidy = tidied(text);
    const kept = headOf(tidy, this.#room);
    this.#isCut = kept.length < tidy.length;
    this.#room -= kept.length;
    this.#sections.push({ title, text: kept });
  }

  /** @param empty the problem reported for a document without text */
  reading(empty: string): DocumentReading {
    if (this.#sections.every(({ text }) => text === '')) throw new DocumentProblem(empty);
    return { kind: 'text', sections: this.#sections, isCut: this.#isCut };
  }
}

function tidied(text: string): string {
  return text
    .split(/\r\n?|\n/)
    .map((line) => line.trimEnd())
    .join('\n')
    .replace(/\n{3,}/g, '\n\n')
    .replace(/^\n+|\n+$/g, '');
}
