// The outbound topic: answers in order per lane (one chat). Only the oldest open row of a lane can
// be claimed; its try is fenced by the attempt number. The column `channel` holds names of
// accounts.

import type { DeliveryHistory, Settlement } from '../../message/delivery.ts';
import {
  type AccountName,
  accountName,
  type MessageId,
  type NativeId,
  type SessionKey,
  sessionOfTurn,
  type TurnId,
  turnOfAnswer,
} from '../../message/ids.ts';
import {
  type ChatRef,
  type InboundMessage,
  type OutboundMessage,
  sessionKeyOf,
} from '../../message/message.ts';
import type { SentText, TakenBack } from '../bus.ts';
import type { SqlValue, Transaction } from './key-value.ts';
import { leads } from './nodes.ts';
import type { ClaimedDelivery, Claims, DeliveryHold } from './store.ts';

export function queue(tx: Transaction, message: OutboundMessage): 'queued' | 'duplicate' {
  return tx.change(...queueing(tx, message)) > 0 ? 'queued' : 'duplicate';
}

/** The statement that queues it, with its values. */
export function queueing(
  { now, tells }: Transaction,
  message: OutboundMessage,
): [sql: string, ...SqlValue[]] {
  const lane = sessionKeyOf(message.chat);
  tells?.('account', accountName(message.chat));
  return [
    `INSERT INTO outbound
       (id, channel, lane, state, body, finalizes, created_at, queued_at, ready_at)
     VALUES (?1, ?2, ?3, 'queued', ?4, ?5, ?6, ?6, CASE WHEN EXISTS
       (SELECT 1 FROM outbound WHERE lane = ?3 AND state IN ('queued', 'sending'))
       THEN NULL ELSE CAST(?6 AS BIGINT) END)
     ON CONFLICT (id) DO NOTHING`,
    ...[message.id, accountName(message.chat), lane, JSON.stringify(message)],
    ...[message.finalizes ?? null, now],
  ];
}

type OutboundRow = {
  id: string;
  body: string;
  attempts: number;
  queued_at: number;
  in_doubt: number;
  was_repeated: number;
  parts: string;
  native_id: string | null;
  begun_at: number | null;
  requesting: number | null;
};

const CLAIM_COLUMNS = `outbound.id, body, attempts, queued_at, in_doubt, was_repeated, parts, native_id,
  begun_at, requesting
  FROM outbound LEFT JOIN draft ON draft.turn = outbound.finalizes`;

export function claimDeliveries(
  tx: Transaction,
  account: AccountName,
  places: () => number,
  announcesRequests = false,
): Claims<ClaimedDelivery> {
  const free = places();
  const rows = tx.all<OutboundRow & { ready_at: number }>(
    `SELECT ready_at, ${CLAIM_COLUMNS} WHERE outbound.channel = ?1 AND ready_at IS NOT NULL
     ${tx.isShared ? 'AND EXISTS (SELECT 1 FROM leader WHERE resource = ?1 AND leader.owner = ?3)' : ''}
     ORDER BY ready_at, ord LIMIT ?2`,
    ...[account, free + 1, ...(tx.isShared ? [tx.owner] : [])],
  );
  const due = rows.slice(0, free).filter((row) => row.ready_at <= tx.now);
  const claimed = due.map((row): ClaimedDelivery => {
    const delivery = claimedDelivery({ ...row, attempts: row.attempts + 1 }, tx.now);
    return { ...delivery, isRequesting: !announcesRequests || isSentAtOnce(delivery) };
  });
  for (const { id, isRequesting } of claimed) {
    tx.run(
      `UPDATE outbound SET state = 'sending', attempts = attempts + 1, owner = ?, claimed_at = ?,
         ready_at = NULL, requesting = ? WHERE id = ?`,
      ...[tx.owner, tx.now, announcesRequests ? Number(isRequesting) : null, id],
    );
  }
  return { claimed, nextAt: rows[due.length]?.ready_at };
}

