// Units of work over the channel's rows: they run strictly one after the other, and those that wait together
// share one transaction. The caller decides what a unit means and which rows belong to it.

import { hash } from 'node:crypto';
import type { z } from 'zod';
import type { KeyValueStore } from '../../kernel/bus/store/store.ts';
import { BACKOFF, ChannelError } from '../../kernel/message/errors.ts';

/** Bounds how long the first of a batch waits for the last. */
const MAX_UNITS_PER_COMMIT = 64;

const NOT_SAVED = 'whatsapp_not_saved';

/** The state could not be written or read; nothing of the unit happened. */
export function isNotSaved(error: unknown): boolean {
  return error instanceof ChannelError && error.code === NOT_SAVED;
}

export interface Unit {
  /** The row as this unit and those before it left it. */
  get(key: string): Promise<string | undefined>;
  /** An undefined value deletes. */
  put(key: string, value: string | undefined): void;
}

export type UnitRows = Map<string, string | undefined>;

type Job = {
  readonly task: (unit: Unit) => Promise<unknown>;
  readonly isAlone: boolean;
  resolve(value: unknown): void;
  reject(error: unknown): void;
};

type Done = { readonly job: Job; readonly value: unknown };

export type UnitQueueDeps = {
  readonly state: KeyValueStore;
  /** Writes all rows in one transaction or none. */
  readonly commit: (rows: UnitRows) => Promise<void>;
};

export class UnitQueue {
  readonly #deps: UnitQueueDeps;
  readonly #waiting: Job[] = [];
  #isRunning = false;

  constructor(deps: UnitQueueDeps) {
    this.#deps = deps;
  }

  /**
   * Resolves once everything the task wrote is on disk; nothing of a task that throws is written.
   * @throws what the task threw; ChannelError `whatsapp_not_saved` when the store failed.
   */
  run<T>(task: (unit: Unit) => Promise<T>): Promise<T> {
    return this.#enqueue(task, false);
  }

  /** The same with no other unit in its transaction, for what replaces the identity. */
  runAlone<T>(task: (unit: Unit) => Promise<T>): Promise<T> {
    return this.#enqueue(task, true);
  }

  #enqueue<T>(task: (unit: Unit) => Promise<T>, isAlone: boolean): Promise<T> {
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
    const done: Done[] = [];
    for (let job = this.#next(0); job !== undefined; job = this.#next(done.length)) {
      const result = await this.#runJob(job, rows);
      if (result !== undefined) done.push(result);
      if (job.isAlone) break;
    }
    await this.#commit(rows, done);
  }

  /** undefined where it failed: then it left nothing in `rows`. */
  async #runJob(job: Job, rows: UnitRows): Promise<Done | undefined> {
    const writes: UnitRows = new Map();
    const unread: { error?: unknown } = {};
    try {
      const value = await job.task(this.#openUnit(rows, writes, unread));
      if ('error' in unread) throw unread.error;
      for (const [key, row] of writes) rows.set(key, row);
      return { job, value };
    } catch (error) {
      // libsignal takes a session that could not be read for one that is not there.
      job.reject('error' in unread ? notSaved(unread.error) : error);
      return undefined;
    }
  }

  /** The next that may join the batch. */
  #next(joined: number): Job | undefined {
    if (joined >= MAX_UNITS_PER_COMMIT) return undefined;
    if (joined > 0 && this.#waiting[0]?.isAlone === true) return undefined;
    return this.#waiting.shift();
  }

  #openUnit(batch: UnitRows, writes: UnitRows, unread: { error?: unknown }): Unit {
    return {
      get: async (key) => {
        for (const rows of [writes, batch]) if (rows.has(key)) return rows.get(key);
        try {
          return await this.#deps.state.get(key);
        } catch (error) {
          unread.error = error;
          throw error;
        }
      },
      put: (key, value) => void writes.set(key, value),
    };
  }

  async #commit(rows: UnitRows, done: readonly Done[]): Promise<void> {
    try {
      await this.#deps.commit(rows);
    } catch (cause) {
      for (const { job } of done) job.reject(notSaved(cause));
      return;
    }
    for (const { job, value } of done) job.resolve(value);
  }
}

function notSaved(cause: unknown): ChannelError {
  const problem = 'The WhatsApp keys could not be saved.';
  return new ChannelError(NOT_SAVED, problem, { remedy: BACKOFF, cause });
}

// Rows of JSON as they come back from the state: one that cannot be read stops nobody else's messages.

/** The row's value; undefined where it is damaged, which the caller reports. */
export function storedJson<T>(schema: z.ZodType<T>, text: string): T | undefined {
  try {
    return schema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

// Rows whose damage shows: a checksum stands before the text. What a damaged row means is decided
// by whoever reads it; a row that is absent never comes here.

/** `name` is the row's key: a value that stands under another key is damage too. */
export function seal(name: string, text: string): string {
  return `${checksum(name, text)} ${text}`;
}

/** The text, or undefined where the row is damaged. */
export function unseal(name: string, row: string): string | undefined {
  const end = row.indexOf(' ');
  const text = row.slice(end + 1);
  return end > 0 && row.slice(0, end) === checksum(name, text) ? text : undefined;
}

function checksum(name: string, text: string): string {
  return hash('sha256', `${name}\n${text}`, 'base64url');
}
