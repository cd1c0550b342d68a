// Turns over the inbound topic: claimed with all waiting messages of a session, joined by
// followers, ended in one fenced write that also queues the answers.

import type { SessionKey } from '../../message/ids.ts';
import {
  type AccountName,
  accountName,
  firstSeqOf,
  type MessageId,
  type NativeId,
  type TurnId,
  turnIdOf,
} from '../../message/ids.ts';
import type { LiveDraft, QueuedMessage } from '../bus.ts';
import { pendingAfter, queuedMessage } from './inbound.ts';
import type { Transaction } from './key-value.ts';
import { freeLeads } from './nodes.ts';
import { queueing } from './outbound.ts';
import {
  type ClaimedTurn,
  type Claims,
  type EntryEnd,
  type EntryRow,
  type NewEntryRow,
  StaleEntriesError,
  type TurnEnding,
  type TurnHold,
} from './store.ts';

type WaitingRow = HeadRow & { turn: TurnId | null };
/** A session that is due, with a message that waits in it; or the next one, without. */
type LaneRow = { session: SessionKey; epoch: number; ready_at: number } & (
  | WaitingRow
  | { seq: null }
);

/** In one round trip: while it waits for an answer, other processes wait for the lock. */
export function claimTurns(
  tx: Transaction,
  places: () => number,
  leaveMs: (session: SessionKey) => number,
): Claims<ClaimedTurn> {
  const free = places();
  const rows = tx.all<LaneRow>(
    `SELECT lane.session, epoch, ready_at, seq, body, attempts, failures, deaths, turn FROM
       (SELECT session, epoch, ready_at FROM session_lane WHERE ready_at IS NOT NULL
        ${tx.isShared ? 'AND EXISTS (SELECT 1 FROM node WHERE owner = ?3)' : ''}
        ORDER BY ready_at LIMIT ?1) AS lane
     LEFT JOIN inbound ON inbound.session = lane.session AND state = 'pending' AND ready_at <= ?2
     ORDER BY ready_at, seq`,
    ...[free + 1, tx.now, ...(tx.isShared ? [tx.owner] : [])],
  );
  const claimed: ClaimedTurn[] = [];
  const later: number[] = [];
  const lanes = [...Map.groupBy(rows, (row) => row.session)];
  for (const [index, [session, own]] of lanes.entries()) {
    const { ready_at: readyAt = 0, epoch = 0 } = own[0] ?? {};
    const dueAt = readyAt + leaveMs(session);
    const isDue = index < free && dueAt <= tx.now;
    const waiting = own.filter((row) => row.seq !== null);
    const turn = isDue ? claimTurn(tx, session, epoch, waiting) : dueAt;
    if (typeof turn === 'number') later.push(turn);
    else if (turn !== undefined) claimed.push(turn);
  }
  return { claimed, nextAt: later.length === 0 ? undefined : Math.min(...later) };
}

/** The time until which it has to wait; undefined if nothing waits in it. */
function claimTurn(
  tx: Transaction,
  session: SessionKey,
  lastEpoch: number,
  [head, ...waiting]: readonly WaitingRow[],
): ClaimedTurn | number | undefined {
  if (head === undefined) {
    tx.run('UPDATE session_lane SET ready_at = NULL WHERE session = ?', session);
    return undefined;
  }
  if (head.attempts - head.failures >= SUSPECT_DEATHS && suspectsAtWork(tx).length > 0) {
    const until = tx.now + suspectWaitMs(head);
    tx.tells?.('session', session);
    tx.run('UPDATE session_lane SET ready_at = ? WHERE session = ?', until, session);
    return until;
  }
  const id = turnIdOf(session, head.seq);
  const followers = followersOf(head, waiting, id);
  const lastSeq = followers.at(-1)?.seq ?? head.seq;
  const epoch = lastEpoch + 1;
  tx.tells?.('session', session);
  tx.run(
    `UPDATE session_lane SET epoch = ?, owner = ?, held_through = ?, ready_at = NULL
     WHERE session = ?`,
    ...[epoch, tx.owner, lastSeq, session],
  );
  tx.run(
    'UPDATE inbound SET attempts = attempts + 1, claimed_at = ?, turn = ? WHERE seq = ?',
    ...[tx.now, id, head.seq],
  );
  if (head.attempts === 0) markJoined(tx, session, id, head.seq, lastSeq);
  return {
    session,
    epoch,
    firstSeq: head.seq,
    attempt: head.attempts + 1,
    failures: head.failures,
    deaths: head.deaths,
    messages: [queuedMessage(head), ...followers.map(queuedMessage)],
  };
}