/**
 * The request of a new text begins as soon as it is claimed. Recording both together saves each
 * answer a sync of the disk; a process that dies in between leaves a needless doubt.
 */
const isSentAtOnce = ({ draft, sentParts, message: { attachments = [] } }: ClaimedDelivery) =>
  draft === undefined && sentParts.length === 0 && attachments.length === 0;

/** For the one delivering process: whatever is being sent belonged to an earlier process. */
export function recoverDeliveries(
  tx: Transaction,
  account: AccountName,
): readonly ClaimedDelivery[] {
  if (!leads(tx, account)) return [];
  const rows = tx.all<OutboundRow>(
    `SELECT ${CLAIM_COLUMNS} WHERE outbound.channel = ? AND state IN ('queued', 'sending')
     AND state = 'sending'`,
    account,
  );
  for (const { id } of rows) {
    tx.run('UPDATE outbound SET owner = ? WHERE id = ?', tx.owner, id);
  }
  return rows.map((row) => claimedDelivery(row, row.queued_at));
}

function claimedDelivery(row: OutboundRow, now: number): ClaimedDelivery {
  const message: OutboundMessage = JSON.parse(row.body);
  const history: DeliveryHistory = {
    attempt: row.attempts,
    queuedAt: row.queued_at,
    inDoubt: row.in_doubt === 1,
    wasRepeated: row.was_repeated === 1,
  };
  return {
    ...history,
    id: message.id,
    message,
    textAt: row.begun_at ?? now,
    isRequesting: row.requesting !== 0,
    sentParts: JSON.parse(row.parts),
    draft: row.native_id ? (row.native_id as NativeId) : undefined,
  };
}

const HELD = `id = ? AND attempts = ? AND owner = ? AND state = 'sending'`;
const heldBy = (hold: DeliveryHold, owner: string): SqlValue[] => [hold.id, hold.attempt, owner];

const mayBeSent = ({ isShared }: Transaction) =>
  `${HELD} AND stopped IS NULL ${
    isShared
      ? 'AND EXISTS (SELECT 1 FROM leader WHERE resource = channel AND leader.owner = outbound.owner)'
      : ''
  }`;

/** False if it must not be sent (any more): it was stopped, or is held by another process. */
export function requestBegins(tx: Transaction, hold: DeliveryHold): boolean {
  const changes = tx.change(
    `UPDATE outbound SET requesting = 1 WHERE ${mayBeSent(tx)}`,
    ...heldBy(hold, tx.owner),
  );
  return changes > 0;
}

/** The same for a request that is recorded with its claim. */
export function isStillWanted(tx: Transaction, hold: DeliveryHold): boolean {
  const row = tx.first<{ id: string }>(
    `SELECT id FROM outbound WHERE ${mayBeSent(tx)}`,
    ...heldBy(hold, tx.owner),
  );
  return row !== undefined;
}

/** The doubt was about this part; the next one has not been tried yet. */
export function partSent(tx: Transaction, hold: DeliveryHold, part: NativeId): boolean {
  const row = tx.first<{ parts: string; stopped: string | null }>(
    `SELECT parts, stopped FROM outbound WHERE ${HELD}`,
    ...heldBy(hold, tx.owner),
  );
  if (row === undefined) return false;
  const parts: readonly NativeId[] = JSON.parse(row.parts);
  tx.run(
    `UPDATE outbound SET parts = ?, begun_at = coalesce(begun_at, claimed_at), in_doubt = 0,
       was_repeated = 0, requesting = requesting * 0 WHERE id = ?`,
    ...[JSON.stringify([...parts, part]), hold.id],
  );
  return row.stopped === null;
}

export function markRepeat(tx: Transaction, hold: DeliveryHold): void {
  tx.run(`UPDATE outbound SET was_repeated = 1 WHERE ${HELD}`, ...heldBy(hold, tx.owner));
}

