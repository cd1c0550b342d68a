// Units of work over the channel's rows, which run strictly one after the other while those that
// wait together share one transaction; and rows with checksums. The caller decides what a unit or a
// damaged row means.

import { hash } from 'node:crypto';
import type { KeyValueChange, KeyValueStore } from '../../kernel/bus/store/store.ts';
import { BACKOFF, ChannelError } from '../../kernel/message/errors.ts';
import { t } from '../../lib/texts.ts';

/** Bounds how long the first of a batch waits for the last. */
const MAX_UNITS_PER_COMMIT = 64;

const NOT_SAVED = 'whatsapp_not_saved';

/** The state could not be written or read; nothing of the unit took effect. */
export function isNotSaved(error: unknown): boolean {
  return error instanceof ChannelError && error.code === NOT_SAVED;
}

export interface Unit {
  /** The row as this unit and those before it left it. */
  get(key: string): Promise<string | undefined>;
  putAll(rows: readonly KeyValueChange[]): void;
}

export type UnitRows = Map<string, string | undefined>;

type Job = {
  readonly task: (unit: Unit) => Promise<unknown>;
  readonly isAlone: boolean;
  resolve(value: unknown): void;
  reject(error: unknown): void;
};

export class UnitQueue {
  readonly #state: KeyValueStore;
  readonly #commit: (rows: UnitRows) => Promise<void>;
  readonly #waiting: Job[] = [];
  #isRunning = false;

  /** `commit` writes all rows in one transaction or none. */
  constructor(state: KeyValueStore, commit: (rows: UnitRows) => Promise<void>) {
    this.#state = state;
    this.#commit = commit;
  }

  /**
   * Resolves once everything the task wrote is on disk; nothing of a task that throws is written.
   * `isAlone`: no other unit shares its transaction, for tasks that replace the identity.
   * @throws what the task threw; ChannelError `whatsapp_not_saved` when the store failed.
   */
  run<T>(task: (unit: Unit) => Promise<T>, isAlone = false): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const settle = (value: unknown) => resolve(value as T);
      this.#waiting.push({ task, isAlone, resolve: settle, reject });
      if (!this.#isRunning) void this.#drain();
    });
  }

  async #drain(): Promise<void> {
    this.#isRunning = true;
    while (this.#waiting.length > 0) await this.#runBatch();
    this.#isRunning = false;
  }

  async #runBatch(): Promise<void> {
    const rows: UnitRows = new Map();
    const done: { readonly job: Job; readonly value: unknown }[] = [];
    for (let job = this.#next(0); job !== undefined; job = this.#next(done.length)) {
      try {
        done.push({ job, value: await this.#runJob(job, rows) });
      } catch (error) {
        job.reject(error);
      }
      if (job.isAlone) break;
    }
    try {
      await this.#commit(rows);
    } catch (cause) {
      for (const { job } of done) job.reject(notSaved(cause));
      return;
    }
    for (const { job, value } of done) job.resolve(value);
  }

  /** The next unit that may join the batch. */
  #next(joined: number): Job | undefined {
    if (joined >= MAX_UNITS_PER_COMMIT) return undefined;
    if (joined > 0 && this.#waiting[0]?.isAlone === true) return undefined;
    return this.#waiting.shift();
  }

  /** Adds what the task wrote to `batch`; nothing if it fails. */
  async #runJob({ task }: Job, batch: UnitRows): Promise<unknown> {
    const writes: UnitRows = new Map();
    const unread: { error?: unknown } = {};
    const unit: Unit = {
      get: async (key) => {
        for (const rows of [writes, batch]) if (rows.has(key)) return rows.get(key);
        try {
          return await this.#state.get(key);
        } catch (error) {
          unread.error = error;
          throw error;
        }
      },
      putAll(rows) {
        for (const { key, value } of rows) writes.set(key, value);
      },
    };
    // libsignal treats an unreadable session as a missing one.
    const failed = (error: unknown) => {
      throw 'error' in unread ? notSaved(unread.error) : error;
    };
    const value = await task(unit).catch(failed);
    if ('error' in unread) failed(unread.error);
    for (const [key, row] of writes) batch.set(key, row);
    return value;
  }
}

function notSaved(cause: unknown): ChannelError {
  const problem = t`The WhatsApp keys could not be saved.`;
  return new ChannelError(NOT_SAVED, problem, { remedy: BACKOFF, cause });
}

/** The text with its checksum; under another key than `name` the row counts as damaged. */
export function seal(name: string, text: string): string {
  return `${checksum(name, text)} ${text}`;
}

/** The text, or undefined if the row is damaged. */
export function unseal(name: string, row: string): string | undefined {
  const end = row.indexOf(' ');
  const text = row.slice(end + 1);
  return end > 0 && row.slice(0, end) === checksum(name, text) ? text : undefined;
}

function checksum(name: string, text: string): string {
  return hash('sha256', `${name}\n${text}`, 'base64url');
}
