// docs/subsystems.md, docs/weaknesses.md and docs/origins.md name files and tests: each is there.

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const ROOT = join(import.meta.dirname, '..');
const PATH = /`((?:src|test|bench)\/[^`*]+)`/g;
const WEAKNESSES = 70;

function rowsOf(path: string): readonly string[] {
  return readFileSync(join(ROOT, path), 'utf8')
    .split('\n')
    .filter(
      (line) => line.startsWith('| ') && !/^\| (?:The original|No\.|Rule|Asked for|---)/.test(line),
    );
}

test.each([
  ['docs/subsystems.md', 100],
  ['docs/weaknesses.md', WEAKNESSES],
  ['docs/origins.md', 60],
])('%s names only what is there, and in each row a file and a test', (document, atLeast) => {
  const rows = rowsOf(document);
  expect(rows.length).toBeGreaterThanOrEqual(atLeast);
  for (const row of rows) {
    const paths = [...row.matchAll(PATH)].map(([, path = '']) => path);
    expect(
      paths.filter((path) => !existsSync(join(ROOT, path))),
      row,
    ).toEqual([]);
    expect(
      paths.some((path) => path.startsWith('test/')),
      row,
    ).toBe(true);
    expect(
      paths.some((path) => !path.startsWith('test/')),
      row,
    ).toBe(true);
  }
});

test('every weakness has its row, and each row all its columns', () => {
  const rows = rowsOf('docs/weaknesses.md').map((row) => row.split(' | '));
  const numbers = rows.map(([first = '']) => Number(first.replace('| ', '')));
  expect(numbers).toEqual(Array.from({ length: WEAKNESSES }, (_, index) => index + 1));
  for (const row of rows) expect(row.length, row[0]).toBe(5);
});
