// State in a PostgreSQL database. The gateway holds a lock of the database with the connection on
// which it writes, so a second one is refused, and one that lost its connection writes nothing until
// it has the lock again.

import { randomUUID } from 'node:crypto';
import { createLanes } from '../../../../lib/async.ts';
import type { Logger } from '../../../../lib/logger.ts';
import { t } from '../../../../lib/texts.ts';
import { type Clock, systemClock } from '../../../../lib/time/clock.ts';
import { bindOperations, sharedOperations } from '../operations.ts';
import type { NodeSelf, SharedStore } from '../shared.ts';
import { type EmbeddedStore, type SharedEntries, StoreError } from '../store.ts';
import { type CommitOptions, PostgresCommits, SILENCE_MS } from './commits.ts';
import {
  Connection,
  isDatabaseError,
  shownServer,
  storeErrorOf,
  Unreachable,
} from './connection.ts';
import { createMembership, PULSE_DEADLINE_MS } from './membership.ts';
import { createNews, isWorthTelling, telling } from './news.ts';
import {
  FILES_LOCK,
  GATEWAY_LOCK,
  migrate,
  NEWEST_SCHEMA,
  NOTES_LOCK,
  SCHEMA,
  WRITE_LOCK,
} from './schema.ts';
import { createPostgresIndex } from './text-index.ts';

