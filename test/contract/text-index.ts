// The contract of the full-text index: words of several languages, queries that mean no good,
// sources that several processes index, and conversations that are followed.

import { rmSync } from 'node:fs';
import { readdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import type {
  IndexedPart,
  IndexedSource,
  IndexStep,
  TextIndex,
} from '../../src/kernel/bus/store/text-index.ts';
import { sessionKey, turnId } from '../../src/kernel/message/ids.ts';
import type { TranscriptEntry } from '../../src/kernel/message/transcript.ts';
import { createSessionIndexing } from '../../src/kernel/sessions/index-sessions.ts';
import { createJsonlSessionStore } from '../../src/kernel/sessions/jsonl.ts';
import { parseName } from '../../src/kernel/sessions/rules/file.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { openEntryRows, ROOMY } from '../sessions/session-folder.ts';
import { createMovableClock } from '../support/movable-clock.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import type { IndexProcesses } from '../support/text-indexes.ts';

const DAY = 86_400_000;
const NOW = 1000 * DAY;
export const said = (text: string, at = NOW): IndexedPart => {
  return { place: 1, role: 'user', isForeign: false, text, at };
};
export const own = (name: string) => ({ name, scope: 'session:a', label: 'a' });
export const options = { scopes: ['session:a'], limit: 10, now: NOW };
const state = { stamp: 's', position: 1 };
export const anew = { from: undefined, to: state, replaces: true };
const again = { from: state, to: state, replaces: true };
/** Whether it was written. */
export async function put(
  index: TextIndex,
  source: IndexedSource,
  step: IndexStep,
  parts: readonly IndexedPart[],
): Promise<boolean> {
  return (await index.put([{ source, step, parts }])).has(source.name);
}

export function testTextIndex(processes: () => Promise<IndexProcesses>): void {
  const openIndex = async () => (await processes()).open();

  it('finds words in any form that people write them, and what is new before what is old', async () => {
    const index = await openIndex();
    const texts = [
      'Die Wohnung in Zürich kostet 2100 Franken.',
      '東京で寿司を食べました',
      'The dentist appointment is on Friday',
      'Straße',
    ];
    for (const [at, text] of texts.entries()) await put(index, own(`n${at}`), anew, [said(text)]);
    const found = async (words: string) =>
      (await index.find(words, options)).map(({ text }) => text);
    expect(await found('wohnungen zurich')).toEqual([texts[0]]);
    expect(await found('寿司')).toEqual([texts[1]]);
    expect(await found('寿')).toEqual([texts[1]]);
    expect(await found('APPOINTMENTS')).toEqual([texts[2]]);
    expect(await found('strasse')).toEqual([texts[3]]);
    expect(await found('submarine')).toEqual([]);
    expect(await found('to')).toEqual([]);
    await put(index, own('old'), anew, [said('green tea', NOW - 400 * DAY)]);
    await put(index, own('new'), anew, [said('green tea', NOW - DAY)]);
    expect((await index.find('tea', options)).map(({ source }) => source)).toEqual(['new', 'old']);
  });

  it('puts texts with more of the words, and with rarer ones, before others', async () => {
    const index = await openIndex();
    const texts = [
      'the letter of the bank, and what it wants',
      'the letter of the school arrived',
      'the letter of the landlord about heating, the letter of last week',
      'a letter, nothing else of note in this long line about something different altogether',
    ];
    await put(
      index,
      own('n'),
      anew,
      texts.map((text) => said(text)),
    );
    const found = async (words: string) =>
      (await index.find(words, options)).map(({ text }) => text);
    expect((await found('letter bank'))[0]).toBe(texts[0]);
    expect((await found('the letter landlord heating'))[0]).toBe(texts[2]);
    expect(await found('letter school')).toHaveLength(texts.length);
    const rare = 'somebody at the bank by the river calls back in the afternoon';
    await put(index, own('o'), anew, [said('letter letter letter'), said(rare)]);
    expect((await found('letter river'))[0]).toBe(rare);
    expect(await index.find('letter', { ...options, limit: 2 })).toHaveLength(2);
  });

  it('takes every query for words, and never shows what lies outside of the scopes', async () => {
    const index = await openIndex();
    await put(index, own('mine'), anew, [said('the cat NEAR the door')]);
    const others = { name: 'theirs', scope: 'session:b', label: 'b' };
    await put(index, others, anew, [said('the cat of somebody else')]);
    for (const query of [
      ...['"', '"cat', 'cat*', 'NEAR(', 'words:cat', 'cat AND', "x' OR 1=1 --", '^cat'],
      ...['\u0000cat', "cat' | 'x", 'cat:*', '!cat', '(cat', 'cat & \\', '? ?1 $1 cat'],
    ]) {
      const texts = (await index.find(query, options)).map(({ text }) => text);
      expect(texts.every((text) => text === 'the cat NEAR the door')).toBe(true);
      expect(texts).toHaveLength(query.includes('cat') || query === 'NEAR(' ? 1 : 0);
    }
    expect(await index.find('cat', { ...options, scopes: [] })).toEqual([]);
    expect(await index.find('cat', { ...options, scopes: ["session:a', 'session:b"] })).toEqual([]);
    const both = { ...options, scopes: ['session:a', 'session:b'] };
    expect(await index.find('cat', both)).toHaveLength(2);
    const many = Array.from({ length: 100 }, (_, at) => `session:${at}`);
    expect(await index.find('cat', { ...options, scopes: many })).toEqual([]);
    const withOwn = { ...options, scopes: [...many, 'session:a', 'session:a'] };
    expect(await index.find('cat', withOwn)).toMatchObject([{ source: 'mine' }]);
  });

  it('keeps every text as it is', async () => {
    const index = await openIndex();
    const texts = [
      'an \\ and a " and a \' in it',
      '𝕏 unpaired \u{1f600} 🦜',
      `long ${'wörter '.repeat(30_000)}`,
    ];
    await put(
      index,
      own('n'),
      anew,
      texts.map((text) => said(text)),
    );
    for (const [at, word] of ['and', 'unpaired', 'long'].entries()) {
      expect((await index.find(word, options)).map(({ text }) => text)).toEqual([texts[at]]);
    }
    // What no text of PostgreSQL can hold, or is no Unicode, hides nothing else.
    await put(index, own('m'), anew, [said('zero\0 and \ud800 half a parrot')]);
    expect(await index.find('parrot', options)).toHaveLength(1);
  });

  it('tells how far sources are indexed, and forgets them with their parts', async () => {
    const index = await openIndex();
    await put(index, own('a/%1'), anew, [said('first'), { ...said('second'), place: 2 }]);
    await put(index, own('a/2'), { ...anew, to: { stamp: 't', position: 7 } }, [said('third')]);
    await put(index, own('b'), anew, [said('fourth')]);
    expect(await index.state('a/2')).toEqual({ stamp: 't', position: 7 });
    expect(await index.state('c')).toBeUndefined();
    expect([...(await index.states('a/')).keys()]).toEqual(['a/%1', 'a/2']);
    expect((await index.states('')).size).toBe(3);
    await index.removePlaces('a/%1', [2, 5]);
    expect(await index.find('second', options)).toEqual([]);
    expect(await index.find('first', options)).toMatchObject([
      { source: 'a/%1', label: 'a', place: 1, role: 'user', isForeign: false, at: NOW },
    ]);
    await index.remove('a/%1');
    expect(await index.state('a/%1')).toBeUndefined();
    expect(await index.find('first', options)).toEqual([]);
    expect(await index.find('third fourth', options)).toHaveLength(2);
  });

  it('replaces what changed of a source, and keeps the rest under its number', async () => {
    const index = await openIndex();
    const lines = (texts: readonly string[]) =>
      texts.map((text, at) => ({ ...said(text), place: at + 1 }));
    await put(index, own('n'), anew, lines(['apple pie', 'apple pie', 'plum cake']));
    const before = await index.find('plum', options);
    await put(index, own('n'), again, lines(['a new top', 'apple pie', 'plum cake', 'plum cake']));
    expect(await index.find('apple', options)).toMatchObject([{ place: 2 }]);
    const after = await index.find('plum', options);
    expect(after.map(({ place }) => place).toSorted()).toEqual([3, 4]);
    expect(after.map(({ id }) => id)).toContain(before[0]?.id);
  });

  it('shows each process what another one indexed and removed', async () => {
    const { open } = await processes();
    const [one, other] = [await open(), await open()];
    await put(one, own('n'), anew, [said('a parrot')]);
    expect(await other.find('parrot', options)).toHaveLength(1);
    expect(await other.state('n')).toEqual(state);
    await other.remove('n');
    expect(await one.find('parrot', options)).toEqual([]);
  });

  it('takes nothing of a process that has not seen what another one indexed or removed', async () => {
    const { open } = await processes();
    const [one, other] = [await open(), await open()];
    const newer = { stamp: 's', position: 2 };
    const results = await Promise.all(
      [one, other, one, other].map((index) => put(index, own('n'), anew, [said('the parrot')])),
    );
    expect(results.filter(Boolean)).toHaveLength(1);
    expect(await one.find('parrot', options)).toHaveLength(1);
    expect(await put(one, own('n'), { from: state, to: newer, replaces: false }, [])).toBe(true);
    const older = { from: state, to: state, replaces: true };
    expect(await put(other, own('n'), older, [said('an older parrot')])).toBe(false);
    expect(await other.find('older', options)).toEqual([]);
    await one.remove('n');
    const behind = { from: newer, to: { stamp: 's', position: 3 }, replaces: false };
    expect(await put(other, own('n'), behind, [said('a late parrot')])).toBe(false);
    expect(await other.find('parrot', options)).toEqual([]);
    expect(await other.state('n')).toBeUndefined();
  });

  it('writes several sources at once, without those that another process has indexed or removed', async () => {
    const index = await openIndex();
    const newer = { stamp: 's', position: 2 };
    for (const name of ['grown', 'gone']) await put(index, own(name), anew, []);
    await put(index, own('grown'), { ...again, to: newer }, [said('its parrot')]);
    await index.remove('gone');
    const changes = ['new', 'gone', 'grown', 'also new'].map((name) => ({
      source: own(name),
      step: name.includes('new') ? anew : again,
      parts: [said(`a parrot, ${name}`)],
    }));
    expect(await index.put(changes)).toEqual(new Set(['new', 'also new']));
    const found = await index.find('parrot', options);
    expect(found.map(({ source }) => source).toSorted()).toEqual(['also new', 'grown', 'new']);
    expect([...(await index.states('')).keys()]).toEqual(['also new', 'grown', 'new']);
    expect(await index.state('grown')).toEqual(newer);
  });

  it('leaves out a conversation that is taken away meanwhile, and takes the others', async () => {
    const index = await openIndex();
    const { sessions, deps, store, clock } = await openSessions();
    const lost = join(sessions, 'telegram%3A1_2020-01-01.jsonl');
    await writeFile(lost, '{}\n');
    const key = sessionKey('telegram:42');
    await store.append(key, [user(1, 'a parrot', clock.now())], { durable: true });
    // Another process takes it away between the look at it and its opening.
    const racing = intercepted(index, 'states', () => rmSync(lost, { force: true }));
    await createSessionIndexing({ ...deps, files: store, index: racing }).flush();
    expect(
      await index.find('parrot', { ...options, scopes: ['session:telegram:42'] }),
    ).toHaveLength(1);
  });

  it('keeps nothing of a conversation that another process deletes while it is read', async () => {
    const index = await openIndex();
    const { sessions, deps, store, clock } = await openSessions();
    const key = sessionKey('telegram:42');
    await store.append(key, [user(1, 'a parrot', clock.now())], { durable: true });
    const racing = intercepted(index, 'put', () => rmSync(sessions, { recursive: true }));
    await createSessionIndexing({ ...deps, files: store, index: racing }).flush();
    expect((await index.states('')).size).toBe(0);
  });

  it('has each entry once where several processes index the same conversation', async () => {
    const { open } = await processes();
    const { deps, store, clock } = await openSessions();
    const key = sessionKey('telegram:42');
    const entries = Array.from({ length: 250 }, (_, at) =>
      user(at + 1, `parrot ${at}`, clock.now()),
    );
    const undo = {
      role: 'undo',
      undoes: turnId(`${key}#1`),
      by: 'x' as never,
      at: clock.now(),
    } as const;
    await store.append(key, [...entries, undo], { durable: true });
    const indexings = await Promise.all(
      [0, 1, 2].map(async () =>
        createSessionIndexing({ ...deps, files: store, index: await open(), isShared: true }),
      ),
    );
    await Promise.all(indexings.map((indexing) => indexing.flushFor([key])));
    const found = await (await open()).find('parrot', {
      ...{ scopes: ['session:telegram:42'], limit: 1000, now: NOW },
    });
    expect(found).toHaveLength(200);
    expect(new Set(found.map(({ place }) => place)).size).toBe(200);
    for (const word of ['0', '17', '249']) {
      const place = await (await open()).find(`${word}`, {
        ...{ scopes: ['session:telegram:42'], limit: 10, now: NOW },
      });
      expect(place.map((each) => each.place)).toEqual(word === '0' ? [] : [Number(word) + 1]);
    }
  });

  it('reads again what another process has indexed or rewritten since it was read', async () => {
    const { open } = await processes();
    const [index, other] = [await open(), await open()];
    const { sessions, deps, store, clock } = await openSessions();
    const keys = [1, 2, 3].map((chat) => sessionKey(`telegram:${chat}`));
    const say = async (seq: number, text: string, to = keys) => {
      for (const key of to) {
        await store.append(key, [user(seq, text, clock.now())], { durable: true });
      }
      await store.complete();
    };
    const found = async (words: string) => {
      const scopes = keys.map((key) => `session:${key}`);
      const parts = await index.find(words, { ...options, scopes });
      return parts.map(({ label }) => label).toSorted();
    };
    const others = createSessionIndexing({ ...deps, files: store, index: other, isShared: true });
    const [overtaken = '', rewritten = ''] = keys;
    const meanwhile = async () => {
      await others.flushFor([overtaken]);
      await say(3, 'a cat', [sessionKey(overtaken)]);
      const [file = ''] = (await readdir(sessions)).filter((name) => name.includes('%3A2_'));
      const text = await readFile(join(sessions, file), 'utf8');
      await writeFile(join(sessions, 'new'), text.replaceAll('parrot', 'canary'));
      await rename(join(sessions, 'new'), join(sessions, file));
      await indexing.rewritten(parseName(file) ?? { stem: '', day: '', part: 0 });
    };
    const races = [async () => undefined, meanwhile];
    const racing = intercepted(index, 'put', () => races.shift()?.());
    const indexing = createSessionIndexing({ ...deps, files: store, index: racing });
    await say(1, 'a parrot');
    await indexing.flush();
    await say(2, 'a parrot again');
    for (const key of keys) indexing.changed(key);
    await indexing.flush();
    expect(races).toEqual([]);
    expect(await found('cat')).toEqual([overtaken]);
    expect(await found('parrot')).toEqual([overtaken, overtaken, keys[2], keys[2]]);
    expect(await found('canary')).toEqual([rewritten, rewritten]);
  });

  it('follows a conversation as it grows, without what was taken back', async () => {
    const index = await openIndex();
    const { sessions, deps, store, clock } = await openSessions();
    const indexing = createSessionIndexing({ ...deps, files: store, index });
    const key = sessionKey('telegram:42');
    const at = clock.now();
    const append = async (...entries: readonly TranscriptEntry[]) => {
      await store.append(key, entries, { durable: true });
      indexing.changed(key);
      await indexing.flush();
    };
    const scopes = ['session:telegram:42'];
    const places = async (words: string) =>
      (await index.find(words, { scopes, limit: 10, now: at })).map(({ place }) => place);
    await append(user(1, 'the parrot is called Coco', at));
    await append(user(7, 'a parrot again', at));
    expect((await places('parrot')).sort()).toEqual([1, 7]);
    await append({ role: 'undo', undoes: turnId(`${key}#7`), by: 'x' as never, at });
    expect(await places('parrot')).toEqual([1]);
    // Taken back out of yesterday's file, brought back, and taken back again.
    await clock.advance(DAY);
    await append({ role: 'undo', undoes: turnId(`${key}#1`), by: 'y' as never, at: clock.now() });
    await append(user(9, 'a cat', clock.now()));
    expect(await places('parrot')).toEqual([]);
    await store.restore(key, 0, 'z' as never);
    indexing.changed(key);
    await indexing.flush();
    expect(await places('parrot')).toEqual([1]);
    const [oldest] = (await readdir(sessions)).flatMap((name) => parseName(name) ?? []);
    // As where words were forgotten in it: what later files say of it holds again.
    if (oldest !== undefined) await indexing.rewritten(oldest);
    await indexing.flush();
    expect(new Set(await places('parrot'))).toEqual(new Set([1]));
    await append({ role: 'undo', undoes: turnId(`${key}#1`), by: 'w' as never, at: clock.now() });
    expect(await places('parrot')).toEqual([]);
    if (oldest !== undefined) await indexing.rewritten(oldest);
    await indexing.flush();
    expect(await places('parrot cat')).toEqual([9]);
    for (const name of (await index.states('')).keys()) await index.remove(name);
    indexing.changed(key);
    await indexing.flush();
    expect(await places('parrot cat')).toEqual([9]);
  });

  it('indexes what was said while the index could not be written as soon as it can', async () => {
    const index = await openIndex();
    const { deps, store, clock } = await openSessions();
    const disk = { isFull: false };
    const full = intercepted(index, 'put', () => {
      if (disk.isFull) throw new Error('database or disk is full');
    });
    const indexing = createSessionIndexing({ ...deps, files: store, index: full });
    const key = sessionKey('telegram:42');
    const found = async (words: string) =>
      (await index.find(words, { ...options, scopes: ['session:telegram:42'] })).length;
    for (const [seq, word] of ['parrot', 'donkey'].entries()) {
      disk.isFull = true;
      await store.append(key, [user(seq + 1, word, clock.now())], { durable: true });
      indexing.changed(key);
      await expect(indexing.flush()).rejects.toThrow('full');
      disk.isFull = false;
      await indexing.flush();
      expect(await found(word)).toBe(1);
    }
  });
}

const user = (seq: number, text: string, at: number): TranscriptEntry => {
  return { role: 'user', turnId: turnId(`telegram:42#${seq}`), text, at };
};

async function openSessions() {
  const clock = createMovableClock();
  const sessions = join(await temporaryFolder(), 'sessions');
  const common = { clock, log: silentLogger };
  const rows = await openEntryRows(clock);
  const store = createJsonlSessionStore({
    ...{ ...common, folder: sessions, store: rows, policy: () => ROOMY },
  });
  onTestFinished(() => store[Symbol.asyncDispose]());
  const deps = { ...common, forgetOthers: async () => undefined };
  return { clock, sessions, store, deps };
}

/** Does something before each call of the method. */
const intercepted = (index: TextIndex, method: keyof TextIndex, before: () => unknown) =>
  new Proxy(index, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== 'function') return value;
      return async (...params: readonly unknown[]) => {
        if (name === method) await before();
        return value.apply(target, params);
      };
    },
  });
