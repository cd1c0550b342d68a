// Lossless compaction as a pure function of what a session shows: nothing is left out, nothing stands
// twice, ids stay, whatever is taken back, restored, rotated or forgotten in between.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  apart,
  nodeId,
  nodesInView,
  rangeOfNode,
  showsUntrusted,
  trustedOnly,
} from '../../src/agent/rules/context-marks.ts';
import {
  cutNode,
  entryWithNode,
  type LosslessLimits,
  nodeTokens,
  planNode,
  writtenNode,
} from '../../src/agent/rules/lossless.ts';
import { textTokens } from '../../src/agent/rules/tokens.ts';
import { callId, firstSeqOf, messageId, turnId } from '../../src/kernel/message/ids.ts';
import type { TranscriptEntry } from '../../src/kernel/message/transcript.ts';
import {
  carryOver,
  pointsIn,
  windowOf,
  withRestored,
} from '../../src/kernel/sessions/rules/carry.ts';
import { decodeLine, encodeEntry } from '../../src/kernel/sessions/rules/file.ts';
import { forgetNodes } from '../../src/kernel/sessions/rules/forgetting.ts';

const LIMITS: LosslessLimits = {
  ...{ keepTokens: 100, keepMessages: 4, leafTokens: 400, minTokens: 50, nodesTokens: 300 },
};

function turn(seq: number, words = 20, isForeign = false): TranscriptEntry[] {
  const id = turnId(`terminal:local#${seq}`);
  const mark = isForeign ? { isForeign: true as const } : {};
  const text = `turn ${seq} ${'word '.repeat(words)}`;
  return [
    { role: 'user', turnId: id, messageId: messageId(`m${seq}`), seq, text, ...mark, at: seq },
    {
      ...{ role: 'assistant', turnId: id, text: `answer ${seq}`, toolCalls: [], thinking: [] },
      ...{ model: 'm', at: seq },
    },
  ];
}

/** One step as the agent makes it, with a text of its own. */
function step(record: readonly TranscriptEntry[], limits = LIMITS) {
  const window = windowOf(record);
  const plan = planNode(window, limits);
  if (plan === undefined) return undefined;
  // What was left out by a new file, the agent finds in the files.
  const made = plan.made.length > 0 ? plan.made : turn(plan.node.from);
  const { trusted, untrusted } = apart(made);
  const [text, other] = [trusted, untrusted].map((part) =>
    cutNode(part, nodeTokens(part, 'cut', 60)),
  );
  const parts = { text: text ?? '', untrusted: other };
  const entry = entryWithNode(plan, { ...parts, style: 'cut' }, 1);
  return { plan, record: [...record, showsUntrusted(window) ? entry : trustedOnly(entry)] };
}

const seqs = (window: readonly TranscriptEntry[]) =>
  window.flatMap((entry) => (entry.role === 'user' ? [firstSeqOf(entry.turnId) ?? -1] : []));

/** Each turn that was said and is not taken back stands in one node or is shown, in order. */
function expectWhole(
  record: readonly TranscriptEntry[],
  said: readonly number[],
  wasRestored = false,
) {
  const window = windowOf(record);
  const nodes = nodesInView(window);
  const shown = seqs(window);
  for (const seq of said) {
    const standing = nodes.filter(({ from, before }) => seq >= from && seq < before).length;
    const times = standing + (shown.includes(seq) ? 1 : 0);
    // What came back is shown beside the node of its neighbours until it becomes part of it.
    if (wasRestored) expect(times).toBeGreaterThanOrEqual(1);
    else expect(times).toBe(1);
  }
  expect(shown).toEqual(shown.toSorted((a, b) => a - b));
  const ids = nodes.map(nodeId);
  expect(new Set(ids).size).toBe(ids.length);
  for (const [index, node] of nodes.entries()) {
    expect(node.from).toBeLessThan(node.before);
    expect(node.from).toBeGreaterThanOrEqual(nodes[index - 1]?.before ?? 0);
    expect(rangeOfNode(nodeId(node))).toEqual({ from: node.from, before: node.before });
  }
  const last = nodes.at(-1);
  if (last !== undefined && shown.length > 0 && !wasRestored) {
    expect(Math.min(...shown)).toBeGreaterThanOrEqual(last.before);
  }
}

const action = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('say'), words: fc.nat(120) }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('compact'), words: fc.constant(0) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('undo'), words: fc.constant(0) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('rotate'), words: fc.constant(0) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('new'), words: fc.constant(0) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('restore'), words: fc.constant(0) }) },
);

