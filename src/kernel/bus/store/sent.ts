// What stands where: a message as it came in, and what of our texts is in the chats.

import type { MessageId, NativeId, SessionKey, TurnId } from '../../message/ids.ts';
import {
  type ChatRef,
  type InboundMessage,
  type OutboundMessage,
  sessionKeyOf,
} from '../../message/message.ts';
import type { SentText, TakenBack } from '../bus.ts';
import { all, first, type Operation } from './operation.ts';
import { promote } from './outbound.ts';

type SentRow = { body: string | null; parts: string; state: string; lane: string };

export function* readInbound(id: MessageId): Operation<InboundMessage | undefined> {
  const row = yield* first<{ body: string | null }>('SELECT body FROM inbound WHERE id = ?', id);
  return typeof row?.body === 'string' ? JSON.parse(row.body) : undefined;
}

export function* readOutbound(id: MessageId): Operation<SentText | undefined> {
  const row = yield* first<SentRow>(
    'SELECT body, parts, state, lane FROM outbound WHERE id = ?',
    id,
  );
  return row === undefined ? undefined : sentText(row)[0];
}

/**
 * Newest first: a platform may count from the beginning again. A reaction does not tell its topic, so
 * those of the chat count too.
 */
export function* sentAs(session: SessionKey, part: NativeId): Operation<SentText | undefined> {
  const row = yield* first<SentRow>(
    `SELECT body, parts, state, lane FROM outbound
     WHERE (lane = ?1 OR substr(lane, 1, length(?1) + 1) = ?1 || '#')
       AND state IN ('sent', 'sending', 'unknown') AND body IS NOT NULL
       AND EXISTS (SELECT 1 FROM json_each(outbound.parts) WHERE json_each.value = ?2)
     ORDER BY ord DESC LIMIT 1`,
    ...[session, part],
  );
  return row === undefined ? undefined : sentText(row)[0];
}

export function* hasWrittenTo({ thread: _topic, ...chat }: ChatRef): Operation<boolean> {
  const row = yield* first<{ ord: number }>(
    `SELECT ord FROM outbound
     WHERE (lane = ?1 OR substr(lane, 1, length(?1) + 1) = ?1 || '#') AND state = 'sent' LIMIT 1`,
    sessionKeyOf(chat),
  );
  return row !== undefined;
}

export function* takeBack(turn: TurnId, now: number): Operation<TakenBack> {
  // '0' is the character behind '/'.
  const named = [`${turn}/`, `${turn}0`];
  const dropped = yield* all<{ lane: string }>(
    `UPDATE outbound SET state = 'dropped', reason = 'taken back', settled_at = ?, ready_at = NULL
     WHERE id >= ? AND id < ? AND state = 'queued' AND parts = '[]' RETURNING lane`,
    ...[now, ...named],
  );
  for (const lane of new Set(dropped.map((row) => row.lane))) yield* promote(lane, now);
  const rows = yield* all<SentRow>(
    `SELECT body, parts, state, lane FROM outbound
     WHERE id >= ? AND id < ? AND state <> 'dropped' ORDER BY ord`,
    ...named,
  );
  const isUnderWay = rows.some(({ state }) => state === 'sending' || state === 'queued');
  return { sent: rows.flatMap(sentText), isUnderWay };
}

function sentText({ body, parts }: SentRow): readonly SentText[] {
  if (body === null) return [];
  const { id, chat, markdown }: OutboundMessage = JSON.parse(body);
  return [{ id, chat, markdown, parts: JSON.parse(parts) }];
}