type PostgresStoreOptions = {
  /** With the password. */
  readonly url: string;
  /**
   * For one of several processes: the same database through a pooler that gives each transaction a
   * session of its own; the session with `url` hears of the others and shows that this one lives.
   */
  readonly poolUrl?: string | undefined;
  readonly clock: Clock;
  readonly log: Logger;
  /** The gateway: the only one of the database. It waits for a server that is away. */
  readonly isGateway?: boolean;
  /** Several processes of the gateway may use the database, see docs/adr/0041. */
  readonly isShared?: boolean;
  /** This one is one of them. */
  readonly node?: NodeSelf;
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

/**
 * What a transaction needs that comes through a pooler. On a standby it fails as an outage (SQLSTATE
 * 25006), because a standby refuses to notify.
 */
const OPENING = `
  SELECT set_config('search_path', '${SCHEMA}', true),
    set_config('idle_in_transaction_session_timeout', '30s', true),
    CASE current_setting('synchronous_commit') WHEN 'off'
      THEN set_config('synchronous_commit', 'on', true) END,
    CASE WHEN pg_is_in_recovery() THEN pg_notify('nanobot', '') END`;

/** How long the server may take to notice that the connection of this process was cut. */
const TAKE_BACK_TRIES = 50;
const TAKE_BACK_MS = 100;

type Hold = 'alone' | 'shared' | 'none';

/** @throws StoreError */
export async function openPostgresStore(options: PostgresStoreOptions): Promise<EmbeddedStore> {
  const { url, clock, log, isGateway = false, node, isShared = false } = options;
  const server = shownServer(url);
  // A hold of an earlier process is never mistaken for one of this process.
  const owner = randomUUID();
  const hold: Hold = node !== undefined ? 'shared' : isGateway ? 'alone' : 'none';
  let joined: Awaited<ReturnType<typeof join>> | undefined;
  const news = createNews({
    ...{ owner, clock: systemClock },
    onLeader: (resource, by) => joined?.noteLeader(resource, by),
  });
  const name = `nanobot ${owner}`;
  const pool = options.poolUrl === undefined || hold !== 'shared' ? undefined : options.poolUrl;
  let version = '';
  async function prepare(connection: Connection): Promise<void> {
    version = await supportedVersion(connection, server);
    await migrate(connection, server);
    await connection.script(SESSION);
    if (hold !== 'none') await takeLock(connection, name, server, hold);
  }
  /** @param ms how long it may take; the first one may change the tables */
  async function connectDirectly(ms?: number): Promise<Connection> {
    const connection = await Connection.open({ url, name, onNotice: news.hear });
    try {
      if (ms === undefined) await prepare(connection);
      else await connection.within(ms, () => prepare(connection));
    } catch (error) {
      connection.end();
      throw error;
    }
    // What others wrote while there was no connection was not heard of.
    news.missed();
    return connection;
  }
  async function connect(ms?: number): Promise<Connection> {
    return pool === undefined ? connectDirectly(ms) : connectThrough(pool, name);
  }
  const first = await opened(async () => {
    if (pool !== undefined) await (await connectDirectly()).close();
    return connect();
  }, server);
  const how: CommitOptions = {
    server,
    connect: () => connect(SILENCE_MS),
    clock: systemClock,
    log,
    ...marksOf({ owner, name, hold, clock }),
    ...(pool === undefined ? {} : { opening: OPENING, heard: async () => joined?.heard() }),
  };
  const commits = new PostgresCommits(first, how);
  const entries = isShared ? shareEntries({ url, pool, owner, clock, commits }) : undefined;
  const onCut = () => {
    commits.cut();
    entries?.cut();
  };
  const deps = { url, pool, server, owner, clock, log, commits, news, onCut };
  joined = node && (await join(deps, node));
  const textIndex = createPostgresIndex({ url, pool, name: `${name} index`, server });
  log.debug('store opened', { server });
  let seen = news.revision();
  return {
    server: `${server} (PostgreSQL ${version}, schema ${NEWEST_SCHEMA})`,
    ...bindOperations(commits, clock, owner, isShared),
    ...(entries === undefined ? {} : { sharedEntries: entries.shared, nodes: entries.nodes }),
    ...(joined === undefined ? {} : { shared: joined.shared }),
    textIndex,
    revision: news.revision,
    changedOutside() {
      const before = seen;
      seen = news.revision();
      return seen !== before;
    },
    endSoon: () => commits.endSoon(),
    waitMs: () => commits.waitMs(),
    lost: commits.lost,
    scrub: () => vacuum(url, name, server),
    copyTo: () =>
      Promise.reject(new StoreError('store_failed', t`Back up ${server} with pg_dump.`)),
    async [Symbol.asyncDispose]() {
      await textIndex[Symbol.asyncDispose]();
      await joined?.leave();
      await commits.close();
      await entries?.close();
      news.close();
    },
  };
}

/** @throws what `isOutage` knows, also where the server behind the pooler only reads */
async function connectThrough(pool: string, name: string): Promise<Connection> {
  const connection = await Connection.open({ url: pool, name, isPooled: true });
  return connection.prepare(SILENCE_MS, async () => {
    const { rows } = await connection.send(
      `SELECT current_setting('transaction_read_only') AS reading`,
    );
    if (rows[0]?.['reading'] === 'on') throw new Unreachable('the server only reads');
    return connection;
  });
}

async function opened<T>(open: () => Promise<T>, server: string): Promise<T> {
  try {
    return await open();
  } catch (error) {
    throw isDatabaseError(error) ? storeErrorOf(error, server) : error;
  }
}

type JoinDeps = {
  readonly url: string;
  readonly pool: string | undefined;
  readonly server: string;
  readonly owner: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly commits: PostgresCommits;
  readonly news: ReturnType<typeof createNews>;
  /** The others have ended the connections of this process, or will. */
  onCut(): void;
};

/** Becomes one of the processes of the database. @throws StoreError */
async function join(deps: JoinDeps, self: NodeSelf) {
  const { url, pool, server, owner, clock, log, commits, news } = deps;
  const run = sharedOperations(commits, clock, owner);
  const notes = createExclusion({ url, pool, commits }, `nanobot ${owner} notes`, NOTES_LOCK);
  const membership = createMembership({
    ...{ self, owner, log, clock: systemClock, onChange: news.tell },
    onOverdue: news.overdue,
    onCut() {
      deps.onCut();
      notes.cut();
    },
    connect: async (onNotice) => {
      const connection = await Connection.open({
        ...{ url, name: `nanobot ${owner} pulse` },
        onNotice: (payload, channel) =>
          channel === 'nanobot' ? news.hear(payload) : onNotice(payload),
      });
      await connection.prepare(PULSE_DEADLINE_MS, async () => {
        await connection.script(`SET search_path = ${SCHEMA}`);
        if (pool === undefined) return;
        await connection.script('LISTEN nanobot');
        await takeLock(connection, `nanobot ${owner}`, server, 'shared');
      });
      if (pool !== undefined) news.missed();
      return connection;
    },
    bury: run.bury,
    takeOver: run.takeOver,
  });
  try {
    await membership.join();
    const other = membership.others().find(({ version }) => version !== self.version);
    if (other !== undefined) throw otherVersion(server, self, other);
  } catch (error) {
    await membership.leave();
    await commits.close();
    throw isDatabaseError(error) ? storeErrorOf(error, server) : error;
  }
  const shared: SharedStore = {
    ...membership.shared,
    onNews: news.listen,
    async lead(resource) {
      const epoch = await run.lead(resource);
      if (epoch !== undefined) membership.noteLeader(resource, owner);
      return epoch;
    },
    async release(resource) {
      membership.noteLeader(resource, undefined);
      await run.release(resource);
    },
    isLeading: run.isLeading,
    isTurnDue: run.isTurnDue,
    newsOfTurns: run.newsOfTurns,
    held: run.held,
    exclusively: notes.run,
  };
  // Who leads what is seen at once.
  const hearing = news.listen(({ isAnything }) => isAnything && membership.refresh());
  return {
    shared,
    noteLeader: membership.noteLeader,
    heard: () => membership.heard().catch(() => news.distrust()),
    async leave() {
      hearing[Symbol.dispose]();
      await membership.leave();
      await notes.close();
    },
  };
}

/** Conversations that several processes write. */
function shareEntries(deps: Pick<JoinDeps, 'url' | 'pool' | 'owner' | 'clock' | 'commits'>) {
  const { owner, clock, commits } = deps;
  const { end, rows, adopt, dropMoved, nodes } = sharedOperations(commits, clock, owner);
  const files = createExclusion(deps, `nanobot ${owner} files`, FILES_LOCK);
  return {
    nodes,
    shared: { ...{ end, rows, adopt, dropMoved }, alone: files.run } satisfies SharedEntries,
    cut: files.cut,
    close: files.close,
  };
}

/**
 * Work of one process at a time, under a lock that its transaction holds. The others end the
 * connections of one that is taken for dead, and then it is not confirmed.
 */
function createExclusion(
  { url, pool, commits }: Pick<JoinDeps, 'url' | 'pool' | 'commits'>,
  name: string,
  lock: string,
) {
  const lanes = createLanes();
  let connection: Connection | undefined;
  async function run<T>(work: (confirm: () => Promise<void>) => Promise<T>): Promise<T> {
    if (connection?.isOver !== false) {
      commits.givenUp.throwIfAborted();
      connection = await (pool === undefined
        ? Connection.open({ url, name })
        : connectThrough(pool, name));
    }
    const locked = connection;
    const script = (sql: string) => locked.within(SILENCE_MS, () => locked.script(sql));
    try {
      await script('BEGIN');
      // Without a limit: others may hold the lock for as long as they work.
      await locked.send(`SELECT pg_advisory_xact_lock(${lock})`);
      return await work(() => script('SELECT 1'));
    } finally {
      await script('COMMIT').catch(() => locked.end());
    }
  }
  async function named<T>(work: (confirm: () => Promise<void>) => Promise<T>): Promise<T> {
    try {
      return await run(work);
    } catch (error) {
      throw isDatabaseError(error) ? storeErrorOf(error, shownServer(url)) : error;
    }
  }
  return {
    run: <T>(work: (confirm: () => Promise<void>) => Promise<T>) =>
      lanes.run(lock, () => named(work)),
    cut: () => connection?.end(),
    close: async () => connection?.close(),
  };
}

const otherVersion = (server: string, self: NodeSelf, other: NodeSelf) =>
  new StoreError(
    'store_held',
    t`${other.name} uses ${server} with version ${other.version}, this is version ${self.version}. ` +
      t`Stop all processes of the other version first.`,
  );

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
    await takeLock(connection, name, server, 'alone');
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

type MarkDeps = {
  readonly owner: string;
  readonly name: string;
  readonly hold: Hold;
  readonly clock: Clock;
};

/**
 * A process tells the gateways that it has written; a gateway notes what it committed. The one
 * gateway of a database tells nobody.
 */
function marksOf({
  owner,
  name,
  hold,
  clock,
}: MarkDeps): Pick<CommitOptions, 'marks' | 'wasCommitted'> {
  const note = (number: number) =>
    [
      `INSERT INTO process (owner, batch, written_at) VALUES (?, ?, ?)
       ON CONFLICT (owner) DO UPDATE
         SET batch = excluded.batch, written_at = excluded.written_at`,
      ...[owner, number, clock.now()],
    ] as const;
  if (hold === 'none') return { marks: (_number, news) => [telling(owner, news)] };
  return {
    marks: (number, news) =>
      hold === 'alone' || !isWorthTelling(news)
        ? [note(number)]
        : [note(number), telling(owner, news)],
    async wasCommitted(connection, number) {
      // The transaction on the lost connection may still be about to end.
      while (await endAbandoned(connection, name)) await systemClock.sleep(TAKE_BACK_MS);
      // A write, so that the answer is as durable as the commit: it waits for a standby, too.
      const { rows } = await connection.send(
        // Outside a transaction the schema may not be set.
        `UPDATE ${SCHEMA}.process SET batch = batch WHERE owner = ? RETURNING batch`,
        [owner],
      );
      return rows[0]?.['batch'] === number;
    },
  };
}

/** How long the mark of a process is kept that may come back and look for it. */
const KEEP_MARKS_MS = 7 * 86_400_000;

/** @throws StoreError `store_held` */
async function takeLock(
  connection: Connection,
  name: string,
  server: string,
  hold: 'alone' | 'shared',
): Promise<void> {
  const suffix = hold === 'shared' ? '_shared' : '';
  for (let tries = 0; tries < TAKE_BACK_TRIES; tries += 1) {
    const { rows } = await connection.send(
      `SELECT pg_try_advisory_lock${suffix}(${GATEWAY_LOCK}) AS held`,
    );
    if (rows[0]?.['held'] === 't') {
      const owner = name.slice('nanobot '.length);
      const before =
        hold === 'shared' ? systemClock.now() - KEEP_MARKS_MS : Number.MAX_SAFE_INTEGER;
      await connection.send('DELETE FROM process WHERE owner <> ? AND written_at < ?', [
        owner,
        before,
      ]);
      return;
    }
    if (!(await endAbandoned(connection, name))) break;
    await systemClock.sleep(TAKE_BACK_MS);
  }
  throw new StoreError(
    'store_held',
    hold === 'alone'
      ? t`Another gateway uses ${server}. Stop it, or give this one a database of its own ` +
          t`(store.url). Several processes on one database need storage.path.`
      : t`A gateway without storage.path uses ${server}. Stop it, or give this one a database of ` +
          t`its own (store.url).`,
  );
}

/** Connections of this process whose end the server has not noticed. */
async function endAbandoned(connection: Connection, name: string): Promise<boolean> {
  const { rows } = await connection.send(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
     WHERE application_name = ? AND pid <> pg_backend_pid()`,
    [name],
  );
  return rows.length > 0;
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
