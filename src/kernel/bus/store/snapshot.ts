// Copies of state.db. `copyDatabase` copies the file of a running or stopped program into one file
// without a log, in a thread and in small steps. The gateway keeps two such copies beside state.db,
// from which a damaged one is rebuilt (docs/adr/0036).

import { existsSync, statSync } from 'node:fs';
import { open, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import { syncFolder } from '../../../lib/files/files.ts';
import type { Logger } from '../../../lib/logger.ts';
import { type Clock, onAbort } from '../../../lib/time/clock.ts';
import {
  damageMark,
  isDatabaseError,
  makePrivate,
  newestSnapshot,
  storeErrorOf,
} from './database.ts';
import type { CopyResult, EmbeddedStore } from './store.ts';

/** What the thread reports: an SQLite result code where it failed. */
export type CopyReport = { readonly result?: CopyResult; readonly errcode?: number | undefined };

const WORKER_URL = new URL(`./checkpoint-worker${extname(import.meta.url)}`, import.meta.url);
const MAX_HEAP_MB = 32;

/**
 * Copies the database as it is now, with what is in its log, and checks the copy. Other processes
 * and this one may write meanwhile. What empties the log in this process waits until the end
 * (`EmbeddedStore.copyTo`). @throws StoreError; the signal's reason
 */
export async function copyDatabase(
  path: string,
  to: string,
  signal?: AbortSignal,
): Promise<CopyResult> {
  await rm(to, { force: true });
  makePrivate(to);
  signal?.throwIfAborted();
  const worker = new Worker(WORKER_URL, {
    env: {},
    workerData: { path, copyTo: to },
    resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MB },
  });
  const { promise, resolve, reject } = Promise.withResolvers<CopyReport>();
  using _stopping = signal && onAbort(signal, () => reject(signal.reason));
  worker.once('message', resolve);
  worker.once('error', reject);
  worker.once('exit', () => reject(new Error('the copying thread ended early')));
  try {
    const { result, errcode } = await promise;
    if (result === undefined) throw storeErrorOf(Object.assign(new Error(), { errcode }), path);
    await syncFile(to);
    return result;
  } catch (error) {
    await rm(to, { force: true });
    throw isDatabaseError(error) ? storeErrorOf(error, path) : error;
  } finally {
    await worker.terminate();
  }
}

async function syncFile(path: string): Promise<void> {
  const file = await open(path, 'r+');
  await file.sync().finally(() => file.close());
}

// The two copies of the gateway.

/** Newest first. */
export const snapshotsOf = (path: string): readonly string[] => [
  newestSnapshot(path),
  `${path}.snapshot-1`,
];

/** Written while a snapshot is taken. */
const unfinished = (path: string) => `${path}.snapshot-new`;

/** Deletes all copies: they contain what was erased. */
export async function dropSnapshots(path: string): Promise<void> {
  for (const copy of [...snapshotsOf(path), unfinished(path)]) await rm(copy, { force: true });
}

/** Epoch milliseconds; undefined if there is no snapshot. */
export const snapshotTime = (copy: string): number | undefined =>
  statSync(copy, { throwIfNoEntry: false })?.mtimeMs;

type SnapshotDeps = {
  readonly path: string;
  readonly store: Pick<EmbeddedStore, 'copyTo'>;
  readonly clock: Clock;
  readonly log: Logger;
  /** Between two snapshots; 0: none are taken. */
  everyMs(): number;
  /** The file has a damaged page. */
  onDamage(): void;
};

/** A gateway that restarts again and again copies nothing. */
const FIRST_MS = 60_000;
/** Bytes that an hour may cost: a file of ten times the size is copied a tenth as often. */
const BYTES_PER_HOUR = 50_000_000;
const HOUR_MS = 3_600_000;

/** Takes snapshots until aborted. */
export async function keepSnapshots(deps: SnapshotDeps, signal: AbortSignal): Promise<void> {
  const { clock } = deps;
  await rm(unfinished(deps.path), { force: true });
  while (!signal.aborted) {
    await clock.sleep(FIRST_MS, signal).catch(() => undefined);
    if (!signal.aborted && isDue(deps)) await takeSnapshot(deps, signal);
  }
}

function isDue({ path, clock, everyMs }: SnapshotDeps): boolean {
  const every = everyMs();
  const [newest = path] = snapshotsOf(path);
  const last = snapshotTime(newest) ?? 0;
  if (every === 0 || changedAt(path) <= last) return false;
  const bytes = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  const least = (bytes / BYTES_PER_HOUR) * HOUR_MS;
  // A snapshot of the future was taken before the clock was set back.
  return last > clock.now() || clock.now() - last >= Math.max(every, least);
}

const changedAt = (path: string) =>
  Math.max(snapshotTime(path) ?? 0, snapshotTime(`${path}-wal`) ?? 0);

/** Replaces the older of the two; a damaged copy replaces none. */
export async function takeSnapshot(
  { path, store, clock, log, onDamage }: Omit<SnapshotDeps, 'everyMs'>,
  signal: AbortSignal,
): Promise<void> {
  const [newest = path, older = path] = snapshotsOf(path);
  const startedAt = clock.monotonic();
  const copy = unfinished(path);
  if ((await store.copyTo(copy, signal)) === 'damaged') {
    await rm(copy, { force: true });
    await writeFile(damageMark(path), '');
    log.error('store damaged; the earlier snapshot is kept', { path });
    return onDamage();
  }
  if (existsSync(newest)) await rename(newest, older);
  await rename(copy, newest);
  await syncFolder(dirname(path));
  const tookMs = Math.round(clock.monotonic() - startedAt);
  log.info('store snapshot taken', { bytes: statSync(newest).size, tookMs });
}
