// The inbound topic: messages of people, in order per session, claimed as turns. A turn's writes
// are fenced by its epoch, so a turn whose claim was lost can change nothing.

import { excerptOf } from '../../../lib/text/cut.ts';
import { parseCommand, UNCALLED } from '../../access/admission.ts';
import type { Attachment } from '../../message/attachment.ts';
import { BusFullError, LeadLostError } from '../../message/errors.ts';
import {
  type AccountId,
  accountName,
  type ChannelName,
  type MediaId,
  type MessageId,
  mediaId,
  type SessionKey,
} from '../../message/ids.ts';
import {
  type Amendment,
  type InboundMessage,
  isSameSender,
  sessionOf,
} from '../../message/message.ts';
import type {
  AcceptResult,
  BusLimits,
  CancelResult,
  ChannelCursor,
  InboundEntry,
  QueuedMessage,
} from '../bus.ts';
import { putRows, type Transaction } from './key-value.ts';
import { leads } from './nodes.ts';
import { stopAnswers } from './outbound.ts';
import type { BusStore } from './store.ts';

export function accept(
  tx: Transaction,
  batch: readonly InboundEntry[],
  { cursor, limits, rows = [] }: Parameters<BusStore['accept']>[1],
): readonly AcceptResult[] {
  if (cursor !== undefined && !leads(tx, accountName(cursor))) {
    throw new LeadLostError(accountName(cursor));
  }
  const results: AcceptResult[] = [];
  const queuedIn = new Map<SessionKey, number>();
  for (const entry of batch) {
    const session = sessionOf(entry.message);
    const result = store(tx, entry, session);
    results.push(result);
    if (result === 'accepted' && entry.kind === 'queue')
      queuedIn.set(session, (queuedIn.get(session) ?? 0) + 1);
  }
  // Counted after the inserts: throwing undoes them, and duplicates take no room.
  if (queuedIn.size > 0) checkRoom(tx, queuedIn, limits);
  for (const session of queuedIn.keys()) ring(tx, session);
  if (cursor !== undefined) saveCursor(tx, cursor);
  if (results.some((result) => result !== 'duplicate')) putRows(tx, rows);
  return results;
}

function store(tx: Transaction, entry: InboundEntry, session: SessionKey): AcceptResult {
  const { message } = entry;
  const { amends, ...said } = message;
  if (entry.kind === 'queue' && amends !== undefined) {
    const known = tx.first<{ seq: number }>('SELECT seq FROM inbound WHERE id = ?', message.id);
    if (known !== undefined) return 'duplicate';
    if (nowCalls(tx, message, amends)) {
      tx.run('DELETE FROM inbound WHERE id = ?', amends.id);
      insert(tx, { kind: 'queue', message: { ...said, id: amends.id } }, session);
      insert(tx, { kind: 'record', message, gate: 'made group talk a question' }, session);
      return 'accepted';
    }
    const stored = applyChange(tx, message, amends);
    insert(tx, stored, session);
    return stored.kind === 'queue' ? 'accepted' : 'applied';
  }
  return insert(tx, entry, session) ? 'accepted' : 'duplicate';
}

function insert(tx: Transaction, entry: InboundEntry, session: SessionKey): boolean {
  const { id, receivedAt } = entry.message;
  const changes =
    entry.kind === 'queue'
      ? tx.change(
          `INSERT INTO inbound (id, session, state, body, received_at, accepted_at)
           VALUES (?, ?, 'pending', ?, ?, ?) ON CONFLICT (id) DO NOTHING`,
          ...[id, session, JSON.stringify(entry.message), receivedAt, tx.now],
        )
      : tx.change(
          `INSERT INTO inbound (id, session, state, reason, received_at, accepted_at, settled_at)
           VALUES (?1, ?2, 'recorded', ?3, ?4, ?5, ?5) ON CONFLICT (id) DO NOTHING`,
          ...[id, session, entry.gate, receivedAt, tx.now],
        );
  return changes > 0;
}

/**
 * Counts what was there before the batch: a batch larger than the remaining room is accepted whole,
 * because the platform would offer the same batch forever.
 */
