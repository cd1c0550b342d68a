// Rebuilds state.db from files that are damaged or old: every row that can be read, from the first
// file that has it. A table is walked in the order of its key, from both ends and from places in
// between, so that a damaged page loses only its own rows; what lies between two keys and cannot be
// read is a gap, and only gaps are filled from the next file. So a row that was deleted since a
// snapshot does not come back.

import {
  closeSync,
  constants,
  copyFileSync,
  existsSync,
  openSync,
  readSync,
  writeSync,
} from 'node:fs';
import { rm } from 'node:fs/promises';
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite';
import { t } from '../../../lib/texts.ts';
import { openDatabase } from './database.ts';

export type Source = {
  readonly path: string;
  /** Its rows may have changed since it was written: it is a snapshot. */
  readonly isOld: boolean;
};

export type Salvage = {
  /** Of each source, by table. */
  readonly taken: readonly ReadonlyMap<string, number>[];
  /** Tables with rows that no source could give. */
  readonly incomplete: readonly string[];
  /** Tables of which a part came from an old source. */
  readonly aged: readonly string[];
  /** Scopes of key-value rows, likewise. */
  readonly agedScopes: readonly string[];
};

/** The new database, in one transaction. */
export type Rebuilt = DatabaseSync;

type Key = readonly SQLInputValue[];
/** Both ends excluded, unless `isFrom` and `isTo`; undefined: the end of the table. */
type Gap = {
  readonly low?: Key;
  readonly isFrom?: boolean;
  readonly high?: Key;
  readonly isTo?: boolean;
};
type Row = Readonly<Record<string, SQLInputValue>>;
type Table = {
  readonly name: string;
  readonly key: readonly [string, ...string[]];
  readonly isNumbered?: boolean;
  /** A row of an old source as it is taken over; undefined: it is not. */
  readonly aged?: (row: Row) => Row | undefined;
};

/** What was being sent when the old file was written may have arrived since. */
const inDoubt = (row: Row): Row =>
  row['state'] === 'queued' || row['state'] === 'sending'
    ? {
        ...row,
        ...{ state: 'unknown', reason: t`state.db was restored from a snapshot` },
        ...{ ready_at: null, owner: null, settled_at: row['queued_at'] ?? 0 },
      }
    : row;

const TABLES: readonly Table[] = [
  { name: 'inbound', key: ['seq'], isNumbered: true },
  { name: 'session_lane', key: ['session'] },
  { name: 'outbound', key: ['ord'], isNumbered: true, aged: inDoubt },
  { name: 'draft', key: ['turn'] },
  { name: 'cursor', key: ['channel', 'account'] },
  { name: 'key_value', key: ['scope', 'key'] },
  // The lines of an old journal are in their files.
  { name: 'session_entry', key: ['ord'], isNumbered: true, aged: () => undefined },
];

/**
 * Writes a new database at `to` with the rows of the sources, the best one first. Not yet synced.
 * @throws the error of a source with another schema, or of the disk
 */
export async function salvage(
  sources: readonly Source[],
  to: string,
  finish: (database: Rebuilt, salvaged: Salvage) => void,
): Promise<Salvage> {
  const database = openDatabase(to);
  const opened: (DatabaseSync | undefined)[] = [];
  try {
    for (const [index, { path }] of sources.entries()) {
      opened.push(await openReadable(path, to, sources.slice(index + 1)));
    }
    database.exec('PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF; BEGIN');
    const salvaged = copyAll(sources, opened, database);
    finish(database, salvaged);
    database.exec('COMMIT');
    return salvaged;
  } finally {
    for (const source of opened) source?.close();
    database.close();
    await rm(patchedCopy(to), { force: true });
    await rm(`${patchedCopy(to)}-wal`, { force: true });
    await rm(`${patchedCopy(to)}-shm`, { force: true });
  }
}

function copyAll(
  sources: readonly Source[],
  opened: readonly (DatabaseSync | undefined)[],
  database: DatabaseSync,
): Salvage {
  const taken = sources.map(() => new Map<string, number>());
  const incomplete: string[] = [];
  const aged = new Set<string>();
  const agedScopes = new Set<string>();
  for (const table of TABLES) {
    let gaps: readonly Gap[] = [{}];
    for (const [index, { isOld }] of sources.entries()) {
      const source = opened[index];
      if (source === undefined || gaps.length === 0) continue;
      const put = writerOf(database, table, isOld);
      let rows = 0;
      const take = (row: Row) => {
        const taken = put(row);
        if (taken !== 'taken') return taken;
        rows += 1;
        if (isOld && table.name === 'key_value') agedScopes.add(String(row['scope']));
        return taken;
      };
      const others = opened.slice(index + 1).filter((other) => other !== undefined);
      gaps = gaps.flatMap((gap) => readTable({ source, table, others, take }, gap));
      taken[index]?.set(table.name, rows);
      if (isOld) aged.add(table.name);
    }
    if (gaps.length > 0) incomplete.push(table.name);
  }
  return { taken, incomplete, aged: [...aged], agedScopes: [...agedScopes].sort() };
}

