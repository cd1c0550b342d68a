// The full-text index: words of several languages, queries that mean no good, and a file that breaks.

import { rmSync } from 'node:fs';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { IndexedPart } from '../../src/kernel/bus/store/text-index.ts';
import { createTextIndex } from '../../src/kernel/bus/store/text-index.ts';
import { sessionKey, turnId } from '../../src/kernel/message/ids.ts';
import type { TranscriptEntry } from '../../src/kernel/message/transcript.ts';
import { createSessionIndexing } from '../../src/kernel/sessions/index-sessions.ts';
import { createJsonlSessionStore } from '../../src/kernel/sessions/jsonl.ts';
import { parseName } from '../../src/kernel/sessions/rules/file.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { openEntryRows, ROOMY, temporaryFolder } from '../sessions/session-folder.ts';
import { createMovableClock } from '../support/movable-clock.ts';

const DAY = 86_400_000;
const NOW = 1000 * DAY;
const said = (text: string, at = NOW): IndexedPart => {
  return { place: 1, role: 'user', isForeign: false, text, at };
};

async function openIndex() {
  const folder = await temporaryFolder();
  const path = join(folder, 'index.db');
  const open = () => createTextIndex({ path, log: silentLogger });
  return { folder, path, open, index: open() };
}

const state = { stamp: 's', position: 1 };
const own = (name: string) => ({ name, scope: 'session:a', label: 'a' });
const options = { scopes: ['session:a'], limit: 10, now: NOW };

it('finds words in any form that people write them, and what is new before what is old', async () => {
  const { index } = await openIndex();
  using _closed = index;
  const texts = [
    'Die Wohnung in Zürich kostet 2100 Franken.',
    '東京で寿司を食べました',
    'The dentist appointment is on Friday',
    'Straße',
  ];
  for (const [at, text] of texts.entries()) index.put(own(`n${at}`), state, [said(text)], true);
  const found = (words: string) => index.find(words, options).map(({ text }) => text);
  expect(found('wohnungen zurich')).toEqual([texts[0]]);
  expect(found('寿司')).toEqual([texts[1]]);
  expect(found('APPOINTMENTS')).toEqual([texts[2]]);
  expect(found('strasse')).toEqual([texts[3]]);
  expect(found('submarine')).toEqual([]);
  index.put(own('old'), state, [said('green tea', NOW - 400 * DAY)], true);
  index.put(own('new'), state, [said('green tea', NOW - DAY)], true);
  expect(index.find('tea', options).map(({ source }) => source)).toEqual(['new', 'old']);
});

it('takes every query for words, and never shows what lies outside of the scopes', async () => {
  const { index } = await openIndex();
  using _closed = index;
  index.put(own('mine'), state, [said('the cat NEAR the door')], true);
  const others = { name: 'theirs', scope: 'session:b', label: 'b' };
  index.put(others, state, [said('the cat of somebody else')], true);
  for (const query of [
    '"',
    '"cat',
    'cat*',
    'NEAR(',
    'words:cat',
    'cat AND',
    "x' OR 1=1 --",
    '^cat',
    '\u0000cat',
  ]) {
    const texts = index.find(query, options).map(({ text }) => text);
    expect(texts.every((text) => text === 'the cat NEAR the door')).toBe(true);
  }
  expect(index.find('cat', { ...options, scopes: [] })).toEqual([]);
  expect(index.find('cat', { ...options, scopes: ["session:a', 'session:b"] })).toEqual([]);
});

it('is made anew where its file is damaged, and tells that all has to be indexed again', async () => {
  const { path, open, index } = await openIndex();
  index.put(own('n'), state, [said('something')], true);
  index[Symbol.dispose]();
  await writeFile(path, 'this is no database at all, '.repeat(500));
  using again = open();
  const before = again.generation;
  expect(again.find('something', options)).toEqual([]);
  expect(again.generation).toBeGreaterThan(before);
  again.put(own('n'), state, [said('something')], true);
  expect(again.find('something', options)).toHaveLength(1);
});

