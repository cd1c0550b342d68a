// Runs operations on PostgreSQL. As on a file, all that are issued in one event-loop turn, and while
// a transaction is under way, are one transaction. An operation is a synchronous function: where it
// asks for what is not known yet it is left, and run again from its start with the answer. What it
// writes is sent without waiting. A batch in which something failed runs again, each operation in
// a transaction of its own, so that a failure undoes only its own writes.

import type { Logger } from '../../../../lib/logger.ts';
import type { Clock } from '../../../../lib/time/clock.ts';
import { backoffMs } from '../../../../lib/time/clock.ts';
import type { Concern, Sql, SqlValue } from '../key-value.ts';
import type { Driver } from '../operations.ts';
import { StoreError } from '../store.ts';
import {
  type Connection,
  isConflict,
  isConsequence,
  isDatabaseError,
  isOutage,
  type Result,
  storeErrorOf,
  Unreachable,
} from './connection.ts';
import type { News } from './news.ts';
import { WRITE_LOCK } from './schema.ts';

type Job = {
  readonly operation: (sql: Sql) => unknown;
  readonly writes: boolean;
  resolve(value: unknown): void;
  reject(error: unknown): void;
};

type Marks = readonly (readonly [sql: string, ...params: SqlValue[]])[];

type Outcome = { readonly job: Job; readonly value?: unknown; readonly error?: unknown };

export type CommitOptions = {
  /** For messages. */
  readonly server: string;
  /** A new connection that may write. @throws what `isOutage` knows, or StoreError */
  connect(): Promise<Connection>;
  /** Sent at the end of each transaction that writes; `number` grows with them. */
  marks(number: number, news: News): Marks;
  /**
   * Waits for a server that is away and finds out whether the transaction with this mark was
   * committed; absent: what fails, fails.
   */
  wasCommitted?(connection: Connection, number: number): Promise<boolean>;
  /** A statement at the start of each transaction. */
  readonly opening?: string;
  /** Resolves when what was committed before has been heard of; absent: it has. */
  heard?(): Promise<void>;
  /** Time of the machine: what it measures is the network. */
  readonly clock: Clock;
  readonly log: Logger;
};

const MIN_RETRY_MS = 100;
const MAX_RETRY_MS = 1000;
/** A connection that does not answer for so long is given up. */
export const SILENCE_MS = 60_000;
/** How long closing waits for a server that is away, or does not answer. */
const CLOSE_MS = 5000;

export class PostgresCommits implements Driver {
  readonly #options: CommitOptions;
  readonly #lost = Promise.withResolvers<never>();
  readonly #giveUp = new AbortController();
  #connection: Connection | undefined;
  #queue: Job[] = [];
  #last: { readonly job: Job; begins(): void }[] = [];
  #batches = 0;
  #isBusy = false;
  #endsSince = Number.POSITIVE_INFINITY;
  #waitsSince: number | undefined;
  #idle: (() => void) | undefined;
  #closing: Promise<void> | undefined;
  #failure: StoreError | undefined;

  constructor(connection: Connection, options: CommitOptions) {
    this.#connection = connection;
    this.#options = options;
    this.#lost.promise.catch(() => undefined);
  }

  /** Rejects when another process has the database; nothing is read or written after that. */
  get lost(): Promise<never> {
    return this.#lost.promise;
  }

  /** Aborts, with a StoreError, when this process ends without the server. */
  get givenUp(): AbortSignal {
    return this.#giveUp.signal;
  }

