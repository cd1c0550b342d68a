// Counts that several processes keep together: each change reads what is stored and writes what
// follows, in one transaction. A count is stored under the first name of its person; the other
// names have rows that lead there, so that each process finds it under whichever name it knows.

import type { KeyValueChange, KeyValueStore } from '../bus/store/store.ts';
import { type CountNames, CountRows, leadOf } from '../message/message-limits.ts';

type SharedCounts<Value> = {
  readonly state: KeyValueStore;
  /** Of the keys of all rows. */
  readonly prefix: string;
  readonly fresh: Value;
  join(left: Value, right: Value): Value;
};

/**
 * `step` changes the rows of these names; it may run again, with other rows, so it changes nothing
 * else. @throws StoreError
 */
export function changeCounts<Value, T>(
  { state, prefix, fresh, join }: SharedCounts<Value>,
  names: readonly CountNames[],
  step: (rows: CountRows<Value>) => T,
): Promise<T> {
  return state.update((read) => {
    const near = read([...new Set(names.flat())].map((name) => prefix + name));
    const leads = [...near.values()].flatMap((text) => leadOf(text) ?? []);
    const missing = new Set(leads.map((lead) => prefix + lead).filter((key) => !near.has(key)));
    const stored = new Map([...near, ...read([...missing])]);
    const rows = new CountRows(fresh, join);
    for (const text of stored.values()) if (leadOf(text) === undefined) rows.read(text);
    for (const each of names) rows.at(each);
    const result = step(rows);
    // One that is still fresh, and was not stored, was not counted.
    const counted = rows.rows.filter(
      ({ key, value }) => value !== fresh || stored.has(prefix + key),
    );
    const changes = counted.flatMap(({ key, names: all, value }): KeyValueChange[] => [
      { key: prefix + key, value: JSON.stringify({ names: [...all], value }) },
      ...[...all]
        .filter((name) => name !== key)
        .map((name) => ({ key: prefix + name, value: JSON.stringify({ lead: key }) })),
    ]);
    return { rows: changes.filter(({ key, value }) => stored.get(key) !== value), result };
  });
}
