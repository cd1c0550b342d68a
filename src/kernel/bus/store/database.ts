// Opens an SQLite file for durable use: private to its user, every commit synced, migrated to the
// newest schema. Failures of the vendor become a StoreError with a remedy.

import { chmodSync, closeSync, existsSync, openSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { t } from '../../../lib/texts.ts';
import { StoreError } from './store.ts';

const PRIVATE_FILE_MODE = 0o600;
/** Another process writes only briefly (a command beside the gateway). */
const BUSY_TIMEOUT_MS = 5000;
/** A checkpoint that is blocked by others is left to the next one. */
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

/** Whether the log is emptied, or keeps its place on the disk, where writing anew syncs faster. */
export type Renewal = 'TRUNCATE' | 'RESTART';
/** Some 150 turns: copying it takes a thread 50 ms of processor time, mostly for its start. */
export const LONG_LOG_BYTES = 16 * 1_048_576;

/**
 * Copies the write-ahead log into the file and restarts the log with a transaction that changes
 * nothing: SQLite syncs the header of a log before its first frames, and this wait happens here.
 */
export function renewLog(database: DatabaseSync, how: Renewal = 'TRUNCATE'): void {
  database.exec(`PRAGMA journal_size_limit = ${LONG_LOG_BYTES}; PRAGMA wal_checkpoint(${how})`);
  database.exec('BEGIN IMMEDIATE');
  database.exec(`PRAGMA user_version = ${versionOf(database)}; COMMIT`);
}

/**
 * After this call COMMIT does not wait for the disk and copies nothing; the caller syncs the log.
 * The log has been started, so that SQLite has no header to sync either, and what an earlier
 * process left in it is in the file: after a failed sync a log may be complete only in memory.
 */
export function leaveSyncsToCaller(database: DatabaseSync): void {
  renewLog(database);
  database.exec('PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 0');
}

/**
 * SQLite gives its side files the mode of the main file, so that is created first. An existing file
 * is never opened here: closing it would drop the locks of this process's other connections
 * (fcntl).
 */
export function makePrivate(path: string): void {
  if (!existsSync(path)) closeSync(openSync(path, 'a', PRIVATE_FILE_MODE));
  chmodSync(path, PRIVATE_FILE_MODE);
}

function migrate(database: DatabaseSync, path: string): void {
  if (versionOf(database) === MIGRATIONS.length) return;
  database.exec('BEGIN IMMEDIATE');
  // Read again under the lock: another process may have migrated it meanwhile.
  const version = versionOf(database);
  refuseNewer(version, path);
  for (const step of MIGRATIONS.slice(version)) database.exec(step);
  database.exec(`PRAGMA user_version = ${MIGRATIONS.length}`);
  database.exec('COMMIT');
}

/** More steps than any version will have. */
const MAX_VERSION = 10_000;

function refuseNewer(version: number, path: string): void {
  if (version < 0 || version > MAX_VERSION) throw damagedStore(path, t`is damaged`);
  if (version <= MIGRATIONS.length) return;
  throw new StoreError(
    'store_newer',
    t`${path} was written by a newer nanobot (schema ${version}, this one knows ` +
      t`${MIGRATIONS.length}). Install that version again, or set NANOBOT_HOME to another folder.`,
  );
}

/** How many migrations an existing file still needs; 0 for one that cannot be read. */
export function pendingMigrations(path: string): number {
  const database = new DatabaseSync(path, { readOnly: true, timeout: BUSY_TIMEOUT_MS });
  try {
    const version = versionOf(database);
    return version === 0 ? 0 : Math.max(0, MIGRATIONS.length - version);
  } catch {
    return 0;
  } finally {
    database.close();
  }
}

function versionOf(database: DatabaseSync): number {
  return Number(database.prepare('PRAGMA user_version').get()?.['user_version']);
}

/** SQLite's primary result codes, https://sqlite.org/rescode.html */
const SQLITE_ERROR = 1;
const SQLITE_PERM = 3;
const SQLITE_BUSY = 5;
const SQLITE_LOCKED = 6;
const SQLITE_READONLY = 8;
const SQLITE_IOERR = 10;
const SQLITE_CORRUPT = 11;
const SQLITE_FULL = 13;
const SQLITE_CANTOPEN = 14;
const SQLITE_NOTADB = 26;
const PRIMARY_CODE_MASK = 0xff;

/** @param what the damage, e.g. `is empty` */
export function damagedStore(path: string, what: string, cause?: unknown): StoreError {
  return new StoreError(
    'store_damaged',
    t`${path} ${what}. Rebuild it: stop nanobot, then run "nanobot doctor --fix", or set ` +
      t`store.onDamage to "recover" and start the gateway. The damaged file is kept; conversations ` +
      t`and memory are not affected.`,
    cause,
    what,
  );
}

/** The newest copy that the gateway keeps, see snapshot.ts. */
export const newestSnapshot = (path: string) => `${path}.snapshot`;

/** Stands beside state.db once damage was found: the next start checks a file of any size. */
export const damageMark = (path: string) => `${path}.check`;

/**
 * Reads the whole file, 10 ms for each megabyte. Otherwise damage would be found only later, when
 * messages have been accepted that nothing answers. @throws StoreError `store_damaged`
 */
export function assertWhole(database: DatabaseSync, path: string, maxBytes: number): void {
  try {
    const { bytes } = database.prepare(SIZE).get() ?? {};
    if (Number(bytes) > maxBytes) return;
    const found = findDamage(database);
    if (found !== undefined) throw damagedStore(path, t`is damaged`, new Error(found));
  } catch (error) {
    throw error instanceof StoreError ? error : storeErrorOf(error, path);
  }
}

/** Undefined if every page is whole, no table is missing and every open message can be read. */
export function findDamage(database: DatabaseSync): string | undefined {
  const [found] = Object.values(database.prepare('PRAGMA quick_check(1)').get() ?? {});
  if (found !== 'ok') return String(found);
  try {
    const { n } = database.prepare(UNREADABLE).get() ?? {};
    return n === 0 ? undefined : t`a message is not readable`;
  } catch (error) {
    if (primaryCodeOf(error) !== SQLITE_ERROR) throw error;
    return t`a table is missing`;
  }
}

const UNREADABLE = `SELECT
  (SELECT count(*) FROM inbound WHERE state = 'pending' AND json_valid(body) IS NOT 1) +
  (SELECT count(*) FROM outbound WHERE state IN ('queued', 'sending')
    AND (json_valid(body) IS NOT 1 OR json_valid(parts) IS NOT 1)) AS n`;
const SIZE = 'SELECT page_count * page_size AS bytes FROM pragma_page_count(), pragma_page_size()';

/** After a failed sync: what is on the disk is known only when the file is opened again. */
export function lostStore(path: string, cause: unknown): StoreError {
  const code = cause instanceof Error && 'code' in cause ? ` (${String(cause.code)})` : '';
  return new StoreError(
    'store_failed',
    t`The disk failed to write ${path}${code}. Check the disk, then start ` +
      t`nanobot again; earlier messages are kept.`,
    cause,
  );
}

export function storeErrorOf(error: unknown, path: string): StoreError {
  switch (primaryCodeOf(error)) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return damagedStore(path, t`is damaged`, error);
    case SQLITE_FULL:
      return new StoreError(
        'store_full',
        t`The disk of ${path} is full. Free disk space and try again.`,
        error,
      );
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return new StoreError(
        'store_busy',
        t`Another process locked ${path} for more than ${BUSY_TIMEOUT_MS / 1000} s.`,
        error,
      );
    case SQLITE_PERM:
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
      return new StoreError(
        'store_forbidden',
        t`Cannot write ${path}. Allow the user who runs nanobot to write it and its folder.`,
        error,
      );
    case SQLITE_IOERR:
      return new StoreError(
        'store_failed',
        t`The disk failed to read or write ${path}${reasonOf(error)}. Check the disk and its free space, then start nanobot again.`,
        error,
      );
    default:
      return new StoreError(
        'store_failed',
        t`Cannot read or write ${path}${reasonOf(error)}.`,
        error,
      );
  }
}

