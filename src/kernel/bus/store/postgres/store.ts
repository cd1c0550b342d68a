// State in a PostgreSQL database. The gateway holds a lock of the database with the connection on
// which it writes, so a second one is refused, and one that lost its connection writes nothing until
// it has the lock again.

import { randomUUID } from 'node:crypto';
import type { Logger } from '../../../../lib/logger.ts';
import { t } from '../../../../lib/texts.ts';
import { type Clock, systemClock } from '../../../../lib/time/clock.ts';
import { bindOperations } from '../operations.ts';
import { type EmbeddedStore, StoreError } from '../store.ts';
import { type CommitOptions, PostgresCommits } from './commits.ts';
import { Connection, isDatabaseError, shownServer, storeErrorOf } from './connection.ts';
import {
  GATEWAY_LOCK,
  GATEWAY_LOCK_ROW,
  migrate,
  NEWEST_SCHEMA,
  SCHEMA,
  WRITE_LOCK,
} from './schema.ts';

export type PostgresStoreOptions = {
  /** With the password. */
  readonly url: string;
  readonly clock: Clock;
  readonly log: Logger;
  /** The gateway: the only one of the database. It waits for a server that is away. */
  readonly isGateway?: boolean;
};

/**
 * A process that stops in the middle of a transaction would block the others. An asynchronous
 * commit would be acknowledged before it is on the disk.
 */
const SESSION = `
  SET search_path = ${SCHEMA};
  SET idle_in_transaction_session_timeout = '30s';
  SELECT set_config('synchronous_commit', 'on', false)
    WHERE current_setting('synchronous_commit') = 'off';
  LISTEN nanobot`;

/** How long the server may take to notice that the connection of this process was cut. */
const TAKE_BACK_TRIES = 50;
const TAKE_BACK_MS = 100;

/** @throws StoreError */
export async function openPostgresStore(options: PostgresStoreOptions): Promise<EmbeddedStore> {
  const { url, clock, log, isGateway = false } = options;
  const server = shownServer(url);
  // A hold of an earlier process is never mistaken for one of this process.
  const owner = randomUUID();
  let revision = 0;
  const name = `nanobot ${owner}`;
  const onNotice = (writer: string) => {
    if (writer !== owner) revision += 1;
  };
  let version = '';
  async function connect(): Promise<Connection> {
    const connection = await Connection.open({ url, name, onNotice });
    try {
      version = await supportedVersion(connection, server);
      await migrate(connection, server);
      await connection.script(SESSION);
      if (isGateway) await takeLock(connection, name, server);
    } catch (error) {
      connection.end();
      throw error;
    }
    // What others wrote while there was no connection was not heard of.
    revision += 1;
    return connection;
  }
  const first = await connect().catch((error) => {
    throw isDatabaseError(error) ? storeErrorOf(error, server) : error;
  });
  const how: CommitOptions = {
    server,
    connect,
    clock: systemClock,
    log,
    ...marksOf(owner, isGateway),
  };
  const commits = new PostgresCommits(first, how);
  log.debug('store opened', { server });
  let seen = revision;
  return {
    server: `${server} (PostgreSQL ${version}, schema ${NEWEST_SCHEMA})`,
    ...bindOperations(commits, clock, owner),
    revision: () => revision,
    changedOutside() {
      const before = seen;
      seen = revision;
      return seen !== before;
    },
    waitMs: () => commits.waitMs(),
    lost: commits.lost,
    scrub: () => vacuum(url, name, server),
    copyTo: () =>
      Promise.reject(new StoreError('store_failed', t`Back up ${server} with pg_dump.`)),
    [Symbol.asyncDispose]: () => commits.close(),
  };
}

/**
 * A connection beside which no gateway runs and nothing is written until it is closed.
 * @throws StoreError, or what `isDatabaseError` knows
 */
export async function openAlone(url: string): Promise<Connection> {
  const server = shownServer(url);
  const name = `nanobot ${randomUUID()}`;
  const connection = await Connection.open({ url, name });
  try {
    await supportedVersion(connection, server);
    await migrate(connection, server);
    await connection.script(`SET search_path = ${SCHEMA}`);
    await takeLock(connection, name, server);
    await connection.send(`SELECT pg_advisory_lock(${WRITE_LOCK})`);
    return connection;
  } catch (error) {
    connection.end();
    throw error;
  }
}

const OLDEST_VERSION = 13;

/** @throws StoreError */
async function supportedVersion(connection: Connection, server: string): Promise<string> {
  const { rows } = await connection.send(`SELECT current_setting('server_version') AS version`);
  const version = String(rows[0]?.['version']).split(' ')[0] ?? '';
  if (Number.parseInt(version, 10) >= OLDEST_VERSION) return version;
  throw new StoreError(
    'store_forbidden',
    t`${server} is PostgreSQL ${version}. Update it to version ${OLDEST_VERSION} or later.`,
  );
}

/** Other processes tell the gateway that they have written; the gateway notes what it committed. */
function marksOf(owner: string, isGateway: boolean): Pick<CommitOptions, 'mark' | 'wasCommitted'> {
  if (!isGateway) return { mark: () => [`SELECT pg_notify('nanobot', ?)`, owner] };
  return {
    mark: (number) => [
      `INSERT INTO process (owner, batch) VALUES (?, ?)
       ON CONFLICT (owner) DO UPDATE SET batch = excluded.batch`,
      ...[owner, number],
    ],
    async wasCommitted(connection, number) {
      const { rows } = await connection.send('SELECT batch FROM process WHERE owner = ?', [owner]);
      return rows[0]?.['batch'] === number;
    },
  };
}

/** @throws StoreError `store_held` */
async function takeLock(connection: Connection, name: string, server: string): Promise<void> {
  for (let tries = 0; tries < TAKE_BACK_TRIES; tries += 1) {
    const { rows } = await connection.send(`SELECT pg_try_advisory_lock(${GATEWAY_LOCK}) AS held`);
    if (rows[0]?.['held'] === 't') {
      await connection.send('DELETE FROM process WHERE owner <> ?', [
        name.slice('nanobot '.length),
      ]);
      return;
    }
    // A connection of this process whose end the server has not noticed.
    const ended = await connection.send(
      `SELECT pg_terminate_backend(pid) FROM pg_locks JOIN pg_stat_activity USING (pid)
       WHERE ${GATEWAY_LOCK_ROW} AND application_name = ?`,
      [name],
    );
    if (ended.rows.length === 0) break;
    await systemClock.sleep(TAKE_BACK_MS);
  }
  throw new StoreError(
    'store_held',
    t`Another gateway uses ${server}. Stop it, or give this one a database of its own (store.url).`,
  );
}

/** Rows that were deleted or overwritten leave the tables; the server's log and back-ups keep them. */
async function vacuum(url: string, name: string, server: string): Promise<void> {
  try {
    const connection = await Connection.open({ url, name: `${name} vacuum` });
    try {
      await connection.send(
        `VACUUM ${['inbound', 'outbound', 'key_value', 'session_entry', 'cursor', 'draft']
          .map((table) => `${SCHEMA}.${table}`)
          .join(', ')}`,
      );
    } finally {
      connection.end();
    }
  } catch (error) {
    throw isDatabaseError(error) ? storeErrorOf(error, server) : error;
  }
}
