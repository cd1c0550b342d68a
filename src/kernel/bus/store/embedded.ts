// The embedded store: state.db by node:sqlite.

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
import { type Background, GroupCommit, WriteAheadLog } from './group-commit.ts';
import { bindOperations } from './operations.ts';
import type { EmbeddedStore } from './store.ts';

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
  return {
    ...outsideWrites(database),
    ...bindOperations(commits, clock, owner),
    async scrub() {
      await commits.renew();
      const { dropSnapshots } = await import('./snapshot.ts');
      await dropSnapshots(path);
    },
    copyTo: (to, signal) => commits.copyTo(to, signal),
    waitMs: () => commits.waitMs(),
    lost: commits.lost,
    [Symbol.asyncDispose]: () => commits.close(),
  };
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
