// A copy of the store as it is at one moment, made beside the processes that use it, and the counts
// that are compared after a restore.

import { backup, DatabaseSync } from 'node:sqlite';
import { ALERT } from '../../message/ids.ts';
import { isDatabaseError, storeErrorOf } from './database.ts';

export type StoreCounts = {
  readonly messages: number;
  /** Rows by collection. */
  readonly rows: Readonly<Record<string, number>>;
};

/** What the store says of itself at one moment. */
type StoreState = {
  readonly counts: StoreCounts;
  /** Where session files end once their rows are in them, by file. */
  readonly journalEnds: ReadonlyMap<string, number>;
};

type StoreMoment = StoreState &
  Disposable & {
    /** @param onPages called between parts of the copy; an error that it throws ends the copy */
    copyTo(path: string, onPages: () => void): Promise<void>;
  };

/** Longest wait for another process that writes. */
const BUSY_MS = 10_000;
const PAGES_AT_ONCE = 1000;

/**
 * Fixes the moment. `meanwhile` is called while no process can write to the store, so it is fast.
 * @throws StoreError
 */
export function holdStore(
  path: string,
  meanwhile: (journalEnds: ReadonlyMap<string, number>) => void,
): StoreMoment {
  const reader = openFor(path);
  let state: StoreState;
  try {
    const blocker = openFor(path);
    try {
      blocker.exec('BEGIN IMMEDIATE');
      // What it has read once, it sees until the end of its transaction.
      reader.exec('BEGIN');
      const journalEnds = readJournalEnds(reader);
      meanwhile(journalEnds);
      blocker.exec('ROLLBACK');
      state = { journalEnds, counts: countRows(reader) };
    } finally {
      blocker.close();
    }
  } catch (error) {
    reader.close();
    throw isDatabaseError(error) ? storeErrorOf(error, path) : error;
  }
  return {
    ...state,
    async copyTo(copy, onPages) {
      try {
        // The open transaction of the reader keeps it from starting again after each write.
        await backup(reader, copy, { rate: PAGES_AT_ONCE, progress: onPages });
      } catch (error) {
        throw isDatabaseError(error) ? storeErrorOf(error, copy) : error;
      }
    },
    [Symbol.dispose]: () => reader.close(),
  };
}

/** @throws StoreError */
export function readStoreState(path: string): StoreState {
  const database = openFor(path);
  try {
    return { counts: countRows(database), journalEnds: readJournalEnds(database) };
  } catch (error) {
    throw storeErrorOf(error, path);
  } finally {
    database.close();
  }
}

const openFor = (path: string) => new DatabaseSync(path, { timeout: BUSY_MS });

function readJournalEnds(database: DatabaseSync): ReadonlyMap<string, number> {
  if (!hasTable(database, 'session_entry')) return new Map();
  const end = 'max(place + length(CAST(text AS BLOB)))';
  const rows = database
    .prepare(`SELECT file, ${end} AS bytes FROM session_entry GROUP BY file`)
    .all();
  return new Map(rows.map(({ file, bytes }) => [String(file), Number(bytes)]));
}

/** A store of an earlier version may lack it. */
const hasTable = (database: DatabaseSync, name: string) =>
  database.prepare('SELECT 1 FROM sqlite_schema WHERE name = ?').get(name) !== undefined;

function countRows(database: DatabaseSync): StoreCounts {
  const count = (table: string) =>
    hasTable(database, table)
      ? Number(database.prepare(`SELECT count(*) AS count FROM ${table}`).get()?.['count'])
      : 0;
  const scopes = hasTable(database, 'key_value')
    ? database.prepare('SELECT scope, count(*) AS count FROM key_value GROUP BY scope').all()
    : [];
  return {
    messages: count('inbound') + count('outbound'),
    rows: Object.fromEntries(scopes.map(({ scope, count: rows }) => [String(scope), Number(rows)])),
  };
}

/** What a migration changes, and what every message changes. */
export type StoreMark = { readonly schema: number; readonly traffic: string };

/** Migrates nothing. @throws StoreError */
export function storeMark(path: string): StoreMark {
  const reader = openFor(path);
  try {
    const schema = Number(reader.prepare('PRAGMA user_version').get()?.['user_version']);
    if (schema === 0) return { schema, traffic: '' };
    const found = reader.prepare(TRAFFIC).get() ?? {};
    return { schema, traffic: Object.values(found).join('/') };
  } catch (error) {
    throw isDatabaseError(error) ? storeErrorOf(error, path) : error;
  } finally {
    reader.close();
  }
}

/** Notices of the gateway itself, such as that it was updated, are none. */
const SAID = `outbound WHERE id NOT LIKE '${ALERT}%'`;
const TRAFFIC = `SELECT (SELECT max(seq) FROM inbound), (SELECT max(settled_at) FROM inbound),
  (SELECT max(ord) FROM ${SAID}), (SELECT max(settled_at) FROM ${SAID})`;
