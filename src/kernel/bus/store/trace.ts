// The trace of one message, read from the columns of its row.

import {
  firstSeqOf,
  type MessageId,
  type SessionKey,
  type TurnId,
  turnId,
} from '../../message/ids.ts';
import type { LastMessage, Trace, TraceStep } from '../bus.ts';
import type { Transaction } from './key-value.ts';
import { MOVED } from './upkeep.ts';

type InboundRow = {
  id: MessageId;
  session: SessionKey;
  state: string;
  reason: string | null;
  turn: TurnId | null;
  attempts: number;
  received_at: number;
  accepted_at: number;
  claimed_at: number | null;
  settled_at: number | null;
};

const INBOUND_COLUMNS = `id, session, state, reason, turn, attempts, received_at, accepted_at,
  claimed_at, settled_at FROM inbound`;

export function traceMessage(
  tx: Transaction,
  given: MessageId | 'last' | LastMessage,
): Trace | undefined {
  const wanted =
    typeof given === 'string' && given !== 'last' && given.includes(CUT)
      ? wholeName(tx, given)
      : given;
  const inbound = inboundRow(tx, wanted);
  if (inbound !== undefined) return inboundTrace(inbound, answersTo(tx, inbound));
  if (typeof wanted === 'object') return undefined;
  const outbound = tx.first<OutboundRow>(`SELECT ${OUTBOUND_COLUMNS} WHERE id = ?`, wanted);
  return outbound === undefined ? undefined : outboundTrace(outbound);
}

/** Replaces digits of a phone number in the log. */
const CUT = '…';

/** The newest message whose id, or whose turn's, has this form in the log; else the given id. */
function wholeName(tx: Transaction, short: MessageId): MessageId {
  const like = short.replace(/[\\%_]/g, '\\$&').replaceAll(CUT, '%');
  const isLike = (column: string) => `${column} LIKE ?1 ESCAPE '\\'`;
  const inbound = tx.first<{ id: MessageId }>(
    `SELECT id FROM inbound WHERE ${isLike('id')} OR ${isLike('turn')} ORDER BY seq DESC LIMIT 1`,
    like,
  );
  if (inbound !== undefined) return inbound.id;
  const outbound = tx.first<{ id: MessageId }>(
    `SELECT id FROM outbound WHERE ${isLike('id')} ORDER BY ord DESC LIMIT 1`,
    like,
  );
  return outbound?.id ?? short;
}

function inboundRow(
  tx: Transaction,
  wanted: MessageId | 'last' | LastMessage,
): InboundRow | undefined {
  if (wanted === 'last') {
    return tx.first<InboundRow>(`SELECT ${INBOUND_COLUMNS} ORDER BY seq DESC LIMIT 1`);
  }
  if (typeof wanted === 'string') {
    const named = tx.first<InboundRow>(`SELECT ${INBOUND_COLUMNS} WHERE id = ?`, wanted);
    return named ?? firstOfTurn(tx, turnId(wanted));
  }
  const { session, besides, by } = wanted;
  // For messages that were refused at admission, or are long finished, the person is not known.
  const isTheirs =
    by === undefined
      ? `(body IS NULL OR json_extract(body, '$.sender.kind') = 'person')`
      : `json_extract(body, '$.sender.id') = ?`;
  return tx.first<InboundRow>(
    `SELECT ${INBOUND_COLUMNS} WHERE session = ? AND id <> ?
       AND NOT (state = 'recorded' AND coalesce(reason, '') LIKE 'command /%') AND ${isTheirs}
     ORDER BY seq DESC LIMIT 1`,
    ...[session, besides, ...(by === undefined ? [] : [by])],
  );
}

/** Logs, figures and the audit refer to messages by turn. */
function firstOfTurn(tx: Transaction, turn: TurnId): InboundRow | undefined {
  const seq = firstSeqOf(turn);
  if (seq === undefined) return undefined;
  const sql = `SELECT ${INBOUND_COLUMNS} WHERE seq = ? AND turn = ?`;
  return tx.first<InboundRow>(sql, seq, turn);
}

