// Runs operations on the file. All operations issued in one event-loop turn run in one transaction
// with one sync; promises resolve when it is on the disk, those of claims when it is committed. In
// the background mode the sync runs outside the event loop, and what is issued meanwhile is the next
// transaction: nothing is written on top of rows that are not on the disk. An operation that throws
// undoes only its own writes; when the commit fails, all of its batch fail.

import { closeSync, fdatasync, fstatSync, openSync, writeFileSync } from 'node:fs';
import { extname } from 'node:path';
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { Worker } from 'node:worker_threads';
import type { Logger } from '../../../lib/logger.ts';
import type { Clock } from '../../../lib/time/clock.ts';
import {
  damageMark,
  isDatabaseError,
  LONG_LOG_BYTES,
  lostStore,
  type Renewal,
  renewLog,
  storeErrorOf,
} from './database.ts';
import type { Sql, SqlValue } from './key-value.ts';
import type { Driver } from './operations.ts';
import { type CopyResult, StoreError } from './store.ts';

type Operation<T> = (sql: Sql) => T;

type Job = {
  readonly operation: Operation<unknown>;
  readonly writes: boolean;
  resolve(value: unknown): void;
  reject(error: unknown): void;
};

type Outcome = { readonly job: Job; readonly value?: unknown; readonly error?: unknown };

/** For a database on which `leaveSyncsToCaller` was called. */
export type Background = {
  readonly wal: WriteAheadLog;
  readonly clock: Clock;
  readonly log: Logger;
};

/** One at a time. `scheduled`: a batch waits for the end of the event-loop turn. */
type Work = 'none' | 'scheduled' | 'sync' | 'renewal' | 'closed';

export class GroupCommit implements Driver {
  readonly #database: DatabaseSync;
  readonly #path: string;
  readonly #background: Background | undefined;
  readonly #statements = new Map<string, StatementSync>();
  readonly #sql: Sql = {
    all: <R>(sql: string, ...params: SqlValue[]) => this.#prepare(sql).all(...params) as R[],
    first: <R>(sql: string, ...params: SqlValue[]) =>
      this.#prepare(sql).get(...params) as R | undefined,
    change: (sql, ...params) => Number(this.#prepare(sql).run(...params).changes),
    run: (sql, ...params) => void this.#prepare(sql).run(...params),
  };
  readonly #lost = Promise.withResolvers<never>();
  #queue: Job[] = [];
  #last: { readonly job: Job; begins(): void }[] = [];
  #work: Work = 'none';
  /** The sync under way, or the last one. */
  #synced: Promise<void> = Promise.resolve();
  /** Since when the disk works on a sync or a renewal. */
  #waitsSince: number | undefined;
  #changes = 0;
  #renewals: Promise<void> = Promise.resolve();
  #beginRenewal: (() => void) | undefined;
  #beginClosing: (() => void) | undefined;
  #closing: Promise<void> | undefined;
  #failure: StoreError | undefined;
  /** Ends a copy under way. */
  readonly #stopping = new AbortController();

  /** @param background absent: COMMIT itself waits for the disk */
  constructor(database: DatabaseSync, path: string, background?: Background) {
    this.#database = database;
    this.#path = path;
    this.#background = background;
    this.#lost.promise.catch(() => undefined);
  }

  /** Rejects when a sync failed or damage was found; nothing is read or written after that. */
  get lost(): Promise<never> {
    return this.#lost.promise;
  }

