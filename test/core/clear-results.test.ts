// Clearing the oldest results of tools: which go, what stands in their place, and that calls and results
// stay together whatever is cleared.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { resultsToClear, withCleared } from '../../src/agent/rules/context-fit.ts';
import { repairThread } from '../../src/agent/rules/thread-repair.ts';
import { entriesTokens } from '../../src/agent/rules/tokens.ts';
import { callId, turnId } from '../../src/kernel/message/ids.ts';
import type { ToolEntry, TranscriptEntry } from '../../src/kernel/message/transcript.ts';
import { resultIdOf } from '../../src/kernel/sessions/rules/earlier.ts';
import { threadFaults } from '../support/thread-faults.ts';

const TURN = turnId('terminal:local#7');
const NOTHING: ReadonlySet<string> = new Set();

/** One answer with a call per length, and the results. */
function round(number: number, lengths: readonly number[]): readonly TranscriptEntry[] {
  const calls = lengths.map((_length, index) => `c${number}_${index}`);
  const answer: TranscriptEntry = {
    role: 'assistant',
    turnId: TURN,
    text: '',
    toolCalls: calls.map((id) => ({
      id: callId(id),
      name: 'read_file',
      arguments: `{"path": "notes/${id}.md"}`,
    })),
    thinking: [],
    model: 'm',
    at: number,
  };
  const results = calls.map((id, index): ToolEntry => {
    const name = resultIdOf(TURN, number * 10 + index);
    return {
      role: 'tool',
      turnId: TURN,
      callId: callId(id),
      name: 'read_file',
      status: 'ok',
      text: 'x'.repeat(lengths[index] ?? 0),
      ...(name === undefined ? {} : { resultId: name }),
      isForeign: true,
      at: number,
    };
  });
  return [answer, ...results];
}

const question: TranscriptEntry = { role: 'user', turnId: TURN, text: 'read all', at: 0 };
const AIM = {
  excessTokens: 3000,
  worthTokens: 500,
  keepNewest: 2,
  keepTokens: Number.POSITIVE_INFINITY,
};

describe('clearing', () => {
  const thread = [question, ...[1, 2, 3, 4, 5, 6].flatMap((number) => round(number, [8000]))];

  it('takes the oldest results until enough is free, and leaves the newest', () => {
    const keys = resultsToClear(thread, NOTHING, AIM);
    expect(keys).toHaveLength(2);
    const all = resultsToClear(thread, NOTHING, { ...AIM, excessTokens: 1e6 });
    expect(all).toHaveLength(4);
    const shown = withCleared(thread, new Set(keys), true);
    expect(shown[2]).toMatchObject({
      text: '[result of read_file {"path": "notes/c1_0.md"}, 8,000 characters, cleared to save room; read_result with id "r7.11" shows it again]',
      isForeign: true,
    });
    expect(withCleared(thread, new Set(keys), false)[2]).toMatchObject({
      text: expect.stringContaining('call the tool again'),
    });
    expect(entriesTokens(thread) - entriesTokens(shown)).toBeGreaterThan(AIM.excessTokens);
  });

  it('waits until it is worth it, and never takes what was not read yet or is short', () => {
    expect(resultsToClear(thread, NOTHING, { ...AIM, worthTokens: 1e5 })).toEqual([]);
    const unread = [question, ...round(1, [100, 100]), ...round(2, [9000, 9000, 9000, 9000])];
    expect(resultsToClear(unread, NOTHING, AIM)).toEqual([]);
  });

  it('is undone by nothing: what is cleared is passed over the next time', () => {
    const first = new Set(resultsToClear(thread, NOTHING, AIM));
    const later = resultsToClear([...thread, ...round(7, [8000])], first, AIM);
    expect(later.some((key) => first.has(key))).toBe(false);
    const once = withCleared(thread, first, true);
    expect(withCleared(once, first, true)).toEqual(once);
  });

  it('keeps every call with its result, and a thread that every service takes', () => {
    const lengths = fc.array(fc.integer({ min: 0, max: 9000 }), { minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(
        fc.array(lengths, { maxLength: 8 }),
        fc.record({
          excessTokens: fc.nat(20_000),
          worthTokens: fc.nat(3000),
          keepNewest: fc.nat(6),
          keepTokens: fc.constant(Number.POSITIVE_INFINITY),
        }),
        (rounds, aim) => {
          const entries = [question, ...rounds.flatMap((one, index) => round(index + 1, one))];
          const keys = new Set(resultsToClear(entries, NOTHING, aim));
          const shown = withCleared(entries, keys, true);
          const before = repairThread(entries);
          const after = repairThread(shown);
          expect(threadFaults(after)).toEqual([]);
          expect(after.map(({ role }) => role)).toEqual(before.map(({ role }) => role));
          const results = entries.filter((entry) => entry.role === 'tool');
          const newest = results.slice(results.length - Math.min(results.length, aim.keepNewest));
          expect(shown).toEqual(expect.arrayContaining(newest));
          const unchanged = shown.filter((entry) => entry.role !== 'tool');
          expect(unchanged).toEqual(entries.filter((entry) => entry.role !== 'tool'));
        },
      ),
    );
  });
});
