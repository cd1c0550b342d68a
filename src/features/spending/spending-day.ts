// What was spent on one day, by person, chat and in all: in memory while the process lives, in the
// store so that a restart finds it. What a process that died held back counts as spent.

import { z } from 'zod';
import type { PersonLimits } from '../../kernel/access/person.ts';
import type { KeyValueStore } from '../../kernel/bus/store/store.ts';
import type { CountNames } from '../../kernel/message/message-limits.ts';
import { jsonRow, number, rowShape, texts } from '../../lib/json/json.ts';
import { orAborted } from '../../lib/time/clock.ts';
import type { Charged } from './rules/budget-limits.ts';
import { afterCrash, EMPTY_LEDGER, joinedLedgers, type Ledger } from './rules/spending.ts';

/** The scope of the store that holds it. */
export const SPENDING_SCOPE = 'spending';

export type LedgerRow = CountRow<Ledger>;

/** A budget a call is charged to, as it stands. */
export type Account = Charged & { readonly row: LedgerRow };

export class SpendingDay {
  readonly day: string;
  /** Epoch milliseconds. */
  readonly endsAt: number;
  readonly book = new CountBook<Ledger>(EMPTY_LEDGER, joinedLedgers);
  /** What an owner allows whoever pays, as known at their last call; by the name of their budget. */
  readonly own = new Map<string, PersonLimits | undefined>();
  /** Models of which an owner was told that no budget in money stops them. */
  readonly unpriced = new Set<string>();
  readonly #state: KeyValueStore;
  readonly #changed = new Set<LedgerRow>();
  #room = Promise.withResolvers<void>();

  constructor(
    state: KeyValueStore,
    { day, endsAt }: { readonly day: string; readonly endsAt: number },
  ) {
    this.#state = state;
    this.day = day;
    this.endsAt = endsAt;
  }

  /** `onUnread`: told of each row that is damaged; what it counted is lost. */
  async load(onUnread: () => void): Promise<this> {
    for (const { value } of await this.#state.list(prefixOf(this.day))) {
      const row = this.book.read(value);
      if (row === undefined) onUnread();
      else row.value = afterCrash(row.value);
    }
    return this;
  }

  change(row: LedgerRow, value: Ledger): void {
    row.value = value;
    this.#changed.add(row);
  }

  /** Room may have come; calls that wait for it look again. */
  announceRoom(): void {
    this.#room.resolve();
    this.#room = Promise.withResolvers();
  }

