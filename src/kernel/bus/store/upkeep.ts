// Counts what is in the queues, deletes what is long finished, and puts dead letters back.

import { existsSync, statSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { headOf } from '../../../lib/text/cut.ts';
import {
  type AccountName,
  accountName,
  type MessageId,
  type SessionKey,
} from '../../message/ids.ts';
import type { ChatRef, OutboundMessage } from '../../message/message.ts';
import type { Holds } from '../../sessions/rules/forgetting.ts';
import type { BusStats, DeadLetter } from '../bus.ts';
import { ring } from './inbound.ts';
import type { Transaction } from './key-value.ts';
import { promote, queue } from './outbound.ts';
import type { Forgotten } from './store.ts';

/** Ids of finished messages that are kept, so that a late repeat is recognised. */
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

export function readStats(tx: Transaction): BusStats {
  const row = tx.first<StatsRow>(
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

/** Rows processed in one transaction: a few milliseconds. */
const SWEEP_ROWS = 2000;

/** Sweeps the rows after `from`; `next` is where to continue, undefined at the end. */
export function sweep(
  tx: Transaction,
  { table, place, finished }: Topic,
  from: number,
  before: number,
): { readonly cleared: number; readonly next: number | undefined } {
  const range = tx.first<{ upto: number | null }>(
    `SELECT max(${place}) AS upto FROM
       (SELECT ${place} FROM ${table} WHERE ${place} > ? ORDER BY ${place} LIMIT ?) AS next`,
    ...[from, SWEEP_ROWS],
  );
  const upto = range?.upto ?? undefined;
  if (upto === undefined) return { cleared: 0, next: undefined };
  const isOld = `${place} > ?1 AND ${place} <= ?2 AND settled_at < ?3 AND state IN (${finished})`;
  const cleared = tx.change(
    `UPDATE ${table} SET body = NULL WHERE ${isOld} AND body IS NOT NULL`,
    ...[from, upto, before],
  );
  tx.run(
    `DELETE FROM ${table} WHERE ${isOld} AND ${place} <= (SELECT max(${place}) FROM ${table}) - ?4`,
    ...[from, upto, before, KEPT_IDS],
  );
  return { cleared, next: upto };
}

// Erases the texts of messages from the queues if they contain certain words.

type Body = { readonly place: number; readonly body: string; readonly state: string };

const LANES = { inbound: 'session', outbound: 'lane' } as const;
const UNDER_WAY = ['queued', 'sending'];

/**
 * Of these chats, in either topic. Waiting and running messages stay, and so do those that are being
 * delivered. Dead letters are dropped.
 */
export function forgetTexts(tx: Transaction, chats: readonly string[], holds: Holds): Forgotten {
  let texts = 0;
  const underWay: ChatRef[] = [];
  for (const { table, place } of TOPICS) {
    const lane = table === 'inbound' ? LANES.inbound : LANES.outbound;
    for (const chat of chats) {
      const rows = tx.all<Body>(
        `SELECT ${place} AS place, body, state FROM ${table}
         WHERE (${lane} = ?1 OR substr(${lane}, 1, length(?1) + 1) = ?1 || '#')
           AND state <> 'pending' AND body IS NOT NULL`,
        chat,
      );
      for (const row of rows.filter(({ body }) => holds(body))) {
        if (UNDER_WAY.includes(row.state)) {
          const { chat }: OutboundMessage = JSON.parse(row.body);
          underWay.push(chat);
          continue;
        }
        tx.run(
          `UPDATE ${table} SET body = NULL,
             state = CASE WHEN state IN ('dead', 'unknown') THEN 'dropped' ELSE state END
           WHERE ${place} = ?`,
          row.place,
        );
        texts += 1;
      }
    }
  }
  return { texts, underWay };
}

// Messages that cannot be delivered where they are, and sending another one in their place.

const MAX_STRANDED = 100;

/** No try of it may have arrived, not even a part. */
const SURELY_UNSENT = "in_doubt = 0 AND parts = '[]' AND body IS NOT NULL";

export function stranded(
  tx: Transaction,
  account: AccountName,
  since: number,
): readonly OutboundMessage[] {
  const rows = tx.all<{ body: string }>(
    `SELECT ord, body FROM outbound WHERE channel = ?1 AND ${SURELY_UNSENT}
       AND state IN ('queued', 'sending') AND state = 'queued'
     UNION ALL
     SELECT ord, body FROM outbound WHERE channel = ?1 AND ${SURELY_UNSENT}
       AND state IN ('dead', 'unknown') AND state = 'dead' AND settled_at >= ?2
     ORDER BY ord LIMIT ?3`,
    ...[account, since, MAX_STRANDED],
  );
  return rows.map(({ body }): OutboundMessage => JSON.parse(body));
}

export function divert(
  tx: Transaction,
  id: MessageId,
  instead: OutboundMessage,
): 'diverted' | 'too late' {
  const row = tx.first<{ lane: string; channel: string }>(
    'SELECT lane, channel FROM outbound WHERE id = ?',
    id,
  );
  const changes = tx.change(
    `UPDATE outbound SET state = 'dropped', reason = ?, settled_at = ?, ready_at = NULL
     WHERE id = ? AND state IN ('queued', 'dead') AND ${SURELY_UNSENT}`,
    ...[`${MOVED}${accountName(instead.chat)}`, tx.now, id],
  );
  if (row === undefined || changes === 0) return 'too late';
  queue(tx, instead);
  tx.tells?.('account', row.channel);
  promote(tx, row.lane);
  return 'diverted';
}

/** Start of the reason of a message that another one replaced. */
export const MOVED = 'moved to ';

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

export function retryDead(tx: Transaction, ids: readonly MessageId[]): number {
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
  tx.tells?.('account', row.channel);
  tx.run(
    `INSERT INTO outbound (id, channel, lane, state, body, finalizes, parts, created_at, queued_at,
       in_doubt, was_repeated, ready_at)
     VALUES (?1, ?2, ?3, 'queued', ?4, ?5, ?6, ?7, ?8, ?9, 0, CASE WHEN EXISTS
       (SELECT 1 FROM outbound WHERE lane = ?3 AND state IN ('queued', 'sending'))
       THEN NULL ELSE CAST(?8 AS BIGINT) END)`,
    ...[id, row.channel, row.lane, row.body, row.finalizes, row.parts],
    ...[row.created_at, tx.now, inDoubt],
  );
  return true;
}

/**
 * Deletes the text, keeps the id: a platform that delivers the message again still sends a repeat.
 */
export function dropDead(tx: Transaction, ids: readonly MessageId[]): number {
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

// Figures about the file for a report of a problem: counts, sizes and reasons, no text of a message.

type TalliedError = {
  readonly direction: string;
  readonly state: string;
  readonly attempts: number;
  readonly reason: string | null;
};

/** Read only; of a damaged file what can be read. */
export function tallyOf(path: string, maxErrors: number) {
  const database = new DatabaseSync(path, { readOnly: true });
  const all = <Row>(sql: string, ...values: number[]): readonly Row[] => {
    try {
      return database.prepare(sql).all(...values) as unknown as readonly Row[];
    } catch {
      return [];
    }
  };
  type Counted = { readonly name: string; readonly n: number };
  const counts = (sql: string) =>
    Object.fromEntries(all<Counted>(sql).map(({ name, n }) => [name, n]));
  try {
    return {
      schema: all<{ readonly user_version: number }>('PRAGMA user_version')[0]?.user_version,
      integrity: all<{ readonly quick_check: string }>('PRAGMA quick_check(5)').map(
        ({ quick_check }) => quick_check,
      ),
      bytes: Object.fromEntries(
        ['', '-wal', '.snapshot', '.snapshot-1']
          .filter((suffix) => existsSync(path + suffix))
          .map((suffix) => [`state.db${suffix}`, statSync(path + suffix).size]),
      ),
      inbound: counts('SELECT state AS name, count(*) AS n FROM inbound GROUP BY state'),
      outbound: counts('SELECT state AS name, count(*) AS n FROM outbound GROUP BY state'),
      rows: counts('SELECT scope AS name, count(*) AS n FROM key_value GROUP BY scope'),
      journal: all<Counted>('SELECT count(*) AS n FROM session_entry')[0]?.n,
      errors: all<TalliedError>(
        `SELECT 'inbound' AS direction, state, attempts, reason, settled_at FROM inbound
           WHERE state = 'dead'
         UNION ALL
         SELECT 'outbound', state, attempts, reason, settled_at FROM outbound
           WHERE state IN ('dead', 'unknown')
         ORDER BY settled_at DESC LIMIT ?`,
        maxErrors,
      ).map(({ direction, state, attempts, reason }) => ({ direction, state, attempts, reason })),
    };
  } finally {
    database.close();
  }
}
