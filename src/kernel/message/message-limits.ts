// Under which names a message is counted, and which limits the configuration sets for them: the most
// exact exception counts over that of the channel, and that over the general limits; what an owner
// allows the person themselves counts over all of it.

import type { AdmittedRole } from '../access/admission.ts';
import type { PersonLimits } from '../access/person.ts';
import type { LimitsConfig } from '../config/limits.ts';
import { type MessageLimits, ownerLimits } from '../intake/rules/fair-use.ts';
import { type InboundMessage, idsOf } from './message.ts';

/** Names of one person or one group, `channel:id`; whoever shares one of them is the same. */
export type CountNames = readonly [string, ...string[]];

/** A forged sender uses up nothing of the person it pretends to be. */
export function personNames({ sender, chat }: Pick<InboundMessage, 'sender' | 'chat'>): CountNames {
  const isSure = sender.kind === 'system' || sender.verified !== 'unverified';
  const name = (id: string) => `${chat.channel}:${isSure ? '' : 'unverified:'}${id}`;
  if (sender.kind === 'system') return [name(sender.source)];
  const [, ...others] = idsOf(sender);
  return [name(sender.id), ...others.map(name)];
}

export function groupNames({ group, chat }: InboundMessage): CountNames | undefined {
  if (group === undefined) return undefined;
  const name = (id: string) => `${chat.channel}:${id}`;
  const [first, ...others] = group.ids;
  return [name(first), ...others.map(name)];
}

/** `names`: those under which the person is known on any door; `own`: what an owner allows them. */
export function personLimits(
  message: InboundMessage,
  role: AdmittedRole,
  limits: LimitsConfig,
  names: readonly string[],
  own?: PersonLimits,
): MessageLimits {
  const { perMinute, perDay } = limits.messages;
  const standard = { perMinute, perDay, ...exceptionFor([message.chat.channel], limits) };
  return {
    ...(role === 'owner' ? ownerLimits(standard) : standard),
    ...exceptionFor(names, limits),
    ...setBy(own),
  };
}

export function groupLimits(names: CountNames, limits: LimitsConfig): MessageLimits {
  const { groupPerMinute: perMinute, groupPerDay: perDay } = limits.messages;
  return { perMinute, perDay, ...exceptionFor(names, limits) };
}

function exceptionFor(
  names: readonly string[],
  { exceptions }: LimitsConfig,
): Partial<MessageLimits> {
  return setBy(exceptions.find(({ who }) => names.includes(who)));
}

function setBy({ perMinute, perDay }: SetLimits = {}): Partial<MessageLimits> {
  return {
    ...(perMinute === undefined ? {} : { perMinute }),
    ...(perDay === undefined ? {} : { perDay }),
  };
}

type SetLimits = {
  readonly perMinute?: number | undefined;
  readonly perDay?: number | undefined;
};

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

export class CountRows<Value> {
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