describe('nodes and what is shown as it was said', () => {
  it('are together all that was said, in order, none twice, whatever comes in between', () => {
    fc.assert(
      fc.property(fc.array(action, { minLength: 5, maxLength: 60 }), (actions) => {
        let record: readonly TranscriptEntry[] = [];
        let said: number[] = [];
        let before: readonly number[] = [];
        let wasRestored = false;
        let next = 3;
        for (const { kind, words } of actions) {
          if (kind === 'say') {
            record = [...record, ...turn(next, words)];
            said.push(next);
            next += 1 + (next % 3);
          }
          if (kind === 'compact') record = step(record)?.record ?? record;
          const newest = seqs(windowOf(record)).at(-1);
          if (kind === 'undo' && newest !== undefined) {
            const undoes = turnId(`terminal:local#${newest}`);
            record = [...record, { role: 'undo', undoes, by: messageId(`u${next}`), at: next }];
            before = [newest];
            said = said.filter((seq) => seq !== newest);
            next += 1;
          }
          if (kind === 'new') {
            record = [...record, { role: 'reset', at: next }];
            [before, said] = [said, []];
            next += 1;
          }
          const point = kind === 'restore' ? pointsIn([], record).at(-1) : undefined;
          if (point !== undefined && record.at(-1)?.role !== 'restore') {
            record = withRestored(windowOf(record), point, messageId(`r${next}`), next);
            said = [...new Set([...before, ...said])];
            wasRestored = true;
            before = [];
          }
          if (kind === 'rotate') {
            record = carryOver(windowOf(record), { carry: 'recent', rotationCarryMessages: 5 });
          }
        }
        for (let left = 40; left > 0; left -= 1) {
          const after = step(record);
          if (after === undefined) break;
          record = after.record;
        }
        expectWhole(record, said, wasRestored);
        const reloaded = record.map((entry) => {
          const line = decodeLine(encodeEntry(entry, false));
          return line.kind === 'entry' ? line.entry : entry;
        });
        expect(nodesInView(windowOf(reloaded))).toEqual(nodesInView(windowOf(record)));
      }),
      { numRuns: 150 },
    );
  });

  it('stay few and short, however long the conversation grows, and the newest stay as said', () => {
    let record: readonly TranscriptEntry[] = [];
    const parents: (readonly string[])[] = [];
    for (let seq = 1; seq <= 400; seq += 1) {
      record = [...record, ...turn(seq, 20, seq === 3)];
      for (let after = step(record); after !== undefined; after = step(record)) {
        if (after.plan.node.children !== undefined) parents.push(after.plan.node.children);
        record = after.record;
      }
      // A store reads what is in view, and so does the next step.
      record = windowOf(record);
    }
    const window = windowOf(record);
    expectWhole(
      record,
      Array.from({ length: 400 }, (_, index) => index + 1),
    );
    const nodes = nodesInView(window);
    expect(nodes.length).toBeLessThanOrEqual(12);
    expect(textTokens(nodes.map(({ text }) => text).join('\n\n'))).toBeLessThanOrEqual(300);
    expect(seqs(window).slice(-2)).toEqual([399, 400]);
    const levels = nodes.map(({ level }) => level);
    expect(Math.max(...levels)).toBeGreaterThan(1);
    // As a tree, not as a chain in which the oldest words are summed up again each time.
    expect(Math.max(...levels)).toBeLessThan(7);
    expect(JSON.stringify(nodes)).not.toMatch(/foreign|untrusted/i);
    for (const children of parents) {
      const ranges = children.map((id) => rangeOfNode(id));
      for (const [index, range] of ranges.entries()) {
        expect(range?.from).toBe(ranges[index - 1]?.before ?? range?.from);
      }
    }
  });

  it('stay few where they are short as well', () => {
    let record: readonly TranscriptEntry[] = [];
    for (let seq = 1; seq <= 150; seq += 1) {
      record = windowOf([...record, ...turn(seq)]);
      const roomy = { ...LIMITS, nodesTokens: 1_000_000 };
      for (let after = step(record, roomy); after !== undefined; after = step(record, roomy))
        record = after.record;
    }
    const count = nodesInView(windowOf(record)).length;
    expect([count > 4, count <= 12]).toEqual([true, true]);
  });
});

describe('the trusted part', () => {
  /** Each text is a word of its own; `touched` says which of them untrusted content had a share in. */
  const piece = fc.record({
    kind: fc.constantFrom('words', 'forwarded', 'answer', 'page', 'list', 'summary', 'old summary'),
    later: fc.boolean(),
  });

  it('is made of no entry that untrusted content had a share in, and the other of all of them', () => {
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 25 }), (pieces) => {
        let isTainted = false;
        const touched: string[] = [];
        const own: string[] = [];
        const entries = pieces.flatMap(({ kind, later }, at): TranscriptEntry[] => {
          const turn = { turnId: turnId(`terminal:local#${later ? at : at - (at % 3)}`), at };
          const [text, other] = [`w${at}x`, `u${at}x`];
          const isOthers = ['forwarded', 'page', 'summary', 'old summary'].includes(kind);
          isTainted ||= isOthers;
          if (kind === 'summary') {
            touched.push(other);
            own.push(text);
            return [{ role: 'summary', text, untrusted: other, isForeign: true, at }];
          }
          (isTainted && kind !== 'words' ? touched : own).push(text);
          const foreign = isOthers ? { isForeign: true as const } : {};
          if (kind === 'old summary') return [{ role: 'summary', text, ...foreign, at }];
          if (kind === 'words' || kind === 'forwarded') {
            return [{ role: 'user', ...turn, seq: at, text, ...foreign }];
          }
          if (kind === 'answer') {
            const wrote = { text, toolCalls: [], thinking: [], model: 'm' };
            return [{ role: 'assistant', ...turn, ...wrote }];
          }
          const call = { callId: callId(`c${at}`), name: kind, status: 'ok' as const };
          return [{ role: 'tool', ...turn, ...call, text, ...foreign }];
        });
        const parts = apart(entries);
        const [trusted, untrusted] = [parts.trusted, parts.untrusted].map((part) =>
          JSON.stringify(part),
        );
        for (const word of touched) {
          expect(trusted).not.toContain(word);
          expect(untrusted).toContain(word);
        }
        for (const word of own) expect(trusted).toContain(word);
        if (touched.length === 0) expect(parts).toEqual({ trusted: entries, untrusted: [] });
      }),
    );
  });
});

