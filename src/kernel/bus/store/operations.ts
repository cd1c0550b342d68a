// Binds the operations to a driver: the operations define what a row means, the driver runs them in
// transactions, the bus decides when to claim and retry.

import type { Clock } from '../../../lib/time/clock.ts';
import { LeadLostError } from '../../message/errors.ts';
import { accept, cancel, neededMedia, readCursor, setAttachments } from './inbound.ts';
import {
  expire,
  get,
  list,
  put,
  putMany,
  type Sql,
  swap,
  type Transaction,
  update,
} from './key-value.ts';
import * as nodes from './nodes.ts';
import * as outbound from './outbound.ts';
import type { EmbeddedStore, RowsStep } from './store.ts';
import { traceMessage } from './trace.ts';
import {
  adoptEntries,
  changeEntries,
  claimTurns,
  countEntries,
  draftsBut,
  dropEntries,
  dropMoved,
  endOfSession,
  endTurn,
  forgetDraft,
  joinTurn,
  orphanDrafts,
  readDraft,
  readEntries,
  recordDraft,
  recoverTurns,
  rowsOfSession,
  takeOver,
  writeEntries,
} from './turns.ts';
import {
  divert,
  dropDead,
  forgetTexts,
  listDead,
  readStats,
  retryDead,
  stranded,
  sweep,
  TOPICS,
  type Topic,
} from './upkeep.ts';

/**
 * Runs operations in transactions; a resolved promise is durable. An operation is a pure function
 * of what it reads: a driver may run it again, from the start, until it knows all its results.
 */
export interface Driver {
  /**
   * @param begins given for an operation that runs after everything else of its batch, so that it
   *   sees the other writes; called when the batch begins: what is issued from then on it does not see.
   *   It resolves when it is committed, see `stored`
   */
  write<T>(operation: (sql: Sql) => T, begins?: () => void): Promise<T>;
  read<T>(operation: (sql: Sql) => T): Promise<T>;
  /** Reads what is committed, on the disk or not. */
  glance<T>(operation: (sql: Sql) => T): Promise<T>;
  /** Resolves when what is committed is on the disk. @throws StoreError if it cannot be */
  stored(): Promise<void>;
}

type Operations = Omit<
  EmbeddedStore,
  | 'server'
  | 'scrub'
  | 'copyTo'
  | 'endSoon'
  | 'waitMs'
  | 'lost'
  | 'revision'
  | 'changedOutside'
  | 'shared'
  | 'nodes'
  | 'sharedEntries'
  | typeof Symbol.asyncDispose
>;

/** @param owner marks what this process holds: never one of an earlier process */
export function bindOperations(
  driver: Driver,
  clock: Clock,
  owner: string,
  isShared = false,
): Operations {
  const through =
    (run: <T>(work: (sql: Sql) => T) => Promise<T>) =>
    <Args extends readonly unknown[], T>(operation: (tx: Transaction, ...args: Args) => T) =>
    (...args: Args) => {
      let now: number | undefined;
      return run((sql) => {
        now ??= clock.now();
        return operation({ ...sql, owner, now, isShared }, ...args);
      });
    };
  const read = through((work) => driver.read(work));
  // A server that is away is waited for.
  const readCommitted = isShared ? read : through((work) => driver.glance(work));
  const write = through((work) => driver.write(work));
  const writeLast = (begins: () => void) => through((work) => driver.write(work, begins));
  return {
    accept: write(accept),
    cursor: read(readCursor),
    stored: () => driver.stored(),
    recoverTurns: write(recoverTurns),
    claimTurns(places, leaveMs = () => 0) {
      const free = once(places);
      return writeLast(free)(claimTurns)(free, once(leaveMs));
    },
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
    claimDeliveries(account, places, ...how) {
      const free = once(places);
      return writeLast(free)(outbound.claimDeliveries)(account, free, ...how);
    },
    requestBegins: write(outbound.requestBegins),
    isStillWanted: read(outbound.isStillWanted),
    partSent: write(outbound.partSent),
    markRepeat: write(outbound.markRepeat),
    settle: write(outbound.settle),
    markBounced: write(outbound.markBounced),
    isDelivering: read(outbound.isDelivering),
    stranded: read(stranded),
    divert: write(divert),
    recordDraft: write(recordDraft),
    draft: readCommitted(readDraft),
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
    stats: through((work) => driver.glance(work))(readStats),
    neededMedia: read(neededMedia),
    gc: (windowMs) => collectGarbage(write(sweep), clock.now() - windowMs),
    forgetTexts: write(forgetTexts),
    scope: (name, ledBy) => {
      const change = <Args extends readonly unknown[], T>(
        operation: (tx: Transaction, scope: string, ...args: Args) => T,
      ) =>
        write((tx: Transaction, ...args: Args) => {
          if (ledBy !== undefined && !nodes.leads(tx, ledBy)) {
            throw new LeadLostError(ledBy);
          }
          return operation(tx, name, ...args);
        });
      return {
        get: (key) => read(get)(name, key),
        getCommitted: (key) => readCommitted(get)(name, key),
        set: change(put),
        setMany: change(putMany),
        swap: change(swap),
        update: <T>(step: RowsStep<T>) => change(update<T>)(step),
        delete: (key) => change(put)(key, undefined),
        list: (prefix, options = {}) => read(list)(name, prefix, options),
        expire: change(expire),
      };
    },
  };
}

/** What only a store has on which several processes work. */
export function sharedOperations(driver: Driver, clock: Clock, owner: string) {
  const bound =
    (run: <T>(work: (sql: Sql) => T) => Promise<T>) =>
    <Args extends readonly unknown[], T>(operation: (tx: Transaction, ...args: Args) => T) =>
    (...args: Args) => {
      let now: number | undefined;
      return run((sql) => {
        now ??= clock.now();
        return operation({ ...sql, owner, now, isShared: true }, ...args);
      });
    };
  const read = bound((work) => driver.read(work));
  const write = bound((work) => driver.write(work));
  return {
    lead: write(nodes.lead),
    release: write(nodes.release),
    isLeading: read(nodes.leads),
    isTurnDue: read(nodes.isTurnDue),
    newsOfTurns: read(nodes.newsOfTurns),
    held: read(nodes.heldTurns),
    nodes: read(nodes.listNodes),
    bury: write((tx: Transaction, owners: readonly string[]) => {
      for (const dead of owners) nodes.removeNode(tx, dead);
      return takeOver(tx);
    }),
    takeOver: write(takeOver),
    end: read(endOfSession),
    rows: read(rowsOfSession),
    adopt: write(adoptEntries),
    dropMoved: write(dropMoved),
  };
}

/** An operation may run again, see `Driver`. */
function once<T, Of = void>(evaluate: (of: Of) => T): (of: Of) => T {
  const known = new Map<Of, { readonly is: T }>();
  return (of) => {
    const value = known.get(of) ?? { is: evaluate(of) };
    known.set(of, value);
    return value.is;
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
