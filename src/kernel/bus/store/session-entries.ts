// The session journal: lines of session files that are on the disk before they stand in their files. What a
// line means and when it is moved is left to kernel/sessions.

import type { SessionKey } from '../../message/ids.ts';
import type { Transaction } from './key-value.ts';
import type { EntryRow, NewEntryRow } from './store.ts';

export function insertEntries(tx: Transaction, rows: readonly NewEntryRow[]): void {
  for (const { session, file, place, text } of rows) {
    tx.change(
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
     WHERE ord > ? AND (? IS NULL OR session = ?) ORDER BY ord LIMIT ?`,
    ...[after, session ?? null, session ?? null, limit],
  );
}

export function countEntries(tx: Transaction): ReadonlyMap<SessionKey, number> {
  const rows = tx.all<{ session: SessionKey; rows: number }>(
    'SELECT session, count(*) AS rows FROM session_entry GROUP BY session',
  );
  return new Map(rows.map((row) => [row.session, row.rows]));
}

/** Their lines belong elsewhere. */
export function changeEntries(tx: Transaction, rows: readonly EntryRow[]): void {
  for (const { ord, place, text } of rows) {
    tx.change('UPDATE session_entry SET place = ?, text = ? WHERE ord = ?', place, text, ord);
  }
}

export function dropEntries(tx: Transaction, rows: readonly EntryRow[]): void {
  for (const { ord } of rows) tx.change('DELETE FROM session_entry WHERE ord = ?', ord);
}
