// Counting what is in the queues, and forgetting what is long over.

import type { BusStats } from '../bus.ts';
import { change, first, type Operation } from './operation.ts';

/** Ids of finished messages that stay known, so that a late repeat is recognised. */
const KEPT_IDS = 100_000;

type StatsRow = {
  waiting: number;
  held: number;
  running: number;
  queued: number;
  dead: number;
  unknown: number;
  oldest: number | null;
};

export function* readStats(): Operation<BusStats> {
  const row = yield* first<StatsRow>(
    `SELECT
       (SELECT count(*) FROM inbound WHERE state = 'pending') AS waiting,
       (SELECT count(*) FROM session_lane JOIN inbound ON inbound.session = session_lane.session
          AND inbound.state = 'pending' AND inbound.seq <= held_through
          WHERE owner IS NOT NULL) AS held,
       (SELECT count(*) FROM session_lane WHERE owner IS NOT NULL) AS running,
       (SELECT count(*) FROM outbound WHERE state IN ('queued', 'sending')) AS queued,
       (SELECT count(*) FROM inbound WHERE state = 'dead')
         + (SELECT count(*) FROM outbound
            WHERE state IN ('dead', 'unknown') AND state = 'dead') AS dead,
       (SELECT count(*) FROM outbound
          WHERE state IN ('dead', 'unknown') AND state = 'unknown') AS unknown,
       (SELECT min(accepted_at) FROM inbound WHERE state = 'pending') AS oldest`,
  );
  return {
    pending: (row?.waiting ?? 0) - (row?.held ?? 0),
    running: row?.running ?? 0,
    outboundQueued: row?.queued ?? 0,
    dead: row?.dead ?? 0,
    unknown: row?.unknown ?? 0,
    oldestPendingAt: row?.oldest ?? undefined,
  };
}

/** One of the two topics, with the column that counts its rows. */
export type Topic = { readonly table: string; readonly place: string; readonly finished: string };

export const TOPICS: readonly Topic[] = [
  { table: 'inbound', place: 'seq', finished: `'done', 'recorded', 'cancelled', 'dropped'` },
  { table: 'outbound', place: 'ord', finished: `'sent', 'dropped'` },
];

/** Rows looked at in one transaction: a few milliseconds. */
const SWEEP_ROWS = 2000;

/** Sweeps the rows behind `from`; `next` is where to go on, undefined at the end. */
export function* sweep(
  { table, place, finished }: Topic,
  from: number,
  before: number,
): Operation<{ readonly cleared: number; readonly next: number | undefined }> {
  const range = yield* first<{ upto: number | null }>(
    `SELECT max(${place}) AS upto FROM
       (SELECT ${place} FROM ${table} WHERE ${place} > ? ORDER BY ${place} LIMIT ?)`,
    ...[from, SWEEP_ROWS],
  );
  const upto = range?.upto ?? undefined;
  if (upto === undefined) return { cleared: 0, next: undefined };
  const isOld = `${place} > ?1 AND ${place} <= ?2 AND settled_at < ?3 AND state IN (${finished})`;
  const cleared = yield* change(
    `UPDATE ${table} SET body = NULL WHERE ${isOld} AND body IS NOT NULL`,
    ...[from, upto, before],
  );
  yield* change(
    `DELETE FROM ${table} WHERE ${isOld} AND ${place} <= (SELECT max(${place}) FROM ${table}) - ?4`,
    ...[from, upto, before, KEPT_IDS],
  );
  return { cleared, next: upto };
}
