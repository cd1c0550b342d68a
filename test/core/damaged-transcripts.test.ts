// Whatever becomes of a transcript on its way to a model (lines lost, doubled, moved, cut or changed,
// summaries where none belong, turns taken back), both dialects are sent what they take, and a
// summary neither splits what belongs together nor grows beyond its size.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type CompactionLimits,
  planCompaction,
  stillStands,
  summaryEntry,
  withMissing,
} from '../../src/agent/rules/compaction.ts';
import { compactionText } from '../../src/agent/rules/compaction-prompt.ts';
import { fitEntries } from '../../src/agent/rules/context-fit.ts';
import { repairThread } from '../../src/agent/rules/thread-repair.ts';
import { entriesTokens, textTokens } from '../../src/agent/rules/tokens.ts';
import { callId, messageId, type TurnId, turnId } from '../../src/kernel/message/ids.ts';
import type { SummaryEntry, TranscriptEntry } from '../../src/kernel/message/transcript.ts';
import { carryOver, turnOf, windowOf } from '../../src/kernel/sessions/rules/carry.ts';
import { decodeLine, encodeEntry } from '../../src/kernel/sessions/rules/file.ts';
import { anthropicRequest } from '../../src/providers/anthropic/anthropic-request.ts';
import { openaiRequest } from '../../src/providers/openai/openai.ts';
import { anthropicDialect } from '../support/llm-server-anthropic.ts';
import { openaiDialect } from '../support/llm-server-openai.ts';
import { threadFaults } from '../support/thread-faults.ts';

const turn = (number: number) => turnId(`telegram:42#${number}`);
const TOOLS = [{ name: 'look', description: 'looks', schema: { type: 'object' } }];

/** What the strictest server of each dialect says of the thread. */
function refusals(entries: readonly TranscriptEntry[]): readonly string[] {
  const messages = repairThread(entries);
  const request = {
    model: 'm',
    system: [{ text: 'be kind', stable: true }],
    messages,
    tools: TOOLS,
    maxTokens: 100,
  };
  const tries = [
    () => anthropicDialect.read(JSON.parse(JSON.stringify(anthropicRequest(request)))),
    () => openaiDialect.read(JSON.parse(JSON.stringify(openaiRequest(request, {})))),
  ];
  const said = tries.flatMap((read) => {
    try {
      read();
      return [];
    } catch (error) {
      return [String(error)];
    }
  });
  return [...threadFaults(messages), ...said];
}

type TurnShape = {
  readonly text: string;
  readonly calls: readonly number[];
  readonly isDraft: boolean;
  readonly ends: boolean;
};

function turnOfShape(number: number, shape: TurnShape): readonly TranscriptEntry[] {
  const common = { turnId: turn(number), at: number };
  const say = (text: string, ids: readonly string[], isDraft: boolean): TranscriptEntry => ({
    ...common,
    role: 'assistant',
    text,
    toolCalls: ids.map((id) => ({ id: callId(id), name: 'look', arguments: '{}' })),
    ...(isDraft ? { isDraft: true as const } : {}),
    thinking: [],
    model: 'm',
  });
  const rounds = shape.calls.flatMap((count, round) => {
    const ids = Array.from({ length: count }, (_, index) => `c${number}_${round}_${index}`);
    const results = ids.map(
      (id): TranscriptEntry => ({
        ...common,
        role: 'tool',
        callId: callId(id),
        name: 'look',
        status: 'ok',
        text: `seen ${id} ${shape.text}`,
      }),
    );
    return [say('', ids, shape.isDraft), ...results];
  });
  return [
    {
      ...common,
      role: 'user',
      messageId: messageId(`m${number}`),
      seq: number,
      text: `${shape.text} my code is ID-${number}-QX`,
    },
    ...rounds,
    ...(shape.isDraft ? [say('done', [], true)] : []),
    say(`answer ${number}`, [], false),
    ...(shape.ends
      ? [
          {
            ...common,
            role: 'turn_end' as const,
            outcome: 'answered' as const,
            answers: [],
            throughSeq: number,
          },
        ]
      : []),
  ];
}

const shape: fc.Arbitrary<TurnShape> = fc.record({
  text: fc.string({ maxLength: 200 }).map((text) => text.padEnd(40, 'w ')),
  calls: fc.array(fc.integer({ min: 1, max: 3 }), { maxLength: 2 }),
  isDraft: fc.boolean(),
  ends: fc.boolean(),
});
const conversation = fc
  .array(shape, { minLength: 1, maxLength: 12 })
  .map((shapes) => shapes.flatMap((one, index) => turnOfShape(index + 1, one)));

/** Changes that a crash, a bad disk or a hand can make, and entries where none belong. */
const damage = fc.oneof(
  fc.record({ kind: fc.constant('drop' as const), at: fc.nat() }),
  fc.record({ kind: fc.constant('double' as const), at: fc.nat(), to: fc.nat() }),
  fc.record({ kind: fc.constant('move' as const), at: fc.nat(), to: fc.nat() }),
  fc.record({ kind: fc.constant('cut' as const), at: fc.nat() }),
  fc.record({ kind: fc.constant('flip' as const), at: fc.nat(), to: fc.nat() }),
  fc.record({ kind: fc.constant('summary' as const), at: fc.nat(), to: fc.nat() }),
  fc.record({ kind: fc.constant('undo' as const), at: fc.nat(), to: fc.nat() }),
  fc.record({ kind: fc.constant('reset' as const), at: fc.nat() }),
);
type Damage = typeof damage extends fc.Arbitrary<infer Value> ? Value : never;

