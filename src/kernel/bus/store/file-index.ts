// The full-text index in a file: index.db by node:sqlite with FTS5. It works in small synchronous
// steps. It is written without waiting for the disk, and a damaged or unknown file is rebuilt.

import { existsSync, rmSync } from 'node:fs';
import {
  DatabaseSync,
  type SQLInputValue,
  type SQLOutputValue,
  type StatementSync,
} from 'node:sqlite';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Logger } from '../../../lib/logger.ts';
import {
  indexedWords,
  indexTerms,
  RANKED_MATCHES,
  rankedByAge,
} from '../../sessions/rules/earlier.ts';
import { isDatabaseError, makePrivate } from './database.ts';
import { PREFIX_END } from './key-value.ts';
import { StoreError } from './store.ts';
import type {
  FindOptions,
  FoundPart,
  IndexChange,
  IndexedPart,
  TextIndex,
  VectorRows,
} from './text-index.ts';

export type IndexRow = Readonly<Record<string, SQLOutputValue>>;

/** The file as a feature uses it that keeps tables of its own there. */
export interface IndexFile {
  /** Tables beside the parts, also in a rebuilt file; the schema may be run again. */
  extend(schema: string): void;
  query(sql: string, params: readonly SQLInputValue[]): readonly IndexRow[];
  /** Runs the statements of `work` in one transaction. */
  change<T>(work: () => T): T;
}

type FileIndexOptions = { readonly path: string; readonly log: Logger };

const FIND = `
  SELECT part.id, part.source, part.place, part.role, part.is_foreign, part.at, part.text, source.label,
    bm25(part_words) AS score
  FROM part_words JOIN part ON part.id = part_words.rowid JOIN source ON source.name = part.source
  WHERE part_words MATCH ? AND source.scope IN (SELECT value FROM json_each(?))
  ORDER BY score LIMIT ?`;

const STATES =
  'SELECT name, stamp, position FROM source WHERE name >= ? AND name < ? ORDER BY name';

/** Some milliseconds of work, between which other work runs. */
const MERGED_PAGES = 64;
/** Rows that a step changes if there is more to do, see https://sqlite.org/fts5.html (merge). */
const MERGE_GOES_ON = 2;
type FoundRow = {
  readonly id: number;
  readonly source: string;
  readonly place: number;
  readonly role: IndexedPart['role'];
  readonly is_foreign: number;
  readonly at: number;
  readonly text: string;
  readonly label: string;
  readonly score: number;
};

/** Opened on first use. */
export function createFileIndex(options: FileIndexOptions): TextIndex {
  return new FileIndex(options);
}

class FileIndex implements TextIndex, IndexFile {
  readonly #options: FileIndexOptions;
  readonly #statements = new Map<string, StatementSync>();
  readonly #schemas: string[] = [];
  #vectors: Promise<VectorRows> | undefined;
  #database: DatabaseSync | undefined;
  generation = 0;

  constructor(options: FileIndexOptions) {
    this.#options = options;
  }

  async state(source: string) {
    return this.#try(() => this.#state(source));
  }

