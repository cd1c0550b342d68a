// What was taken before becomes a limit: low where that is enough, high again where it was not.

import fc from 'fast-check';
import { expect, it, test } from 'vitest';
import {
  advise,
  type Execution,
  takenBy,
  taskTypeOf,
} from '../../src/features/subagents/rules/calibration.ts';
import { TOOL_NAMES } from '../../src/kernel/config/limits.ts';
import { turnId } from '../../src/kernel/message/ids.ts';
import type { TranscriptEntry } from '../../src/kernel/message/transcript.ts';

const configured = { rounds: 20, tokens: 100_000, depth: 2 };

function ran(rounds: number, more: Partial<Execution> = {}): Execution {
  return {
    ...{ id: 'x', group: 'task', type: 'answer', model: 'm', rounds, maxRounds: 20 },
    ...{ tokens: 1000, maxTokens: 100_000, outcome: 'done', micros: 0, ms: 1, tools: 0 },
    ...{ depth: 1, at: 0 },
    ...more,
  };
}
const times = (count: number, run: Execution) => Array.from({ length: count }, () => run);

test.each([
  [[], 'answer'],
  [['read_file', 'exec'], 'shell'],
  [['execute_code'], 'shell'],
  [['web_fetch', 'spawn'], 'helpers'],
  [['read_file', 'web_search'], 'web'],
  [['some_server__tool'], 'other'],
] as const)('work with %j is of the type %s', (tools, type) => {
  expect(taskTypeOf(tools)).toBe(type);
});

it('knows tools by the names they have, and there are none it was told wrong', () => {
  const known = TOOL_NAMES.filter((name) => !['other'].includes(taskTypeOf([name])));
  expect(known).toEqual(expect.arrayContaining(['exec', 'spawn', 'write_file', 'recall']));
  expect(taskTypeOf(['exec_command'])).toBe('other');
});

test.each([
  ['no data', [], { ...configured, confidence: 0 }],
  ['one short run', [ran(1)], { rounds: 3, tokens: 30_000, depth: 1, confidence: 1 / 6 }],
  ['four short runs', times(4, ran(1)), { rounds: 3, confidence: 0.5 }],
  [
    'runs of 1, 4, 6 and 9',
    [1, 4, 6, 9].map((rounds) => ran(rounds)),
    { rounds: 8, tokens: 50_000 },
  ],
  ['long ones', times(9, ran(19)), { rounds: 20 }],
  ['thirsty ones', times(4, ran(1, { tokens: 40_000 })), { tokens: 80_000 }],
  ['many tools', times(4, ran(2, { tools: 5, type: 'look' })), { depth: 2 }],
  ['helpers of its own', times(4, ran(2, { tools: 1, type: 'helpers' })), { depth: 2 }],
  ['failures of others', [...times(4, ran(1)), ran(0, { outcome: 'failed' })], { rounds: 3 }],
  [
    'a rare long kind beside short ones',
    [...times(9, ran(1)), ran(8, { type: 'shell', tools: 7 })],
    { rounds: 10 },
  ],
] as const)('of %s', (_what, runs, wanted) => {
  expect(advise(runs, configured)).toMatchObject(wanted);
});

it('gives more again to what ended at its limit, up to all there may be, and forgets it in time', () => {
  const hit = (limit: number) =>
    ran(limit, { maxRounds: limit, outcome: 'limit', hit: 'rounds', type: 'look' });
  const runs = [...times(8, ran(1)), hit(3)];
  expect(advise(runs, configured).rounds).toBe(6);
  expect(advise([...runs, hit(6)], configured).rounds).toBe(12);
  expect(advise([...runs, hit(6), hit(12)], configured).rounds).toBe(20);
  const dry = ran(2, { maxTokens: 30_000, outcome: 'limit', hit: 'tokens', tokens: 20_000 });
  expect(advise([...times(8, ran(1)), dry], configured).tokens).toBe(60_000);
  expect(advise([...times(8, ran(1)), hit(6), ...times(20, ran(1))], configured).rounds).toBe(8);
});

it('is never above what is configured, and never so low that a second round cannot be', () => {
  const some = fc.record({
    rounds: fc.nat(30),
    maxRounds: fc.integer({ min: 1, max: 30 }),
    tokens: fc.nat(200_000),
    outcome: fc.constantFrom('done' as const, 'failed' as const, 'limit' as const),
    hit: fc.constantFrom('rounds' as const, 'tokens' as const),
  });
  fc.assert(
    fc.property(fc.array(some), (all) => {
      const advice = advise(
        all.map((each) => ran(each.rounds, each)),
        configured,
      );
      expect(advice.rounds).toBeGreaterThanOrEqual(3);
      expect(advice.rounds).toBeLessThanOrEqual(configured.rounds);
      expect(advice.tokens).toBeLessThanOrEqual(configured.tokens);
      expect(advice.confidence).toBeLessThanOrEqual(1);
    }),
  );
});

it('reads off a turn what it took, and at which limit it ended', () => {
  const id = turnId('t');
  const usage = { inputTokens: 400, outputTokens: 100, cachedTokens: 0 };
  const round = { role: 'assistant', turnId: id, text: '', usage } as unknown as TranscriptEntry;
  const tool = { role: 'tool', turnId: id, name: 'exec' } as unknown as TranscriptEntry;
  const limits = { maxRounds: 2, maxTokens: 5000 };
  const entries = [round, tool, round];
  expect(takenBy(entries, limits, true)).toEqual({
    ...{ type: 'shell', rounds: 2, tokens: 1000, tools: 1, outcome: 'done' },
  });
  // It had to end, and wrote that it did.
  const over = takenBy([round, tool, round, tool, round], limits, true);
  expect(over).toMatchObject({ rounds: 2, outcome: 'limit', hit: 'rounds' });
  const dry = { maxRounds: 9, maxTokens: 1500 };
  expect(takenBy(entries, dry, false)).toMatchObject({ outcome: 'limit', hit: 'tokens' });
  const other = takenBy(entries, { maxRounds: 9, maxTokens: 5000 }, false);
  expect([other.outcome, other.hit]).toEqual(['failed', undefined]);
});
