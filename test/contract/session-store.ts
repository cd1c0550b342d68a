// What every session store promises. An implementation calls this with a way to open one; opening
// it again after disposing must show what was appended before.

import { expect, test } from 'vitest';
import { callId, messageId, sessionKey, turnId } from '../../src/kernel/message/ids.ts';
import type { TranscriptEntry } from '../../src/kernel/message/transcript.ts';
import type { SessionStore } from '../../src/kernel/sessions/store.ts';
import { ENTRY_AT, userEntry } from './user-entry.ts';

const AT = ENTRY_AT;
const KEY = sessionKey('telegram:42');
const DURABLE = { durable: true };

/** A whole turn with a tool call, as the agent writes it. */
export const turnEntries = (turn: string, text: string, at = AT): readonly TranscriptEntry[] => [
  userEntry(turn, text, at),
  {
    role: 'assistant',
    turnId: turnId(turn),
    text: '',
    toolCalls: [{ id: callId(`call-${turn}`), name: 'time', arguments: '{"zones": ["UTC"' }],
    thinking: [{ text: 'the time?', signature: 'c2ln' }],
    model: 'demo/echo',
    usage: { inputTokens: 10, outputTokens: 3, cachedTokens: 4 },
    at: at + 1,
  },
  {
    role: 'tool',
    turnId: turnId(turn),
    callId: callId(`call-${turn}`),
    name: 'time',
    status: 'ok',
    text: 'noon',
    at: at + 2,
  },
  {
    role: 'assistant',
    turnId: turnId(turn),
    text: `answer to ${text}`,
    toolCalls: [],
    thinking: [],
    model: 'demo/echo',
    at: at + 3,
  },
  {
    role: 'turn_end',
    turnId: turnId(turn),
    outcome: 'answered',
    answers: [`answer to ${text}`],
    throughSeq: 1,
    at: at + 4,
  },
];