export function settle(
  tx: Transaction,
  hold: DeliveryHold,
  settlement: Settlement,
): 'settled' | 'lost' {
  const row = tx.first<{ lane: string; finalizes: string | null; stopped: string | null }>(
    `SELECT lane, finalizes, stopped FROM outbound WHERE ${HELD}`,
    ...heldBy(hold, tx.owner),
  );
  if (row === undefined) return 'lost';
  const isStopped = settlement.kind === 'stopped' || row.stopped !== null;
  if (settlement.kind === 'retry' && !isStopped) {
    tx.run(
      `UPDATE outbound SET state = 'queued', ready_at = ?, reason = ?, in_doubt = ?,
         was_repeated = ?, attempts = attempts - ?, owner = NULL WHERE id = ?`,
      ...[settlement.at, settlement.reason, settlement.inDoubt ? 1 : 0],
      ...[settlement.wasRepeated ? 1 : 0, settlement.isUncounted ? 1 : 0, hold.id],
    );
    return 'settled';
  }
  if (settlement.kind === 'sent') {
    tx.run(
      `UPDATE outbound SET state = 'sent', parts = ?, settled_at = ?, owner = NULL WHERE id = ?`,
      ...[JSON.stringify(settlement.nativeIds), tx.now, hold.id],
    );
    if (row.finalizes !== null) tx.run('DELETE FROM draft WHERE turn = ?', row.finalizes);
  } else if (settlement.kind === 'retry' || settlement.kind === 'stopped') {
    close(tx, hold.id, row.stopped ?? settlement.reason);
  } else {
    tx.run(
      'UPDATE outbound SET state = ?, reason = ?, settled_at = ?, owner = NULL WHERE id = ?',
      ...[settlement.kind, settlement.reason, tx.now, hold.id],
    );
  }
  promote(tx, row.lane);
  return 'settled';
}

/** Sends no further part of it; what is in the chat counts as sent, as in `takeBack`. */
function close(tx: Transaction, id: MessageId, reason: string): void {
  tx.run(
    `UPDATE outbound SET state = CASE parts WHEN '[]' THEN 'dropped' ELSE 'sent' END, reason = ?,
       settled_at = ?, ready_at = NULL, owner = NULL WHERE id = ?`,
    ...[reason, tx.now, id],
  );
  tx.run(
    `DELETE FROM draft WHERE turn = (SELECT finalizes FROM outbound WHERE id = ? AND state = 'sent')`,
    id,
  );
}

/** Sends nothing further of the answers of a session's turns; returns how many were incomplete. */
export function stopAnswers(tx: Transaction, session: SessionKey, reason: string): number {
  // '$' is the character after '#'.
  const open = tx.all<{ id: MessageId; lane: string; state: string; channel: string }>(
    `SELECT id, lane, state, channel FROM outbound
     WHERE state IN ('queued', 'sending') AND id >= ? AND id < ?`,
    ...[`${session}#`, `${session}$`],
  );
  const answers = open.filter(({ id }) => {
    const turn = turnOfAnswer(id);
    return turn !== undefined && sessionOfTurn(turn) === session;
  });
  for (const { id, state, channel } of answers) {
    tx.tells?.('account', channel);
    if (state === 'queued') close(tx, id, reason);
    else tx.run('UPDATE outbound SET stopped = ? WHERE id = ?', reason, id);
  }
  for (const lane of new Set(answers.map((answer) => answer.lane))) promote(tx, lane);
  return answers.length;
}

/**
 * Of several reports on one message the first counts. One may come before the send is settled, or
 * about a send with an unknown outcome.
 */
export function markBounced(
  tx: Transaction,
  id: MessageId,
  reason: string,
): 'marked' | 'known' | 'not sent' {
  const row = tx.first<{ bounced_at: number | null }>(
    `SELECT bounced_at FROM outbound WHERE id = ? AND state IN ('sending', 'sent', 'unknown')`,
    id,
  );
  if (row === undefined) return 'not sent';
  if (row.bounced_at !== null) return 'known';
  tx.run('UPDATE outbound SET bounced_at = ?, bounce_reason = ? WHERE id = ?', tx.now, reason, id);
  return 'marked';
}

