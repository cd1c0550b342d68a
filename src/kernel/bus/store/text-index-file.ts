// The file of the full-text index: its tables, and how to tell that it cannot be used.

import { DatabaseSync } from 'node:sqlite';
import { isDatabaseError, makePrivate } from './database.ts';
import { StoreError } from './store.ts';

const VERSION = 1;
const BUSY_TIMEOUT_MS = 2000;
/** No sync comes first: going over to a write-ahead log would wait for the disk. */
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

/** Makes it where there is none. @throws what `isIndexDamage` tells of */
export function openIndexFile(path: string): DatabaseSync {
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

/** SQLITE_CORRUPT, SQLITE_NOTADB (https://sqlite.org/rescode.html), or written by another version. */
export function isIndexDamage(error: unknown): boolean {
  if (error instanceof StoreError) return true;
  if (!isDatabaseError(error) || !(error instanceof Error) || !('errcode' in error)) return false;
  return DAMAGE_CODES.includes(Number(error.errcode) & PRIMARY_CODE_MASK);
}
