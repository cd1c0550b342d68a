// Rules about helpers: what they may, how votes are counted, when a loop is over, what a profile says.

import { describe, expect, it, test } from 'vitest';
import { isOwnFile, writeAccessOf } from '../../src/agent/rules/taint.ts';
import { isMet, nextOf } from '../../src/features/subagents/rules/calibration.ts';
import {
  narrowedTerms,
  type PartAnswer,
  readProfile,
  type Step,
  type SubagentParent,
  subagentRights,
} from '../../src/features/subagents/rules/subagent.ts';
import { type VotingConfig, votingSchema } from '../../src/features/subagents/settings.ts';
import { ALL_RIGHTS, NO_RIGHTS, permissionOf, rightsOf } from '../../src/kernel/access/rights.ts';
import { channelName, chatId, DEFAULT_ACCOUNT } from '../../src/kernel/message/ids.ts';
import { sessionKeyOf } from '../../src/kernel/message/message.ts';
import { OWNER_TURN } from '../../src/kernel/message/untrusted.ts';

const chat = { channel: channelName('chat'), account: DEFAULT_ACCOUNT, chat: chatId('1') };
const parent: SubagentParent = {
  ...{ session: sessionKeyOf(chat), chat, payingChat: chat, payer: {} },
  ...{ rights: ALL_RIGHTS, isTainted: false, person: OWNER_TURN },
};
const terms = { readOnly: false, prompt: '', tokens: 1000, minutes: 5 };

describe('what a helper may', () => {
  it('is never more than its parent might, and never to speak, send, rule or schedule', () => {
    const rights = subagentRights({ parent, terms });
    for (const access of ['say', 'send', 'rules', 'schedule'] as const) {
      expect(rights[access]).toBe('never');
    }
    expect([rights.write, rights.execute]).toEqual(['free', 'free']);
    // What its parent had read of others makes it ask.
    expect(permissionOf('execute', rights, true)).toBe('ask');
    expect(subagentRights({ parent: { ...parent, rights: NO_RIGHTS }, terms })).toEqual(NO_RIGHTS);
    const mail = { role: 'owner', place: 'direct', verified: 'verified', medium: 'mail' } as const;
    const reader = subagentRights({ parent: { ...parent, rights: rightsOf(mail) }, terms });
    expect([reader.read, reader.write, reader.execute]).toEqual(['free', 'never', 'never']);
    const tied = subagentRights({ parent, terms: { ...terms, readOnly: true } });
    expect([tied.web, tied.write, tied.execute]).toEqual(['free', 'never', 'never']);
  });

  it('is no more than the helper above it may', () => {
    const above = { ...terms, tools: ['read_file', 'spawn'], readOnly: true, minutes: 2 };
    const own = { ...terms, tools: ['read_file', 'exec'], minutes: 9, tokens: 500 };
    expect(narrowedTerms(own, above)).toMatchObject({
      ...{ tools: ['read_file'], readOnly: true, minutes: 2, tokens: 500 },
    });
    expect(narrowedTerms(terms, above).tools).toEqual(above.tools);
  });
});

const voting = votingSchema.parse(undefined);
type Steps = readonly [Step, ...Step[]];
const pipeline = (steps: Steps, answers: readonly PartAnswer[], rules: VotingConfig = voting) =>
  nextOf({ plan: { kind: 'pipeline', steps }, answers }, rules);

test('a pipeline goes on behind its last answer, and asks as many voters at once as are needed', () => {
  const steps: Steps = [
    { prompt: 'first', aheadBy: 0 },
    { prompt: 'second', aheadBy: 2 },
  ];
  const one = { part: 1, text: 'one' };
  expect(pipeline(steps, [])).toMatchObject({ kind: 'ask', part: 1, voters: [1], isVote: false });
  const after = pipeline(steps, [one]);
  expect(after).toMatchObject({ kind: 'ask', part: 2, voters: [1, 2], isVote: true });
  expect(after.kind === 'ask' && after.prompt).toMatch(/Result of step 1:\none.*2 of 2:\nsecond/s);
  // A kill left only what the second voter had said.
  expect(pipeline(steps, [one, { part: 2, text: 'Two.', vote: 2 }])).toMatchObject({ voters: [1] });
  const agreed = [2, 1].map((vote) => ({ part: 2, text: '**Two.**', vote }));
  expect(pipeline(steps, [one, ...agreed])).toEqual({
    ...{ kind: 'over', state: 'done', text: '**Two.**' },
  });
});