  /** Until room may have come. @throws the signal's reason */
  room(signal: AbortSignal): Promise<void> {
    return orAborted(this.#room.promise, signal);
  }

  /** One transaction for all that changed; what is not stored stays changed. @throws StoreError */
  async store(): Promise<void> {
    const rows = [...this.#changed];
    if (rows.length === 0) return;
    this.#changed.clear();
    const stored = this.book.stored(rows);
    const prefix = prefixOf(this.day);
    try {
      const named = stored.rows.map(({ key, value }) => ({ key: prefix + key, value }));
      await this.#state.setMany(named);
      stored.written();
    } catch (error) {
      for (const row of rows) this.#changed.add(row);
      throw error;
    }
  }
}

const prefixOf = (day: string) => `${day}|`;

export type StoredLedger = {
  readonly key: string;
  readonly names: CountNames;
  readonly ledger: Ledger;
};

const AMOUNT = z.looseObject({ tokens: number, micros: number });
const STORED = rowShape<{ readonly names: CountNames; readonly value: Ledger }>({
  names: texts.min(1),
  value: rowShape<Ledger>({
    ...{ spent: AMOUNT, held: AMOUNT, extraPercent: number, told: number, calls: number },
  }),
});

/** What is stored of one day, by the key of its budget. */
export type StoredDay = {
  readonly day: string;
  readonly rows: readonly StoredLedger[];
};

/** The days from `since` (`YYYY-MM-DD`) on, newest first; what calls under way hold counts as spent. */
export async function storedDays(
  state: KeyValueStore,
  since: string,
): Promise<readonly StoredDay[]> {
  const days = new Map<string, StoredLedger[]>();
  for (const { key, value } of await state.list('')) {
    const [day = '', ...rest] = key.split('|');
    if (day < since) continue;
    const stored = jsonRow(value, STORED);
    if (stored === undefined) continue;
    const row = { key: rest.join('|'), names: stored.names, ledger: afterCrash(stored.value) };
    days.set(day, [...(days.get(day) ?? []), row]);
  }
  return [...days].map(([day, rows]) => ({ day, rows })).toReversed();
}

// Values kept under several names at once: whoever is met under one of them is the same as under the
// others. Two values that turn out to be of one are joined.

export type CountRow<Value> = {
  /** The name it is stored under: the first it was met with. */
  readonly key: string;
  readonly names: ReadonlySet<string>;
  value: Value;
};

/** What has to be written so that the book can be read again. */
export type StoredRow = { readonly key: string; readonly value: string | undefined };

type RowsToStore = {
  readonly rows: readonly StoredRow[];
  /** They are on disk. */
  written(): void;
};

export class CountBook<Value> {
  readonly #fresh: Value;
  readonly #join: (left: Value, right: Value) => Value;
  readonly #rows = new Map<string, CountRow<Value>>();
  /** Keys of rows that were joined into others and are still stored. */
  readonly #gone = new Set<string>();
  /** What took them in, and is to be stored before they are deleted. */
  readonly #joined = new Set<CountRow<Value>>();

  constructor(fresh: Value, join: (left: Value, right: Value) => Value) {
    this.#fresh = fresh;
    this.#join = join;
  }

  /** The one row of these names, made where there is none. */
  at([first, ...others]: readonly [string, ...string[]]): CountRow<Value> {
    const met = this.#rows.get(first);
    if (met !== undefined && others.every((name) => this.#rows.get(name) === met)) return met;
    const names = [first, ...others];
    const found = [...new Set(names.flatMap((name) => this.#rows.get(name) ?? []))];
    const [known, ...more] = found;
    const row: CountRow<Value> = {
      key: known?.key ?? first,
      names: new Set([...found.flatMap((one) => [...one.names]), ...names]),
      value: more.reduce((value, one) => this.#join(value, one.value), known?.value ?? this.#fresh),
    };
    for (const one of more) this.#gone.add(one.key);
    if (more.length > 0) this.#joined.add(row);
    for (const name of row.names) this.#rows.set(name, row);
    return row;
  }

  /** Every row once. */
  get rows(): readonly CountRow<Value>[] {
    return [...new Set(this.#rows.values())];
  }

  forget(row: CountRow<Value>): void {
    for (const name of row.names) this.#rows.delete(name);
  }

  /**
   * The rows as they are now and are to be stored, with those that took others in and the deletion
   * of the others, which come again until they are written.
   */
  stored(rows: Iterable<CountRow<Value>>): RowsToStore {
    const joined = [...this.#joined];
    const current = [...rows, ...joined].map((row) => this.#rows.get(row.key) ?? row);
    const written = [...new Set(current)].map(({ key, names, value }) => ({
      key,
      value: JSON.stringify({ names: [...names], value }),
    }));
    // A name that was forgotten since may have a row of its own again.
    const gone = [...this.#gone].filter((key) => this.#rows.get(key)?.key !== key);
    const deleted = gone.map((key) => ({ key, value: undefined }));
    const wereGone = [...this.#gone];
    return {
      rows: [...deleted, ...written],
      written: () => {
        for (const key of wereGone) this.#gone.delete(key);
        for (const row of joined) this.#joined.delete(row);
      },
    };
  }

  /** Takes up what `stored` wrote; undefined where it is damaged. */
  read(text: string): CountRow<Value> | undefined {
    const stored = storedValue<Value>(text);
    if (stored === undefined) return undefined;
    const row = this.at(stored.names);
    row.value = this.#join(row.value, stored.value);
    return row;
  }
}

type Stored<Value> = { readonly names: readonly [string, ...string[]]; readonly value: Value };

function storedValue<Value>(text: string): Stored<Value> | undefined {
  try {
    const stored: Partial<Stored<Value>> = JSON.parse(text);
    const { names, value } = stored;
    return names === undefined || value === undefined ? undefined : { names, value };
  } catch {
    return undefined;
  }
}