  /** How long the disk has been delaying a commit. */
  waitMs(): number {
    if (this.#background === undefined || this.#waitsSince === undefined) return 0;
    return this.#background.clock.monotonic() - this.#waitsSince;
  }

  write<T>(operation: Operation<T>, begins?: () => void): Promise<T> {
    return this.#enqueue(operation, true, begins);
  }

  /** Resolves at once, unless it must see writes that wait or are not on the disk yet. */
  read<T>(operation: Operation<T>): Promise<T> {
    const isFree = this.#work === 'none' || (this.#work === 'renewal' && this.#queue.length === 0);
    return isFree && this.#refusal() === undefined
      ? this.#readNow(operation)
      : this.#enqueue(operation, false);
  }

  glance<T>(operation: Operation<T>): Promise<T> {
    return this.#work === 'closed' ? this.read(operation) : this.#readNow(operation);
  }

  async stored(): Promise<void> {
    try {
      await this.#synced;
    } catch (error) {
      throw this.#failure ?? error;
    }
  }

  /** Copies the write-ahead log into the file and begins a new one. */
  renew(how: Renewal = 'TRUNCATE'): Promise<void> {
    const renewal = this.#renewals.then(() => this.#renew(how));
    this.#renewals = renewal.catch(() => undefined);
    return renewal;
  }

  /** Copies what is committed into another file; the log is not emptied meanwhile. */
  copyTo(to: string, signal: AbortSignal): Promise<CopyResult> {
    const until = AbortSignal.any([signal, this.#stopping.signal]);
    const copying = this.#renewals.then(async () => {
      const { copyDatabase } = await import('./snapshot.ts');
      return copyDatabase(this.#path, to, until);
    });
    this.#renewals = copying.then(
      () => undefined,
      () => undefined,
    );
    return copying;
  }

  /** Commits what was issued, then closes the file. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#stopping.abort();
    await this.#renewals;
    await new Promise<void>((resolve) => {
      this.#beginClosing = resolve;
      this.#next();
    });
    this.#statements.clear();
    this.#background?.wal.close();
    // Closing would copy the log into the file, although the disk may have lost a part of it.
    if (this.#failure === undefined) this.#database.close();
  }

  async #renew(how: Renewal): Promise<void> {
    if (this.#background === undefined) {
      renewLog(this.#database, how);
      return;
    }
    try {
      await this.#background.wal.renew(how, () => this.#pause());
    } finally {
      if (this.#work === 'renewal') this.#finish();
    }
  }

  /** Resolves when no commit is running; none starts before the renewal ends. */
  async #pause(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#beginRenewal = resolve;
      this.#next();
    });
    if (this.#failure !== undefined) throw this.#failure;
  }

  #refusal(): StoreError | undefined {
    if (this.#closing === undefined) return this.#failure;
    return new StoreError('store_closed', `${this.#path} is closed.`);
  }

  #enqueue<T>(operation: Operation<T>, writes: boolean, begins?: () => void): Promise<T> {
    const refusal = this.#refusal();
    if (refusal !== undefined) return Promise.reject(refusal);
    return new Promise<T>((resolve, reject) => {
      const job: Job = { operation, writes, resolve: (value) => resolve(value as T), reject };
      if (begins === undefined) this.#queue.push(job);
      else this.#last.push({ job, begins });
      this.#next();
    });
  }

  #readNow<T>(operation: Operation<T>): Promise<T> {
    try {
      return Promise.resolve(operation(this.#sql));
    } catch (error) {
      return Promise.reject(this.#named(error));
    }
  }

  /** A renewal precedes what is issued; closing follows it. */
  #next(): void {
    if (this.#work !== 'none') return;
    this.#readFirst();
    if (this.#beginRenewal !== undefined) {
      this.#begin('renewal');
      this.#beginRenewal();
      this.#beginRenewal = undefined;
    } else if (this.#queue.length + this.#last.length > 0) {
      this.#work = 'scheduled';
      setImmediate(() => this.#flush());
    } else if (this.#beginClosing !== undefined) {
      this.#work = 'closed';
      this.#beginClosing();
    }
  }

  /** Reads that were issued before any write see nothing of a transaction. */
  #readFirst(): void {
    if (this.#failure !== undefined) return;
    const firstWrite = this.#queue.findIndex(({ writes }) => writes);
    const reads = this.#queue.splice(0, firstWrite < 0 ? this.#queue.length : firstWrite);
    settle(reads.map((job) => this.#read(job)));
  }

  #begin(work: 'sync' | 'renewal'): void {
    this.#work = work;
    this.#waitsSince = this.#background?.clock.monotonic();
  }

  #finish(): void {
    this.#work = 'none';
    this.#waitsSince = undefined;
    this.#next();
  }

  #flush(): void {
    for (const { begins } of this.#last) begins();
    const claims = this.#last.map(({ job }) => job);
    const jobs = [...this.#queue, ...claims];
    this.#queue = [];
    this.#last = [];
    let outcomes: readonly Outcome[];
    try {
      if (this.#failure !== undefined) throw this.#failure;
      outcomes = this.#commit(jobs);
    } catch (error) {
      if (this.#database.isTransaction) this.#execute('ROLLBACK');
      for (const job of jobs) job.reject(this.#named(error));
      this.#finish();
      return;
    }
    if (this.#background === undefined || !this.#hasWritten()) {
      settle(outcomes);
      this.#finish();
      return;
    }
    // What was read before the first write was on the disk already.
    const unsynced = outcomes.findIndex(({ job }) => job.writes);
    const claimed = outcomes.length - claims.length;
    this.#synced = this.#background.wal.sync();
    void this.#sync(outcomes.slice(unsynced, claimed), this.#background);
    settle([...outcomes.slice(0, unsynced), ...outcomes.slice(claimed)]);
  }

  async #sync(outcomes: readonly Outcome[], { wal, log }: Background): Promise<void> {
    this.#begin('sync');
    try {
      await this.#synced;
    } catch (error) {
      // The kernel drops what it could not write, so another sync would succeed without it.
      this.#failure = lostStore(this.#path, error);
      log.error('store lost', { error: this.#failure });
      for (const { job } of outcomes) job.reject(this.#failure);
      this.#finish();
      this.#lost.reject(this.#failure);
      return;
    }
    settle(outcomes);
    this.#finish();
    if (wal.isLong(this.#logBytes(wal))) {
      const onFailure = (error: unknown) =>
        log.warn('write-ahead log not checkpointed yet', { error });
      this.renew(TELLS_LENGTH ? 'RESTART' : 'TRUNCATE').catch(onFailure);
    }
  }

  #logBytes(wal: WriteAheadLog): number {
    if (!TELLS_LENGTH) return wal.fileBytes();
    return Number(this.#prepare('PRAGMA wal_checkpoint(NOOP)').get()?.['log']) * PAGE_BYTES;
  }

  /** An operation that changed nothing costs no sync. */
  #hasWritten(): boolean {
    const before = this.#changes;
    this.#changes = Number(this.#prepare('SELECT total_changes() AS n').get()?.['n']);
    return this.#changes !== before;
  }

  /** Operations rarely fail: only a batch in which one does is repeated with savepoints. */
  #commit(jobs: readonly Job[]): readonly Outcome[] {
    try {
      return this.#transaction(jobs, (job) => ({ job, value: job.operation(this.#sql) }));
    } catch (error) {
      // A single operation is undone with the whole transaction.
      if (jobs.length === 1 || !this.#database.isTransaction) throw error;
      this.#execute('ROLLBACK');
    }
    return this.#transaction(jobs, (job) => this.#attempt(job));
  }

  #transaction(jobs: readonly Job[], run: (job: Job) => Outcome): readonly Outcome[] {
    // A write lock taken at the start cannot fail half-way through the batch.
    this.#execute(jobs.some((job) => job.writes) ? 'BEGIN IMMEDIATE' : 'BEGIN');
    const outcomes = jobs.map(run);
    this.#execute('COMMIT');
    return outcomes;
  }

  #attempt(job: Job): Outcome {
    if (!job.writes) return this.#read(job);
    this.#execute('SAVEPOINT operation');
    try {
      const value = job.operation(this.#sql);
      this.#execute('RELEASE operation');
      return { job, value };
    } catch (error) {
      // A full disk or damage may have made SQLite undo the whole batch already.
      if (!this.#database.isTransaction) throw error;
      this.#execute('ROLLBACK TO operation');
      this.#execute('RELEASE operation');
      return { job, error: this.#named(error) };
    }
  }

  /** A read leaves nothing to undo. */
  #read(job: Job): Outcome {
    try {
      return { job, value: job.operation(this.#sql) };
    } catch (error) {
      return { job, error: this.#named(error) };
    }
  }

  #named(error: unknown): unknown {
    if (!isDatabaseError(error)) return error;
    const named = storeErrorOf(error, this.#path);
    if (named.code === 'store_damaged') this.#foundDamaged(named);
    return named;
  }

  /** Ends the gateway: its next start rebuilds the file. */
  #foundDamaged(damage: StoreError): void {
    if (this.#background === undefined || this.#failure !== undefined) return;
    this.#failure = damage;
    this.#background.log.error('store damaged', { error: damage });
    writeFileSync(damageMark(this.#path), '');
    this.#lost.reject(damage);
  }

  #execute(sql: string): void {
    this.#prepare(sql).run();
  }

  #prepare(sql: string): StatementSync {
    let statement = this.#statements.get(sql);
    if (statement === undefined) {
      // SQLite compiles a statement anew each time a limit is bound that is a mere parameter.
      statement = this.#database.prepare(sql.replaceAll(/\bLIMIT \?\d*/g, '$& + 0'));
      this.#statements.set(sql, statement);
    }
    return statement;
  }
}

function settle(outcomes: readonly Outcome[]): void {
  for (const outcome of outcomes) {
    if ('error' in outcome) outcome.job.reject(outcome.error);
    else outcome.job.resolve(outcome.value);
  }
}

// The log that SQLite's commits are written to: synced in the thread pool and copied into the file
// by a thread of its own, so that the event loop never waits for the disk. Unlike the file itself
// the log may be opened here: SQLite holds no lock on it that closing would drop.

const PAGE_BYTES = 4096;
/** Earlier ones know no NOOP and would copy the log, and sync, in place of it. */
const TELLS_LENGTH = /^3\.(?:5[1-9]|[6-9]\d|\d{3,})\./.test(process.versions.sqlite ?? '');
const MAX_HEAP_MB = 16;

const WORKER_URL = new URL(`./checkpoint-worker${extname(import.meta.url)}`, import.meta.url);

export class WriteAheadLog {
  readonly #path: string;
  readonly #fd: number;
  #longAt = LONG_LOG_BYTES;

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

  fileBytes(): number {
    return fstatSync(this.#fd).size;
  }

  /** Whether it must be renewed; after a failed try, only once it has grown as much again. */
  isLong(bytes: number): boolean {
    if (bytes < this.#longAt) return false;
    this.#longAt = bytes + LONG_LOG_BYTES;
    return true;
  }

  /** `pause` resolves when no commit is running; none may start before this has settled. */
  async renew(how: Renewal, pause: () => Promise<void>): Promise<void> {
    const worker = new Worker(WORKER_URL, {
      env: {},
      workerData: { path: this.#path },
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
      worker.postMessage(how);
      await ended;
      this.#longAt = LONG_LOG_BYTES;
    } finally {
      await worker.terminate();
    }
  }

  close(): void {
    closeSync(this.#fd);
  }
}