function damaged(entries: readonly TranscriptEntry[], change: Damage): readonly TranscriptEntry[] {
  const at = change.at % (entries.length + 1);
  const to = 'to' in change ? change.to % (entries.length + 1) : 0;
  const picked = entries.slice(at, at + 1);
  switch (change.kind) {
    case 'drop':
      return entries.toSpliced(at, 1);
    case 'double':
      return entries.toSpliced(to, 0, ...picked);
    case 'move':
      return entries.toSpliced(at, 1).toSpliced(to, 0, ...picked);
    case 'cut':
      return entries.slice(0, at);
    case 'flip':
      return entries.flatMap((entry, index) => (index === at ? flipped(entry, to) : [entry]));
    case 'summary':
      return entries.toSpliced(at, 0, {
        role: 'summary',
        text: 'so far',
        keepsFrom: turn(to),
        at: 0,
      });
    case 'undo':
      return entries.toSpliced(at, 0, {
        role: 'undo',
        undoes: turn(to),
        by: messageId('m'),
        at: 0,
      });
    case 'reset':
      return entries.toSpliced(at, 0, { role: 'reset', at: 0 });
  }
}

/** One character of the line is another. */
function flipped(entry: TranscriptEntry, place: number): readonly TranscriptEntry[] {
  const line = encodeEntry(entry);
  const at = (place * 7919) % line.length;
  const read = decodeLine(`${line.slice(0, at)}~${line.slice(at + 1)}`);
  return read.kind === 'entry' ? [read.entry] : [];
}

const CURRENT = turn(12);

describe('any damage to a transcript', () => {
  it('still gives both dialects what they take, whole, carried over, trimmed and summed up', () => {
    fc.assert(
      fc.property(
        conversation,
        fc.array(damage, { maxLength: 6 }),
        fc.integer({ min: 50, max: 2000 }),
        (whole, changes, maxTokens) => {
          const entries = changes.reduce(damaged, whole);
          const window = windowOf(entries);
          expect(windowOf(window)).toEqual(window);
          const carried = carryOver(window, { carry: 'recent', rotationCarryMessages: 5 });
          const fitted = fitEntries(window, CURRENT, maxTokens, true).entries;
          const summed = windowOf([...entries, ...summaryOf(window, LIMITS)]);
          for (const shown of [entries, window, windowOf(carried), fitted, summed]) {
            expect(refusals(shown)).toEqual([]);
          }
        },
      ),
      { numRuns: 250 },
    );
  });
});

const LIMITS: CompactionLimits = { keepTokens: 150, summaryTokens: 120, readTokens: 600 };

function summaryOf(
  window: readonly TranscriptEntry[],
  limits: CompactionLimits,
): readonly SummaryEntry[] {
  const plan = planCompaction(window, limits);
  if (plan === undefined) return [];
  const text = withMissing('They talked.', plan.covered, limits.summaryTokens);
  const entry = summaryEntry(plan, { text }, 99);
  return entry === undefined ? [] : [entry];
}

const turnsIn = (entries: readonly TranscriptEntry[]): readonly TurnId[] => [
  ...new Set(entries.flatMap((entry) => turnOf(entry) ?? [])),
];

describe('a summary', () => {
  it('covers whole turns from the oldest on, never the newest, and keeps the rest as it is', () => {
    fc.assert(
      fc.property(conversation, fc.integer({ min: 0, max: 1000 }), (entries, keepTokens) => {
        const window = windowOf(entries);
        const plan = planCompaction(window, { ...LIMITS, keepTokens });
        if (plan === undefined) return;
        const rest = window.slice(plan.covered.length);
        expect([...plan.covered, ...rest]).toEqual(window);
        expect(turnsIn(plan.covered).filter((id) => turnsIn(rest).includes(id))).toEqual([]);
        expect(turnOf(rest[0] ?? { role: 'reset', at: 0 })).toBe(plan.keepsFrom);
        expect(stillStands(plan, window)).toBe(true);
        expect(stillStands(plan, window.slice(1))).toBe(false);
      }),
      { numRuns: 200 },
    );
  });

  it('is never longer than it may be, whatever the model wrote, nor is what the model reads', () => {
    const written = fc.string({ maxLength: 4000 });
    const size = fc.integer({ min: 60, max: 400 });
    fc.assert(
      fc.property(conversation, written, size, (entries, text, summaryTokens) => {
        const plan = planCompaction(windowOf(entries), { ...LIMITS, summaryTokens });
        if (plan === undefined) return;
        const whole = withMissing(text.trim(), plan.covered, summaryTokens);
        const entry = summaryEntry(plan, { text: whole }, 0);
        expect(textTokens(entry?.text ?? '')).toBeLessThanOrEqual(summaryTokens);
        expect(textTokens(entry?.text ?? '')).toBeLessThan(entriesTokens(plan.covered));
        const lines = compactionText(plan.covered, 600, 'b').split('\n');
        expect(textTokens(lines.map((line) => line.replace(/^> ?/, '')).join('\n'))).toBeLessThan(
          700,
        );
      }),
      { numRuns: 200 },
    );
  });

  it('made again and again keeps what the person named, as long as there is room for it', () => {
    let entries: readonly TranscriptEntry[] = [];
    const limits = { keepTokens: 0, summaryTokens: 1000, readTokens: 100_000 };
    for (let number = 1; number <= 24; number += 1) {
      const text = number % 4 === 0 ? 'remember it:' : 'w '.repeat(900);
      const said = turnOfShape(number, { text, calls: [1], isDraft: false, ends: true });
      entries = windowOf([...entries, ...said]);
      entries = windowOf([...entries, ...summaryOf(entries, limits)]);
    }
    const summary = entries.find((entry) => entry.role === 'summary');
    for (let number = 1; number < 24; number += 1) {
      expect(summary?.text).toContain(`ID-${number}-QX`);
    }
  });
});