/** `refused`: damage that SQLite does not notice. */
type Taken = 'taken' | 'known' | 'refused';

function writerOf(
  database: DatabaseSync,
  { name, aged }: Table,
  isOld: boolean,
): (row: Row) => Taken {
  const known = new Set(columnsOf(database, name));
  const statements = new Map<string, StatementSync>();
  function insertInto(columns: readonly string[]): StatementSync {
    const list = columns.join(', ');
    const prepared = statements.get(list);
    if (prepared !== undefined) return prepared;
    const places = columns.map(() => '?').join(', ');
    const statement = database.prepare(
      `INSERT OR IGNORE INTO ${name} (${list}) VALUES (${places})`,
    );
    statements.set(list, statement);
    return statement;
  }
  return (found) => {
    const row = isOld && aged !== undefined ? aged(found) : found;
    if (row === undefined) return 'known';
    if (!isWhole(row)) return 'refused';
    const columns = Object.keys(row).filter((column) => known.has(column));
    const values = columns.map((column) => row[column] ?? null);
    try {
      return Number(insertInto(columns).run(...values).changes) > 0 ? 'taken' : 'known';
    } catch (error) {
      if (isRefused(error)) return 'refused';
      throw error;
    }
  };
}

function isWhole({ body, parts }: Row): boolean {
  return [body, parts].every((text) => {
    if (text === undefined || text === null) return true;
    try {
      return typeof text === 'string' && typeof JSON.parse(text) === 'object';
    } catch {
      return false;
    }
  });
}

const columnsOf = (database: DatabaseSync, table: string): readonly string[] =>
  database
    .prepare(`PRAGMA table_info(${table})`)
    .all()
    .map((column) => String(column['name']));

const SQLITE_CONSTRAINT = 19;
const SQLITE_MISMATCH = 20;
/** The disk, which is no reason to give a row up. */
const SQLITE_FULL = 13;
const SQLITE_IOERR_WRITE = 778;

const codeOf = (error: unknown): number | undefined =>
  error instanceof Error && 'errcode' in error ? Number(error.errcode) : undefined;
const isRefused = (error: unknown) => {
  const code = (codeOf(error) ?? 0) & 0xff;
  return code === SQLITE_CONSTRAINT || code === SQLITE_MISMATCH;
};

type Reader = {
  readonly source: DatabaseSync;
  readonly table: Table;
  /** Older files: their keys are places from which to go on behind a damaged page. */
  readonly others: readonly DatabaseSync[];
  take(row: Row): Taken;
};

/** Places tried behind damaged pages of one table. */
const MAX_PROBES = 400;
/** Numbers searched behind the last row that can be read, where the end cannot be read. */
const BEYOND_ROWS = 4096;

/** Takes what can be read; returns what cannot. */
function readTable(reader: Reader, whole: Gap): readonly Gap[] {
  const gaps: Gap[] = [];
  const open: Gap[] = [whole];
  for (let probes = 0; open.length > 0; probes += 1) {
    const gap = open.shift() ?? whole;
    const low = walk(reader, gap, 'ASC', gaps);
    if (low === 'end') continue;
    const left: Gap = low === undefined ? gap : { low, ...highOf(gap) };
    const high = walk(reader, left, 'DESC', gaps);
    if (high === 'end') continue;
    const rest: Gap = high === undefined ? left : { ...lowOf(left), high };
    const middle = probes < MAX_PROBES ? middleOf(reader, rest) : undefined;
    if (middle === undefined) gaps.push(rest);
    else
      open.push({ ...lowOf(rest), high: middle }, { low: middle, isFrom: true, ...highOf(rest) });
  }
  return gaps;
}

const lowOf = ({ low, isFrom = false }: Gap) => (low === undefined ? {} : { low, isFrom });
const highOf = ({ high, isTo = false }: Gap) => (high === undefined ? {} : { high, isTo });

/**
 * The last key that was read; undefined: none; `end`: everything was read. A row that is refused is
 * a gap of its own.
 */
function walk(
  reader: Reader,
  gap: Gap,
  order: 'ASC' | 'DESC',
  gaps: Gap[],
): Key | 'end' | undefined {
  const { source, table, take } = reader;
  let last: Key | undefined;
  try {
    const { where, values } = rangeOf(table, gap);
    const sorted = table.key.map((column) => `${column} ${order}`).join(', ');
    const statement = source.prepare(`SELECT * FROM ${table.name} ${where} ORDER BY ${sorted}`);
    for (const row of statement.iterate(...values)) {
      last = table.key.map((column) => row[column] ?? null);
      if (take(row as Row) !== 'refused') continue;
      gaps.push({ low: last, isFrom: true, high: last, isTo: true });
    }
    return 'end';
  } catch (error) {
    if (isWriteFailure(error)) throw error;
    return last;
  }
}

/** Of the new database: reading fails in other ways. */
const isWriteFailure = (error: unknown) => {
  const code = codeOf(error);
  return code === undefined || code === SQLITE_IOERR_WRITE || (code & 0xff) === SQLITE_FULL;
};

