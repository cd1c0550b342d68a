// A thread that grew too long: what goes first, what stays, and that every cut shows.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { fitEntries, onlyTurn } from '../../src/agent/rules/context-fit.ts';
import { BOTH_OFFERED, omissionMarker } from '../../src/agent/rules/context-marks.ts';
import { entriesTokens } from '../../src/agent/rules/tokens.ts';
import { callId, turnId } from '../../src/kernel/message/ids.ts';
import type { TranscriptEntry } from '../../src/kernel/message/transcript.ts';

const turnOf = (number: number) => turnId(`terminal:local#${number}`);
const CURRENT = turnOf(99);

function exchange(number: number, chars: number): readonly TranscriptEntry[] {
  const turn = turnOf(number);
  return [
    { role: 'user', turnId: turn, text: `question ${number} ${'q'.repeat(chars)}`, at: number },
    {
      role: 'assistant',
      turnId: turn,
      text: `answer ${number}`,
      toolCalls: [],
      thinking: [],
      model: 'm',
      at: number,
    },
  ];
}

const result = (name: string, chars: number): TranscriptEntry => ({
  role: 'tool',
  turnId: CURRENT,
  callId: callId(name),
  name: 'read_file',
  status: 'ok',
  text: 'r'.repeat(chars),
  at: 99,
});
const question: TranscriptEntry = { role: 'user', turnId: CURRENT, text: 'now what?', at: 99 };

describe('fitting a thread', () => {
  it('drops whole oldest turns and counts their messages', () => {
    const entries = [...exchange(1, 4000), ...exchange(2, 4000), ...exchange(3, 400), question];
    const { entries: kept, omitted } = fitEntries(entries, CURRENT, 500);
    expect(kept).toEqual([...exchange(3, 400), question]);
    expect(omitted).toBe(4);
    expect(omissionMarker(omitted, 'to fit', BOTH_OFFERED)).toContain('4 earlier messages omitted');
  });

  it('shrinks the oldest tool results of a turn that is too long by itself', () => {
    const entries = [question, result('a', 8000), result('b', 8000), result('c', 800)];
    const { entries: kept } = fitEntries(entries, CURRENT, 2400);
    expect(kept[1]).toMatchObject({ text: expect.stringContaining('8,000 characters, cleared') });
    expect(kept.slice(2)).toEqual(entries.slice(2));
  });

  it('shortens what the oldest calls of a long turn were given, and leaves their shape', () => {
    const wrote = (id: string, given: string): TranscriptEntry => ({
      role: 'assistant',
      turnId: CURRENT,
      text: '',
      toolCalls: [{ id: callId(id), name: 'write_file', arguments: given }],
      thinking: [],
      model: 'm',
      at: 99,
    });
    const file = (path: string) =>
      JSON.stringify({ path, parts: [{ text: `start${'w'.repeat(8000)}end` }], size: 8008 });
    const [oldest, cut, newest] = [file('a'), file('b').slice(0, -10), file('c')];
    const entries = [question, wrote('a', oldest), wrote('b', cut), wrote('c', newest)];
    const { entries: kept } = fitEntries(entries, CURRENT, 2600);
    expect(entriesTokens(kept)).toBeLessThanOrEqual(2600);
    const [first, second, third] = kept.slice(1).map((entry) => {
      return entry.role === 'assistant' ? entry.toolCalls[0]?.arguments : undefined;
    });
    expect(JSON.parse(first ?? '')).toEqual({
      path: 'a',
      parts: [{ text: expect.stringMatching(/^startw+\n\[truncated, [^\]]+\]\nw+end$/) }],
      size: 8008,
    });
    expect(JSON.parse(second ?? '')).toEqual({
      unreadable: expect.stringMatching(/^\{"path":"b".+truncated/s),
    });
    expect(third).toBe(newest);
  });

  it('cuts the middle out of a message that is too long by itself', () => {
    const huge: TranscriptEntry = { ...question, text: `start${'x'.repeat(100_000)}end` };
    const { entries: kept } = fitEntries([huge], CURRENT, 1000);
    expect(kept[0]).toMatchObject({ text: expect.stringMatching(/^start.*truncated.*end$/s) });
  });

  it('always keeps the messages of the turn that runs, and fits where texts can shrink', () => {
    const sizes = fc.array(fc.integer({ min: 0, max: 20_000 }), { minLength: 1, maxLength: 8 });
    fc.assert(
      fc.property(sizes, fc.integer({ min: 2500, max: 20_000 }), (lengths, maxTokens) => {
        const before = lengths.flatMap((chars, index) => exchange(index + 1, chars));
        const own = [question, ...lengths.map((chars, index) => result(`r${index}`, chars))];
        const { entries, omitted } = fitEntries([...before, ...own], CURRENT, maxTokens);
        expect(entriesTokens(entries)).toBeLessThanOrEqual(maxTokens);
        expect(entries.length + omitted).toBe(before.length + own.length);
        expect(entries).toContainEqual(question);
      }),
    );
  });

  it('can leave out everything before the turn', () => {
    const { entries, omitted } = onlyTurn([...exchange(1, 10), question], CURRENT);
    expect(entries).toEqual([question]);
    expect(omitted).toBe(2);
  });
});