export function testSessionStore(
  name: string,
  open: () => Promise<{ readonly store: SessionStore; reopen(): Promise<SessionStore> }>,
): void {
  test(`${name}: a session nobody wrote to is empty`, async () => {
    const { store } = await open();
    await using _closing = store;
    expect(await store.load(KEY)).toEqual([]);
    expect(await store.turn(KEY, turnId('t1'))).toEqual([]);
  });

  test(`${name}: what was appended durably is there after opening again, field by field`, async () => {
    const { store, reopen } = await open();
    const entries = turnEntries('t1', 'hello');
    await store.append(KEY, entries, DURABLE);
    await store[Symbol.asyncDispose]();
    await using again = await reopen();
    expect(await again.load(KEY)).toEqual(entries);
    expect(await again.turn(KEY, turnId('t1'))).toEqual(entries);
  });

  test(`${name}: entries keep the order of the calls, durable or not`, async () => {
    const { store } = await open();
    await using _closing = store;
    const texts = Array.from({ length: 30 }, (_, index) => `message ${index}`);
    await Promise.all(
      texts.map((text, index) =>
        store.append(KEY, [userEntry('t1', text)], { durable: index % 3 === 0 }),
      ),
    );
    const loaded = await store.load(KEY);
    expect(loaded.map((entry) => (entry.role === 'user' ? entry.text : ''))).toEqual(texts);
  });

  test(`${name}: closing waits for appends that are under way`, async () => {
    const { store, reopen } = await open();
    const turns = Array.from({ length: 20 }, (_, index) => userEntry(`t${index}`, `${index}`));
    const appends = turns.map((entry) => store.append(KEY, [entry], DURABLE));
    await store[Symbol.asyncDispose]();
    await Promise.all(appends);
    await using again = await reopen();
    expect(await again.load(KEY)).toEqual(turns);
  });

  test(`${name}: a reset hides what was before it, a summary stands for it`, async () => {
    const { store, reopen } = await open();
    await store.append(KEY, turnEntries('t1', 'old'), DURABLE);
    await store.append(KEY, [{ role: 'reset', at: AT }], DURABLE);
    expect(await store.load(KEY)).toEqual([]);
    const summary: TranscriptEntry = { role: 'summary', text: 'they said hello', at: AT };
    await store.append(KEY, [userEntry('t2', 'forgotten'), summary], DURABLE);
    await store.append(KEY, [userEntry('t2', 'seen')], DURABLE);
    const expected = [summary, userEntry('t2', 'seen')];
    expect(await store.load(KEY)).toEqual(expected);
    await store[Symbol.asyncDispose]();
    await using again = await reopen();
    expect(await again.load(KEY)).toEqual(expected);
  });

  test(`${name}: a summary that keeps the newest turns is shown before them, also after opening again`, async () => {
    const { store, reopen } = await open();
    const turns = ['c#1', 'c#2', 'c#3'].map((turn) => turnEntries(turn, turn));
    for (const turn of turns) await store.append(KEY, turn, DURABLE);
    const summary: TranscriptEntry = {
      role: 'summary',
      text: 'they said hello',
      keepsFrom: turnId('c#2'),
      omitted: 3,
      isForeign: true,
      at: AT,
    };
    const expected = [summary, ...turns.slice(1).flat()];
    const changed = await store.appendIf(KEY, [summary], (window) => window.length === 0);
    expect(changed).toBe(false);
    expect(await store.load(KEY)).toEqual(turns.flat());
    const seen: unknown[] = [];
    await store.appendIf(KEY, [summary], (window) => seen.push(...window) > 0);
    expect(seen).toEqual(turns.flat());
    expect(await store.load(KEY)).toEqual(expected);
    await store[Symbol.asyncDispose]();
    await using again = await reopen();
    expect(await again.load(KEY)).toEqual(expected);
    expect(await again.turn(KEY, turnId('c#1'))).toEqual(turns[0]);
  });

  test(`${name}: earlier turns are found by number and by words, word by word, until a reset`, async () => {
    const { store } = await open();
    await using _closing = store;
    await store.append(KEY, turnEntries('c#1', 'the secret of yesterday'), DURABLE);
    await store.append(KEY, [{ role: 'reset', at: AT }], DURABLE);
    for (let turn = 2; turn <= 60; turn += 1) {
      await store.append(KEY, turnEntries(`c#${turn}`, `code ${turn * 111}`), DURABLE);
    }
    const summary: TranscriptEntry = { role: 'summary', text: 'codes', at: AT };
    const undo: TranscriptEntry = {
      role: 'undo',
      undoes: turnId('c#59'),
      by: messageId('m'),
      at: AT,
    };
    await store.append(KEY, [summary, undo], DURABLE);
    const ask = async (question: object) => {
      const { turns, hasOlder } = await store.earlier(KEY, { maxTurns: 3, ...question });
      return [turns.map(({ turn }) => turn), hasOlder];
    };
    expect(await ask({})).toEqual([[57, 58, 60], true]);
    expect(await ask({ before: 4 })).toEqual([[2, 3], false]);
    expect(await ask({ from: 2 })).toEqual([[2, 3, 4], false]);
    expect(await ask({ words: 'CODE 222' })).toEqual([[2, 20], false]);
    expect(await ask({ words: 'secret' })).toEqual([[], false]);
    const { turns } = await store.earlier(KEY, { from: 2, maxTurns: 1 });
    expect(turns[0]?.entries).toEqual(turnEntries('c#2', 'code 222'));
  });

  test(`${name}: the parts of a conversation before its resets can be read, newest part first`, async () => {
    const { store } = await open();
    await using _closing = store;
    for (const part of [1, 2, 3]) {
      for (const turn of [1, 2, 3]) {
        await store.append(KEY, turnEntries(`c#${part}${turn}`, `part ${part}`), DURABLE);
      }
      if (part < 3) await store.append(KEY, [{ role: 'reset', at: AT + part * 1000 }], DURABLE);
    }
    const ask = async (question: object) => {
      const { turns, ...rest } = await store.earlier(KEY, { maxTurns: 2, ...question });
      return [turns.map(({ turn }) => turn), rest];
    };
    expect(await ask({})).toEqual([[32, 33], { hasOlder: true }]);
    const second = AT + 2000;
    expect(await ask({ before: 32 })).toEqual([[31], { hasOlder: false, beganAt: second }]);
    const first = AT + 1000;
    expect(await ask({ beforeReset: second })).toEqual([[22, 23], { hasOlder: true }]);
    const older = { beforeReset: second, before: 22 };
    expect(await ask(older)).toEqual([[21], { hasOlder: false, beganAt: first }]);
    expect(await ask({ beforeReset: first, maxTurns: 3 })).toEqual([
      [11, 12, 13],
      { hasOlder: false },
    ]);
    expect(await ask({ beforeReset: 1 })).toEqual([[], { hasOlder: false }]);
  });

  test(`${name}: a finished turn is found again, also behind a reset`, async () => {
    const { store } = await open();
    await using _closing = store;
    const first = turnEntries('t1', 'one');
    await store.append(KEY, first, DURABLE);
    await store.append(KEY, [{ role: 'reset', at: AT }], DURABLE);
    await store.append(KEY, turnEntries('t2', 'two'), DURABLE);
    expect(await store.turn(KEY, turnId('t1'))).toEqual(first);
    expect(await store.turn(KEY, turnId('t3'))).toEqual([]);
  });

  test(`${name}: sessions with similar keys never see each other`, async () => {
    const { store } = await open();
    await using _closing = store;
    const keys = [
      'a:b',
      'a_b',
      'A:b',
      'a:b#c',
      'a%3Ab',
      'a/b',
      '../a',
      '.a',
      'a:b_2026-01-15',
      'a:ü',
      'a:u\u0308',
      `email:${'x'.repeat(400)}`,
      `email:${'x'.repeat(401)}`,
    ].map(sessionKey);
    for (const key of keys) await store.append(key, [userEntry('t1', `in ${key}`)], DURABLE);
    for (const key of keys) expect(await store.load(key)).toEqual([userEntry('t1', `in ${key}`)]);
  });

  test(`${name}: changing a loaded list changes nothing in the store`, async () => {
    const { store } = await open();
    await using _closing = store;
    await store.append(KEY, [userEntry('t1', 'kept')], DURABLE);
    const loaded = await store.load(KEY);
    (loaded as TranscriptEntry[]).length = 0;
    expect(await store.load(KEY)).toHaveLength(1);
  });
}