type HeadRow = {
  seq: number;
  body: string;
  attempts: number;
  failures: number;
  deaths: number;
};

/**
 * A turn whose tries ended this often with their process is a suspect. One death means little: many
 * turns were running, and the process may have been killed from outside. So suspects run one at a
 * time, and only in a process that has lived for a while without them; a death then counts for the
 * running one.
 */
const SUSPECT_DEATHS = 3;
const PROVEN_PROCESS_MS = 5000;
const SUSPECT_WAIT_MS = 1000;

/** Turns with which the process died often wait longer, so that the others come first. */
const suspectWaitMs = ({ deaths }: Pick<HeadRow, 'deaths'>) => SUSPECT_WAIT_MS * (1 + deaths);

/** The first messages of held turns that were suspects before. */
function suspectsAtWork(tx: Transaction, held = HELD): readonly { readonly seq: number }[] {
  return tx.all<{ seq: number }>(
    `SELECT head.seq FROM session_lane JOIN inbound AS head ON head.seq =
       (SELECT min(seq) FROM inbound
        WHERE inbound.session = session_lane.session AND state = 'pending')
     WHERE ${held} AND attempts - 1 - failures >= ?`,
    SUSPECT_DEATHS,
  );
}

/** A process ended; its only running suspect is counted. */
function judgeDeath(tx: Transaction, those: string): void {
  const [suspect, ...others] = suspectsAtWork(tx, those);
  if (suspect !== undefined && others.length === 0) {
    tx.run('UPDATE inbound SET deaths = deaths + 1 WHERE seq = ?', suspect.seq);
  }
}

/** Until the new process has proven itself. */
function holdSuspects(tx: Transaction): void {
  const suspects = tx.all<{ session: string; deaths: number }>(
    `SELECT session, deaths FROM inbound WHERE state = 'pending' AND attempts - failures >= ?`,
    SUSPECT_DEATHS,
  );
  for (const suspect of suspects) {
    tx.run(
      'UPDATE session_lane SET ready_at = ? WHERE session = ? AND ready_at <= ?',
      ...[tx.now + PROVEN_PROCESS_MS + suspectWaitMs(suspect), suspect.session],
      tx.now + PROVEN_PROCESS_MS,
    );
  }
}

/** The first try takes all waiting messages, the second those of the first, later ones none. */
function followersOf(
  head: HeadRow,
  waiting: readonly WaitingRow[],
  id: TurnId,
): readonly WaitingRow[] {
  if (head.attempts === 0) return waiting;
  return head.attempts === 1 ? waiting.filter(({ turn }) => turn === id) : [];
}

function markJoined(
  tx: Transaction,
  session: SessionKey,
  id: TurnId,
  after: number,
  through: number,
): void {
  if (through === after) return;
  tx.run(
    "UPDATE inbound SET turn = ? WHERE session = ? AND state = 'pending' AND seq > ? AND seq <= ?",
    ...[id, session, after, through],
  );
}

type Held = { readonly through: number; readonly end: EntryEnd | undefined };
type HeldRow = { held_through: number; file?: string | null; size?: number };

/**
 * Up to which message the turn is held, and where several processes write, how its session ends;
 * undefined if the hold was lost.
 */
function heldBy(
  tx: Transaction,
  { session, epoch }: Pick<TurnHold, 'session' | 'epoch'>,
): Held | undefined {
  const [columns, join] = tx.isShared ? [`, ${END}`, LAST_ENTRY] : ['', ''];
  const row = tx.first<HeldRow>(
    `SELECT held_through ${columns} FROM session_lane ${join}
     WHERE session_lane.session = ? AND epoch = ? AND owner = ?`,
    ...[session, epoch, tx.owner],
  );
  if (row === undefined) return undefined;
  const { held_through: through, file = null, size = 0 } = row;
  return { through, end: file === null ? undefined : { file, size } };
}

