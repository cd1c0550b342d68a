// Scoped key-value rows.

import type { RowChange } from '../bus.ts';
import type { KeyValueEntry, RowSwap, RowsStep } from './store.ts';

/** Sorts after every key that continues the prefix. */
export const PREFIX_END = '\u{10ffff}';
const NO_LIMIT = Number.MAX_SAFE_INTEGER;

type ListOptions = {
  readonly limit?: number;
  readonly after?: string;
  readonly newestFirst?: boolean;
};

export function get(tx: Transaction, scope: string, key: string): string | undefined {
  const row = tx.first<{ value: string }>(
    'SELECT value FROM key_value WHERE scope = ? AND key = ?',
    ...[scope, key],
  );
  return row?.value;
}

export function put(tx: Transaction, scope: string, key: string, value: string | undefined): void {
  tx.wrote?.(scope);
  if (value === undefined) {
    tx.run('DELETE FROM key_value WHERE scope = ? AND key = ?', scope, key);
    return;
  }
  tx.run(
    `INSERT INTO key_value (scope, key, value, written_at) VALUES (?, ?, ?, ?)
     ON CONFLICT (scope, key) DO UPDATE SET value = excluded.value, written_at = excluded.written_at`,
    ...[scope, key, value, tx.now],
  );
}

export function putMany(
  tx: Transaction,
  scope: string,
  rows: readonly { readonly key: string; readonly value: string | undefined }[],
): void {
  for (const { key, value } of rows) put(tx, scope, key, value);
}

/** Compares and writes in one statement; false if the row has another value. */
export function swap(
  tx: Transaction,
  scope: string,
  { key, from, to }: RowSwap,
  others: readonly RowChange[],
): boolean {
  if (swapped(tx, scope, { key, from, to }) === 0) return false;
  tx.wrote?.(scope);
  putRows(tx, others);
  return true;
}

/** Reads rows and writes what follows from them. */
export function update<T>(tx: Transaction, scope: string, step: RowsStep<T>): T {
  const { rows, result } = step((keys) => {
    if (keys.length === 0) return new Map();
    const places = keys.map(() => '?').join(', ');
    const found = tx.all<KeyValueEntry>(
      `SELECT key, value FROM key_value WHERE scope = ? AND key IN (${places})`,
      ...[scope, ...keys],
    );
    return new Map(found.map(({ key, value }) => [key, value]));
  });
  putMany(tx, scope, rows);
  return result;
}

/** Writes rows of several scopes. */
export function putRows(tx: Transaction, rows: readonly RowChange[]): void {
  for (const { scope, key, value } of rows) put(tx, scope, key, value);
}

function swapped(tx: Transaction, scope: string, { key, from, to }: RowSwap): number {
  if (to === undefined) {
    return tx.change(
      'DELETE FROM key_value WHERE scope = ? AND key = ? AND value = ?',
      ...[scope, key, from ?? null],
    );
  }
  if (from === undefined) {
    return tx.change(
      `INSERT INTO key_value (scope, key, value, written_at) VALUES (?, ?, ?, ?)
       ON CONFLICT (scope, key) DO NOTHING`,
      ...[scope, key, to, tx.now],
    );
  }
  return tx.change(
    'UPDATE key_value SET value = ?, written_at = ? WHERE scope = ? AND key = ? AND value = ?',
    ...[to, tx.now, scope, key, from],
  );
}

export function list(
  tx: Transaction,
  scope: string,
  prefix: string,
  options: ListOptions,
): readonly KeyValueEntry[] {
  const { after, limit = NO_LIMIT } = options;
  if (options.newestFirst === true) {
    return tx.all<KeyValueEntry>(
      `SELECT key, value FROM key_value WHERE scope = ? AND key >= ? AND key < ?
       ORDER BY key DESC LIMIT ?`,
      ...[scope, prefix, after ?? prefix + PREFIX_END, limit],
    );
  }
  return tx.all<KeyValueEntry>(
    `SELECT key, value FROM key_value WHERE scope = ? AND key >= ? AND key > ? AND key < ?
     ORDER BY key LIMIT ?`,
    ...[scope, prefix, after ?? '', prefix + PREFIX_END, limit],
  );
}

export function expire(tx: Transaction, scope: string, prefix: string, before: number): number {
  tx.wrote?.(scope);
  return tx.change(
    'DELETE FROM key_value WHERE scope = ? AND key >= ? AND key < ? AND written_at < ?',
    ...[scope, prefix, prefix + PREFIX_END, before],
  );
}

/** Reads and writes in the open transaction. Placeholders are `?` or `?1`. */
export type Sql = {
  /** All rows; the caller names the columns it selected. */
  all<R extends Row>(sql: string, ...params: SqlValue[]): readonly R[];
  first<R extends Row>(sql: string, ...params: SqlValue[]): R | undefined;
  /** Runs a write and returns how many rows it changed. */
  change(sql: string, ...params: SqlValue[]): number;
  /** Runs a write; on a server it costs no round trip of its own. */
  run(sql: string, ...params: SqlValue[]): void;
  /** On a server: other processes hear that rows of the scope changed. */
  wrote?(scope: string): void;
  /** On a server: other processes hear of something that may concern them. */
  tells?(what: Concern, name: string): void;
};

/**
 * What other processes may have to do something about: a session that is due, was claimed, has a
 * follower or was stopped; an account with messages to send; who leads a resource; anything.
 */
export type Concern = 'session' | 'account' | 'resource' | 'anything';

export type SqlValue = string | number | null;
type Row = Readonly<Record<string, SqlValue>>;

export type Transaction = Sql & {
  /** Epoch milliseconds. */
  readonly now: number;
  /** Marks what this process holds. */
  readonly owner: string;
  /** Several processes work on the store: what one holds it may lose, see docs/adr/0041. */
  readonly isShared: boolean;
};