it('leaves out a conversation that is taken away meanwhile, and takes the others', async () => {
  const { folder, index } = await openIndex();
  using _closed = index;
  const clock = createMovableClock();
  const sessions = join(folder, 'sessions');
  const deps = { folder: sessions, store: await openEntryRows(clock), clock, log: silentLogger };
  await using store = createJsonlSessionStore({ ...deps, policy: () => ROOMY });
  const lost = join(sessions, 'telegram%3A1_2020-01-01.jsonl');
  await writeFile(lost, '{}\n');
  const [key, at] = [sessionKey('telegram:42'), clock.now()];
  const entry = { role: 'user', turnId: turnId(`${key}#1`), text: 'a parrot', at } as const;
  await store.append(key, [entry], { durable: true });
  // Another process takes it away between the look at it and its opening.
  const racing = new Proxy(index, {
    get(target, name) {
      if (name === 'state') rmSync(lost, { force: true });
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
  const forgetOthers = async () => undefined;
  await createSessionIndexing({ ...deps, files: store, index: racing, forgetOthers }).flush();
  expect(index.find('parrot', { ...options, scopes: ['session:telegram:42'] })).toHaveLength(1);
});

it('follows a conversation as it grows, without what was taken back', async () => {
  const { folder, index } = await openIndex();
  using _closed = index;
  const clock = createMovableClock();
  const sessions = join(folder, 'sessions');
  const store = createJsonlSessionStore({
    folder: sessions,
    store: await openEntryRows(clock),
    clock,
    log: silentLogger,
    policy: () => ROOMY,
  });
  const indexing = createSessionIndexing({
    ...{ files: store, index, clock, log: silentLogger },
    forgetOthers: async () => undefined,
  });
  const key = sessionKey('telegram:42');
  const at = clock.now();
  const turn = (seq: number, text: string): TranscriptEntry => {
    return { role: 'user', turnId: turnId(`${key}#${seq}`), text, at };
  };
  const append = async (...entries: readonly TranscriptEntry[]) => {
    await store.append(key, entries, { durable: true });
    indexing.changed(key);
    await indexing.flush();
  };
  const scopes = ['session:telegram:42'];
  const places = (words: string) =>
    index.find(words, { scopes, limit: 10, now: at }).map(({ place }) => place);
  await append(turn(1, 'the parrot is called Coco'));
  await append(turn(7, 'a parrot again'));
  expect(places('parrot').sort()).toEqual([1, 7]);
  await append({ role: 'undo', undoes: turnId(`${key}#7`), by: 'x' as never, at });
  expect(places('parrot')).toEqual([1]);
  // Taken back out of yesterday's file, brought back, and taken back again.
  await clock.advance(DAY);
  await append({ role: 'undo', undoes: turnId(`${key}#1`), by: 'y' as never, at: clock.now() });
  expect(places('parrot')).toEqual([]);
  const restore = async (by: string) => {
    await store.restore(key, 0, by as never);
    indexing.changed(key);
    await indexing.flush();
  };
  await restore('z');
  expect(places('parrot')).toEqual([1]);
  const [oldest] = (await readdir(sessions)).flatMap((name) => parseName(name) ?? []);
  // As where words were forgotten in it: what later files say of it holds again.
  if (oldest !== undefined) indexing.rewritten(oldest);
  await indexing.flush();
  expect(new Set(places('parrot'))).toEqual(new Set([1]));
  await append({ role: 'undo', undoes: turnId(`${key}#1`), by: 'w' as never, at: clock.now() });
  expect(places('parrot')).toEqual([]);
  if (oldest !== undefined) indexing.rewritten(oldest);
  await indexing.flush();
  expect(places('parrot')).toEqual([]);
  await store[Symbol.asyncDispose]();
});

it('indexes what was said while the disk was full as soon as it is not', async () => {
  const { folder, index } = await openIndex();
  using _closed = index;
  const clock = createMovableClock();
  const rows = await openEntryRows(clock);
  const deps = { folder: join(folder, 'sessions'), store: rows, clock, log: silentLogger };
  await using store = createJsonlSessionStore({ ...deps, policy: () => ROOMY });
  const disk = { isFull: false };
  const full = new Proxy(index, {
    get(target, name) {
      if (name === 'put' && disk.isFull) throw new Error('database or disk is full');
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
  const forgetOthers = async () => undefined;
  const indexing = createSessionIndexing({ ...deps, files: store, index: full, forgetOthers });
  const key = sessionKey('telegram:42');
  const say = async (seq: number, text: string) => {
    const entry = { role: 'user', turnId: turnId(`${key}#${seq}`), text, at: clock.now() } as const;
    await store.append(key, [entry], { durable: true });
    indexing.changed(key);
  };
  const found = (words: string) =>
    index.find(words, { ...options, scopes: ['session:telegram:42'] }).length;
  for (const [seq, word] of ['parrot', 'donkey'].entries()) {
    disk.isFull = true;
    await say(seq + 1, word);
    await expect(indexing.flush()).rejects.toThrow('full');
    disk.isFull = false;
    await indexing.flush();
    expect(found(word)).toBe(1);
  }
});

it('leaves no word of what was removed in its file, and lets others work meanwhile', async () => {
  const { path, index } = await openIndex();
  using _closed = index;
  const words = (at: number) => Array.from({ length: 12 }, (_, n) => `word${(at * 31 + n) % 997}`);
  const kept = (at: number) =>
    Array.from({ length: 20 }, (_, n) => said(words(at * 20 + n).join(' ')));
  for (let at = 0; at < 200; at += 1) {
    index.put(own(`n${at}`), state, [...kept(at), said(`secretword${at}`)], true);
  }
  const holding = async () => {
    const texts = await Promise.all(['', '-wal'].map((end) => readFile(path + end, 'latin1')));
    return texts.join('').includes('ecretword');
  };
  expect(await holding()).toBe(true);
  for (let at = 0; at < 200; at += 1) index.put(own(`n${at}`), state, kept(at), true);
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
  expect(index.find('word31', options).length).toBeGreaterThan(5);
});