export function isDelivering(tx: Transaction, chat: ChatRef): boolean {
  const row = tx.first<{ ord: number }>(
    `SELECT ord FROM outbound WHERE lane = ? AND state IN ('queued', 'sending') LIMIT 1`,
    sessionKeyOf(chat),
  );
  return row !== undefined;
}

/** Makes the lane's oldest open row due, unless it is being sent or waits for a retry. */
export function promote(tx: Transaction, lane: string): void {
  tx.run(
    `UPDATE outbound SET ready_at = ?1 WHERE ready_at IS NULL AND state = 'queued' AND ord =
       (SELECT min(ord) FROM outbound WHERE lane = ?2 AND state IN ('queued', 'sending'))`,
    ...[tx.now, lane],
  );
}

// Lookups: a message as it was received, and which outbound texts are in the chats.

type SentRow = { body: string | null; parts: string; state: string; lane: string };

export function readInbound(tx: Transaction, id: MessageId): InboundMessage | undefined {
  const row = tx.first<{ body: string | null }>('SELECT body FROM inbound WHERE id = ?', id);
  return typeof row?.body === 'string' ? JSON.parse(row.body) : undefined;
}

export function readOutbound(tx: Transaction, id: MessageId): SentText | undefined {
  const row = tx.first<SentRow>('SELECT body, parts, state, lane FROM outbound WHERE id = ?', id);
  return row === undefined ? undefined : sentText(row)[0];
}

/**
 * Newest first: a platform may restart its numbering. A reaction does not name its topic, so those
 * of the whole chat count.
 */
export function sentAs(tx: Transaction, session: SessionKey, part: NativeId): SentText | undefined {
  const row = tx.first<SentRow>(
    `SELECT body, parts, state, lane FROM outbound
     WHERE (lane = ?1 OR substr(lane, 1, length(?1) + 1) = ?1 || '#')
       AND state IN ('sent', 'sending', 'unknown') AND body IS NOT NULL
       AND instr(parts, ?2) > 0
     ORDER BY ord DESC LIMIT 1`,
    ...[session, JSON.stringify(part)],
  );
  return row === undefined ? undefined : sentText(row)[0];
}

export function hasWrittenTo(tx: Transaction, { thread: _topic, ...chat }: ChatRef): boolean {
  const row = tx.first<{ ord: number }>(
    `SELECT ord FROM outbound
     WHERE (lane = ?1 OR substr(lane, 1, length(?1) + 1) = ?1 || '#') AND state = 'sent' LIMIT 1`,
    sessionKeyOf(chat),
  );
  return row !== undefined;
}

export function takeBack(tx: Transaction, turn: TurnId): TakenBack {
  // '0' is the character after '/'.
  const named = [`${turn}/`, `${turn}0`];
  const dropped = tx.all<{ lane: string; channel: string }>(
    `UPDATE outbound SET state = 'dropped', reason = 'taken back', settled_at = ?, ready_at = NULL
     WHERE id >= ? AND id < ? AND state = 'queued' AND parts = '[]' RETURNING lane, channel`,
    ...[tx.now, ...named],
  );
  for (const { channel } of dropped) tx.tells?.('account', channel);
  for (const lane of new Set(dropped.map((row) => row.lane))) promote(tx, lane);
  const rows = tx.all<SentRow>(
    `SELECT body, parts, state, lane FROM outbound
     WHERE id >= ? AND id < ? AND state <> 'dropped' ORDER BY ord`,
    ...named,
  );
  const isUnderWay = rows.some(({ state }) => state === 'sending' || state === 'queued');
  return { sent: rows.flatMap(sentText), isUnderWay };
}

function sentText({ body, parts }: SentRow): readonly SentText[] {
  if (body === null) return [];
  const { id, chat, markdown, attachments = [] }: OutboundMessage = JSON.parse(body);
  return [{ id, chat, markdown, files: attachments.length, parts: JSON.parse(parts) }];
}
