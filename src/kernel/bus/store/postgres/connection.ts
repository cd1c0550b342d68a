// One connection to PostgreSQL. Statements are prepared once and sent behind each other without
// waiting for their results. Failures become a StoreError that holds neither the password nor data.

import { Socket } from 'node:net';
import pg from 'pg';
import { t } from '../../../../lib/texts.ts';
import { systemClock } from '../../../../lib/time/clock.ts';
import type { SqlValue } from '../key-value.ts';
import { StoreError } from '../store.ts';

type Row = Readonly<Record<string, SqlValue>>;

export type Result = {
  readonly rows: readonly Row[];
  /** Number of changed rows. */
  readonly count: number;
  /** As the server names it, e.g. `COMMIT`. */
  readonly command: string;
};

const CONNECT_MS = 10_000;
const KEEP_ALIVE_MS = 10_000;
/** How long the server may take to know of the end of a connection. */
const END_MS = 3000;

/** PostgreSQL's types of whole numbers, https://www.postgresql.org/docs/current/catalog-pg-type.html */
const INT8 = 20;
const INT2 = 21;
const INT4 = 23;

type ConnectionOptions = {
  readonly url: string;
  /** Shown by the server among its sessions. */
  readonly name: string;
  /** Another process tells something; absent: not asked for. */
  onNotice?(payload: string, channel: string): void;
  /**
   * Through a pooler, where each transaction may have another session of the server: statements are
   * not prepared by name.
   */
  readonly isPooled?: boolean;
};

export class Connection {
  readonly #client: pg.Client;
  readonly #socket: Socket;
  readonly #isPooled: boolean;
  /** By the text of the statement. */
  readonly #prepared = new Map<string, Prepared>();
  isOver = false;

  private constructor(client: pg.Client, socket: Socket, isPooled: boolean) {
    this.#isPooled = isPooled;
    this.#client = client;
    this.#socket = socket;
    // The statements under way report the failure.
    client.on('error', () => this.end());
    client.on('end', () => this.end());
  }

  /** @throws an error of the socket or of the server, see `storeErrorOf` */
  static async open(options: ConnectionOptions): Promise<Connection> {
    const { url, name, onNotice, isPooled = false } = options;
    const socket = new Socket();
    const client = new pg.Client({
      connectionString: verifying(url),
      application_name: name,
      pipeline: true,
      stream: () => socket,
      keepAlive: true,
      keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
      connectionTimeoutMillis: CONNECT_MS,
      types: { getTypeParser: (type: number) => parserOf(type) },
    });
    const connection = new Connection(client, socket, isPooled);
    client.on('notification', ({ payload = '', channel }) => onNotice?.(payload, channel));
    try {
      await client.connect();
    } catch (error) {
      connection.end();
      throw notAnswered(error);
    }
    return connection;
  }

  send(sql: string, params: readonly SqlValue[] = []): Promise<Result> {
    let prepared = this.#prepared.get(sql);
    if (prepared === undefined) {
      prepared = { name: `s${this.#prepared.size}`, text: numbered(sql) };
      this.#prepared.set(sql, prepared);
    }
    const { text } = prepared;
    const statement = this.#isPooled ? { text } : prepared;
    return this.#ask({ ...statement, values: params.map(sendable) });
  }

  /** Several statements without values. */
  async script(sql: string): Promise<void> {
    await this.#ask({ text: sql });
  }

  async #ask(query: pg.QueryConfig): Promise<Result> {
    try {
      const { rows = [], rowCount, command } = await this.#client.query<Row>(query);
      return { rows, count: rowCount ?? 0, command };
    } catch (error) {
      throw notAnswered(error);
    }
  }

  /** Ends the connection if the work takes longer: nothing may come back on it for minutes. */
  async within<T>(ms: number, work: () => Promise<T>): Promise<T> {
    using _timer = systemClock.timer(ms, () => this.end());
    return await work();
  }

  /** For a connection that was just opened: one that does not become ready in time is ended. */
  async prepare<T>(ms: number, work: () => Promise<T>): Promise<T> {
    try {
      return await this.within(ms, work);
    } catch (error) {
      this.end();
      throw error;
    }
  }

  /** Resolves when the server knows, so that its locks are free. */
  async close(): Promise<void> {
    if (this.isOver) return;
    this.isOver = true;
    const timer = systemClock.timer(END_MS, () => this.#socket.destroy());
    await this.#client.end().catch(() => this.#socket.destroy());
    timer[Symbol.dispose]();
  }

  /** At once: what is under way fails. */
  end(): void {
    if (this.isOver) return;
    this.isOver = true;
    this.#socket.destroy();
  }
}

