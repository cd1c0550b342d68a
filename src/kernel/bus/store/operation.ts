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