export function joinTurn(tx: Transaction, hold: TurnHold): readonly QueuedMessage[] | undefined {
  const heldThrough = heldBy(tx, hold)?.through;
  if (heldThrough === undefined) return undefined;
  const followers = pendingAfter(tx, hold.session, heldThrough);
  const last = followers.at(-1);
  if (last !== undefined) {
    tx.run(
      'UPDATE session_lane SET held_through = ? WHERE session = ?',
      ...[last.seq, hold.session],
    );
    const id = turnIdOf(hold.session, hold.firstSeq);
    markJoined(tx, hold.session, id, heldThrough, last.seq);
  }
  return followers;
}

export function endTurn(
  tx: Transaction,
  hold: TurnHold,
  ending: TurnEnding,
  entries: readonly NewEntryRow[] = [],
): 'ended' | 'lost' {
  const held = heldBy(tx, hold);
  if (held === undefined) return 'lost';
  settleInbound(tx, hold, ending, held.through);
  insertEntries(tx, entries, held.end);
  tx.tells?.('session', hold.session);
  tx.run(
    `UPDATE session_lane SET owner = NULL, held_through = NULL, stop_reason = NULL,
       ready_at = CASE WHEN EXISTS
         (SELECT 1 FROM inbound WHERE session = ?1 AND state = 'pending') THEN CAST(?2 AS BIGINT) END
     WHERE session = ?1`,
    ...[hold.session, 'at' in ending ? ending.at : tx.now],
  );
  if (ending.kind === 'done' || ending.kind === 'dead') {
    for (const message of ending.outbound) tx.run(...queueing(tx, message));
  }
  return 'ended';
}

/** False if the turn that wrote them has lost its session. */
export function writeEntries(
  tx: Transaction,
  rows: readonly NewEntryRow[],
  epoch: number | undefined,
): boolean {
  const [first] = rows;
  if (first === undefined) return true;
  const { session } = first;
  const held =
    epoch === undefined
      ? { end: tx.isShared ? endOfSession(tx, session) : undefined }
      : heldBy(tx, { session, epoch });
  if (held === undefined) return false;
  insertEntries(tx, rows, held.end);
  return true;
}

function settleInbound(
  tx: Transaction,
  hold: TurnHold,
  ending: TurnEnding,
  heldThrough: number,
): void {
  const { session, firstSeq } = hold;
  switch (ending.kind) {
    case 'done': {
      const { throughSeq, note = null } = ending;
      const done = `UPDATE inbound SET state = 'done', turn = ?, settled_at = ?, reason = ?
        WHERE state = 'pending'`;
      const by = [turnIdOf(session, firstSeq), tx.now] as const;
      tx.run(`${done} AND seq = ?`, ...by, note, firstSeq);
      if (throughSeq === firstSeq) return;
      tx.run(`${done} AND session = ? AND seq <= ?`, ...by, null, session, throughSeq);
      return;
    }
    case 'retry':
      tx.run(
        'UPDATE inbound SET reason = ?, failures = failures + 1 WHERE seq = ?',
        ...[ending.reason, firstSeq],
      );
      return;
    case 'deferred':
      tx.run(
        'UPDATE inbound SET reason = ?, attempts = attempts - 1 WHERE seq = ?',
        ...[ending.reason, firstSeq],
      );
      return;
    case 'released':
      tx.run('UPDATE inbound SET attempts = attempts - 1 WHERE seq = ?', firstSeq);
      return;
    case 'dead':
      tx.run(
        `UPDATE inbound SET state = 'dead', reason = ?, settled_at = ? WHERE seq = ?`,
        ...[ending.reason, tx.now, firstSeq],
      );
      return;
    case 'cancelled':
      withdraw(tx, session, heldThrough, ending.reason);
  }
}

function withdraw(tx: Transaction, session: string, throughSeq: number, reason: string): void {
  tx.run(
    `UPDATE inbound SET state = 'cancelled', reason = ?, settled_at = ?
     WHERE session = ? AND state = 'pending' AND seq <= ?`,
    ...[reason, tx.now, session, throughSeq],
  );
}

type LostRow = { session: string; held_through: number; stop_reason: string | null };

/** Takes over from processes that are gone. */
export function takeOver(tx: Transaction): number {
  freeLeads(tx);
  return release(tx, `${HELD} AND ${OF_THE_GONE}`);
}