/** No answer of the server: of its socket, its certificate, or of the library. */
export class Unreachable extends Error {
  override readonly name = 'Unreachable';
}

const notAnswered = (error: unknown) =>
  error instanceof pg.DatabaseError ? error : new Unreachable('no answer', { cause: error });

type Prepared = { readonly name: string; readonly text: string };

const parserOf = (type: number) => (text: string) =>
  type === INT8 || type === INT4 || type === INT2 ? Number(text) : text;

/** `?` and `?1` become `$1`. */
function numbered(sql: string): string {
  let last = 0;
  return sql.replaceAll(/\?(\d*)/g, (_mark, number: string) => {
    last += 1;
    return `$${number === '' ? last : number}`;
  });
}

/** PostgreSQL keeps whole numbers in its columns, and no character 0 in a text. */
export function sendable(value: SqlValue): SqlValue {
  if (typeof value === 'number') return Math.round(value);
  return value?.replaceAll('\0', '\u{fffd}') ?? null;
}

/** The modes that the library treats as `verify-full`, and warns about on the error output. */
function verifying(url: string): string {
  return url.replace(/([?&]sslmode=)(?:prefer|require|verify-ca)(?=&|$)/, '$1verify-full');
}

/** The server as it may be shown: without user, password and options. */
export function shownServer(url: string): string {
  if (!URL.canParse(url)) return 'PostgreSQL';
  const { hostname, port, pathname, searchParams } = new URL(url);
  const host = hostname === '' ? (searchParams.get('host') ?? 'localhost') : hostname;
  return `postgres://${decodeURIComponent(host)}${port === '' ? '' : `:${port}`}${pathname}`;
}

// Failures by SQLSTATE, https://www.postgresql.org/docs/current/errcodes-appendix.html

const sqlState = (error: unknown): string | undefined =>
  error instanceof pg.DatabaseError ? error.code : undefined;

/** Classes and codes of a server that cannot be used now, or not any more by this connection. */
const OUTAGES = ['08', '57P', '53300', '25006', '25P03', '58'];

/** The connection is of no use; another one may be. */
export function isOutage(error: unknown): boolean {
  if (error instanceof StoreError) return error.code === 'store_unreachable';
  const state = sqlState(error);
  return error instanceof Unreachable || OUTAGES.some((start) => state?.startsWith(start));
}

/** Serialization failure and deadlock: the same transaction may succeed now. */
export const isConflict = (error: unknown) => ['40001', '40P01'].includes(sqlState(error) ?? '');

/** The transaction was aborted by an earlier statement. */
export const isConsequence = (error: unknown) => sqlState(error) === '25P02';

export function isDatabaseError(error: unknown): boolean {
  return error instanceof Unreachable || sqlState(error) !== undefined;
}

export function storeErrorOf(error: unknown, server: string): StoreError {
  if (error instanceof StoreError) return error;
  const state = sqlState(error) ?? '';
  if (state.startsWith('28')) {
    return failure(
      'store_forbidden',
      error,
      t`${server} refuses the user or the password. Correct store.url.`,
    );
  }
  if (state === '3D000') {
    return failure(
      'store_forbidden',
      error,
      t`${server}: the database does not exist. Create it (createdb), or correct store.url.`,
    );
  }
  if (state === '42501') {
    return failure(
      'store_forbidden',
      error,
      t`${server}: the user may not create or write the tables. ` +
        t`Make the user the owner of the database.`,
    );
  }
  if (state === '53100') {
    return failure(
      'store_full',
      error,
      t`The disk of ${server} is full. Free disk space and try again.`,
    );
  }
  if (isOutage(error)) {
    return failure(
      'store_unreachable',
      error,
      t`${server} is not reachable${reasonOf(error)}. Check that PostgreSQL runs and that ` +
        t`store.url names it.`,
    );
  }
  return failure(
    'store_failed',
    error,
    t`${server} failed (SQLSTATE ${state}, https://www.postgresql.org/docs/current/errcodes-appendix.html).`,
  );
}

/** Without the server's own text: it may quote a statement or a row. */
function failure(code: StoreError['code'], error: unknown, message: string): StoreError {
  const cause = sqlState(error) === undefined ? error : new Error(`SQLSTATE ${sqlState(error)}`);
  return new StoreError(code, message, cause);
}

function reasonOf(error: unknown): string {
  const state = sqlState(error);
  if (state !== undefined) return ` (SQLSTATE ${state})`;
  const { cause } = error instanceof Unreachable ? error : {};
  if (!(cause instanceof Error)) return '';
  return ` (${'code' in cause ? String(cause.code) : cause.message})`;
}
