// A counting semaphore, first come first served. Its size may change while permits are out.

import { readFileSync } from 'node:fs';
import { totalmem } from 'node:os';

export interface Permits {
  /** Resolves with a permit; disposing gives it back. Rejects when the signal aborts first. */
  acquire(signal: AbortSignal): Promise<Disposable>;
  resize(size: number): void;
}

type Waiter = { readonly grant: () => void };

export function createPermits(initialSize: number): Permits {
  let size = initialSize;
  let used = 0;
  const waiters = new Set<Waiter>();

  function grantNext() {
    for (const waiter of waiters) {
      if (used >= size) return;
      waiters.delete(waiter);
      waiter.grant();
    }
  }

  function take(): Disposable {
    used += 1;
    let held = true;
    return {
      [Symbol.dispose]() {
        if (!held) return;
        held = false;
        used -= 1;
        grantNext();
      },
    };
  }

  return {
    async acquire(signal) {
      signal.throwIfAborted();
      if (used < size && waiters.size === 0) return take();
      return new Promise((resolve, reject) => {
        const onAbort = () => {
          waiters.delete(waiter);
          reject(signal.reason);
        };
        const waiter: Waiter = {
          grant: () => {
            signal.removeEventListener('abort', onAbort);
            resolve(take());
          },
        };
        waiters.add(waiter);
        signal.addEventListener('abort', onAbort, { once: true });
      });
    },
    resize(next) {
      size = next;
      grantNext();
    },
  };
}

// How much memory the readers of documents, pictures and web pages may take, and how many of them run
// side by side, by what this process may take at all: a container's limit, or the machine's memory.

export interface ReaderMemory {
  /** Waits for a place for one reader; rejects when the signal aborts first. */
  acquire(signal: AbortSignal): Promise<Disposable>;
  /** What one reader may take. */
  readonly bytes: number;
  /** One reader at a time, and nothing that it took stays. */
  readonly isTight: boolean;
  /** The process as a whole is about to reach its limit. */
  isUsedUp(): boolean;
}

const MIB = 1_048_576;
/** What the gateway takes beside its readers. */
const GATEWAY_BYTES = 192 * MIB;
const READER_BYTES = 384 * MIB;
/** Less does not hold the program that reads. */
const MIN_READER_BYTES = 64 * MIB;
const MAX_READERS = 3;
const TIGHT_BELOW_BYTES = 1024 * MIB;
/** Of the limit. */
const USED_UP = 0.9;

export function createReaderMemory(limitBytes = processLimit()): ReaderMemory {
  const isTight = limitBytes < TIGHT_BELOW_BYTES;
  const room = limitBytes - GATEWAY_BYTES;
  const atOnce = isTight ? 1 : Math.min(MAX_READERS, Math.floor(room / READER_BYTES));
  const permits = createPermits(atOnce);
  return {
    acquire: (signal) => permits.acquire(signal),
    bytes: Math.max(MIN_READER_BYTES, Math.floor(room / atOnce)),
    isTight,
    isUsedUp: () => heldBytes() > limitBytes * USED_UP,
  };
}

/** Zero, or more than there is, stands for no limit. */
function processLimit(): number {
  const limit = process.constrainedMemory();
  return limit > 0 ? Math.min(limit, totalmem()) : totalmem();
}

/** Without pages of files, which the kernel takes back by itself. */
function heldBytes(): number {
  try {
    const held = /^RssAnon:\s+(\d+) kB$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1];
    return held === undefined ? process.memoryUsage.rss() : Number(held) * 1024;
  } catch {
    return process.memoryUsage.rss();
  }
}
