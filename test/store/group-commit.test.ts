// The driver on its own, with statements of the test's own choosing.

import { DatabaseSync } from 'node:sqlite';
import { describe, expect, it } from 'vitest';
import { GroupCommit } from '../../src/kernel/bus/store/group-commit.ts';
import type { Sql } from '../../src/kernel/bus/store/key-value.ts';

function insert(value: string) {
  return (sql: Sql) => sql.change('INSERT INTO t (v) VALUES (?)', value);
}

function values(sql: Sql): readonly string[] {
  const rows = sql.all<{ v: string }>('SELECT v FROM t');
  return rows.map(({ v }) => v);
}

function openTable(): { readonly database: DatabaseSync; readonly commits: GroupCommit } {
  const database = new DatabaseSync(':memory:');
  database.exec('CREATE TABLE t (v TEXT UNIQUE)');
  return { database, commits: new GroupCommit(database, 'test.db') };
}

describe('committing in groups', () => {
  it('runs what is to be last behind what is issued until its group begins', async () => {
    const { commits } = openTable();
    let hasBegun = false;
    const seen = commits.write(values, () => {
      hasBegun = true;
    });
    const written = Promise.all([commits.write(insert('a')), commits.write(insert('b'))]);
    expect(hasBegun).toBe(false);
    await written;
    expect(hasBegun).toBe(true);
    expect(await seen).toEqual(['a', 'b']);
  });

  it('begins a new group for what the results of the last one bring about', async () => {
    const { commits } = openTable();
    await commits.write(insert('a'));
    expect(await commits.write(values)).toEqual(['a']);
  });

  it('undoes all writes of an operation that the database refuses, and only those', async () => {
    const { commits } = openTable();
    const [, refused, after] = await Promise.allSettled([
      commits.write(insert('a')),
      commits.write((sql) => {
        insert('half')(sql);
        insert('a')(sql);
      }),
      commits.write(insert('b')),
    ]);
    expect(refused).toMatchObject({ status: 'rejected', reason: { code: 'store_failed' } });
    expect(after?.status).toBe('fulfilled');
    expect(await commits.read(values)).toEqual(['a', 'b']);
  });

  it('says that the disk is full and works again when there is room', async () => {
    const { database, commits } = openTable();
    const fill = (limit: number) => database.exec(`PRAGMA max_page_count = ${limit}`);
    fill(4);
    const large = 'x'.repeat(100_000);
    await expect(commits.write(insert(large))).rejects.toMatchObject({ code: 'store_full' });
    await commits.write(insert('small'));
    fill(1000);
    await commits.write(insert(large));
    expect(await commits.read(values)).toHaveLength(2);
  });
});
