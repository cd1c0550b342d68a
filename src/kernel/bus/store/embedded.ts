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
import { expire, get, list, put, putMany, swap } from './key-value.ts';
import * as outbound from './outbound.ts';
import { hasWrittenTo, readInbound, readOutbound, sentAs, takeBack } from './outbound.ts';
import type { BusStore, EmbeddedStore, KeyValueStore } from './store.ts';
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
import { divert, forgetTexts, readStats, stranded, sweep, TOPICS } from './upkeep.ts';

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
  // Marks what this process holds: a hold of an earlier process is never taken for ours.
  const owner = randomUUID();
  return {
    ...turnTopic(commits, clock, owner),
    ...deliveryTopic(commits, clock, owner),
    ...upkeep(commits, clock),
    ...outsideWrites(database),
    forgetTexts: (chats, holds) => commits.write(() => forgetTexts(chats, holds)),
    scrub: () => commits.renew(),
    waitMs: () => commits.waitMs(),
    lost: commits.lost,
    scope: (name) => keyValueScope(commits, clock, name),
    [Symbol.asyncDispose]: () => commits.close(),
  };
}

function turnTopic(commits: GroupCommit, clock: Clock, owner: string) {
  return {
    accept: (batch, options) => commits.write(() => accept(batch, options, clock.now())),
    cursor: (channel, account) => commits.read(() => readCursor(channel, account)),
    recoverTurns: () => commits.write(() => recoverTurns(clock.now())),
    claimTurns: (places) => commits.write(() => claimTurns(owner, places(), clock.now()), 'last'),
    joinTurn: (hold) => commits.write(() => joinTurn(hold, owner)),
    endTurn: (hold, ending) => commits.write(() => endTurn(hold, ending, owner, clock.now())),
    cancel: (session, reason) => commits.write(() => cancel(session, reason, clock.now())),
    setAttachments: (id, attachments) => commits.write(() => setAttachments(id, attachments)),
  } satisfies Partial<BusStore>;
}

function deliveryTopic(commits: GroupCommit, clock: Clock, owner: string) {
  return {
    queue: (message) => commits.write(() => outbound.queue(message, clock.now())),
    recoverDeliveries: (account) => commits.write(() => outbound.recoverDeliveries(account, owner)),
    claimDeliveries: (account, places, announces) =>
      commits.write(
        () => outbound.claimDeliveries(account, owner, places(), clock.now(), announces),
        'last',
      ),
    requestBegins: (hold) => commits.write(() => outbound.requestBegins(hold, owner)),
    partSent: (hold, part) => commits.write(() => outbound.partSent(hold, part, owner)),
    markRepeat: (hold) => commits.write(() => outbound.markRepeat(hold, owner)),
    settle: (hold, settlement) =>
      commits.write(() => outbound.settle(hold, settlement, owner, clock.now())),
    markBounced: (id, reason) => commits.write(() => outbound.markBounced(id, reason, clock.now())),
    stranded: (account, since) => commits.read(() => stranded(account, since)),
    divert: (id, instead) => commits.write(() => divert(id, instead, clock.now())),
    recordDraft: (draft) => commits.write(() => recordDraft(draft)),
    draft: (turn) => commits.read(() => readDraft(turn)),
    orphanDrafts: (account) => commits.read(() => orphanDrafts(account)),
    isDelivering: (chat) => commits.read(() => outbound.isDelivering(chat)),
    forgetDraft: (turn) => commits.write(() => forgetDraft(turn)),
  } satisfies Partial<BusStore>;
}

function upkeep(commits: GroupCommit, clock: Clock) {
  return {
    inbound: (id) => commits.read(() => readInbound(id)),
    outbound: (id) => commits.read(() => readOutbound(id)),
    sentAs: (session, part) => commits.read(() => sentAs(session, part)),
    hasWrittenTo: (chat) => commits.read(() => hasWrittenTo(chat)),
    takeBack: (turn) => commits.write(() => takeBack(turn, clock.now())),
    dead: () => commits.read(listDead),
    retry: (ids) => commits.write(() => retryDead(ids, clock.now())),
    drop: (ids) => commits.write(() => dropDead(ids)),
    trace: (wanted) => commits.read(() => traceMessage(wanted)),
    stats: () => commits.glance(readStats),
    neededMedia: () => commits.read(neededMedia),
    gc: (windowMs) => collectGarbage(commits, clock.now() - windowMs),
  } satisfies Partial<BusStore>;
}

/** In many short transactions, so that messages pass in between. */
async function collectGarbage(commits: GroupCommit, before: number): Promise<number> {
  let cleared = 0;
  for (const topic of TOPICS) {
    for (let from: number | undefined = 0; from !== undefined; ) {
      const start: number = from;
      const swept = await commits.write(() => sweep(topic, start, before));
      cleared += swept.cleared;
      from = swept.next;
    }
  }
  return cleared;
}

function keyValueScope(commits: GroupCommit, clock: Clock, scope: string): KeyValueStore {
  return {
    get: (key) => commits.read(() => get(scope, key)),
    set: (key, value) => commits.write(() => put(scope, key, value, clock.now())),
    setMany: (rows) => commits.write(() => putMany(scope, rows, clock.now())),
    swap: (row, others) => commits.write(() => swap(scope, row, others, clock.now())),
    delete: (key) => commits.write(() => put(scope, key, undefined, clock.now())),
    list: (prefix, options = {}) => commits.read(() => list(scope, prefix, options)),
    expire: (prefix, before) => commits.write(() => expire(scope, prefix, before)),
  };
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