const HELD = 'session_lane.owner IS NOT NULL';
const OF_THE_GONE = 'session_lane.owner NOT IN (SELECT owner FROM node)';

/** Returns to the queue what this process cannot be working on, as it begins to work. */
export function recoverTurns(tx: Transaction): number {
  const isOver = `(${OF_THE_GONE} OR session_lane.owner = '${tx.owner}')`;
  return release(tx, tx.isShared ? `${HELD} AND ${isOver}` : HELD);
}

/** @param those the condition for lanes whose turns are over without an end */
function release(tx: Transaction, those: string): number {
  const held = tx.all<LostRow>(
    `SELECT session, held_through, stop_reason FROM session_lane WHERE ${those}`,
  );
  if (tx.isShared && held.length === 0) return 0;
  tx.tells?.('anything', '');
  judgeDeath(tx, those);
  for (const { session, held_through, stop_reason } of held) {
    if (stop_reason !== null) withdraw(tx, session, held_through, stop_reason);
  }
  tx.run(
    `UPDATE session_lane SET owner = NULL, held_through = NULL, stop_reason = NULL,
       ready_at = CASE WHEN EXISTS (SELECT 1 FROM inbound
         WHERE inbound.session = session_lane.session AND state = 'pending') THEN CAST(? AS BIGINT) END
     WHERE ${those}`,
    tx.now,
  );
  holdSuspects(tx);
  return held.length;
}

// Drafts: platform messages that show a turn's answer while it is written. A row lives until the
// turn's final text was sent, or until the remaining draft was removed.

/** Known data of it stays. */
export function recordDraft(tx: Transaction, draft: LiveDraft): void {
  tx.run(
    `INSERT INTO draft (turn, first_seq, channel, chat, native_id, reply_to)
     VALUES (?, ?, ?, ?, ?, ?)
     ON CONFLICT (turn) DO UPDATE SET
       native_id = coalesce(nullif(excluded.native_id, ''), draft.native_id),
       reply_to = coalesce(excluded.reply_to, draft.reply_to)`,
    ...[draft.turnId, firstSeqOf(draft.turnId) ?? 0, accountName(draft.chat)],
    ...[JSON.stringify(draft.chat), draft.nativeId ?? '', draft.replyTo ?? null],
  );
}

type DraftRow = {
  turn: TurnId;
  chat: string;
  native_id: NativeId | '';
  reply_to: MessageId | null;
};
const COLUMNS = 'turn, chat, native_id, reply_to';

const draftOf = (row: DraftRow): LiveDraft => ({
  turnId: row.turn,
  chat: JSON.parse(row.chat),
  ...(row.native_id === '' ? {} : { nativeId: row.native_id }),
  ...(row.reply_to === null ? {} : { replyTo: row.reply_to }),
});

export function readDraft(tx: Transaction, turn: TurnId): LiveDraft | undefined {
  const row = tx.first<DraftRow>(`SELECT ${COLUMNS} FROM draft WHERE turn = ?`, turn);
  return row === undefined ? undefined : draftOf(row);
}

/** A final text with unknown outcome keeps its draft: the text in the chat may be the final one. */
export function orphanDrafts(tx: Transaction, account: AccountName): readonly LiveDraft[] {
  const rows = tx.all<DraftRow>(
    `SELECT ${COLUMNS} FROM draft WHERE channel = ?
       AND NOT EXISTS (SELECT 1 FROM inbound WHERE seq = first_seq AND state = 'pending')
       AND NOT EXISTS (SELECT 1 FROM outbound
         WHERE state IN ('queued', 'sending') AND finalizes = draft.turn)
       AND NOT EXISTS (SELECT 1 FROM outbound
         WHERE state IN ('dead', 'unknown') AND state = 'unknown' AND finalizes = draft.turn)`,
    account,
  );
  return rows.map(draftOf);
}

/** The turns of drafts of all other accounts. */
export function draftsBut(
  tx: Transaction,
  isKept: (account: string) => boolean,
): readonly TurnId[] {
  const rows = tx.all<{ turn: TurnId; channel: string }>('SELECT turn, channel FROM draft');
  return rows.filter(({ channel }) => !isKept(channel)).map(({ turn }) => turn);
}

