// The full-text index on each engine, and what only one of them can do: a file that breaks, and
// data files without what was erased.

import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createFileIndex } from '../../src/kernel/bus/store/file-index.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { anew, options, own, put, said, testTextIndex } from '../contract/text-index.ts';
import { hasPostgres, type PostgresServer, startPostgres } from '../support/postgres.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { inPostgres, onEachIndex } from '../support/text-indexes.ts';

const again = { ...anew, from: anew.to };

describe('the full-text index', () => onEachIndex(testTextIndex));

async function openFile() {
  const path = join(await temporaryFolder(), 'index.db');
  const open = () => createFileIndex({ path, log: silentLogger });
  return { path, open, index: open() };
}

it('is made anew where its file is damaged, and tells that all has to be indexed again', async () => {
  const { path, open, index } = await openFile();
  await put(index, own('n'), anew, [said('something')]);
  await index[Symbol.asyncDispose]();
  await writeFile(path, 'this is no database at all, '.repeat(500));
  await using reopened = open();
  const before = reopened.generation;
  expect(await reopened.find('something', options)).toEqual([]);
  expect(reopened.generation).toBeGreaterThan(before);
  await put(reopened, own('n'), anew, [said('something')]);
  expect(await reopened.find('something', options)).toHaveLength(1);
});

const words = (at: number) => Array.from({ length: 12 }, (_, n) => `word${(at * 31 + n) % 997}`);
const kept = (at: number) =>
  Array.from({ length: 20 }, (_, n) => said(words(at * 20 + n).join(' ')));

it('leaves no word of what was removed in its file, and lets others work meanwhile', async () => {
  const { path, index } = await openFile();
  await using _closed = index;
  for (let at = 0; at < 200; at += 1) {
    await put(index, own(`n${at}`), anew, [...kept(at), said(`secretword${at}`)]);
  }
  const holding = async () => {
    const texts = await Promise.all(['', '-wal'].map((end) => readFile(path + end, 'latin1')));
    return texts.join('').includes('ecretword');
  };
  expect(await holding()).toBe(true);
  for (let at = 0; at < 200; at += 1) await put(index, own(`n${at}`), again, kept(at));
  let turns = 0;
  let isOver = false;
  const count = () => {
    turns += 1;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  await index.scrub();
  isOver = true;
  expect(await holding()).toBe(false);
  expect(turns).toBeGreaterThan(1);
  expect((await index.find('word31', options)).length).toBeGreaterThan(5);
});

describe.skipIf(!hasPostgres)('in PostgreSQL', () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(() => server?.[Symbol.asyncDispose]());

  it('leaves no word of what was removed in its index, when several erase at the same time', async () => {
    const url = await server.emptied();
    const { open } = inPostgres(url);
    const [one, other] = [await open(), await open()];
    await put(one, own('n'), anew, [...kept(1), said('secretword')]);
    const holding = async () => {
      const [row] = await server.query(
        url,
        `SELECT pg_relation_filepath('nanobot.text_part_words') AS path FROM (SELECT) AS one`,
      );
      await server.query(url, 'CHECKPOINT');
      const path = join(server.folder, 'data', String(row?.['path']));
      return (await readFile(path, 'latin1')).includes('ecretword');
    };
    expect(await holding()).toBe(true);
    await put(one, own('n'), again, kept(1));
    // One that was interrupted leaves such an index.
    await server.query(
      url,
      'CREATE INDEX text_part_words_ccnew ON nanobot.text_part USING gin (words)',
    );
    await Promise.all([one.scrub(), other.scrub(), put(one, own('m'), anew, kept(2))]);
    expect(await holding()).toBe(false);
    expect(await server.query(url, `SELECT FROM pg_class WHERE relname LIKE '%ccnew'`)).toEqual([]);
    expect(await other.find(words(45).join(' '), options)).toMatchObject([{ source: 'm' }]);
  });

  it('works again when the server is back', async () => {
    const { open } = inPostgres(await server.emptied());
    const index = await open();
    await put(index, own('n'), anew, [said('a parrot')]);
    await server.crash();
    await expect(index.find('parrot', options)).rejects.toThrow(/not reachable/);
    await server.start();
    expect(await index.find('parrot', options)).toHaveLength(1);
  });
});
