// Opens an SQLite file for durable use: private to its user, every commit fsynced, brought to the
// newest schema. Failures of the vendor become a StoreError that says what to do.

import { chmodSync, closeSync, existsSync, openSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { MIGRATIONS } from './schema.ts';
import { StoreError } from './store.ts';

const PRIVATE_FILE_MODE = 0o600;
/** Another process writes for a moment only (a command beside the gateway). */
const BUSY_TIMEOUT_MS = 5000;

/** @throws StoreError */
export function openDatabase(path: string): DatabaseSync {
  makePrivate(path);
  const database = new DatabaseSync(path, { timeout: BUSY_TIMEOUT_MS });
  try {
    refuseNewer(versionOf(database), path);
    database.exec(`
      PRAGMA journal_mode = WAL;
      PRAGMA temp_store = MEMORY;
      PRAGMA synchronous = FULL;
      PRAGMA secure_delete = ON;
      PRAGMA fullfsync = ON;
      PRAGMA checkpoint_fullfsync = ON;
    `);
    migrate(database, path);
  } catch (error) {
    database.close();
    throw error instanceof StoreError ? error : storeErrorOf(error, path);
  }
  return database;
}

/**
 * SQLite gives its side files the mode of the main file, so that is made first. A file that exists
 * is never opened here: closing it would drop the locks of this process's other connections (fcntl).
 */
export function makePrivate(path: string): void {
  if (!existsSync(path)) closeSync(openSync(path, 'a', PRIVATE_FILE_MODE));
  chmodSync(path, PRIVATE_FILE_MODE);
}

function migrate(database: DatabaseSync, path: string): void {
  if (versionOf(database) === MIGRATIONS.length) return;
  database.exec('BEGIN IMMEDIATE');
  // Read again under the lock: another process may have done it meanwhile.
  const version = versionOf(database);
  refuseNewer(version, path);
  for (const step of MIGRATIONS.slice(version)) database.exec(step);
  database.exec(`PRAGMA user_version = ${MIGRATIONS.length}`);
  database.exec('COMMIT');
}

function refuseNewer(version: number, path: string): void {
  if (version <= MIGRATIONS.length) return;
  throw new StoreError(
    'store_newer',
    `${path} was written by a newer nanobot (schema ${version}, this one knows ` +
      `${MIGRATIONS.length}). Install that version again, or name another home by NANOBOT_HOME.`,
  );
}

function versionOf(database: DatabaseSync): number {
  return Number(database.prepare('PRAGMA user_version').get()?.['user_version']);
}

/** SQLite's primary result codes, https://sqlite.org/rescode.html */
const SQLITE_PERM = 3;
const SQLITE_BUSY = 5;
const SQLITE_LOCKED = 6;
const SQLITE_READONLY = 8;
const SQLITE_CORRUPT = 11;
const SQLITE_FULL = 13;
const SQLITE_CANTOPEN = 14;
const SQLITE_NOTADB = 26;
const PRIMARY_CODE_MASK = 0xff;

/** @param what is wrong with it, e.g. `is empty` */
export function damagedStore(path: string, what: string, cause?: unknown): StoreError {
  return new StoreError(
    'store_damaged',
    `${path} ${what}. Stop nanobot, move ${path}, ${path}-wal and ${path}-shm to another ` +
      'place (or put a backup there) and start again; a new store is made. Conversations and ' +
      'memory are kept, messages that still waited in the damaged file are not.',
    cause,
  );
}

/**
 * Reads through the whole file, 10 ms for each megabyte. Pages that are read later would be found
 * damaged only then, with messages taken in that nobody answers. @throws StoreError `store_damaged`
 */
export function assertWhole(database: DatabaseSync, path: string, maxBytes: number): void {
  try {
    const { bytes } = database.prepare(SIZE).get() ?? {};
    if (Number(bytes) > maxBytes) return;
    const [found] = Object.values(database.prepare('PRAGMA quick_check(1)').get() ?? {});
    if (found !== 'ok') throw damagedStore(path, 'is damaged', new Error(String(found)));
  } catch (error) {
    throw error instanceof StoreError ? error : storeErrorOf(error, path);
  }
}

const SIZE = 'SELECT page_count * page_size AS bytes FROM pragma_page_count(), pragma_page_size()';

export function storeErrorOf(error: unknown, path: string): StoreError {
  switch (primaryCodeOf(error)) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return damagedStore(path, 'is damaged', error);
    case SQLITE_FULL:
      return new StoreError(
        'store_full',
        `The disk that holds ${path} is full. Make room and try again.`,
        error,
      );
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return new StoreError(
        'store_busy',
        `${path} was held by another process for more than ${BUSY_TIMEOUT_MS / 1000} s.`,
        error,
      );
    case SQLITE_PERM:
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
      return new StoreError(
        'store_forbidden',
        `${path} may not be written. Let the user who runs nanobot write it and its folder.`,
        error,
      );
    default:
      return new StoreError(
        'store_failed',
        `${path} could not be read or written${reasonOf(error)}.`,
        error,
      );
  }
}

/** The number alone: SQLite's own words may quote what it was asked. */
function reasonOf(error: unknown): string {
  const code = primaryCodeOf(error);
  return code === undefined ? '' : ` (SQLite error ${code}, https://sqlite.org/rescode.html)`;
}

function primaryCodeOf(error: unknown): number | undefined {
  if (!(error instanceof Error) || !('errcode' in error)) return undefined;
  return typeof error.errcode === 'number' ? error.errcode & PRIMARY_CODE_MASK : undefined;
}

/** The vendor marks its own errors; anything else was thrown by an operation on purpose. */
export function isDatabaseError(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ERR_SQLITE_ERROR';
}