export function forgetDraft(tx: Transaction, turn: TurnId): void {
  tx.run('DELETE FROM draft WHERE turn = ?', turn);
}

// The session journal: lines of session files that are on the disk before they are in their files.
// kernel/sessions decides what a line means and when it is moved.

/**
 * Where several processes write, each row names the end that it continues. All are of one session.
 * @param before how that ends there. @throws StaleEntriesError
 */
function insertEntries(
  tx: Transaction,
  rows: readonly NewEntryRow[],
  before: EntryEnd | undefined,
): void {
  let end = before;
  for (const { session, file, place, text, after } of rows) {
    const expected = place === 0 ? after : { file, size: place };
    if (tx.isShared && (end?.file !== expected?.file || end?.size !== expected?.size)) {
      throw new StaleEntriesError();
    }
    end = { file, size: place + Buffer.byteLength(text) };
    tx.run(
      'INSERT INTO session_entry (session, file, place, text) VALUES (?, ?, ?, ?)',
      ...[session, file, place, text],
    );
  }
}

export function readEntries(
  tx: Transaction,
  { after, limit, session }: { after: number; limit: number; session?: SessionKey | undefined },
): readonly EntryRow[] {
  return tx.all<EntryRow>(
    `SELECT ord, session, file, place, text FROM session_entry
     WHERE ord > ?1 AND (session = ?2 OR ?2 IS NULL) ${tx.isShared ? 'AND in_file = 0' : ''}
     ORDER BY ord LIMIT ?3`,
    ...[after, session ?? null, limit],
  );
}

export function countEntries(tx: Transaction): ReadonlyMap<SessionKey, number> {
  const rows = tx.all<{ session: SessionKey; rows: number }>(
    `SELECT session, count(*) AS rows FROM session_entry
     ${tx.isShared ? 'WHERE in_file = 0' : ''} GROUP BY session`,
  );
  return new Map(rows.map((row) => [row.session, row.rows]));
}

/** Updates lines whose position has changed. */
export function changeEntries(tx: Transaction, rows: readonly EntryRow[]): void {
  for (const { ord, place, text } of rows) {
    tx.run('UPDATE session_entry SET place = ?, text = ? WHERE ord = ?', place, text, ord);
  }
}

export function dropEntries(tx: Transaction, rows: readonly EntryRow[]): void {
  if (!tx.isShared) {
    for (const { ord } of rows) tx.run('DELETE FROM session_entry WHERE ord = ?', ord);
    return;
  }
  for (const { ord } of rows) tx.run('UPDATE session_entry SET in_file = 1 WHERE ord = ?', ord);
  for (const session of new Set(rows.map((row) => row.session))) {
    tx.run(
      `DELETE FROM session_entry WHERE session = ?1 AND in_file = 1 AND file <>
         (SELECT file FROM session_entry WHERE session = ?1 ORDER BY ord DESC LIMIT 1)`,
      session,
    );
  }
}

// Entries that several processes write.

const END = 'file, place + octet_length(text) AS size';
const LAST_ENTRY = `LEFT JOIN session_entry ON ord =
  (SELECT max(ord) FROM session_entry AS own WHERE own.session = session_lane.session)`;

export function endOfSession(tx: Transaction, session: SessionKey): EntryEnd | undefined {
  return tx.first<EntryEnd>(
    `SELECT ${END} FROM session_entry WHERE session = ? ORDER BY ord DESC LIMIT 1`,
    session,
  );
}

export function rowsOfSession(tx: Transaction, session: SessionKey): readonly EntryRow[] {
  return tx.all<EntryRow>(
    'SELECT ord, session, file, place, text FROM session_entry WHERE session = ? ORDER BY ord',
    session,
  );
}

export function adoptEntries(tx: Transaction, { session, file, place, text }: NewEntryRow): void {
  if (endOfSession(tx, session) !== undefined) return;
  tx.run(
    'INSERT INTO session_entry (session, file, place, text, in_file) VALUES (?, ?, ?, ?, 1)',
    ...[session, file, place, text],
  );
}

export function dropMoved(tx: Transaction, session?: SessionKey): void {
  tx.run(
    'DELETE FROM session_entry WHERE in_file = 1 AND (session = ?1 OR ?1 IS NULL)',
    session ?? null,
  );
}