/** Only the number: SQLite's own text may quote a statement. */
function reasonOf(error: unknown): string {
  const code = primaryCodeOf(error);
  return code === undefined ? '' : t` (SQLite error ${code}, https://sqlite.org/rescode.html)`;
}

function primaryCodeOf(error: unknown): number | undefined {
  if (!(error instanceof Error) || !('errcode' in error)) return undefined;
  return typeof error.errcode === 'number' ? error.errcode & PRIMARY_CODE_MASK : undefined;
}

/** The vendor marks its own errors; an operation threw anything else on purpose. */
export function isDatabaseError(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ERR_SQLITE_ERROR';
}

// The tables of state.db, as migrations: step n takes user_version n to n + 1. A released step is
// never edited; a change is a new step.

/**
 * inbound: `pending` rows wait or belong to a running turn. A try that is no failure ended with its
 * process; `deaths` counts those without another suspect running. session_lane: one row per
 * session; it is ready at `ready_at`, or held by a turn that owns all pending rows up to
 * `held_through`. outbound: per lane only the oldest open row has a `ready_at`; it is set for the
 * next one when that row settles, so finding what is due never reads what waits behind it. A `sent`
 * row with `bounced_at` came back undeliverable after the platform had accepted it. `begun_at` is
 * the start of the try of which the first part arrived. `requesting` is 0 while a claimed row
 * certainly has no request running, and NULL if its channel does not report it. `stopped` is the
 * reason why no further part is to be sent. draft: an empty `native_id` is one that was about to be
 * placed. session_entry: whole lines of a session file, to be written `place` bytes from its start.
 */
