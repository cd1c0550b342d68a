// Copies the store of an installation between its file and a PostgreSQL database. Rows are copied in
// the order of their primary key, a batch in each transaction, so the last key of a table is the
// position at which an interrupted copy continues. Commands that would write wait until it is closed.

import { createHash } from 'node:crypto';
import type { DatabaseSync } from 'node:sqlite';
import { t } from '../../../../lib/texts.ts';
import {
  isDatabaseError as isFileError,
  storeErrorOf as ofFile,
  openDatabase,
} from '../database.ts';
import type { SqlValue } from '../key-value.ts';
import { StoreError } from '../store.ts';
import {
  type Connection,
  isDatabaseError,
  sendable,
  shownServer,
  storeErrorOf,
} from './connection.ts';
import { openAlone } from './store.ts';
import { DROP_TEXTS } from './text-tables.ts';

type Values = readonly SqlValue[];

type Table = {
  readonly name: string;
  readonly columns: readonly string[];
  readonly key: readonly string[];
  /** Counted up by the store. */
  readonly serial: string | undefined;
};

interface Side {
  /** For messages. */
  readonly name: string;
  all(sql: string, params?: Values): Promise<readonly Readonly<Record<string, SqlValue>>[]>;
  /** In one transaction. */
  insert(sql: string, rows: readonly Values[]): Promise<void>;
  clear(tables: readonly Table[]): Promise<void>;
  /** The highest number that was given. */
  lastNumber(table: Table): Promise<number>;
  continueAfter(table: Table, number: number): Promise<void>;
}

/** What a database says of the installation whose store it holds; `left`: it is in a file again. */
type Phase = 'copying' | 'live' | 'left';

type Transferred = {
  readonly table: string;
  readonly rows: number;
  /** SHA-256 of the rows, the same on both sides. */
  readonly hash: string;
};

export interface Transfer extends AsyncDisposable {
  /** An earlier run has begun it. @throws StoreError if the target holds something else */
  check(): Promise<{ readonly isBegun: boolean }>;
  /** @throws StoreError */
  copy(onRows: (table: string, copied: number, of: number) => void): Promise<void>;
  /** @throws StoreError naming the first row that differs */
  verify(): Promise<readonly Transferred[]>;
  /**
   * Notes in the database that the verified copy is the store from now on. The full-text index is
   * not copied: the gateway makes it from the files.
   */
  finish(): Promise<void>;
}

export type TransferOptions = {
  readonly to: 'postgres' | 'sqlite';
  /** With the password. */
  readonly url: string;
  /** The file, made if it is the target. */
  readonly path: string;
  /** The id of the installation. */
  readonly instance: string;
  /** A complete copy that only has to be verified. */
  readonly isComplete: boolean;
};

const BATCH = 200;

/** @throws StoreError */
export async function openTransfer(options: TransferOptions): Promise<Transfer> {
  const { to, url, path } = options;
  const server = shownServer(url);
  const named = <Result>(work: Promise<Result>): Promise<Result> =>
    work.catch((error) => {
      if (isDatabaseError(error)) throw storeErrorOf(error, server);
      throw isFileError(error) ? ofFile(error, path) : error;
    });
  const connection = await named(openAlone(url));
  let database: DatabaseSync;
  try {
    database = openDatabase(path);
    if (to === 'postgres') database.exec('BEGIN IMMEDIATE');
  } catch (error) {
    await connection.close();
    throw isFileError(error) ? ofFile(error, path) : error;
  }
  const file = fileSide(database, path);
  const remote = serverSide(connection, server);
  const tables = tablesOf(database);
  const [from, into] = to === 'postgres' ? [file, remote] : [remote, file];
  return {
    check: () => named(check(options, remote, from, into, tables)),
    async copy(onRows) {
      if (to === 'postgres') await named(begin(remote, options.instance));
      await named(copy(from, into, tables, onRows));
    },
    verify: () => named(verify(from, into, tables)),
    async finish() {
      await named(setPhase(remote, options.instance, to === 'postgres' ? 'live' : 'left'));
      if (to === 'sqlite') await named(connection.script(DROP_TEXTS));
    },
    async [Symbol.asyncDispose]() {
      database.close();
      await connection.close();
    },
  };
}

// The two sides.