/** Answers are named after their turn, or after the message if no turn was needed. */
function answersTo(tx: Transaction, row: InboundRow): readonly Trace[] {
  const answers: OutboundRow[] = [];
  for (const name of row.turn === null ? [row.id] : [row.turn, row.id]) {
    // '0' is the character after '/'.
    const named = tx.all<OutboundRow>(
      `SELECT ${OUTBOUND_COLUMNS} WHERE id >= ? AND id < ? ORDER BY ord`,
      ...[`${name}/`, `${name}0`],
    );
    answers.push(...named);
  }
  return answers.map(outboundTrace);
}

function inboundTrace(row: InboundRow, answers: readonly Trace[]): Trace {
  const steps = [
    step(row.received_at, 'received'),
    step(row.accepted_at, 'accepted'),
    ...(row.claimed_at === null
      ? []
      : [step(row.claimed_at, 'turn started', `attempt ${row.attempts}`)]),
    ...endOf(row),
  ];
  const { id, session, state } = row;
  return {
    ...{ id, direction: 'inbound', session, state, steps, answers },
    ...(row.turn === null ? {} : { turnId: row.turn }),
  };
}

const INBOUND_ENDS: Readonly<Record<string, string>> = {
  done: 'turn finished',
  recorded: 'stopped at the gate',
  cancelled: 'withdrawn',
  dead: 'set aside',
  dropped: 'dropped',
};

function endOf(row: InboundRow): readonly TraceStep[] {
  if (row.settled_at === null) {
    if (row.reason === null) return [];
    return [step(row.claimed_at ?? row.accepted_at, 'last try failed', row.reason)];
  }
  return [step(row.settled_at, INBOUND_ENDS[row.state] ?? row.state, row.reason)];
}

type OutboundRow = {
  id: MessageId;
  lane: SessionKey;
  state: string;
  reason: string | null;
  attempts: number;
  parts: string;
  created_at: number;
  queued_at: number;
  claimed_at: number | null;
  settled_at: number | null;
  ready_at: number | null;
  bounced_at: number | null;
  bounce_reason: string | null;
};

const OUTBOUND_COLUMNS = `id, lane, state, reason, attempts, parts, created_at, queued_at,
  claimed_at, settled_at, ready_at, bounced_at, bounce_reason FROM outbound`;

function outboundTrace(row: OutboundRow): Trace {
  const steps = [
    step(row.created_at, 'queued'),
    ...(row.queued_at === row.created_at ? [] : [step(row.queued_at, 'queued again')]),
    ...(row.claimed_at === null || row.attempts === 0
      ? []
      : [step(row.claimed_at, 'sending', `attempt ${row.attempts}`)]),
    ...outboundEnd(row),
    ...(row.bounced_at === null ? [] : [step(row.bounced_at, 'bounced', row.bounce_reason)]),
  ];
  const state = row.bounced_at === null ? row.state : 'bounced';
  return {
    ...{ id: row.id, direction: 'outbound', session: row.lane, state },
    ...{ steps, answers: [] },
  };
}

function outboundEnd(row: OutboundRow): readonly TraceStep[] {
  if (row.state === 'sent' && row.settled_at !== null) {
    const parts: readonly string[] = JSON.parse(row.parts);
    return [step(row.settled_at, 'sent', parts.join(', '))];
  }
  if (row.settled_at !== null) {
    const isMoved = row.reason?.startsWith(MOVED) === true;
    return [step(row.settled_at, isMoved ? 'moved' : row.state, row.reason)];
  }
  if (row.ready_at !== null && row.reason !== null) {
    return [step(row.ready_at, 'next try', row.reason)];
  }
  return [];
}

function step(at: number, what: string, detail: string | null = null): TraceStep {
  return { at, what, ...(detail === null ? {} : { detail }) };
}
