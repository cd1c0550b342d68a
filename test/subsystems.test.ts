// docs/subsystems.md names files and tests: each is there.

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const ROOT = join(import.meta.dirname, '..');
const PATH = /`((?:src|test|bench)\/[^`*]+)`/g;

test('the table of subsystems names only what is there, and in each row a file and a test', () => {
  const text = readFileSync(join(ROOT, 'docs/subsystems.md'), 'utf8');
  const rows = text
    .split('\n')
    .filter((line) => line.startsWith('| ') && !line.startsWith('| The '));
  expect(rows.length).toBeGreaterThan(40);
  for (const row of rows.filter((line) => !line.startsWith('| ---'))) {
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
