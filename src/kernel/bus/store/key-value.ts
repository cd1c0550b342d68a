// Scoped key-value rows.

import type { RowChange } from '../bus.ts';
import type { KeyValueEntry, RowSwap } from './store.ts';

/** Sorts behind every key that continues the prefix. */
const PREFIX_END = '\u{10ffff}';
const NO_LIMIT = -1;

export type ListOptions = {
  readonly limit?: number;
  readonly after?: string;
  readonly newestFirst?: boolean;
};

export function* get(scope: string, key: string): Operation<string | undefined> {
  const row = yield* first<{ value: string }>(
    'SELECT value FROM key_value WHERE scope = ? AND key = ?',
    ...[scope, key],
  );
  return row?.value;
}

export function* put(
  scope: string,
  key: string,
  value: string | undefined,
  now: number,
): Operation<void> {
  if (value === undefined) {
    yield* change('DELETE FROM key_value WHERE scope = ? AND key = ?', scope, key);
    return;
  }
  yield* change(
    `INSERT INTO key_value (scope, key, value, written_at) VALUES (?, ?, ?, ?)
     ON CONFLICT (scope, key) DO UPDATE SET value = excluded.value, written_at = excluded.written_at`,
    ...[scope, key, value, now],
  );
}

export function* putMany(
  scope: string,
  rows: readonly { readonly key: string; readonly value: string | undefined }[],
  now: number,
): Operation<void> {
  for (const { key, value } of rows) yield* put(scope, key, value, now);
}

/** Compares and writes in one statement; false where the row has another value. */
export function* swap(
  scope: string,
  { key, from, to }: RowSwap,
  others: readonly RowChange[],
  now: number,
): Operation<boolean> {
  if ((yield* swapped(scope, { key, from, to }, now)) === 0) return false;
  yield* putRows(others, now);
  return true;
}

/** Rows of several scopes. */
export function* putRows(rows: readonly RowChange[], now: number): Operation<void> {
  for (const { scope, key, value } of rows) yield* put(scope, key, value, now);
}

function swapped(scope: string, { key, from, to }: RowSwap, now: number): Operation<number> {
  if (to === undefined) {
    return change(
      'DELETE FROM key_value WHERE scope = ? AND key = ? AND value = ?',
      ...[scope, key, from ?? null],
    );
  }
  if (from === undefined) {
    return change(
      `INSERT INTO key_value (scope, key, value, written_at) VALUES (?, ?, ?, ?)
       ON CONFLICT (scope, key) DO NOTHING`,
      ...[scope, key, to, now],
    );
  }
  return change(
    'UPDATE key_value SET value = ?, written_at = ? WHERE scope = ? AND key = ? AND value = ?',
    ...[to, now, scope, key, from],
  );
}

export function* list(
  scope: string,
  prefix: string,
  options: ListOptions,
): Operation<readonly KeyValueEntry[]> {
  const { after, limit = NO_LIMIT } = options;
  if (options.newestFirst === true) {
    return yield* all<KeyValueEntry>(
      `SELECT key, value FROM key_value WHERE scope = ? AND key >= ? AND key < ?
       ORDER BY key DESC LIMIT ?`,
      ...[scope, prefix, after ?? prefix + PREFIX_END, limit],
    );
  }
  return yield* all<KeyValueEntry>(
    `SELECT key, value FROM key_value WHERE scope = ? AND key >= ? AND key > ? AND key < ?
     ORDER BY key LIMIT ?`,
    ...[scope, prefix, after ?? '', prefix + PREFIX_END, limit],
  );
}

export function* expire(scope: string, prefix: string, before: number): Operation<number> {
  return yield* change(
    'DELETE FROM key_value WHERE scope = ? AND key >= ? AND key < ? AND written_at < ?',
    ...[scope, prefix, prefix + PREFIX_END, before],
  );
}

// SQL apart from its driver: an operation is a generator that yields statements and is resumed with
// their results. A driver runs it inside a transaction: the embedded one at once, a remote one by
// awaiting each statement. Placeholders are `?` or `?1`.

export type SqlValue = string | number | null;
export type Row = Readonly<Record<string, SqlValue>>;

export type Statement = {
  readonly sql: string;
  readonly params: readonly SqlValue[];
  readonly wants: 'rows' | 'changes';
};

export type Answer = { readonly rows: readonly Row[]; readonly changes: number };
export type Operation<T> = Generator<Statement, T, Answer>;

/** All rows; the caller names the columns it selected. */
export function* all<R extends Row>(sql: string, ...params: SqlValue[]): Operation<readonly R[]> {
  const answer = yield { sql, params, wants: 'rows' };
  return answer.rows as readonly R[];
}

export function* first<R extends Row>(
  sql: string,
  ...params: SqlValue[]
): Operation<R | undefined> {
  const rows = yield* all<R>(sql, ...params);
  return rows[0];
}

/** Runs a write and returns how many rows it changed. */
export function* change(sql: string, ...params: SqlValue[]): Operation<number> {
  const answer = yield { sql, params, wants: 'changes' };
  return answer.changes;
}