test('a vote that nobody won is undecided, with what was said, and the gate has others asked', () => {
  const votes = (letters: string) =>
    [...letters].map((text, at) => ({ part: 1, text, vote: at + 1 }));
  expect(pipeline([{ prompt: 'x', aheadBy: 2 }], votes('abab'))).toEqual({
    ...{ kind: 'over', state: 'undecided' },
    text: 'Step 1: undecided, a tie after 4 votes: 2 × "a", 2 × "b"',
  });
  const steps: Steps = [{ prompt: 'x', aheadBy: 3 }];
  const gated = { ...voting, gate: true };
  expect(pipeline(steps, votes('aa'), voting)).toMatchObject({ voters: [3] });
  expect(pipeline(steps, votes('aa'), gated)).toMatchObject({ state: 'done', text: 'a' });
  expect(pipeline(steps, votes('ab'), gated)).toMatchObject({ voters: [3, 4, 5] });
});

test('a loop is over at its condition and at nothing that only looks like it', () => {
  const line = { kind: 'line', text: 'ALL-DONE' } as const;
  for (const answer of ['done', 'It is not ALL-DONE yet', 'ALL-DONE: no', '"ALL-DONE"']) {
    expect([answer, isMet(line, answer)]).toEqual([answer, false]);
  }
  expect(isMet(line, 'Ready.\n\n  ALL-DONE  \n')).toBe(true);
  const json = { kind: 'json', field: 'open', equals: 0 } as const;
  for (const answer of [
    '{"open": "0"}',
    '{"open": 0} is what I hope for',
    'open: 0',
    '[{"open":1}]',
  ]) {
    expect([answer, isMet(json, answer)]).toEqual([answer, false]);
  }
  expect(isMet(json, 'Nothing left.\n```json\n{"open": 0, "list": {"a": []}}\n```')).toBe(true);
  const until = line;
  const plan = { kind: 'loop', task: 'fix it', until, rounds: 2 } as const;
  const answers = [1, 2].map((part) => ({ part, text: 'still 3 faults, not done' }));
  expect(nextOf({ plan, answers }, voting)).toMatchObject({
    state: 'failed',
    text: expect.stringMatching(/not met in 2 rounds.*still 3 faults/s),
  });
});

test('a profile says field, value and remedy where it does not fit, and writing one is a rule', () => {
  const good = { description: 'Reads', prompt: 'Read.', tools: ['read_file'], readOnly: true };
  expect(readProfile(good, 'reader')).toMatchObject({ kind: 'valid', value: { name: 'reader' } });
  const problems: readonly (readonly [unknown, string])[] = [
    [
      { ...good, prompt: undefined },
      'prompt: it is missing; write the instructions for every subagent',
    ],
    [{ ...good, readOnly: 'yes' }, 'readOnly: "yes" does not fit; write true or false'],
    [{ ...good, tools: 'exec' }, 'tools: "exec" does not fit; list names of tools'],
    [{ ...good, limits: { minutes: 0 } }, 'limits.minutes: 0 does not fit; write a whole number'],
    [{ ...good, capabilities: [] }, 'capabilities: [] does not fit; it may hold name, description'],
    ['text', 'the file: '],
  ];
  for (const [values, problem] of problems) {
    expect(readProfile(values, 'reader')).toMatchObject({
      problem: expect.stringContaining(problem),
    });
  }
  expect(readProfile(good, 'Über')).toMatchObject({ kind: 'broken' });
  expect(writeAccessOf('profiles/new.yaml', false)).toBe('rules');
  expect(writeAccessOf('./PROFILES/x', false)).toBe('rules');
  expect(isOwnFile('profiles/researcher.yaml')).toBe(true);
});
