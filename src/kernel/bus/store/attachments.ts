// What messages under way say of their attachments: where a content has been fetched the message is
// rewritten to name it, so that every later try of its turn sees the same.

import type { Attachment } from '../../message/attachment.ts';
import { type MediaId, type MessageId, mediaId } from '../../message/ids.ts';
import { all, change, first, type Operation } from './operation.ts';

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
