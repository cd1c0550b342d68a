// The embedded store: state.db by node:sqlite. Binds the operations to their driver; the operations
// define what a row means, the bus decides when to claim and retry.

import { randomUUID } from 'node:crypto';
import type { DatabaseSync } from 'node:sqlite';
import type { Logger } from '../../../lib/logger.ts';
import { headOf } from '../../../lib/text/cut.ts';
import type { Clock } from '../../../lib/time/clock.ts';
import type { MessageId, SessionKey } from '../../message/ids.ts';
import type { DeadLetter } from '../bus.ts';
import {
  assertWhole,
  isDatabaseError,
  leaveSyncsToCaller,
  openDatabase,
  storeErrorOf,
} from './database.ts';
import { type Background, GroupCommit, WriteAheadLog } from './group-commit.ts';
import { accept, cancel, neededMedia, readCursor, ring, setAttachments } from './inbound.ts';
import { expire, get, list, put, putMany, type Sql, swap, type Transaction } from './key-value.ts';
import * as outbound from './outbound.ts';
import type { EmbeddedStore } from './store.ts';
import { traceMessage } from './trace.ts';
import {
  changeEntries,
  claimTurns,
  countEntries,
  draftsBut,
  dropEntries,
  endTurn,
  forgetDraft,
  joinTurn,
  orphanDrafts,
  readDraft,
  readEntries,
  recordDraft,
  recoverTurns,
  writeEntries,
} from './turns.ts';
import { divert, forgetTexts, readStats, stranded, sweep, TOPICS, type Topic } from './upkeep.ts';

export type EmbeddedStoreOptions = {
  readonly path: string;
  readonly clock: Clock;
  readonly log: Logger;
  /** Files up to this size are read completely at once; absent: none. */
  readonly checkUpToBytes?: number;
  /**
   * Waits for the disk outside the event loop, for a process that others wait for. Only if this
   * process is the only one in the home: opening it moves the log into the file.
   */
  readonly inBackground?: boolean;
};

/** @throws StoreError if the file is damaged or from a newer version. */
export async function openEmbeddedStore(options: EmbeddedStoreOptions): Promise<EmbeddedStore> {
  const { path, clock, log } = options;
  const startedAt = clock.monotonic();
  const database = openDatabase(path);
  const { checkUpToBytes = 0, inBackground = false } = options;
  let background: Background | undefined;
  try {
    if (checkUpToBytes > 0) assertWhole(database, path, checkUpToBytes);
    if (inBackground) {
      leaveSyncsToCaller(database);
      background = { wal: new WriteAheadLog(path), clock, log };
    }
  } catch (error) {
    database.close();
    throw isDatabaseError(error) ? storeErrorOf(error, path) : error;
  }
  const commits = new GroupCommit(database, path, background);
  log.debug('store opened', { path, tookMs: Math.round(clock.monotonic() - startedAt) });
  // A hold of an earlier process is never mistaken for one of this process.
  const owner = randomUUID();
  const through =
    (run: <T>(work: (sql: Sql) => T) => Promise<T>) =>
    <Args extends readonly unknown[], T>(operation: (tx: Transaction, ...args: Args) => T) =>
    (...args: Args) =>
      run((sql) => operation({ ...sql, owner, now: clock.now() }, ...args));
  const read = through((work) => commits.read(work));
  const write = through((work) => commits.write(work));
  const writeLast = through((work) => commits.write(work, 'last'));
  return {
    ...outsideWrites(database),
    accept: write(accept),
    cursor: read(readCursor),
    recoverTurns: write(recoverTurns),
    claimTurns: writeLast(claimTurns),
    joinTurn: write(joinTurn),
    endTurn: write(endTurn),
    writeEntries: write(writeEntries),
    entries: read(readEntries),
    entryCounts: read(countEntries),
    changeEntries: write(changeEntries),
    dropEntries: write(dropEntries),
    cancel: write(cancel),
    setAttachments: write(setAttachments),
    queue: write(outbound.queue),
    recoverDeliveries: write(outbound.recoverDeliveries),
    claimDeliveries: writeLast(outbound.claimDeliveries),
    requestBegins: write(outbound.requestBegins),
    partSent: write(outbound.partSent),
    markRepeat: write(outbound.markRepeat),
    settle: write(outbound.settle),
    markBounced: write(outbound.markBounced),
    isDelivering: read(outbound.isDelivering),
    stranded: read(stranded),
    divert: write(divert),
    recordDraft: write(recordDraft),
    draft: read(readDraft),
    orphanDrafts: read(orphanDrafts),
    draftsBut: read(draftsBut),
    forgetDraft: write(forgetDraft),
    inbound: read(outbound.readInbound),
    outbound: read(outbound.readOutbound),
    sentAs: read(outbound.sentAs),
    hasWrittenTo: read(outbound.hasWrittenTo),
    takeBack: write(outbound.takeBack),
    dead: read(listDead),
    retry: write(retryDead),
    drop: write(dropDead),
    trace: read(traceMessage),
    stats: through((work) => commits.glance(work))(readStats),
    neededMedia: read(neededMedia),
    gc: (windowMs) => collectGarbage(write(sweep), clock.now() - windowMs),
    forgetTexts: write(forgetTexts),
    async scrub() {
      await commits.renew();
      const { dropSnapshots } = await import('./snapshot.ts');
      await dropSnapshots(path);
    },
    copyTo: (to, signal) => commits.copyTo(to, signal),
    waitMs: () => commits.waitMs(),
    lost: commits.lost,
    scope: (name) => ({
      get: (key) => read(get)(name, key),
      set: (key, value) => write(put)(name, key, value),
      setMany: (rows) => write(putMany)(name, rows),
      swap: (row, others) => write(swap)(name, row, others),
      delete: (key) => write(put)(name, key, undefined),
      list: (prefix, options = {}) => read(list)(name, prefix, options),
      expire: (prefix, before) => write(expire)(name, prefix, before),
    }),
    [Symbol.asyncDispose]: () => commits.close(),
  };
}

