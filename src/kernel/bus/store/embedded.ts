// The embedded store: state.db by node:sqlite. Binds the operations to their driver; what a row
// means is in the operations, when to claim and retry is the bus's.

import { randomUUID } from 'node:crypto';
import type { DatabaseSync } from 'node:sqlite';
import type { Logger } from '../../../lib/logger.ts';
import type { Clock } from '../../../lib/time/clock.ts';
import {
  assertWhole,
  isDatabaseError,
  leaveSyncsToCaller,
  openDatabase,
  storeErrorOf,
} from './database.ts';
import { dropDead, listDead, retryDead } from './dead-letters.ts';
import { type Background, GroupCommit, WriteAheadLog } from './group-commit.ts';
import { accept, cancel, neededMedia, readCursor, setAttachments } from './inbound.ts';
import { expire, get, list, put, putMany, type Sql, swap, type Transaction } from './key-value.ts';
import * as outbound from './outbound.ts';
import type { EmbeddedStore } from './store.ts';
import { traceMessage } from './trace.ts';
import {
  claimTurns,
  endTurn,
  forgetDraft,
  joinTurn,
  orphanDrafts,
  readDraft,
  recordDraft,
  recoverTurns,
} from './turns.ts';
import { divert, forgetTexts, readStats, stranded, sweep, TOPICS, type Topic } from './upkeep.ts';

export type EmbeddedStoreOptions = {
  readonly path: string;
  readonly clock: Clock;
  readonly log: Logger;
  /** Files up to this size are read through at once; none where it is left out. */
  readonly checkUpToBytes?: number;
  /**
   * Waits for the disk beside the event loop, for a process that others wait for. Only where this
   * process has the home to itself: what is in the log is put into the file when it is opened.
   */
  readonly inBackground?: boolean;
};

/** @throws StoreError when the file is damaged or from a newer version. */
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
  // A hold of an earlier process is never taken for ours.
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
    scrub: () => commits.renew(),
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

/** SQLite counts commits of other connections; reading the count touches shared memory only. */
function outsideWrites(database: DatabaseSync): Pick<EmbeddedStore, 'revision' | 'changedOutside'> {
  const statement = database.prepare('PRAGMA data_version');
  /** Asked some thirty times per message; known until the event loop comes round. */
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
