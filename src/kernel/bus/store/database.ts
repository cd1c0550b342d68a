// Opens an SQLite file for durable use: private to its user, every commit synced, brought to the
// newest schema. Failures of the vendor become a StoreError that says what to do.

import { chmodSync, closeSync, existsSync, openSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { MIGRATIONS } from './schema.ts';
import { StoreError } from './store.ts';

const PRIVATE_FILE_MODE = 0o600;
/** Another process writes for a moment only (a command beside the gateway). */
const BUSY_TIMEOUT_MS = 5000;
/** A checkpoint that others hold up is left to the next one. */
const CHECKPOINT_TIMEOUT_MS = 1000;

const SYNCS = `
  PRAGMA synchronous = FULL;
  PRAGMA fullfsync = ON;
  PRAGMA checkpoint_fullfsync = ON;
`;

/** @throws StoreError */
export function openDatabase(path: string): DatabaseSync {
  makePrivate(path);
  const database = new DatabaseSync(path, { timeout: BUSY_TIMEOUT_MS });
  try {
    refuseNewer(versionOf(database), path);
    database.exec(`
      PRAGMA journal_mode = WAL;
      PRAGMA temp_store = MEMORY;
      PRAGMA secure_delete = ON;
      ${SYNCS}
    `);
    migrate(database, path);
  } catch (error) {
    database.close();
    throw error instanceof StoreError ? error : storeErrorOf(error, path);
  }
  return database;
}

/** A further connection of a process that has the file open. */
export function openForCheckpoint(path: string): DatabaseSync {
  const database = new DatabaseSync(path, { timeout: CHECKPOINT_TIMEOUT_MS });
  database.exec(SYNCS);
  return database;
}

/**
 * Copies the write-ahead log into the file and begins the log anew with a transaction that changes
 * nothing: SQLite syncs the header of a log before its first frames, and here that wait is done.
 */
export function renewLog(database: DatabaseSync): void {
  database.exec('PRAGMA wal_checkpoint(TRUNCATE)');
  database.exec('BEGIN IMMEDIATE');
  database.exec(`PRAGMA user_version = ${versionOf(database)}; COMMIT`);
}

/**
 * From here on COMMIT does not wait for the disk and copies nothing; the caller syncs the log. The
 * log has begun, so that SQLite has no header of it to sync either, and what an earlier process left
 * in it is in the file: a log that a failed sync left may be whole in memory only.
 */
export function leaveSyncsToCaller(database: DatabaseSync): void {
  renewLog(database);
  database.exec('PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 0');
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

/** After a sync that failed: what of the log is on the disk is known when the file is opened again. */
export function lostStore(path: string, cause: unknown): StoreError {
  const code = cause instanceof Error && 'code' in cause ? ` (${String(cause.code)})` : '';
  return new StoreError(
    'store_failed',
    `The disk did not take what was written last to ${path}${code}. Check the disk, then start ` +
      'nanobot again; what was taken in before is kept.',
    cause,
  );
}

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
