// The inbound topic: what people wrote, in order per session, claimed as turns. A turn's writes are
// fenced by its epoch, so a turn whose claim was lost can change nothing.

import { excerptOf } from '../../../lib/text/cut.ts';
import type { Attachment } from '../../message/attachment.ts';
import { isSameSender } from '../../message/change.ts';
import { BusFullError } from '../../message/errors.ts';
import {
  type AccountId,
  type ChannelName,
  type MediaId,
  type MessageId,
  mediaId,
  type SessionKey,
  type TurnId,
} from '../../message/ids.ts';
import { type Amendment, type InboundMessage, sessionOf } from '../../message/message.ts';
import type {
  AcceptResult,
  BusLimits,
  CancelResult,
  ChannelCursor,
  InboundEntry,
  QueuedMessage,
} from '../bus.ts';
import { all, change, first, type Operation, putRows } from './key-value.ts';
import { stopAnswers } from './outbound.ts';
import type { BusStore } from './store.ts';

export function* accept(
  batch: readonly InboundEntry[],
  { cursor, limits, rows = [] }: Parameters<BusStore['accept']>[1],
  now: number,
): Operation<readonly AcceptResult[]> {
  const results: AcceptResult[] = [];
  const queuedIn = new Map<SessionKey, number>();
  for (const entry of batch) {
    const session = sessionOf(entry.message);
    const result = yield* store(entry, session, now);
    results.push(result);
    if (result === 'accepted' && entry.kind === 'queue')
      queuedIn.set(session, (queuedIn.get(session) ?? 0) + 1);
  }
  // Counted behind the inserts: throwing undoes them, and duplicates cost no room.
  if (queuedIn.size > 0) yield* checkRoom(queuedIn, limits);
  for (const session of queuedIn.keys()) yield* ring(session, now);
  if (cursor !== undefined) yield* saveCursor(cursor, now);
  if (results.some((result) => result !== 'duplicate')) yield* putRows(rows, now);
  return results;
}

function* store(entry: InboundEntry, session: SessionKey, now: number): Operation<AcceptResult> {
  const { message } = entry;
  if (entry.kind === 'queue' && message.amends !== undefined) {
    const known = yield* first<{ seq: number }>('SELECT seq FROM inbound WHERE id = ?', message.id);
    if (known !== undefined) return 'duplicate';
    const stored = yield* applyChange(message, message.amends, now);
    yield* insert(stored, session, now);
    return stored.kind === 'queue' ? 'accepted' : 'applied';
  }
  return (yield* insert(entry, session, now)) ? 'accepted' : 'duplicate';
}

function* insert(entry: InboundEntry, session: SessionKey, now: number): Operation<boolean> {
  const { id, receivedAt } = entry.message;
  const changes =
    entry.kind === 'queue'
      ? yield* change(
          `INSERT INTO inbound (id, session, state, body, received_at, accepted_at)
           VALUES (?, ?, 'pending', ?, ?, ?) ON CONFLICT (id) DO NOTHING`,
          ...[id, session, JSON.stringify(entry.message), receivedAt, now],
        )
      : yield* change(
          `INSERT INTO inbound (id, session, state, reason, received_at, accepted_at, settled_at)
           VALUES (?1, ?2, 'recorded', ?3, ?4, ?5, ?5) ON CONFLICT (id) DO NOTHING`,
          ...[id, session, entry.gate, receivedAt, now],
        );
  return changes > 0;
}

/**
 * Full is what was full before the batch came: a batch larger than the room that is left is taken
 * whole, since the platform would offer the same batch for ever.
 */
function* checkRoom(added: ReadonlyMap<SessionKey, number>, limits: BusLimits): Operation<void> {
  let addedInAll = 0;
  for (const [session, count] of added) {
    addedInAll += count;
    const waiting = yield* first<{ n: number }>(
      `SELECT count(*) AS n FROM inbound WHERE session = ?1 AND state = 'pending'
         AND seq > coalesce((SELECT held_through FROM session_lane WHERE session = ?1), 0)`,
      session,
    );
    if ((waiting?.n ?? 0) - count >= limits.maxPendingPerChat) {
      throw new BusFullError(`${limits.maxPendingPerChat} messages wait in one chat`);
    }
  }
  const total = yield* first<{ n: number }>(
    `SELECT count(*) AS n FROM inbound WHERE state = 'pending'`,
  );
  if ((total?.n ?? 0) - addedInAll >= limits.maxPending) {
    throw new BusFullError(`${limits.maxPending} messages wait`);
  }
}

/** Makes the session due, unless a turn holds it or it waits for a retry. */
export function* ring(session: string, now: number): Operation<void> {
  yield* change(
    `INSERT INTO session_lane (session, ready_at) VALUES (?, ?)
     ON CONFLICT (session) DO UPDATE SET ready_at = excluded.ready_at
     WHERE session_lane.owner IS NULL AND session_lane.ready_at IS NULL`,
    ...[session, now],
  );
}

function* saveCursor(cursor: ChannelCursor, now: number): Operation<void> {
  yield* change(
    `INSERT INTO cursor (channel, account, value, written_at) VALUES (?, ?, ?, ?)
     ON CONFLICT (channel, account)
     DO UPDATE SET value = excluded.value, written_at = excluded.written_at`,
    ...[cursor.channel, cursor.account, cursor.value, now],
  );
}

export function* readCursor(
  channel: ChannelName,
  account: AccountId,
): Operation<string | undefined> {
  const row = yield* first<{ value: string }>(
    'SELECT value FROM cursor WHERE channel = ? AND account = ?',
    ...[channel, account],
  );
  return row?.value;
}

