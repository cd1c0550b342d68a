// Messages that cannot get out where they are, and sending another one in their place.

import { type AccountName, accountName } from '../../message/account.ts';
import type { MessageId } from '../../message/ids.ts';
import type { OutboundMessage } from '../../message/message.ts';
import { all, change, first, type Operation } from './operation.ts';
import { promote, queue } from './outbound.ts';

const MAX_STRANDED = 100;

/** No try of it may have arrived, not even a part. */
const SURELY_UNSENT = "in_doubt = 0 AND parts = '[]' AND body IS NOT NULL";

export function* stranded(
  account: AccountName,
  since: number,
): Operation<readonly OutboundMessage[]> {
  const rows = yield* all<{ body: string }>(
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

export function* divert(
  id: MessageId,
  instead: OutboundMessage,
  now: number,
): Operation<'diverted' | 'too late'> {
  const row = yield* first<{ lane: string }>('SELECT lane FROM outbound WHERE id = ?', id);
  const changes = yield* change(
    `UPDATE outbound SET state = 'dropped', reason = ?, settled_at = ?, ready_at = NULL
     WHERE id = ? AND state IN ('queued', 'dead') AND ${SURELY_UNSENT}`,
    ...[`${MOVED}${accountName(instead.chat)}`, now, id],
  );
  if (row === undefined || changes === 0) return 'too late';
  yield* queue(instead, now);
  yield* promote(row.lane, now);
  return 'diverted';
}

/** How the reason begins of a message that another one was sent for. */
export const MOVED = 'moved to ';
