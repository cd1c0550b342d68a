// CONTRACT and implementation of durable collections: named rows of one shape in the store. A
// change is a compare-and-set in the store, so several owners of a row, also in other processes,
// lose no update. A row that is damaged or has another shape counts as absent and never blocks the
// others.

import { jsonRow, type RowShape } from '../lib/json/json.ts';
import type { RowWrite } from './bus/bus.ts';
import type { EmbeddedStore, KeyValueStore } from './bus/store/store.ts';
import { NanobotError } from './message/errors.ts';

export interface Rows<T extends object> {
  get(id: string): Promise<T | undefined>;
  /** In the order of the collection. */
  list(): Promise<readonly T[]>;
  /** Ids that begin so with their rows, in the order of the ids. */
  entries(prefix?: string): Promise<readonly (readonly [id: string, row: T])[]>;
  /** All in memory, for lookups whose cost does not grow with the number of rows. */
  live(): Promise<LiveRows<T>>;
  /**
   * Compare-and-set: `step` is pure, gets the stored row and may run again if another writer was
   * faster. It returns the next row, `remove`, or undefined to leave the row unchanged. `beside`:
   * rows of any collection that are written in the same transaction.
   * @returns the new row, or the one that was removed; undefined if nothing changed
   */
  change(
    id: string,
    step: (row: T | undefined) => T | 'remove' | undefined,
    beside?: (row: T, isRemoved: boolean) => readonly RowWrite[],
  ): Promise<T | undefined>;
  /**
   * The row for another transaction: of a change, or of a message on the bus; undefined deletes.
   */
  write(id: string, row: T | undefined): RowWrite;
  /** Removes the rows that match; returns how many. */
  erase(where: (row: T) => boolean): Promise<number>;
  /** Removes rows last written before then (epoch milliseconds); returns how many. */
  expire(before: number): Promise<number>;
}

/** Changes with each write of this process; call `live` again to see those of others. */
export type LiveRows<T> = {
  /** By id, in no order. */
  readonly all: ReadonlyMap<string, T>;
  /** Those with this key, see `keys` of the collection; in the order of the collection. */
  by(key: string): readonly T[];
};

/** The stored text of a row; its id is in the key. */
type RowCodec<T> = {
  /** Undefined if the text is damaged or of another shape. */
  read(text: string, id: string): T | undefined;
  write(row: T): string;
};

export type RowsSpec<T> = RowCodec<T> & {
  readonly scope: string;
  /** Of all keys of the collection within the scope. */
  readonly prefix: string;
  /** For `list`; absent: by id. */
  order?(one: T, other: T): number;
  /** Besides the id; several rows may have the same key. */
  keys?(row: T): readonly string[];
  /**
   * Rows are held in memory, for collections that every message reads. They are read again after
   * another process has written.
   */
  readonly isCached?: boolean;
};

/** Opens a collection, once per process. @throws RowsOpenError */
export type OpenRows = <T extends object>(spec: RowsSpec<T>) => Rows<T>;

/** The same collection would be opened twice in one process. */
export class RowsOpenError extends NanobotError {
  override readonly name = 'RowsOpenError';
  constructor(collection: string) {
    super('rows_open', `The collection ${collection} is open already; hand it on instead.`);
  }
}

type RowStore = Pick<EmbeddedStore, 'scope' | 'revision'>;

/** One for each opened store. */
export function createRows(store: RowStore): OpenRows {
  const open = new Set<string>();
  return (spec) => {
    const name = `${spec.scope}/${spec.prefix}`;
    if (open.has(name)) throw new RowsOpenError(name);
    open.add(name);
    return new StoredRows(spec, store);
  };
}

/** Rows of JSON; `redact` is applied to the stored text. */
export function jsonRows<T>(
  shape: RowShape<T>,
  redact: (text: string) => string = (text) => text,
): RowCodec<T> {
  return {
    read: (text) => jsonRow(text, shape),
    write: (row) => redact(JSON.stringify(row)),
  };
}

/** Rows without content besides their id. */
export const MARKS: RowCodec<object> = { read: () => ({}), write: () => '' };

/** The rows in memory as they were read, with this process's changes since. */
type Known<T> = {
  readonly revision: number;
  readonly rows: Promise<RowsInMemory<T>>;
  /** By id, until one changes. */
  sorted?: readonly (readonly [string, T])[] | undefined;
};

class RowsInMemory<T> implements LiveRows<T> {
  readonly all = new Map<string, T>();
  /** In order, by key. */
  readonly #ids = new Map<string, readonly string[]>();
  readonly #spec: RowsSpec<T>;

  constructor(spec: RowsSpec<T>, rows: readonly (readonly [string, T])[]) {
    this.#spec = spec;
    for (const [id, row] of rows) this.put(id, row);
  }