function fileSide(database: DatabaseSync, name: string): Side {
  const inTransaction = async (work: () => void) => {
    database.exec('BEGIN IMMEDIATE');
    try {
      work();
      database.exec('COMMIT');
    } catch (error) {
      database.exec('ROLLBACK');
      throw error;
    }
  };
  return {
    name,
    all: async (sql, params = []) =>
      database.prepare(sql).all(...params) as Record<string, SqlValue>[],
    insert: (sql, rows) =>
      inTransaction(() => {
        const statement = database.prepare(sql);
        for (const row of rows) statement.run(...row);
      }),
    clear: (tables) =>
      inTransaction(() => {
        for (const { name: table } of tables) database.exec(`DELETE FROM ${table}`);
      }),
    async lastNumber({ name: table }) {
      const found = database.prepare('SELECT seq FROM sqlite_sequence WHERE name = ?').get(table);
      return Number(found?.['seq'] ?? 0);
    },
    async continueAfter({ name: table }, number) {
      // Only what never gives a number again has a row there.
      database
        .prepare('UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = ?')
        .run(number, table);
      const isCounted = database.prepare(
        `INSERT INTO sqlite_sequence (name, seq) SELECT name, ? FROM sqlite_schema
         WHERE name = ? AND sql LIKE '%AUTOINCREMENT%'
         AND NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = ?)`,
      );
      isCounted.run(number, table, table);
    },
  };
}

function serverSide(connection: Connection, name: string): Side {
  async function inTransaction(statements: () => readonly Promise<unknown>[]) {
    await connection.script('BEGIN');
    try {
      await Promise.all(statements());
      await connection.script('COMMIT');
    } catch (error) {
      await connection.script('ROLLBACK').catch(() => undefined);
      throw error;
    }
  }
  const all: Side['all'] = async (sql, params = []) => (await connection.send(sql, params)).rows;
  const sequence = ({ name: table, serial }: Table) =>
    `pg_get_serial_sequence('${table}', '${serial}')`;
  return {
    name,
    all,
    insert: (sql, rows) => inTransaction(() => rows.map((row) => connection.send(sql, row))),
    clear: (tables) =>
      inTransaction(() => tables.map((table) => connection.send(`DELETE FROM ${table.name}`))),
    async lastNumber(table) {
      const [row] = await all(
        `SELECT coalesce(pg_sequence_last_value(${sequence(table)}), 0) AS last`,
      );
      return Number(row?.['last']);
    },
    async continueAfter(table, number) {
      await all(`SELECT setval(${sequence(table)}, greatest(?1::bigint, 1), ?1::bigint > 0)`, [
        number,
      ]);
    },
  };
}

function tablesOf(database: DatabaseSync): readonly Table[] {
  const names = database
    .prepare(`SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'`)
    .all();
  return names.map(({ name }) => {
    const columns = database
      .prepare('SELECT name, type, pk FROM pragma_table_info(?)')
      .all(String(name));
    const key = columns
      .filter(({ pk }) => Number(pk) > 0)
      .toSorted((one, other) => Number(one['pk']) - Number(other['pk']));
    const [first] = key;
    return {
      name: String(name),
      columns: columns.map((column) => String(column['name'])),
      key: key.map((column) => String(column['name'])),
      serial: first?.['type'] === 'INTEGER' ? String(first['name']) : undefined,
    };
  });
}

/** Rows as both sides can hold them, in the order of the key. */
async function* batches(
  side: Side,
  table: Table,
  after?: Values,
): AsyncGenerator<readonly Values[]> {
  const { name, columns, key } = table;
  const start = `SELECT ${columns.join(', ')} FROM ${name}`;
  const end = `ORDER BY ${key.join(', ')} LIMIT ${BATCH}`;
  const beyond = `WHERE (${key.join(', ')}) > (${key.map(() => '?').join(', ')})`;
  for (let last = after; ; ) {
    const found = await side.all(`${start} ${last === undefined ? '' : beyond} ${end}`, last);
    if (found.length > 0)
      yield found.map((row) => columns.map((column) => sendable(row[column] ?? null)));
    const newest = found.at(-1);
    if (newest === undefined || found.length < BATCH) return;
    last = key.map((column) => newest[column] ?? null);
  }
}

const keyOf = ({ columns, key }: Table, row: Values): Values =>
  key.map((column) => row[columns.indexOf(column)] ?? null);

async function countOf(side: Side, { name }: Table): Promise<number> {
  const [row] = await side.all(`SELECT count(*) AS count FROM ${name}`);
  return Number(row?.['count']);
}

// What the target holds before.

async function phaseIn(server: Side) {
  const [row] = await server.all('SELECT instance, phase FROM installation');
  if (row === undefined) return undefined;
  return { instance: String(row['instance']), phase: String(row['phase']) as Phase };
}

const setPhase = (server: Side, instance: string, phase: Phase) =>
  server.insert(
    `INSERT INTO installation (id, instance, phase) VALUES (1, ?, ?)
     ON CONFLICT (id) DO UPDATE SET instance = excluded.instance, phase = excluded.phase`,
    [[instance, phase]],
  );