function checkRoom(
  tx: Transaction,
  added: ReadonlyMap<SessionKey, number>,
  limits: BusLimits,
): void {
  const addedInAll = added.values().reduce((sum, count) => sum + count, 0);
  for (const [session, count] of added) {
    const waiting = tx.first<{ here: number; everywhere: number }>(
      `SELECT
         (SELECT count(*) FROM inbound WHERE session = ?1 AND state = 'pending'
            AND seq > coalesce((SELECT held_through FROM session_lane WHERE session = ?1), 0)) AS here,
         (SELECT count(*) FROM inbound WHERE state = 'pending') AS everywhere`,
      session,
    );
    if ((waiting?.here ?? 0) - count >= limits.maxPendingPerChat) {
      throw new BusFullError(`${limits.maxPendingPerChat} messages wait in one chat`);
    }
    if ((waiting?.everywhere ?? 0) - addedInAll >= limits.maxPending) {
      throw new BusFullError(`${limits.maxPending} messages wait`);
    }
  }
}

/** Makes the session due, unless a turn holds it or it waits for a retry. */
export function ring(tx: Transaction, session: string): void {
  tx.tells?.('session', session);
  tx.run(
    `INSERT INTO session_lane (session, ready_at) VALUES (?, ?)
     ON CONFLICT (session) DO UPDATE SET ready_at = excluded.ready_at
     WHERE session_lane.owner IS NULL AND session_lane.ready_at IS NULL`,
    ...[session, tx.now],
  );
}

function saveCursor(tx: Transaction, cursor: ChannelCursor): void {
  tx.run(
    `INSERT INTO cursor (channel, account, value, written_at) VALUES (?, ?, ?, ?)
     ON CONFLICT (channel, account)
     DO UPDATE SET value = excluded.value, written_at = excluded.written_at`,
    ...[cursor.channel, cursor.account, cursor.value, tx.now],
  );
}

export function readCursor(
  tx: Transaction,
  channel: ChannelName,
  account: AccountId,
): string | undefined {
  const row = tx.first<{ value: string }>(
    'SELECT value FROM cursor WHERE channel = ? AND account = ?',
    ...[channel, account],
  );
  return row?.value;
}

/**
 * Withdraws waiting messages; a running turn is marked, so that it is not run again after a crash.
 * No further part of its answers is sent.
 */
export function cancel(tx: Transaction, session: SessionKey, reason: string): CancelResult {
  const withdrawn = tx.change(
    `UPDATE inbound SET state = 'cancelled', reason = ?2, settled_at = ?3
     WHERE session = ?1 AND state = 'pending' AND seq > coalesce(
       (SELECT held_through FROM session_lane WHERE session = ?1 AND owner IS NOT NULL), 0)`,
    ...[session, reason, tx.now],
  );
  const marked = tx.change(
    'UPDATE session_lane SET stop_reason = ? WHERE session = ? AND owner IS NOT NULL',
    ...[reason, session],
  );
  if (marked === 0) {
    tx.run('UPDATE session_lane SET ready_at = NULL WHERE session = ?', session);
  }
  tx.tells?.('session', session);
  const unsent = stopAnswers(tx, session, reason);
  return { withdrawn, running: marked > 0, unsent };
}

type MessageRow = { seq: number; body: string };

export function pendingAfter(
  tx: Transaction,
  session: SessionKey,
  seq: number,
): readonly QueuedMessage[] {
  const rows = tx.all<MessageRow>(
    `SELECT seq, body FROM inbound
     WHERE session = ?1 AND state = 'pending' AND seq > ?2 ORDER BY seq`,
    ...[session, seq],
  );
  return rows.map(queuedMessage);
}

export function queuedMessage(row: MessageRow): QueuedMessage {
  const message: InboundMessage = JSON.parse(row.body);
  return { seq: row.seq, message };
}

// Attachments of queued messages: when a content has been fetched the message is rewritten to name
// it, so that every later try of its turn sees the same.