/** In many short transactions, so that messages pass in between. */
async function collectGarbage(
  clear: (topic: Topic, from: number, before: number) => Promise<ReturnType<typeof sweep>>,
  before: number,
): Promise<number> {
  let cleared = 0;
  for (const topic of TOPICS) {
    for (let from: number | undefined = 0; from !== undefined; ) {
      const start: number = from;
      const swept = await clear(topic, start, before);
      cleared += swept.cleared;
      from = swept.next;
    }
  }
  return cleared;
}

/** SQLite counts commits of other connections; reading the count uses shared memory only. */
function outsideWrites(database: DatabaseSync): Pick<EmbeddedStore, 'revision' | 'changedOutside'> {
  const statement = database.prepare('PRAGMA data_version');
  /** Read some thirty times per message; cached until the next event-loop turn. */
  let known: number | undefined;
  const forget = () => {
    known = undefined;
  };
  function revision(): number {
    if (known !== undefined) return known;
    setImmediate(forget);
    known = Number(statement.get()?.['data_version']);
    return known;
  }
  let seen = revision();
  return {
    revision,
    changedOutside() {
      const before = seen;
      seen = revision();
      return seen !== before;
    },
  };
}

// Dead letters: inbound messages whose turn kept failing, outbound ones that could not be sent or
// with an unknown outcome. A retried one goes to the end of its queue, under a new sequence number,
// so that it inherits nothing of an earlier try.

const EXCERPT_CHARS = 80;

type DeadRow = {
  id: MessageId;
  direction: DeadLetter['direction'];
  session: SessionKey;
  state: DeadLetter['state'];
  reason: string | null;
  attempts: number;
  body: string;
  at: number;
};

export function listDead(tx: Transaction): readonly DeadLetter[] {
  const rows = tx.all<DeadRow>(
    `SELECT id, 'inbound' AS direction, session, state, reason, attempts, body, settled_at AS at
       FROM inbound WHERE state = 'dead'
     UNION ALL
     SELECT id, 'outbound', lane, state, reason, attempts, body, settled_at
       FROM outbound WHERE state IN ('dead', 'unknown')
     ORDER BY at`,
  );
  return rows.map(({ body, reason, ...row }) => ({
    ...row,
    reason: reason ?? '',
    excerpt: excerptOf(JSON.parse(body)),
  }));
}

function excerptOf(message: { readonly text?: string; readonly markdown?: string }): string {
  return headOf(message.text ?? message.markdown ?? '', EXCERPT_CHARS);
}

function retryDead(tx: Transaction, ids: readonly MessageId[]): number {
  let count = 0;
  for (const id of ids) {
    if (retryInbound(tx, id)) count += 1;
    else if (retryOutbound(tx, id)) count += 1;
  }
  return count;
}

function retryInbound(tx: Transaction, id: MessageId): boolean {
  const row = tx.first<{ session: string; body: string; received_at: number }>(
    `DELETE FROM inbound WHERE id = ? AND state = 'dead' RETURNING session, body, received_at`,
    id,
  );
  if (row === undefined) return false;
  tx.run(
    `INSERT INTO inbound (id, session, state, body, received_at, accepted_at)
     VALUES (?, ?, 'pending', ?, ?, ?)`,
    ...[id, row.session, row.body, row.received_at, tx.now],
  );
  ring(tx, row.session);
  return true;
}

type OutboundRow = {
  channel: string;
  lane: string;
  state: string;
  body: string;
  finalizes: string | null;
  parts: string;
  created_at: number;
};

function retryOutbound(tx: Transaction, id: MessageId): boolean {
  const row = tx.first<OutboundRow>(
    `DELETE FROM outbound WHERE id = ? AND state IN ('dead', 'unknown')
     RETURNING channel, lane, state, body, finalizes, parts, created_at`,
    id,
  );
  if (row === undefined) return false;
  // A person requested it, so a message in doubt is sent again, marked as a repeat.
  const inDoubt = row.state === 'unknown' ? 1 : 0;
  tx.run(
    `INSERT INTO outbound (id, channel, lane, state, body, finalizes, parts, created_at, queued_at,
       in_doubt, was_repeated, ready_at)
     VALUES (?1, ?2, ?3, 'queued', ?4, ?5, ?6, ?7, ?8, ?9, 0, CASE WHEN EXISTS
       (SELECT 1 FROM outbound WHERE lane = ?3 AND state IN ('queued', 'sending'))
       THEN NULL ELSE ?8 END)`,
    ...[id, row.channel, row.lane, row.body, row.finalizes, row.parts],
    ...[row.created_at, tx.now, inDoubt],
  );
  return true;
}

/**
 * Deletes the text, keeps the id: a platform that delivers the message again still sends a repeat.
 */
function dropDead(tx: Transaction, ids: readonly MessageId[]): number {
  let count = 0;
  for (const id of ids) {
    count += tx.change(
      `UPDATE inbound SET state = 'dropped', body = NULL WHERE id = ? AND state = 'dead'`,
      id,
    );
    count += tx.change(
      `UPDATE outbound SET state = 'dropped', body = NULL
       WHERE id = ? AND state IN ('dead', 'unknown')`,
      id,
    );
  }
  return count;
}