  #state(source: string) {
    const [row] = this.#run('SELECT stamp, position FROM source WHERE name = ?', [source]);
    return row && stateIn(row);
  }

  async states(prefix: string) {
    const rows = this.#try(() => this.#run(STATES, [prefix, prefix + PREFIX_END]));
    return new Map(rows.map((row) => [String(row['name']), stateIn(row)]));
  }

  async put(changes: readonly IndexChange[]): Promise<ReadonlySet<string>> {
    return this.change(() => {
      const written = changes.filter((change) => this.#put(change));
      return new Set(written.map(({ source }) => source.name));
    });
  }

  #put({ source, step: { from, to, replaces }, parts }: IndexChange): boolean {
    const known = this.#state(source.name);
    if (known?.stamp !== from?.stamp || known?.position !== from?.position) return false;
    const added = replaces ? this.#replaceParts(source.name, parts) : parts;
    for (const part of added) this.#add(source.name, part);
    this.#run('INSERT OR REPLACE INTO source VALUES (?, ?, ?, ?, ?)', [
      ...[source.name, source.scope, source.label, to.stamp, to.position],
    ]);
    return true;
  }

  async removePlaces(source: string, places: readonly number[]): Promise<void> {
    this.change(() => {
      for (const place of places) this.#removeParts(source, place);
    });
  }

  async remove(source: string): Promise<void> {
    this.change(() => {
      this.#removeParts(source);
      this.#run('DELETE FROM source WHERE name = ?', [source]);
    });
  }

  async scrub(): Promise<void> {
    // Merging all segments drops the words of removed rows.
    let isMore = this.#mergeStep(-MERGED_PAGES);
    while (isMore) {
      await nextTurn();
      isMore = this.#mergeStep(MERGED_PAGES);
    }
    this.#try(() => this.#open().exec('PRAGMA wal_checkpoint(TRUNCATE)'));
  }

  /** A negative number starts with all segments; returns whether there is more to do. */
  #mergeStep(pages: number): boolean {
    return this.#try(() => {
      const changes = () => Number(this.#run('SELECT total_changes() AS count', [])[0]?.['count']);
      const before = changes();
      this.#run("INSERT INTO part_words(part_words, rank) VALUES ('merge', ?)", [pages]);
      return changes() - before >= MERGE_GOES_ON;
    });
  }

  async find(words: string, options: FindOptions): Promise<readonly FoundPart[]> {
    const terms = indexTerms(words).map(({ word, isPrefix }) => `"${word}"${isPrefix ? '*' : ''}`);
    const { scopes } = options;
    if (terms.length === 0 || scopes.length === 0) return [];
    // https://sqlite.org/fts5.html section 3
    const params = [terms.join(' OR '), JSON.stringify(scopes), RANKED_MATCHES];
    const rows = this.#try(() => this.#run(FIND, params));
    const found = (rows as readonly unknown[] as readonly FoundRow[]).map(
      ({ is_foreign, score, ...row }) => ({
        part: { ...row, isForeign: is_foreign !== 0 },
        score: -score,
      }),
    );
    return rankedByAge(found, options);
  }

  vectors(): Promise<VectorRows> {
    this.#vectors ??= import('./file-vectors.ts').then(({ openVectorRows }) =>
      openVectorRows(this),
    );
    return this.#vectors;
  }

  extend(schema: string): void {
    this.#try(() => this.#open().exec(schema));
    this.#schemas.push(schema);
  }

  query(sql: string, params: readonly SQLInputValue[]): readonly IndexRow[] {
    return this.#try(() => this.#run(sql, params));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#close();
  }

  #add(source: string, { place, role, isForeign, at, text }: IndexedPart): void {
    const words = indexedWords(text);
    if (words === '') return;
    // Without RETURNING, which begins a savepoint, at which FTS5 writes a segment of what it has.
    this.#run(
      'INSERT INTO part (source, place, role, is_foreign, at, text) VALUES (?, ?, ?, ?, ?, ?)',
      [source, place, role, isForeign ? 1 : 0, Math.round(at), text],
    );
    this.#run('INSERT INTO part_words (rowid, words) VALUES (last_insert_rowid(), ?)', [words]);
  }

  /** Removes what is not among the new parts; returns those that are not there yet. */
  #replaceParts(source: string, parts: readonly IndexedPart[]): readonly IndexedPart[] {
    const keyOf = (part: { readonly [Field in 'role' | 'is_foreign' | 'text']: unknown }) =>
      JSON.stringify([part.role, part.is_foreign, part.text]);
    const added = Map.groupBy(parts, (part) =>
      keyOf({ ...part, is_foreign: part.isForeign ? 1 : 0 }),
    );
    const sql = 'SELECT id, role, is_foreign, text FROM part WHERE source = ? ORDER BY id';
    for (const row of this.#run(sql, [source]) as readonly unknown[] as readonly FoundRow[]) {
      const same = added.get(keyOf(row))?.shift();
      if (same === undefined) this.#removePart(row.id);
      else {
        const moved = [same.place, Math.round(same.at), row.id];
        this.#run('UPDATE part SET place = ?, at = ? WHERE id = ?', moved);
      }
    }
    return [...added.values()].flat();
  }

  #removePart(id: number): void {
    this.#run('DELETE FROM part WHERE id = ?', [id]);
    this.#run('DELETE FROM part_words WHERE rowid = ?', [id]);
  }

  #removeParts(source: string, place?: number): void {
    const where = place === undefined ? 'source = ?' : 'source = ? AND place = ?';
    const params = place === undefined ? [source] : [source, place];
    const rows = this.#run(`DELETE FROM part WHERE ${where} RETURNING id`, params);
    for (const { id } of rows) {
      this.#run('DELETE FROM part_words WHERE rowid = ?', [Number(id)]);
    }
  }

  change<T>(work: () => T): T {
    return this.#try(() => {
      const database = this.#open();
      database.exec('BEGIN IMMEDIATE');
      try {
        const result = work();
        database.exec('COMMIT');
        return result;
      } catch (error) {
        if (database.isTransaction) database.exec('ROLLBACK');
        throw error;
      }
    });
  }

  #run(sql: string, params: readonly SQLInputValue[]) {
    let statement = this.#statements.get(sql);
    if (statement === undefined) {
      statement = this.#open().prepare(sql);
      this.#statements.set(sql, statement);
    }
    return statement.all(...params);
  }

  /** Repeats work that failed because of damage in a new file. */
  #try<T>(work: () => T): T {
    try {
      this.#open();
      return work();
    } catch (error) {
      if (!isIndexDamage(error)) throw error;
      this.#options.log.warn('full-text index rebuilt', { error });
      this.#close();
      for (const end of ['', '-wal', '-shm']) rmSync(this.#options.path + end, { force: true });
      this.generation += 1;
      this.#open();
      return work();
    }
  }

  #open(): DatabaseSync {
    if (this.#database !== undefined) return this.#database;
    const { path } = this.#options;
    this.#database = openIndexFile(path);
    for (const schema of this.#schemas) this.#database.exec(schema);
    return this.#database;
  }

  #close(): void {
    this.#statements.clear();
    this.#database?.close();
    this.#database = undefined;
  }
}

