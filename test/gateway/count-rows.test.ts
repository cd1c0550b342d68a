import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { StoredRow } from '../../src/kernel/message/message-limits.ts';
import { CountRows } from '../../src/kernel/message/message-limits.ts';

const sum = (left: number, right: number) => left + right;
const names = fc.uniqueArray(fc.constantFrom('a', 'b', 'c', 'd', 'e'), {
  minLength: 1,
  maxLength: 3,
}) as unknown as fc.Arbitrary<[string, ...string[]]>;

describe('a book of counts', () => {
  it('loses nothing and counts nothing twice, however names turn out to be one whenever it is stored, also where that fails', () => {
    const step = fc.record({
      who: names,
      isStored: fc.boolean(),
      isFailing: fc.boolean(),
      isReopened: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const disk = new Map<string, string>();
        const write = (rows: readonly StoredRow[]) => {
          for (const { key, value } of rows) {
            if (value === undefined) disk.delete(key);
            else disk.set(key, value);
          }
        };
        let peopleRows = new CountRows<number>(0, sum);
        let changed: ReturnType<typeof peopleRows.at>[] = [];
        let counted = 0;
        for (const { who, isStored, isFailing, isReopened } of steps) {
          const row = peopleRows.at(who);
          row.value += 1;
          counted += 1;
          changed.push(row);
          if (!isStored) continue;
          const stored = peopleRows.stored(changed);
          // What changed is stored again by whoever keeps the book.
          if (isFailing) continue;
          write(stored.rows);
          stored.written();
          changed = [];
          if (!isReopened) continue;
          peopleRows = new CountRows<number>(0, sum);
          for (const text of disk.values()) peopleRows.read(text);
        }
        expect(peopleRows.rows.reduce((all, { value }) => all + value, 0)).toBe(counted);
        const seen = peopleRows.rows.flatMap((row) => [...row.names]);
        expect(new Set(seen).size).toBe(seen.length);
      }),
    );
  });
});