function rangeOf({ key }: Table, { low, isFrom, high, isTo }: Gap) {
  const columns = `(${key.join(', ')})`;
  const places = `(${key.map(() => '?').join(', ')})`;
  const parts = [
    ...(low === undefined ? [] : [`${columns} ${isFrom === true ? '>=' : '>'} ${places}`]),
    ...(high === undefined ? [] : [`${columns} ${isTo === true ? '<=' : '<'} ${places}`]),
  ];
  const where = parts.length === 0 ? '' : `WHERE ${parts.join(' AND ')}`;
  return { where, values: [...(low ?? []), ...(high ?? [])] };
}

/** A place inside the gap: a number, or a key that an older file has there. */
function middleOf({ table, others }: Reader, gap: Gap): Key | undefined {
  if (table.isNumbered === true) {
    const low = Number(gap.low?.[0] ?? 0);
    const high = Number(gap.high?.[0] ?? low + BEYOND_ROWS);
    const middle = Math.floor((low + high) / 2);
    return middle > low && middle < high ? [middle] : undefined;
  }
  for (const other of others) {
    try {
      const { where, values } = rangeOf(table, { ...gap, isFrom: false });
      const from = `FROM ${table.name} ${where}`;
      const count = Number(other.prepare(`SELECT count(*) AS n ${from}`).get(...values)?.['n']);
      if (count === 0) continue;
      const sorted = table.key.join(', ');
      const row = other
        .prepare(`SELECT ${sorted} ${from} ORDER BY ${sorted} LIMIT 1 OFFSET ?`)
        .get(...values, Math.floor(count / 2));
      if (row !== undefined) return table.key.map((column) => row[column] ?? null);
    } catch {
      // Damaged there too.
    }
  }
  return undefined;
}

// Opening a damaged file.

// Of the header, https://sqlite.org/fileformat2.html#the_database_header
const FORMAT_AT = 18;
const WITHOUT_LOG = 1;
const WITH_LOG = 2;
const PAGE_COUNT_AT = 28;
const FREELIST_AT = 32;
const PAGE_SIZE_AT = 16;
const patchedCopy = (to: string) => `${to}-patched`;

/**
 * For reading, without the checks that refuse a file that is too short. Where its first page is
 * damaged, a copy with that page of a snapshot: it tells where each table begins.
 */
async function openReadable(
  path: string,
  to: string,
  others: readonly Source[],
): Promise<DatabaseSync | undefined> {
  const asIs = openTables(path);
  if (asIs !== undefined) return asIs;
  const other = others.find(({ path: at }) => sequenceOf(at) !== undefined);
  if (other === undefined) return undefined;
  const copy = patchedCopy(to);
  try {
    copyFileSync(path, copy, constants.COPYFILE_FICLONE);
    const hasLog = existsSync(`${path}-wal`);
    if (hasLog) copyFileSync(`${path}-wal`, `${copy}-wal`);
    replaceFirstPage(copy, other.path, hasLog);
    return openTables(copy);
  } catch {
    return undefined;
  }
}

/** The number of the last message that was accepted; undefined where it cannot be read. */
export function sequenceOf(path: string): number | undefined {
  const database = openTables(path);
  try {
    const found = database?.prepare(`SELECT seq FROM sqlite_sequence WHERE name = 'inbound'`).get();
    return database && Number(found?.['seq'] ?? 0);
  } catch {
    return undefined;
  } finally {
    database?.close();
  }
}

/** Undefined where the tables cannot be found. */
function openTables(path: string): DatabaseSync | undefined {
  if (!existsSync(path)) return undefined;
  let database: DatabaseSync | undefined;
  try {
    database = new DatabaseSync(path, { readOnly: true, defensive: false });
    database.exec('PRAGMA writable_schema = ON');
    const there = database.prepare(
      `SELECT count(*) AS n FROM sqlite_schema WHERE name = 'inbound'`,
    );
    if (there.get()?.['n'] === 1) return database;
  } catch {
    // Not a database, or its first page is damaged.
  }
  database?.close();
  return undefined;
}

function replaceFirstPage(path: string, other: string, hasLog: boolean): void {
  const from = openSync(other, 'r');
  const file = openSync(path, 'r+');
  try {
    const head = Buffer.alloc(100);
    readSync(from, head, 0, head.length, 0);
    const pageBytes = head.readUInt16BE(PAGE_SIZE_AT) || 65_536;
    const page = Buffer.alloc(pageBytes === 1 ? 65_536 : pageBytes);
    readSync(from, page, 0, page.length, 0);
    // The count is taken from the length of the file where it is 0; free pages are not read.
    page.writeUInt32BE(0, PAGE_COUNT_AT);
    page.writeUInt32BE(0, FREELIST_AT);
    page.writeUInt32BE(0, FREELIST_AT + 4);
    page.fill(hasLog ? WITH_LOG : WITHOUT_LOG, FORMAT_AT, FORMAT_AT + 2);
    writeSync(file, page, 0, page.length, 0);
  } finally {
    closeSync(from);
    closeSync(file);
  }
}
