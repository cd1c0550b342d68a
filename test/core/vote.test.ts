// One vote for all who vote: who has won and by what, what stays undecided and why, how many are asked.

import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import {
  type Ballot,
  textBallot,
  undecidedText,
  type VoteTerms,
  valueKey,
  verdictOf,
} from '../../src/features/subagents/rules/vote.ts';
import { USUAL_GATE as gate } from '../../src/features/subagents/settings.ts';

const FLAG: Ballot = { kind: 'flagged', flag: 'malformed' };
/** A letter each; ! is one that cannot be used. */
const said = (letters: string): readonly Ballot[] =>
  [...letters].map((key) => (key === '!' ? FLAG : { kind: 'vote', key }));
const terms = (aheadBy: number, more: Partial<VoteTerms> = {}): VoteTerms => ({
  ...{ aheadBy, most: 2 * aheadBy + 1, maxFlagged: 0.5 },
  ...more,
});

describe('who is first ahead by k', () => {
  test.each([
    ['', 2, 'ask 2'],
    ['a', 1, 'a by lead'],
    ['a', 2, 'ask 1'],
    ['ab', 1, 'ask 1'],
    ['aba', 2, 'ask 1'],
    ['abaa', 2, 'a by lead'],
    ['abab', 2, 'tie'],
    ['ababa', 2, 'no lead'],
    ['ab', 1, 'ask 1'],
    ['a!', 2, 'ask 1'],
    ['a!!', 1, 'red flags'],
    ['!!a', 2, 'ask 1'],
    ['!!!', 1, 'red flags'],
  ] as const)('of %j, ahead by %i: %s', (letters, k, wanted) => {
    expect(shown(letters, terms(k))).toBe(wanted);
  });

  test.each([
    ['', 3, 'ask 2'],
    ['a', 3, 'ask 1'],
    ['aa', 3, 'a by gate'],
    ['ab', 1, 'ask 1'],
    ['aba', 1, 'a by lead'],
    ['abc', 1, 'tie'],
    ['a!', 1, 'a by lead'],
    ['a!', 2, 'ask 1'],
    // The gate is for the pilot voters alone, however well the rest agree.
    [`b${'a'.repeat(19)}`, 20, 'ask 2'],
  ] as const)('with the gate, of %j, ahead by %i: %s', (letters, k, wanted) => {
    expect(shown(letters, terms(k, { gate }))).toBe(wanted);
  });

  it('never calls a tie won, is over at the most, and asks no more than can decide it', () => {
    const ballots = fc.array(fc.constantFrom(...said('abc!')), { maxLength: 12 });
    fc.assert(
      fc.property(ballots, fc.integer({ min: 1, max: 3 }), fc.boolean(), (all, k, isGated) => {
        const rules = terms(k, isGated ? { gate } : {});
        let cast: readonly Ballot[] = [];
        let verdict = verdictOf(cast, rules);
        while (verdict.kind === 'ask') {
          const next = all.slice(cast.length, cast.length + verdict.more);
          if (next.length < verdict.more) return;
          // Fewer of them would not have been enough, unless two pilot voters are asked.
          for (let fewer = 1; fewer < verdict.more && cast.length > 0; fewer += 1) {
            const before = verdictOf([...cast, ...next.slice(0, fewer)], rules);
            expect(before.kind === 'won' && before.by === 'lead').toBe(false);
          }
          cast = [...cast, ...next];
          verdict = verdictOf(cast, rules);
        }
        expect(cast.length).toBeLessThanOrEqual(rules.most);
        const { figures } = verdict;
        if (verdict.kind !== 'won') return;
        expect(figures.margin).toBeGreaterThan(0);
        expect(figures.flagged / cast.length).toBeLessThanOrEqual(rules.maxFlagged);
        if (verdict.by === 'lead') expect(figures.margin * figures.votes).toBeGreaterThanOrEqual(k);
      }),
    );
  });
});

function shown(letters: string, rules: VoteTerms): string {
  const verdict = verdictOf(said(letters), rules);
  if (verdict.kind === 'ask') return `ask ${verdict.more}`;
  return verdict.kind === 'won' ? `${verdict.key} by ${verdict.by}` : verdict.why;
}

it('says of a vote how much they agree, and why it is undecided', () => {
  const verdict = verdictOf(said('abab'), terms(2));
  expect(verdict).toMatchObject({
    leaders: ['a', 'b'],
    figures: { votes: 4, flagged: 0, entropy: 1, margin: 0, confidence: 0.5, agreed: 2 },
  });
  if (verdict.kind !== 'undecided') throw new Error('it is decided');
  expect(undecidedText(verdict)).toBe('undecided, a tie after 4 votes');
  expect(verdictOf(said('aaa!'), terms(4)).figures).toMatchObject({ entropy: 0, confidence: 0.75 });
});

test.each([
  ['**Paris**', ' paris. ', true],
  ['Yes', 'No', false],
  ['{"city": "Paris", "n": 1}', '```json\n{"n": 1, "city": "paris."}\n```', true],
  ['{"n": 1}', '{"n": 2}', false],
])('%j and %j: the same answer: %s', (one, other, isSame) => {
  const keys = [one, other].map((text) => textBallot(text, 100));
  expect(keys.every(({ kind }) => kind === 'vote')).toBe(true);
  expect(JSON.stringify(keys[0]) === JSON.stringify(keys[1])).toBe(isSame);
});

test.each([
  ['empty', ' ** '],
  ['too long', 'x'.repeat(101)],
  ['malformed', '{"n": 1'],
  ['malformed', '```json\n{"n": }\n```'],
])('an answer that is %s does not vote', (flag, answer) => {
  expect(textBallot(answer, 100)).toEqual({ kind: 'flagged', flag });
});

it('takes values as the same whatever the order of their fields', () => {
  expect(valueKey({ a: 1, b: ['X.'] })).toBe(valueKey({ b: ['x'], a: 1 }));
  expect(valueKey({ a: 1 })).not.toBe(valueKey([['a', 1]]));
});