describe('a node', () => {
  it('has an untrusted part for what it stands for, until no untrusted content is shown', () => {
    const withTaint = (entry: TranscriptEntry) =>
      entry.role === 'assistant' ? { ...entry, isTainted: true as const } : entry;
    let record: readonly TranscriptEntry[] = [1, 2, 3, 4, 5, 6, 7, 8].flatMap((seq) => {
      const said = turn(seq, 60, seq === 3);
      return seq < 3 ? said : said.map(withTaint);
    });
    const parts: (readonly boolean[])[] = [];
    for (let after = step(record); after !== undefined; after = step(record)) {
      record = after.record;
      const nodes = nodesInView(windowOf(record));
      for (const { text, untrusted = '' } of nodes) {
        expect(text).not.toMatch(/turn 3|answer [3-9]/);
        if (untrusted !== '') expect(untrusted).toContain('turn 3');
      }
      parts.push(nodes.map(({ isForeign }) => isForeign === true));
    }
    expect(parts.length).toBeGreaterThan(1);
    expect(parts[0]).toEqual([true]);
    expect(parts.at(-1)).not.toContain(true);
  });

  it('loses its text where words behind it were forgotten, and is made anew first of all', () => {
    const all = [1, 2, 3, 4, 5, 6].flatMap((seq) => turn(seq, 60));
    const made = step(all)?.record ?? [];
    const cleaned = made.map((entry) => forgetNodes(entry, [1]) ?? entry);
    const [lost] = nodesInView(windowOf(cleaned));
    expect(lost?.text).toBe('[forgotten]');
    expect(JSON.stringify(windowOf(cleaned).slice(0, 1))).not.toContain('turn 1 ');
    expect(forgetNodes(made.at(-1) ?? turn(1)[0] ?? { role: 'reset', at: 0 }, [6])).toBeUndefined();
    const again = planNode(windowOf(cleaned), LIMITS);
    expect(again?.made).toEqual([]);
    expect(again?.node).toMatchObject({ from: lost?.from, before: lost?.before });
  });
});

describe('the text of a node', () => {
  const made = [1, 2, 3]
    .flatMap((seq) => turn(seq, 40))
    .map((entry) =>
      entry.role === 'user'
        ? { ...entry, text: `${entry.text} ticket AB-${entry.seq}77-X` }
        : entry,
    );
  const data = 'Tickets AB-177-X, AB-277-X, AB-377-X.';

  it.each([
    ['does', data, true],
    ['is a refusal', "I'm sorry, I cannot summarise this conversation.", false],
    ['is longer than what it stands for', 'word '.repeat(2000), false],
    ['is empty', ' ', false],
  ])('that a model wrote is taken where it %s', (_, written, isTaken) => {
    expect(writtenNode(written, made, 200) !== undefined).toBe(isTaken);
  });

  it('holds the data that a careless model left out, or the next level is asked', () => {
    expect(writtenNode('They talked.', made, 200)).toContain('AB-277-X');
    const many = Array.from({ length: 40 }, (_, index) => turn(index + 1, 1)).flat();
    const tickets = many.map((entry) =>
      entry.role === 'user' ? { ...entry, text: `ticket CD-${entry.seq}88-Y` } : entry,
    );
    expect(writtenNode('They talked.', tickets, 60)).toBeUndefined();
  });

  it('that is cut is the same each time, short, and holds data first', () => {
    const cut = cutNode(made, nodeTokens(made, 'cut', 2000));
    expect(cut).toBe(cutNode(made, nodeTokens(made, 'cut', 2000)));
    expect(textTokens(cut)).toBeLessThanOrEqual(nodeTokens(made, 'cut', 2000));
    expect(cut).toContain('AB-177-X');
    expect(nodeTokens(Array.from({ length: 400 }, (_, i) => turn(i, 90)).flat(), 'cut', 2000)).toBe(
      512,
    );
  });
});
