import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { sessionKey } from '../../../src/kernel/message/ids.ts';
import {
  compareAge,
  daysBack,
  decodeStem,
  encodeKey,
  formatName,
  parseName,
} from '../../../src/kernel/sessions/rules/file.ts';

describe('the name of a session file', () => {
  test('tells the key again, has no separator in it and no capitals', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', minLength: 1 }), (key) => {
        const stem = encodeKey(sessionKey(key));
        expect(stem).toMatch(/^[^/\\:\0.A-Z][^/\\:\0]*$|^%/);
        expect(stem.replace(/%[0-9A-F]{2}/g, '')).toBe(
          stem.replace(/%[0-9A-F]{2}/g, '').toLowerCase(),
        );
        expect(decodeStem(stem)).toBe(key);
      }),
    );
  });

  test.each([
    [{ stem: 'telegram%3A42', day: '2026-01-15', part: 1 }, 'telegram%3A42_2026-01-15.jsonl'],
    [{ stem: 'telegram%3A42', day: '2026-01-15', part: 12 }, 'telegram%3A42_2026-01-15_12.jsonl'],
    [{ stem: 'a_2026-01-01', day: '2026-01-15', part: 2 }, 'a_2026-01-01_2026-01-15_2.jsonl'],
  ])('%o is %s', (name, fileName) => {
    expect(formatName(name)).toBe(fileName);
    expect(parseName(fileName)).toEqual(name);
  });

  test.each([
    'a.jsonl',
    '_2026-01-15.jsonl',
    'a_2026-1-15.jsonl',
    'a_2026-01-15_0.jsonl',
    'a_2026-01-15.jsonl.damaged',
    'a_2026-01-15.jsonl.tmp',
  ])('%s is no session file', (fileName) => expect(parseName(fileName)).toBeUndefined());

  test('the tenth part of a day is newer than the ninth', () => {
    const part = (number: number) => ({ stem: 'a', day: '2026-01-15', part: number });
    expect(compareAge(part(9), part(10))).toBeLessThan(0);
    expect(compareAge(part(9), { ...part(1), day: '2026-01-16' })).toBeLessThan(0);
  });

  test('days are counted back over the end of a month', () => {
    expect(daysBack('2026-03-01', 3)).toEqual(['2026-03-01', '2026-02-28', '2026-02-27']);
  });
});