/** Changes a message that waits or belongs to a running turn; a finished one stays. */
export function setAttachments(
  tx: Transaction,
  id: MessageId,
  attachments: readonly Attachment[],
): boolean {
  const row = tx.first<{ body: string }>(
    `SELECT body FROM inbound WHERE id = ? AND state = 'pending'`,
    id,
  );
  if (row === undefined) return false;
  const body = JSON.stringify({ ...JSON.parse(row.body), attachments });
  return tx.change('UPDATE inbound SET body = ? WHERE id = ?', ...[body, id]) > 0;
}

/** A quote inside a text is escaped, so that no message text looks like this. */
const NAMED = /"media":"([0-9a-f]{64})"/g;

/** Contents named by messages that wait, run or are still to be sent. */
export function neededMedia(tx: Transaction): readonly MediaId[] {
  const rows = tx.all<{ body: string }>(
    `SELECT body FROM inbound WHERE state = 'pending' AND body LIKE '%"media":"%'
     UNION ALL
     SELECT body FROM outbound WHERE state IN ('queued', 'sending') AND body LIKE '%"media":"%'`,
  );
  return rows.flatMap(({ body }) =>
    [...body.matchAll(NAMED)].map(([, sha256 = '']) => mediaId(sha256)),
  );
}

// A person's change of an earlier message: while that one waits untouched it is changed in place;
// later the change itself waits in the session for the current turn or the next one.

type Row = { seq: number; state: string; body: string | null; turn: string | null };

/**
 * An edit, admitted because it names the agent, of what was said among others: nothing answered
 * that, so it is a message like a new one. A change never commands anything.
 */
function nowCalls(tx: Transaction, { text }: InboundMessage, { id, kind }: Amendment): boolean {
  if (kind !== 'edited' || parseCommand(text) !== undefined) return false;
  const row = tx.first<{ reason: string | null }>('SELECT reason FROM inbound WHERE id = ?', id);
  return row?.reason === UNCALLED.gate;
}

/** What of the change must be stored: its text only if it has to wait. */
function applyChange(
  tx: Transaction,
  message: InboundMessage,
  { id, kind }: Amendment,
): InboundEntry {
  const done = (gate: string): InboundEntry => ({ kind: 'record', message, gate });
  const row = tx.first<Row>('SELECT seq, state, body, turn FROM inbound WHERE id = ?', id);
  if (row === undefined || row.body === null) {
    if (kind === 'again') return { kind: 'queue', message };
    return done('changes a message that is not kept');
  }
  const earlier: InboundMessage = JSON.parse(row.body);
  if (!isSameSender(earlier.sender, message.sender))
    return done('changes a message of another sender');
  if (kind === 'edited' && earlier.text === message.text) return done('changes nothing');
  const isWaiting = row.state === 'pending';
  if (kind === 'again') {
    if (isWaiting) return done('asks again for an answer that is on its way');
    return { kind: 'queue', message };
  }
  if (!isWaiting && row.state !== 'done') return done('changes a message that was not answered');
  // A turn used it, possibly one that runs again: the model has already seen the text.
  if (!isWaiting || row.turn !== null) {
    const amends = { id, kind, earlier: excerptOf(earlier.text) };
    // Kept, so that restoring the first text is a change too.
    if (!isWaiting && kind === 'edited') swap(tx, row.seq, { ...earlier, text: message.text });
    return { kind: 'queue', message: { ...message, amends } };
  }
  if (kind === 'withdrawn') {
    withdraw(tx, row.seq);
    return done('withdrew a message that waited');
  }
  swap(tx, row.seq, { ...earlier, text: message.text });
  return done('changed a message that waited');
}

function withdraw(tx: Transaction, seq: number): void {
  tx.run(
    `UPDATE inbound SET state = 'cancelled', reason = 'withdrawn by its author', settled_at = ?
     WHERE seq = ?`,
    ...[tx.now, seq],
  );
}

function swap(tx: Transaction, seq: number, message: InboundMessage): void {
  tx.run('UPDATE inbound SET body = ? WHERE seq = ?', JSON.stringify(message), seq);
}