/** What is complete stays so: nothing is left to copy. */
async function begin(server: Side, instance: string): Promise<void> {
  if ((await phaseIn(server))?.phase !== 'live') await setPhase(server, instance, 'copying');
}

async function check(
  { to, instance, isComplete }: TransferOptions,
  server: Side,
  from: Side,
  into: Side,
  tables: readonly Table[],
): Promise<{ readonly isBegun: boolean }> {
  const known = await phaseIn(server);
  const counts = await Promise.all(tables.map((table) => countOf(into, table)));
  const isEmpty = counts.every((count) => count === 0);
  const isWhole = isComplete || (to === 'postgres' && known?.phase === 'live');
  if (to === 'postgres' && !isEmpty && known?.instance !== instance) throw foreign(into);
  if (isWhole && !isEmpty) {
    await verify(from, into, tables).catch((error) => {
      throw error instanceof StoreError ? foreign(into) : error;
    });
    return { isBegun: true };
  }
  const isBegun = to === 'sqlite' ? !isEmpty : known?.phase === 'copying';
  // Someone may have used the source since the interruption.
  if (isBegun && (await isBeginning(from, into, tables))) return { isBegun };
  await into.clear(tables);
  return { isBegun: false };
}

const foreign = ({ name }: Side) =>
  new StoreError(
    'store_forbidden',
    t`${name} holds other data, which would be lost. Name an empty database (createdb, store.url), ` +
      t`or remove what it holds: drop the schema nanobot, or move the file away.`,
  );

/** Whether what the target holds is the first part of each table. */
async function isBeginning(from: Side, into: Side, tables: readonly Table[]): Promise<boolean> {
  for (const table of tables) {
    const source = batches(from, table);
    for await (const copied of batches(into, table)) {
      const { value = [] } = await source.next();
      if (JSON.stringify(value.slice(0, copied.length)) !== JSON.stringify(copied)) return false;
    }
  }
  return true;
}

// Copying and comparing.

async function copy(
  from: Side,
  into: Side,
  tables: readonly Table[],
  onRows: (table: string, copied: number, of: number) => void,
): Promise<void> {
  for (const table of tables) {
    const { name, columns, key, serial } = table;
    const [newest] = await into.all(
      `SELECT ${key.join(', ')} FROM ${name} ORDER BY ${key.map((one) => `${one} DESC`).join(', ')} LIMIT 1`,
    );
    const after = newest === undefined ? undefined : key.map((column) => newest[column] ?? null);
    const total = await countOf(from, table);
    let copied = await countOf(into, table);
    const marks = columns.map(() => '?').join(', ');
    const insert = `INSERT INTO ${name} (${columns.join(', ')}) VALUES (${marks})`;
    for await (const rows of batches(from, table, after)) {
      await into.insert(insert, rows);
      copied += rows.length;
      onRows(name, copied, total);
    }
    if (serial === undefined) continue;
    const [row] = await from.all(`SELECT coalesce(max(${serial}), 0) AS last FROM ${name}`);
    const last = Math.max(Number(row?.['last']), await from.lastNumber(table));
    await into.continueAfter(table, last);
  }
}

async function verify(
  from: Side,
  into: Side,
  tables: readonly Table[],
): Promise<readonly Transferred[]> {
  const verified: Transferred[] = [];
  for (const table of tables) {
    const [before, after] = [await digest(from, table), await digest(into, table)];
    if (before.rows !== after.rows || before.hash !== after.hash) {
      const row = await firstDifference(from, into, table);
      throw new StoreError(
        'store_failed',
        t`${into.name} differs from ${from.name} in the table ${table.name}: ${before.rows} and ` +
          t`${after.rows} rows, the first different one is ${row}. Nothing was switched; run the ` +
          t`command again, it copies what differs.`,
      );
    }
    verified.push({ table: table.name, ...before });
  }
  return verified;
}

async function digest(side: Side, table: Table) {
  const hash = createHash('sha256');
  let rows = 0;
  for await (const batch of batches(side, table)) {
    for (const row of batch) hash.update(`${JSON.stringify(row)}\n`);
    rows += batch.length;
  }
  return { rows, hash: hash.digest('hex') };
}

async function firstDifference(from: Side, into: Side, table: Table): Promise<string> {
  const other = batches(into, table);
  for await (const batch of batches(from, table)) {
    const { value = [] } = await other.next();
    const at = batch.findIndex(
      (row, index) => JSON.stringify(row) !== JSON.stringify(value[index]),
    );
    const found = batch[at] ?? value[batch.length];
    if (found !== undefined) return keyOf(table, found).join(' / ');
  }
  const { value = [] } = await other.next();
  return keyOf(table, value[0] ?? []).join(' / ');
}
