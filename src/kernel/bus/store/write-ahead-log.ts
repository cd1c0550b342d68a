// The log that SQLite's commits are written to: synced in the thread pool and copied into the file by
// a thread of its own, so that the event loop never waits for the disk. Unlike the file itself the log
// may be opened here: SQLite holds no lock on it that closing would drop.

import { closeSync, fdatasync, fstatSync, openSync } from 'node:fs';
import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';

/** Some 150 turns: copying it takes a thread 50 ms of processor time, its start most of that. */
const LONG_BYTES = 16 * 1_048_576;
const MAX_HEAP_MB = 16;

const WORKER_URL = new URL(`./checkpoint-worker${extname(import.meta.url)}`, import.meta.url);

export class WriteAheadLog {
  readonly #path: string;
  readonly #fd: number;
  #longAt = LONG_BYTES;

  /** @param path of the file that the log belongs to */
  constructor(path: string) {
    this.#path = path;
    this.#fd = openSync(`${path}-wal`, 'r+');
  }

  /** Resolves when everything that was written before the call is on the disk. */
  sync(): Promise<void> {
    return new Promise((resolve, reject) => {
      fdatasync(this.#fd, (error) => (error === null ? resolve() : reject(error)));
    });
  }

  /** Whether it is to be renewed; a try that failed is repeated after as much again. */
  isLong(): boolean {
    const { size } = fstatSync(this.#fd);
    if (size < this.#longAt) return false;
    this.#longAt = size + LONG_BYTES;
    return true;
  }

  /** `pause` resolves when no commit is under way; none may begin before this has settled. */
  async renew(pause: () => Promise<void>): Promise<void> {
    const worker = new Worker(WORKER_URL, {
      env: {},
      workerData: this.#path,
      resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MB },
    });
    const ended = new Promise<void>((resolve, reject) => {
      worker.once('error', reject);
      worker.once('exit', resolve);
    });
    const copied = new Promise<void>((resolve) => worker.once('message', () => resolve()));
    try {
      await Promise.race([copied, ended]);
      await pause();
      worker.postMessage('renew');
      await ended;
      this.#longAt = LONG_BYTES;
    } finally {
      await worker.terminate();
    }
  }

  close(): void {
    closeSync(this.#fd);
  }
}
