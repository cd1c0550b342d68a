// CONTRACT of small durable state: scoped key-value rows in the same store as the bus. Channels
// keep cursors and thread data here, the gateway its session settings and pairings.

export type KeyValueEntry = { readonly key: string; readonly value: string };

/** Rows of one scope. A resolved write is on disk. Values are opaque text, usually JSON. */
export interface KeyValueStore {
  get(key: string): Promise<string | undefined>;
  set(key: string, value: string): Promise<void>;
  /** Several rows in one transaction; an undefined value deletes. */
  setMany(
    rows: readonly { readonly key: string; readonly value: string | undefined }[],
  ): Promise<void>;
  delete(key: string): Promise<void>;
  /** Rows whose key begins with the prefix, in key order. `after` continues behind a key. */
  list(
    prefix: string,
    options?: { readonly limit?: number; readonly after?: string; readonly newestFirst?: boolean },
  ): Promise<readonly KeyValueEntry[]>;
  /** Deletes rows of the prefix last written before `before` (epoch milliseconds); returns how many. */
  expire(prefix: string, before: number): Promise<number>;
}

export interface StateStore {
  /** Scopes never see each other's keys. */
  scope(name: string): KeyValueStore;
}