export const MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE inbound (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    session TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('pending', 'done', 'recorded', 'cancelled', 'dead', 'dropped')),
    body TEXT,
    reason TEXT,
    turn TEXT,
    attempts INTEGER NOT NULL DEFAULT 0,
    received_at INTEGER NOT NULL,
    accepted_at INTEGER NOT NULL,
    claimed_at INTEGER,
    settled_at INTEGER
  );
  CREATE INDEX inbound_pending ON inbound (session, seq) WHERE state = 'pending';
  CREATE INDEX inbound_dead ON inbound (seq) WHERE state = 'dead';

  CREATE TABLE session_lane (
    session TEXT PRIMARY KEY,
    epoch INTEGER NOT NULL DEFAULT 0,
    owner TEXT,
    held_through INTEGER,
    stop_reason TEXT,
    ready_at INTEGER
  ) WITHOUT ROWID;
  CREATE INDEX session_lane_ready ON session_lane (ready_at) WHERE ready_at IS NOT NULL;
  CREATE INDEX session_lane_held ON session_lane (owner) WHERE owner IS NOT NULL;

  CREATE TABLE outbound (
    ord INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    channel TEXT NOT NULL,
    lane TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('queued', 'sending', 'sent', 'dead', 'unknown', 'dropped')),
    body TEXT,
    finalizes TEXT,
    reason TEXT,
    attempts INTEGER NOT NULL DEFAULT 0,
    owner TEXT,
    in_doubt INTEGER NOT NULL DEFAULT 0,
    was_repeated INTEGER NOT NULL DEFAULT 0,
    parts TEXT NOT NULL DEFAULT '[]',
    created_at INTEGER NOT NULL,
    queued_at INTEGER NOT NULL,
    claimed_at INTEGER,
    settled_at INTEGER,
    ready_at INTEGER
  );
  CREATE INDEX outbound_open ON outbound (lane, ord) WHERE state IN ('queued', 'sending');
  CREATE INDEX outbound_ready ON outbound (channel, ready_at) WHERE ready_at IS NOT NULL;
  CREATE INDEX outbound_dead ON outbound (ord) WHERE state IN ('dead', 'unknown');

  CREATE TABLE draft (
    turn TEXT PRIMARY KEY,
    first_seq INTEGER NOT NULL,
    channel TEXT NOT NULL,
    chat TEXT NOT NULL,
    native_id TEXT NOT NULL
  ) WITHOUT ROWID;

  CREATE TABLE cursor (
    channel TEXT NOT NULL,
    account TEXT NOT NULL,
    value TEXT NOT NULL,
    written_at INTEGER NOT NULL,
    PRIMARY KEY (channel, account)
  ) WITHOUT ROWID;

  CREATE TABLE key_value (
    scope TEXT NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    written_at INTEGER NOT NULL,
    PRIMARY KEY (scope, key)
  ) WITHOUT ROWID;
  `,
  `
  ALTER TABLE outbound ADD COLUMN bounced_at INTEGER;
  ALTER TABLE outbound ADD COLUMN bounce_reason TEXT;
  `,
  `
  ALTER TABLE outbound ADD COLUMN begun_at INTEGER;
  `,
  `
  ALTER TABLE inbound ADD COLUMN failures INTEGER NOT NULL DEFAULT 0;
  `,
  `
  ALTER TABLE outbound ADD COLUMN requesting INTEGER;
  ALTER TABLE outbound ADD COLUMN stopped TEXT;
  `,
  `
  ALTER TABLE draft ADD COLUMN reply_to TEXT;
  `,
  `
  ALTER TABLE inbound ADD COLUMN deaths INTEGER NOT NULL DEFAULT 0;
  `,
  `
  CREATE TABLE session_entry (
    ord INTEGER PRIMARY KEY,
    session TEXT NOT NULL,
    file TEXT NOT NULL,
    place INTEGER NOT NULL,
    text TEXT NOT NULL
  );
  `,
];
