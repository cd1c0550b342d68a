// Drafts: platform messages that show a turn's answer while it is written. A row lives until the
// turn's final text was sent, or until someone has taken the left-over draft away.

import { type AccountName, accountName } from '../../message/account.ts';
import type { MessageId, NativeId, TurnId } from '../../message/ids.ts';
import { firstSeqOf } from '../../message/ids.ts';
import type { LiveDraft } from '../bus.ts';
import { all, change, first, type Operation } from './operation.ts';

/** What is known of it already stays. */
export function* recordDraft(draft: LiveDraft): Operation<void> {
  yield* change(
    `INSERT INTO draft (turn, first_seq, channel, chat, native_id, reply_to)
     VALUES (?, ?, ?, ?, ?, ?)
     ON CONFLICT (turn) DO UPDATE SET
       native_id = coalesce(nullif(excluded.native_id, ''), native_id),
       reply_to = coalesce(excluded.reply_to, reply_to)`,
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

export function* readDraft(turn: TurnId): Operation<LiveDraft | undefined> {
  const row = yield* first<DraftRow>(`SELECT ${COLUMNS} FROM draft WHERE turn = ?`, turn);
  return row === undefined ? undefined : draftOf(row);
}

/** An unknown final keeps its draft: the text in the chat may be the final one. */
export function* orphanDrafts(account: AccountName): Operation<readonly LiveDraft[]> {
  const rows = yield* all<DraftRow>(
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

export function* forgetDraft(turn: TurnId): Operation<void> {
  yield* change('DELETE FROM draft WHERE turn = ?', turn);
}
