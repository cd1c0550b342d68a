// Cases R09 and R10: torn tails, flipped bits, foreign lines, a full disk.

import { appendFile, readFile, rename, symlink, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { sessionKey, turnId } from '../../src/kernel/message/ids.ts';
import { turnEntries } from '../contract/session-store.ts';
import { userEntry } from '../contract/user-entry.ts';
import { createSessionFolder } from '../sessions/session-folder.ts';

const KEY = sessionKey('telegram:42');
const FILE = 'telegram%3A42_2026-01-15.jsonl';
const DURABLE = { durable: true };
const BIT_FLIPS = 300;
const NEWLINE = 10;

async function createSession() {
  const session = await createSessionFolder();
  const store = session.open();
  await store.append(KEY, turnEntries('t1', 'grüße 👋'), DURABLE);
  await store.append(KEY, turnEntries('t2', 'more'), DURABLE);
  await store[Symbol.asyncDispose]();
  const path = join(session.folder, FILE);
  return { ...session, path, whole: await readFile(path) };
}

/** Repeatable, so that a failing flip can be looked at again. */
function pseudoRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    return state / 2 ** 31;
  };
}

describe('a session file that was damaged', () => {
  test('cut at every byte of its last 3 records keeps every whole record and takes new ones', async () => {
    const { path, whole, open } = await createSession();
    const all = [...turnEntries('t1', 'grüße 👋'), ...turnEntries('t2', 'more')];
    const ends = [...whole.entries()].filter(([, byte]) => byte === NEWLINE).map(([at]) => at);
    for (let cut = ends.at(-4) ?? 0; cut <= whole.length; cut += 1) {
      await writeFile(path, whole.subarray(0, cut));
      // The header is a record too; a line that lacks only its newline is whole.
      const kept = all.slice(0, ends.filter((end) => end <= cut).length - 1);
      const store = open();
      expect(await store.load(KEY), `cut at ${cut}`).toEqual(kept);
      await store.append(KEY, [userEntry('t3', 'goes on')], DURABLE);
      await store[Symbol.asyncDispose]();
      const again = open();
      expect(await again.load(KEY), `cut at ${cut}`).toEqual([...kept, userEntry('t3', 'goes on')]);
      await again[Symbol.asyncDispose]();
    }
  });

  test('keeps the torn bytes beside it', async () => {
    const { path, whole, open } = await createSession();
    await truncate(path, whole.length - 20);
    await using store = open();
    expect(await store.load(KEY)).toHaveLength(9);
    const note = JSON.parse(await readFile(`${path}.damaged`, 'utf8'));
    expect(note).toMatchObject({ _type: 'torn_line', text: expect.stringContaining('"turn_end"') });
  });

  test(`with one of ${BIT_FLIPS} bits flipped loses at most the lines it touches`, async () => {
    const { path, whole, open } = await createSession();
    const random = pseudoRandom(42);
    for (let flip = 0; flip < BIT_FLIPS; flip += 1) {
      const damaged = Buffer.from(whole);
      const at = Math.floor(random() * damaged.length);
      damaged[at] = (damaged[at] ?? 0) ^ (1 << Math.floor(random() * 8));
      await writeFile(path, damaged);
      const store = open();
      const loaded = await store.load(KEY);
      expect(loaded.length, `byte ${at}`).toBeGreaterThanOrEqual(8);
      await store.append(KEY, [userEntry('t3', 'goes on')], DURABLE);
      expect(await store.turn(KEY, turnId('t3'))).toHaveLength(1);
      await store[Symbol.asyncDispose]();
    }
  });

  test('has each damaged line noted once, however often it is read', async () => {
    const { path, open } = await createSession();
    await appendFile(path, 'not json\n{"role":"user"}\n[]\nnull\n\u0000\u0001\n');
    for (let round = 0; round < 3; round += 1) {
      await using store = open();
      expect(await store.load(KEY)).toHaveLength(10);
    }
    const notes = (await readFile(`${path}.damaged`, 'utf8')).trimEnd().split('\n');
    expect(notes).toHaveLength(5);
  });

  test('without its header is still read', async () => {
    const { path, whole, open, list } = await createSession();
    await writeFile(path, whole.subarray(whole.indexOf(NEWLINE) + 1));
    await using store = open();
    expect(await store.load(KEY)).toHaveLength(10);
    expect((await list())[0]?.key).toBe(KEY);
  });

  test('that never got its first line gives way to the file before', async () => {
    const { folder, open, clock } = await createSession();
    await clock.advance(24 * 3_600_000);
    const next = join(folder, 'telegram%3A42_2026-01-16.jsonl');
    for (const content of ['', '{"_type":"meta']) {
      await writeFile(next, content);
      const store = open();
      expect(await store.load(KEY)).toHaveLength(10);
      await store[Symbol.asyncDispose]();
    }
  });

  test('does not hold back the other sessions', async () => {
    const { path, open } = await createSession();
    await writeFile(path, Buffer.alloc(100_000, 0xff));
    await using store = open();
    const other = sessionKey('telegram:43');
    await store.append(other, [userEntry('t1', 'fine')], DURABLE);
    expect(await store.load(KEY)).toEqual([]);
    expect(await store.load(other)).toHaveLength(1);
  });
});

describe('a disk that refuses', () => {
  test('has what was appended, once, when it has room again', async () => {
    const { path, open, whole, read } = await createSession();
    await using store = open();
    expect(await store.load(KEY)).toHaveLength(10);
    await rename(path, `${path}.away`);
    // Every write to this device fails with ENOSPC.
    await symlink('/dev/full', path);
    await store.append(KEY, [userEntry('t2', 'no room')], DURABLE);
    expect((await store.complete()).get(KEY)).toMatchObject({ code: 'ENOSPC' });
    await rename(`${path}.away`, path);
    expect(await readFile(path)).toEqual(whole);
    await store.append(KEY, [userEntry('t2', 'room again')], DURABLE);
    await store.complete();
    const texts = (await read(KEY)).slice(10).map((entry) => 'text' in entry && entry.text);
    expect(texts).toEqual(['no room', 'room again']);
    expect(await store.load(KEY)).toHaveLength(12);
  });
});
