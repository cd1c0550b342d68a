// Counting what is in the queues, and forgetting what is long over.

import type { BusStats } from '../bus/bus.ts';
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

export function* collectGarbage(before: number): Operation<number> {
  const texts = yield* change(
    `UPDATE inbound SET body = NULL
     WHERE body IS NOT NULL AND settled_at < ? AND state IN ('done', 'cancelled')`,
    before,
  );
  const answers = yield* change(
    `UPDATE outbound SET body = NULL
     WHERE body IS NOT NULL AND settled_at < ? AND state = 'sent'`,
    before,
  );
  yield* change(
    `DELETE FROM inbound WHERE seq <= (SELECT max(seq) FROM inbound) - ? AND settled_at < ?
     AND state IN ('done', 'recorded', 'cancelled', 'dropped')`,
    ...[KEPT_IDS, before],
  );
  yield* change(
    `DELETE FROM outbound WHERE ord <= (SELECT max(ord) FROM outbound) - ? AND settled_at < ?
     AND state IN ('sent', 'dropped')`,
    ...[KEPT_IDS, before],
  );
  return texts + answers;
}