const stateIn = (row: IndexRow) => ({
  stamp: String(row['stamp']),
  position: Number(row['position']),
});

// The file of the full-text index: its tables, and how to detect that it cannot be used.

const VERSION = 1;
const BUSY_TIMEOUT_MS = 2000;
/** synchronous=OFF first: switching to a write-ahead log would wait for the disk. */
const SETTINGS = `
  PRAGMA synchronous = OFF;
  PRAGMA journal_mode = WAL;
  PRAGMA secure_delete = ON;
  PRAGMA cache_size = -2000;
`;
const SCHEMA = `
  CREATE TABLE source (
    name TEXT PRIMARY KEY, scope TEXT NOT NULL, label TEXT NOT NULL,
    stamp TEXT NOT NULL, position INTEGER NOT NULL
  ) WITHOUT ROWID;
  CREATE TABLE part (
    id INTEGER PRIMARY KEY, source TEXT NOT NULL, place INTEGER NOT NULL, role TEXT NOT NULL,
    is_foreign INTEGER NOT NULL, at INTEGER NOT NULL, text TEXT NOT NULL
  );
  CREATE INDEX part_source ON part (source, place);
  CREATE VIRTUAL TABLE part_words USING fts5(
    words, content='', contentless_delete=1, prefix='2 3',
    tokenize="unicode61 remove_diacritics 2"
  );
  PRAGMA user_version = ${VERSION};
`;

/** Creates it if it does not exist. @throws errors for which `isIndexDamage` holds */
function openIndexFile(path: string): DatabaseSync {
  makePrivate(path);
  const database = new DatabaseSync(path, { timeout: BUSY_TIMEOUT_MS });
  try {
    database.exec(SETTINGS);
    const version = Number(database.prepare('PRAGMA user_version').get()?.['user_version']);
    if (version === 0) database.exec(SCHEMA);
    else if (version !== VERSION)
      throw new StoreError('store_newer', `${path} is of version ${version}`);
  } catch (error) {
    database.close();
    throw error;
  }
  return database;
}

const DAMAGE_CODES = [11, 26];
const PRIMARY_CODE_MASK = 0xff;

/**
 * SQLITE_CORRUPT, SQLITE_NOTADB (https://sqlite.org/rescode.html), or written by another version.
 */
function isIndexDamage(error: unknown): boolean {
  if (error instanceof StoreError) return true;
  if (!isDatabaseError(error) || !(error instanceof Error) || !('errcode' in error)) return false;
  return DAMAGE_CODES.includes(Number(error.errcode) & PRIMARY_CODE_MASK);
}

/** Reads the whole file; one that does not exist, or that another process holds, counts as whole. */
export function isIndexWhole(path: string): boolean {
  if (!existsSync(path)) return true;
  try {
    const database = new DatabaseSync(path, { timeout: BUSY_TIMEOUT_MS, readOnly: true });
    try {
      return Object.values(database.prepare('PRAGMA quick_check(1)').get() ?? {})[0] === 'ok';
    } finally {
      database.close();
    }
  } catch (error) {
    return !isIndexDamage(error);
  }
}