  by(key: string): readonly T[] {
    const rows = (this.#ids.get(key) ?? []).flatMap((id) => this.all.get(id) ?? []);
    return rows.sort(this.#spec.order ?? (() => 0));
  }

  put(id: string, row: T | undefined): void {
    const before = this.#keysOf(this.all.get(id));
    const now = this.#keysOf(row);
    if (row === undefined) this.all.delete(id);
    else this.all.set(id, row);
    for (const key of [...before, ...now]) {
      const others = this.#ids.get(key)?.filter((each) => each !== id) ?? [];
      const ids = now.includes(key) ? others.concat(id).sort() : others;
      if (ids.length === 0) this.#ids.delete(key);
      else this.#ids.set(key, ids);
    }
  }

  #keysOf(row: T | undefined): readonly string[] {
    return (row && this.#spec.keys?.(row)) ?? [];
  }
}

class StoredRows<T extends object> implements Rows<T> {
  readonly #spec: RowsSpec<T>;
  readonly #store: RowStore;
  readonly #state: KeyValueStore;
  #known: Known<T> | undefined;

  constructor(spec: RowsSpec<T>, store: RowStore) {
    this.#spec = spec;
    this.#store = store;
    this.#state = store.scope(spec.scope);
  }

  async get(id: string): Promise<T | undefined> {
    if (this.#spec.isCached === true) return (await this.live()).all.get(id);
    return this.#read(id, await this.#state.get(this.#spec.prefix + id));
  }

  async list(): Promise<readonly T[]> {
    const rows = (await this.entries()).map(([, row]) => row);
    const { order } = this.#spec;
    return order === undefined ? rows : rows.sort(order);
  }

  async entries(prefix = ''): Promise<readonly (readonly [string, T])[]> {
    if (this.#spec.isCached !== true) return this.#listed(prefix);
    const known = this.#cached();
    const { all } = await known.rows;
    known.sorted ??= [...all].sort(([one], [other]) => (one < other ? -1 : 1));
    return prefix === '' ? known.sorted : known.sorted.filter(([id]) => id.startsWith(prefix));
  }

  live(): Promise<LiveRows<T>> {
    return this.#cached().rows;
  }

  async change(
    id: string,
    step: (row: T | undefined) => T | 'remove' | undefined,
    beside: (row: T, isRemoved: boolean) => readonly RowWrite[] = () => [],
  ): Promise<T | undefined> {
    const key = this.#spec.prefix + id;
    for (;;) {
      const stored = await this.#state.get(key);
      const before = this.#read(id, stored);
      const outcome = step(before);
      if (outcome === undefined || outcome === before) return undefined;
      if (outcome === 'remove' && stored === undefined) return undefined;
      const next = outcome === 'remove' ? undefined : outcome;
      const changed = next ?? before;
      const others = changed === undefined ? [] : beside(changed, next === undefined);
      const { value, committed } = this.write(id, next);
      if (!(await this.#state.swap({ key, from: stored, to: value }, others))) continue;
      // A row that moved to another collection is always in one of them.
      for (const other of others) await other.committed();
      await committed();
      return changed;
    }
  }

  write(id: string, row: T | undefined): RowWrite {
    const { scope, prefix } = this.#spec;
    const value = row === undefined ? undefined : this.#spec.write(row);
    return { scope, key: prefix + id, value, committed: () => this.#written(id, row) };
  }

  async erase(where: (row: T) => boolean): Promise<number> {
    let erased = 0;
    for (const [id] of (await this.entries()).filter(([, row]) => where(row))) {
      const gone = await this.change(id, (row) =>
        row !== undefined && where(row) ? 'remove' : undefined,
      );
      if (gone !== undefined) erased += 1;
    }
    return erased;
  }

  async expire(before: number): Promise<number> {
    const expired = await this.#state.expire(this.#spec.prefix, before);
    if (expired > 0) this.#known = undefined;
    return expired;
  }

  #read(id: string, text: string | undefined): T | undefined {
    return text === undefined ? undefined : this.#spec.read(text, id);
  }

  async #listed(prefix = ''): Promise<readonly (readonly [string, T])[]> {
    const own = this.#spec.prefix;
    const found = await this.#state.list(own + prefix);
    return found.flatMap(({ key, value }) => {
      const id = key.slice(own.length);
      const row = this.#spec.read(value, id);
      return row === undefined ? [] : [[id, row] as const];
    });
  }

  /** Read on the first call, after a failed read, and after another process has written. */
  #cached(): Known<T> {
    const revision = this.#store.revision(this.#spec.scope);
    if (this.#known?.revision === revision) return this.#known;
    const known: Known<T> = {
      revision,
      rows: this.#listed().then((rows) => new RowsInMemory(this.#spec, rows)),
    };
    this.#known = known;
    known.rows.catch(() => {
      if (this.#known === known) this.#known = undefined;
    });
    return known;
  }

  async #written(id: string, row: T | undefined): Promise<void> {
    const known = this.#known;
    const rows = await known?.rows.catch(() => undefined);
    if (known === undefined || rows === undefined) return;
    known.sorted = undefined;
    rows.put(id, row);
  }
}

// Work with conversations of its own, such as jobs and subagents: its collection, and after the
// work was removed, whose it was, as long as its conversation is on disk.

type Named = { readonly id: string };

type WorkSpec<T extends Left, Left extends Named> = Omit<RowsSpec<T>, 'read' | 'write'> & {
  readonly shape: RowShape<T>;
  readonly left: RowShape<Left>;
  /** The record of whose it was. */
  leaves(work: T): Left;
};

export function openWork<T extends Left, Left extends Named>(
  rows: OpenRows,
  { shape, left, leaves, ...spec }: WorkSpec<T, Left>,
) {
  const all = rows<T>({ ...jsonRows(shape), ...spec });
  const removed = rows<Left>({ ...jsonRows(left), scope: spec.scope, prefix: 'gone:' });
  return {
    all,
    removed,
    /** Whose all of it is or was. */
    known: async (): Promise<readonly Left[]> => [...(await all.list()), ...(await removed.list())],
    /** Whose it is or was. */
    whose: async (id: string): Promise<Left | undefined> =>
      (await all.get(id)) ?? (await removed.get(id)),
    async remove(id: string, isMeant: (work: T) => boolean = () => true): Promise<void> {
      await all.change(
        id,
        (work) => (work !== undefined && isMeant(work) ? 'remove' : undefined),
        (work) => [removed.write(id, leaves(work))],
      );
    },
  };
}
