// Messages set aside: inbound ones whose turn kept failing, outbound ones that could not be sent or
// of which nobody knows. A retried one goes to the end of its queue, under a new sequence number, so
// that nothing an earlier try left behind is taken for its own.

import { headOf } from '../../../lib/text/cut.ts';
import type { MessageId, SessionKey } from '../../message/ids.ts';
import type { DeadLetter } from '../bus.ts';
import { ring } from './inbound.ts';
import type { Transaction } from './key-value.ts';

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
  tx.change(
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
  // A person asked for it, so a message in doubt is sent once more, marked as a repeat.
  const inDoubt = row.state === 'unknown' ? 1 : 0;
  tx.change(
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

/** The text goes, the id stays: a platform that delivers the message again is still a repeat. */
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