/**
 * Withdraws what waits; a running turn is marked, so that it is not run again after a crash. Nothing
 * further is sent of the answers.
 */
export function* cancel(session: SessionKey, reason: string, now: number): Operation<CancelResult> {
  const withdrawn = yield* change(
    `UPDATE inbound SET state = 'cancelled', reason = ?2, settled_at = ?3
     WHERE session = ?1 AND state = 'pending' AND seq > coalesce(
       (SELECT held_through FROM session_lane WHERE session = ?1 AND owner IS NOT NULL), 0)`,
    ...[session, reason, now],
  );
  const marked = yield* change(
    'UPDATE session_lane SET stop_reason = ? WHERE session = ? AND owner IS NOT NULL',
    ...[reason, session],
  );
  if (marked === 0) {
    yield* change('UPDATE session_lane SET ready_at = NULL WHERE session = ?', session);
  }
  const unsent = yield* stopAnswers(session, reason, now);
  return { withdrawn, running: marked > 0, unsent };
}

type MessageRow = { seq: number; body: string };

export function* pendingAfter(
  session: SessionKey,
  seq: number,
): Operation<readonly QueuedMessage[]> {
  const rows = yield* all<MessageRow>(
    `SELECT seq, body FROM inbound WHERE session = ? AND state = 'pending' AND seq > ? ORDER BY seq`,
    ...[session, seq],
  );
  return rows.map(queuedMessage);
}

/** Those of them that were part of this turn in an earlier try. */
export function* joinedBefore(
  session: SessionKey,
  seq: number,
  turn: TurnId,
): Operation<readonly QueuedMessage[]> {
  const rows = yield* all<MessageRow>(
    `SELECT seq, body FROM inbound
     WHERE session = ? AND state = 'pending' AND seq > ? AND turn = ? ORDER BY seq`,
    ...[session, seq, turn],
  );
  return rows.map(queuedMessage);
}

export function queuedMessage(row: MessageRow): QueuedMessage {
  const message: InboundMessage = JSON.parse(row.body);
  return { seq: row.seq, message };
}

// What messages under way say of their attachments: where a content has been fetched the message is
// rewritten to name it, so that every later try of its turn sees the same.

/** Changes a message that waits or belongs to a running turn; one that is done with stays. */
export function* setAttachments(
  id: MessageId,
  attachments: readonly Attachment[],
): Operation<boolean> {
  const row = yield* first<{ body: string }>(
    `SELECT body FROM inbound WHERE id = ? AND state = 'pending'`,
    id,
  );
  if (row === undefined) return false;
  const body = JSON.stringify({ ...JSON.parse(row.body), attachments });
  return (yield* change('UPDATE inbound SET body = ? WHERE id = ?', ...[body, id])) > 0;
}

/** A quote inside a text is escaped there, so that nothing a person writes looks like this. */
const NAMED = /"media":"([0-9a-f]{64})"/g;

/** Contents that messages which wait, run or are still to be sent name. */
export function* neededMedia(): Operation<readonly MediaId[]> {
  const rows = yield* all<{ body: string }>(
    `SELECT body FROM inbound WHERE state = 'pending' AND body LIKE '%"media":"%'
     UNION ALL
     SELECT body FROM outbound WHERE state IN ('queued', 'sending') AND body LIKE '%"media":"%'`,
  );
  return rows.flatMap(({ body }) =>
    [...body.matchAll(NAMED)].map(([, sha256 = '']) => mediaId(sha256)),
  );
}

// A person's change of an earlier message: while that one waits untouched it is changed in place; later
// the change itself waits in the session, where the turn under way or the next one takes it up.

type Row = { seq: number; state: string; body: string | null; turn: string | null };

/** What of the change is to be stored: its text only where it has to wait. */
export function* applyChange(
  message: InboundMessage,
  { id, kind }: Amendment,
  now: number,
): Operation<InboundEntry> {
  const done = (gate: string): InboundEntry => ({ kind: 'record', message, gate });
  const row = yield* first<Row>('SELECT seq, state, body, turn FROM inbound WHERE id = ?', id);
  if (row === undefined || row.body === null) return done('changes a message that is not kept');
  const earlier: InboundMessage = JSON.parse(row.body);
  if (!isSameSender(earlier.sender, message.sender))
    return done('changes what somebody else wrote');
  if (kind === 'edited' && earlier.text === message.text) return done('changes nothing');
  const isWaiting = row.state === 'pending';
  if (!isWaiting && row.state !== 'done') return done('changes a message that was not answered');
  // A turn had it, maybe one that runs again: what the model was shown cannot be taken back.
  if (!isWaiting || row.turn !== null) {
    const amends = { id, kind, earlier: excerptOf(earlier.text) };
    // Kept, so that going back to the first words is a change too.
    if (!isWaiting && kind === 'edited') yield* swap(row.seq, { ...earlier, text: message.text });
    return { kind: 'queue', message: { ...message, amends } };
  }
  if (kind === 'withdrawn') {
    yield* withdraw(row.seq, now);
    return done('withdrew a message that waited');
  }
  yield* swap(row.seq, { ...earlier, text: message.text });
  return done('changed a message that waited');
}

function* withdraw(seq: number, now: number): Operation<void> {
  yield* change(
    `UPDATE inbound SET state = 'cancelled', reason = 'withdrawn by its author', settled_at = ?
     WHERE seq = ?`,
    ...[now, seq],
  );
}

function* swap(seq: number, message: InboundMessage): Operation<void> {
  yield* change('UPDATE inbound SET body = ? WHERE seq = ?', JSON.stringify(message), seq);
}
