// Drafts: platform messages that show a turn's answer while it is written. A row lives until the
// turn's final text was sent, or until someone has taken the left-over draft away.

import type { LiveDraft } from '../bus/bus.ts';
import { type AccountName, accountName } from '../core/account.ts';
import type { NativeId, TurnId } from '../core/ids.ts';
import { firstSeqOf } from '../core/turn-id.ts';
import { all, change, first, type Operation } from './operation.ts';

export function* recordDraft(draft: LiveDraft): Operation<void> {
  yield* change(
    `INSERT INTO draft (turn, first_seq, channel, chat, native_id) VALUES (?, ?, ?, ?, ?)
     ON CONFLICT (turn) DO UPDATE SET native_id = excluded.native_id`,
    ...[draft.turnId, firstSeqOf(draft.turnId) ?? 0, accountName(draft.chat)],
    ...[JSON.stringify(draft.chat), draft.nativeId],
  );
}

export function* readDraft(turn: TurnId): Operation<NativeId | undefined> {
  const row = yield* first<{ native_id: NativeId }>(
    'SELECT native_id FROM draft WHERE turn = ?',
    turn,
  );
  return row?.native_id;
}

/** An unknown final keeps its draft: the text in the chat may be the final one. */
export function* orphanDrafts(account: AccountName): Operation<readonly LiveDraft[]> {
  const rows = yield* all<{ turn: TurnId; chat: string; native_id: NativeId }>(
    `SELECT turn, chat, native_id FROM draft WHERE channel = ?
       AND NOT EXISTS (SELECT 1 FROM inbound WHERE seq = first_seq AND state = 'pending')
       AND NOT EXISTS (SELECT 1 FROM outbound
         WHERE state IN ('queued', 'sending') AND finalizes = draft.turn)
       AND NOT EXISTS (SELECT 1 FROM outbound
         WHERE state IN ('dead', 'unknown') AND state = 'unknown' AND finalizes = draft.turn)`,
    account,
  );
  return rows.map((row) => ({
    turnId: row.turn,
    chat: JSON.parse(row.chat),
    nativeId: row.native_id,
  }));
}

export function* forgetDraft(turn: TurnId): Operation<void> {
  yield* change('DELETE FROM draft WHERE turn = ?', turn);
}
