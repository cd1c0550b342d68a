// The embedded driver of operations. All operations issued in one event-loop turn run in one
// transaction with one fsync; promises resolve after the commit. An operation that throws undoes its
// own writes only; when the commit fails, all of its batch fail.

import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { isDatabaseError, storeErrorOf } from './database.ts';
import type { Answer, Operation, Row, Statement } from './operation.ts';
import { StoreError } from './store.ts';

type Job = {
  readonly operation: () => Operation<unknown>;
  readonly writes: boolean;
  resolve(value: unknown): void;
  reject(error: unknown): void;
};

type Outcome = { readonly job: Job; readonly value?: unknown; readonly error?: unknown };

/** `last`: behind everything else of the batch, so that it sees what the others wrote. */
export type Place = 'in order' | 'last';

export class GroupCommit {
  readonly #database: DatabaseSync;
  readonly #path: string;
  readonly #statements = new Map<string, StatementSync>();
  #queue: Job[] = [];
  #last: Job[] = [];
  #isScheduled = false;

  constructor(database: DatabaseSync, path: string) {
    this.#database = database;
    this.#path = path;
  }

  write<T>(operation: () => Operation<T>, place: Place = 'in order'): Promise<T> {
    return this.#enqueue(operation, place, true);
  }

  /** Answered at once, unless writes wait that it has to see. */
  read<T>(operation: () => Operation<T>): Promise<T> {
    if (this.#isScheduled || !this.#database.isOpen) {
      return this.#enqueue(operation, 'in order', false);
    }
    try {
      return Promise.resolve(this.#drive(operation()));
    } catch (error) {
      return Promise.reject(this.#named(error));
    }
  }

  /** Commits what was issued, then closes the file. */
  close(): void {
    if (!this.#database.isOpen) return;
    this.#flush();
    this.#statements.clear();
    this.#database.close();
  }

  #enqueue<T>(operation: () => Operation<T>, place: Place, writes: boolean): Promise<T> {
    if (!this.#database.isOpen) {
      return Promise.reject(new StoreError('store_closed', `${this.#path} is closed.`));
    }
    return new Promise<T>((resolve, reject) => {
      const job: Job = { operation, writes, resolve: (value) => resolve(value as T), reject };
      if (place === 'last') this.#last.push(job);
      else this.#queue.push(job);
      if (this.#isScheduled) return;
      this.#isScheduled = true;
      setImmediate(() => this.#flush());
    });
  }

  #flush(): void {
    const jobs = [...this.#queue, ...this.#last];
    this.#queue = [];
    this.#last = [];
    this.#isScheduled = false;
    if (jobs.length === 0) return;
    let outcomes: readonly Outcome[];
    try {
      outcomes = this.#commit(jobs);
    } catch (error) {
      if (this.#database.isTransaction) this.#execute('ROLLBACK');
      for (const job of jobs) job.reject(this.#named(error));
      return;
    }
    for (const outcome of outcomes) {
      if ('error' in outcome) outcome.job.reject(outcome.error);
      else outcome.job.resolve(outcome.value);
    }
  }

  #commit(jobs: readonly Job[]): readonly Outcome[] {
    // A write lock taken at the start cannot fail half-way through the batch.
    this.#execute(jobs.some((job) => job.writes) ? 'BEGIN IMMEDIATE' : 'BEGIN');
    // What stands alone is undone with the whole transaction.
    const outcomes =
      jobs.length === 1
        ? jobs.map((job) => ({ job, value: this.#drive(job.operation()) }))
        : jobs.map((job) => this.#attempt(job));
    this.#execute('COMMIT');
    return outcomes;
  }

  #attempt(job: Job): Outcome {
    this.#execute('SAVEPOINT operation');
    try {
      const value = this.#drive(job.operation());
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

  #named(error: unknown): unknown {
    return isDatabaseError(error) ? storeErrorOf(error, this.#path) : error;
  }

  #drive<T>(operation: Operation<T>): T {
    let step = operation.next();
    while (step.done !== true) step = operation.next(this.#answer(step.value));
    return step.value;
  }

  #answer({ sql, params, wants }: Statement): Answer {
    const statement = this.#prepare(sql);
    if (wants === 'changes') {
      return { rows: [], changes: Number(statement.run(...params).changes) };
    }
    return { rows: statement.all(...params) as Row[], changes: 0 };
  }

  #execute(sql: string): void {
    this.#prepare(sql).run();
  }

  #prepare(sql: string): StatementSync {
    let statement = this.#statements.get(sql);
    if (statement === undefined) {
      statement = this.#database.prepare(sql);
      this.#statements.set(sql, statement);
    }
    return statement;
  }
}