  /** How long a transaction has been under way. */
  waitMs(): number {
    if (this.#waitsSince === undefined) return 0;
    return this.#options.clock.monotonic() - this.#waitsSince;
  }

  write<T>(operation: (sql: Sql) => T, begins?: () => void): Promise<T> {
    return this.#enqueue(operation, true, begins);
  }

  read<T>(operation: (sql: Sql) => T): Promise<T> {
    return this.#enqueue(operation, false);
  }

  /** Fails at once while the server is away. */
  glance<T>(operation: (sql: Sql) => T): Promise<T> {
    if (this.#connection?.isOver === false) return this.read(operation);
    return Promise.reject(this.#away());
  }

  /** The server has confirmed each commit. */
  stored(): Promise<void> {
    return Promise.resolve();
  }

  /** What is under way begins again on a new connection. */
  cut(): void {
    this.#connection?.end();
  }

  /** From now on nothing waits long for a server that is away, or does not answer. */
  endSoon(): void {
    this.#endsSince = this.#options.clock.monotonic();
  }

  /** Commits what was issued, unless the server is away, and ends the connection. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    const timer = this.#options.clock.timer(CLOSE_MS, () => this.#giveUp.abort(this.#away()));
    if (this.#isBusy) await new Promise<void>((resolve) => (this.#idle = resolve));
    timer[Symbol.dispose]();
    await this.#connection?.close();
  }

  #away(): StoreError {
    return storeErrorOf(new Unreachable('no connection'), this.#options.server);
  }

  #isLate(): boolean {
    return this.#options.clock.monotonic() - this.#endsSince > CLOSE_MS;
  }

  /**
   * Ends the connection when no answer comes for long. Statements wait for each other, and over a slow
   * network those of one transaction take minutes together.
   */
  async #whileAnswers<T>(
    connection: Connection,
    work: (send: Connection['send']) => Promise<T>,
  ): Promise<T> {
    let silentMs = 0;
    const watch = (): Disposable =>
      this.#options.clock.timer(CLOSE_MS, () => {
        silentMs += CLOSE_MS;
        if (this.#isLate()) this.#giveUp.abort(this.#away());
        if (silentMs >= SILENCE_MS || this.#giveUp.signal.aborted) connection.end();
        else timer = watch();
      });
    let timer = watch();
    try {
      return await work(async (sql, params) => {
        const result = await connection.send(sql, params);
        silentMs = 0;
        return result;
      });
    } finally {
      timer[Symbol.dispose]();
    }
  }

  #enqueue<T>(operation: (sql: Sql) => T, writes: boolean, begins?: () => void): Promise<T> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure);
    if (this.#closing !== undefined) {
      return Promise.reject(new StoreError('store_closed', `${this.#options.server} is closed.`));
    }
    return new Promise<T>((resolve, reject) => {
      const job: Job = { operation, writes, resolve: (value) => resolve(value as T), reject };
      if (begins === undefined) this.#queue.push(job);
      else this.#last.push({ job, begins });
      this.#next();
    });
  }

  #next(): void {
    if (this.#isBusy) return;
    if (this.#queue.length + this.#last.length === 0) {
      this.#idle?.();
      return;
    }
    this.#isBusy = true;
    setImmediate(() => void this.#flush());
  }

  async #flush(): Promise<void> {
    for (const { begins } of this.#last) begins();
    const jobs = [...this.#queue, ...this.#last.map(({ job }) => job)];
    this.#queue = [];
    this.#last = [];
    this.#waitsSince = this.#options.clock.monotonic();
    const outcomes = await this.#outcomes(jobs);
    await this.#options.heard?.();
    this.#isBusy = false;
    this.#waitsSince = undefined;
    // What these outcomes lead to belongs to the next transaction.
    this.#next();
    for (const outcome of outcomes) {
      if ('error' in outcome) outcome.job.reject(outcome.error);
      else outcome.job.resolve(outcome.value);
    }
  }

  /** Never rejects. */
  async #outcomes(jobs: readonly Job[]): Promise<readonly Outcome[]> {
    try {
      return await this.#transaction(jobs);
    } catch (error) {
      const [job, ...others] = jobs;
      if (job === undefined) return [];
      const isOver = this.#failure !== undefined || isOutage(error);
      if (others.length === 0 || isOver) {
        return jobs.map((each) => ({ job: each, error: this.#named(error) }));
      }
    }
    const outcomes: Outcome[] = [];
    for (const job of jobs) outcomes.push(...(await this.#outcomes([job])));
    return outcomes;
  }

  /** Repeats it while the server is away. @throws what fails besides */
  async #transaction(jobs: readonly Job[]): Promise<readonly Outcome[]> {
    const { wasCommitted } = this.#options;
    for (;;) {
      let outcomes: readonly Outcome[] = [];
      let marked: number | undefined;
      const onCommit = (made: readonly Outcome[], number: number) => {
        outcomes = made;
        marked = number;
      };
      const connection = await this.#connected();
      try {
        return await this.#whileAnswers(connection, (send) => this.#commit(send, jobs, onCommit));
      } catch (error) {
        if (isOutage(error)) connection.end();
        else await this.#rollBack(connection);
        if (isConflict(error)) continue;
        if (!isOutage(error) || wasCommitted === undefined) throw error;
        if (marked !== undefined && (await this.#isCommitted(marked))) return outcomes;
      }
    }
  }

  #rollBack(connection: Connection): Promise<void> {
    const rolled = this.#whileAnswers(connection, () => connection.script('ROLLBACK'));
    return rolled.catch(() => connection.end());
  }

  async #isCommitted(number: number): Promise<boolean> {
    for (;;) {
      const connection = await this.#connected();
      try {
        const asked = async () => this.#options.wasCommitted?.(connection, number);
        return (await this.#whileAnswers(connection, asked)) === true;
      } catch (error) {
        if (!isOutage(error)) throw error;
        connection.end();
      }
    }
  }

  /** Waits for a server that is away. @throws StoreError */
  async #connected(): Promise<Connection> {
    const { clock, log, connect, wasCommitted } = this.#options;
    for (let failures = 1; ; failures += 1) {
      if (this.#failure !== undefined) throw this.#failure;
      if (this.#connection?.isOver === false) return this.#connection;
      try {
        this.#giveUp.signal.throwIfAborted();
        this.#connection = await connect();
        log.info('database connected again', { failures });
      } catch (error) {
        const named = this.#named(error);
        if (this.#isLate()) this.#giveUp.abort(named);
        if (wasCommitted === undefined || this.#giveUp.signal.aborted) throw named;
        if (!isOutage(error)) {
          if (!(named instanceof StoreError)) throw named;
          this.#failure = named;
          log.error('store lost', { error: named });
          this.#lost.reject(named);
          throw named;
        }
        const random = Math.random;
        const waitMs = backoffMs(failures, { minMs: MIN_RETRY_MS, maxMs: MAX_RETRY_MS, random });
        log.warn('database not reachable', { failures, waitMs, error: named });
        await clock.sleep(waitMs, this.#giveUp.signal).catch(() => undefined);
      }
    }
  }

  /** `onCommit` is called just before the end of the transaction is sent. */
  async #commit(
    send: Connection['send'],
    jobs: readonly Job[],
    onCommit: (outcomes: readonly Outcome[], mark: number) => void,
  ): Promise<readonly Outcome[]> {
    const statements = new Statements(send);
    const firstWrite = jobs.findIndex((job) => job.writes);
    try {
      statements.run(firstWrite < 0 ? 'BEGIN READ ONLY' : 'BEGIN');
      if (this.#options.opening !== undefined) statements.run(this.#options.opening);
      const outcomes: Outcome[] = [];
      for (const [index, job] of jobs.entries()) {
        // What is read before the first write keeps nobody waiting.
        if (index === firstWrite) statements.run(`SELECT pg_advisory_xact_lock(${WRITE_LOCK})`);
        outcomes.push({ job, value: await perform(job, statements) });
      }
      if (statements.hasWritten) {
        this.#batches += 1;
        for (const [sql, ...params] of this.#options.marks(this.#batches, statements.news())) {
          statements.run(sql, params);
        }
        onCommit(outcomes, this.#batches);
      }
      const { command } = await statements.ask('COMMIT');
      if (statements.failure !== undefined) throw statements.failure;
      if (command !== 'COMMIT') throw new Error(`the server answered COMMIT with ${command}`);
      return outcomes;
    } catch (error) {
      throw isConsequence(error) ? (statements.failure ?? error) : error;
    }
  }

  #named(error: unknown): unknown {
    return isDatabaseError(error) ? storeErrorOf(error, this.#options.server) : error;
  }
}

/** The statements of one transaction. */
class Statements {
  readonly #send: Connection['send'];
  /** Of a statement that nobody waits for. */
  failure: unknown;
  hasWritten = false;
  readonly #scopes = new Set<string>();
  readonly #concerns: Readonly<Record<Concern, Set<string>>> = {
    ...{ session: new Set(), account: new Set(), resource: new Set(), anything: new Set() },
  };

  constructor(send: Connection['send']) {
    this.#send = send;
  }

  wrote(scope: string): void {
    this.#scopes.add(scope);
  }

  tells(what: Concern, name: string): void {
    this.#concerns[what].add(name);
  }

  news(): News {
    const { session, account, resource, anything } = this.#concerns;
    return {
      ...{ scopes: [...this.#scopes], sessions: [...session], accounts: [...account] },
      ...{ resources: [...resource], isAnything: anything.size > 0 },
    };
  }

  run(sql: string, params: readonly SqlValue[] = []): void {
    this.ask(sql, params).catch((error) => {
      if (!isConsequence(error)) this.failure ??= error;
    });
  }

  ask(sql: string, params: readonly SqlValue[] = []): Promise<Result> {
    return this.#send(sql, params);
  }
}

const UNANSWERED = new Error('The operation goes on when the server has answered.');

async function perform({ operation }: Job, statements: Statements): Promise<unknown> {
  /** What it has asked and written so far, in order; undefined: written. */
  const known: (Result | undefined)[] = [];
  for (;;) {
    let at = 0;
    let asked: Promise<Result> | undefined;
    const answer = (text: string, params: readonly SqlValue[]): Result => {
      const result = known[at];
      at += 1;
      if (result !== undefined) return result;
      if (text.includes('RETURNING')) statements.hasWritten = true;
      asked = statements.ask(text, params);
      throw UNANSWERED;
    };
    const sql: Sql = {
      all: <R>(text: string, ...params: SqlValue[]) => answer(text, params).rows as readonly R[],
      first: <R>(text: string, ...params: SqlValue[]) => answer(text, params).rows[0] as R,
      change(text, ...params) {
        statements.hasWritten = true;
        return answer(text, params).count;
      },
      run(text, ...params) {
        if (at === known.length) {
          statements.hasWritten = true;
          statements.run(text, params);
          known.push(undefined);
        }
        at += 1;
      },
      wrote: (scope) => statements.wrote(scope),
      tells: (what, name) => statements.tells(what, name),
    };
    try {
      return operation(sql);
    } catch (error) {
      if (error !== UNANSWERED || asked === undefined) throw error;
    }
    known.push(await asked);
  }
}
