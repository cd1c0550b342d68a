// The tables of the full-text index in PostgreSQL: their connection, how their rows are read, and
// how what was erased leaves them.

import { createLanes, inTime } from '../../../../lib/async.ts';
import { systemClock } from '../../../../lib/time/clock.ts';
import type { SqlValue } from '../key-value.ts';
import type { FoundPart, IndexedPart } from '../text-index.ts';
import { Connection, isDatabaseError, type Result, storeErrorOf } from './connection.ts';
import { SCHEMA, SCRUB_LOCK } from './schema.ts';

/** One statement after the other, or several in a transaction in which nothing else runs. */
export interface IndexTables {
  send(sql: string, params?: readonly SqlValue[]): Promise<Result>;
  change<T>(work: (send: Connection['send']) => Promise<T>): Promise<T>;
}

export type PostgresIndexOptions = {
  readonly url: string;
  readonly pool: string | undefined;
  /** Of its connection. */
  readonly name: string;
  /** For messages. */
  readonly server: string;
};

/** A connection that does not answer for so long is given up. */
const SILENCE_MS = 60_000;
/** How long closing waits for what is under way: what is not indexed yet is indexed after the next start. */
const CLOSE_MS = 3000;

export function openTables({ url, pool, name, server }: PostgresIndexOptions) {
  const lanes = createLanes();
  let connection: Connection | undefined;
  async function connected(): Promise<Connection> {
    if (connection?.isOver === false) return connection;
    connection = await Connection.open({ url: pool ?? url, name, isPooled: pool !== undefined });
    return connection;
  }
  const alone = <T>(work: (connection: Connection) => Promise<T>) =>
    lanes.run('index', async () => {
      try {
        const open = await connected();
        return await open.within(SILENCE_MS, () => work(open));
      } catch (error) {
        throw isDatabaseError(error) ? storeErrorOf(error, server) : error;
      }
    });
  const tables: IndexTables = {
    send: (sql, params) => alone((open) => open.send(sql, params)),
    change: (work) =>
      alone(async (open) => {
        try {
          await open.script('BEGIN');
          const result = await work((sql, params) => open.send(sql, params));
          await open.script('COMMIT');
          return result;
        } catch (error) {
          await open.script('ROLLBACK').catch(() => open.end());
          throw error;
        }
      }),
  };
  async function close(): Promise<void> {
    const closed = lanes.run('index', async () => connection?.close());
    if ((await inTime(systemClock, CLOSE_MS, closed)) === 'late') connection?.end();
  }
  return { ...tables, close };
}

/** What `foundPart` reads. */
export const partsFrom = (more = '') => `
  SELECT part.id, part.source, part.place, part.role, part.is_foreign, part.at, part.text,
    source.label${more}
  FROM ${SCHEMA}.text_part part JOIN ${SCHEMA}.text_source source ON source.name = part.source`;

export function foundPart(row: Result['rows'][number]): FoundPart {
  const { id, source, place, role, is_foreign, at, text, label } = row;
  return {
    ...{ id: Number(id), source: String(source), place: Number(place), at: Number(at) },
    ...{ role: String(role) as IndexedPart['role'], isForeign: is_foreign !== 0 },
    ...{ text: String(text), label: String(label) },
  };
}

const TABLES = ['text_source', 'text_part', 'text_model', 'text_waiting', 'text_vector']
  .map((table) => `${SCHEMA}.${table}`)
  .join(', ');
export const DROP_TEXTS = `TRUNCATE ${TABLES}`;

// Erasing. An index keeps each word that it ever had, so it is made anew.

const SCRUB_TRIES_MS = 200;

export async function scrub({ url, name, server }: PostgresIndexOptions): Promise<void> {
  try {
    const connection = await Connection.open({ url, name: `${name} scrub` });
    try {
      // A statement that waited for the lock would hold up the one that has it.
      while (!(await hasLock(connection))) await systemClock.sleep(SCRUB_TRIES_MS);
      for (const statement of SCRUB) await connection.script(statement);
    } finally {
      await connection.close();
    }
  } catch (error) {
    throw isDatabaseError(error) ? storeErrorOf(error, server) : error;
  }
}

const hasLock = async (connection: Connection) =>
  (await connection.send(`SELECT pg_try_advisory_lock(${SCRUB_LOCK}) AS held`)).rows[0]?.[
    'held'
  ] === 't';

/** The first two remove what an interrupted one left. */
const SCRUB = [
  `DROP INDEX CONCURRENTLY IF EXISTS ${SCHEMA}.text_part_words_ccnew`,
  `DROP INDEX CONCURRENTLY IF EXISTS ${SCHEMA}.text_part_words_ccold`,
  `VACUUM ${TABLES}`,
  `REINDEX INDEX CONCURRENTLY ${SCHEMA}.text_part_words`,
];
