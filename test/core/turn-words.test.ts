// The words around a turn: how a batch of messages reads to the model, and what the person is told
// for each way a turn can end.

import { describe, expect, it } from 'vitest';
import { closingOf } from '../../src/agent/rules/turn-closing.ts';
import { joinTexts } from '../../src/kernel/turns/rules/coalesce.ts';

const LIMITS = { maxRounds: 20, maxTokens: 1_000_000, maxMs: 600_000 };

describe('a batch of messages', () => {
  it('shows the pace of the later ones', () => {
    const texts = joinTexts(
      [
        { text: 'hi', receivedAt: 1000, sentAt: 1000 },
        { text: 'are you there?', receivedAt: 1350, sentAt: 1350 },
        { text: 'well', receivedAt: 3100, sentAt: 3100 },
      ],
      () => 'b1',
    );
    expect(texts).toEqual(['hi', '[+350ms] are you there?', '[+2100ms] well']);
  });

  it('shows what a message quotes', () => {
    const quoted = { author: 'Ann', text: 'one\ntwo' };
    expect(joinTexts([{ text: 'why?', receivedAt: 1, sentAt: 1, quoted }], () => 'b1')).toEqual([
      '[untrusted b1: quoted by the person, written by Ann]\n> one\n> two\n[end of untrusted b1]\n\nwhy?',
    ]);
  });
});

describe('the end of a turn', () => {
  it('answers with all that was written, in order, without blank edges', () => {
    const closing = closingOf(
      { kind: 'answered', cut: false },
      ['\n\n  code\n', 'Done.\n'],
      LIMITS,
    );
    expect(closing).toEqual({ outcome: 'answered', answers: ['  code\n\nDone.'] });
  });

  it.each([
    [{ kind: 'answered', cut: true }, 'answered', /^Hm\.\n\n\[Cut at the length limit/],
    [{ kind: 'refused' }, 'answered', /declined/],
    [{ kind: 'stopped' }, 'stopped', /^Hm\.$/],
    [{ kind: 'empty' }, 'failed', /no answer/],
    [{ kind: 'failed', text: 'Ann’s server is down.' }, 'failed', /^Hm\.\n\nAnn’s server/],
    [{ kind: 'limit', limit: 'rounds' }, 'failed', /20 rounds/],
    [{ kind: 'limit', limit: 'tokens' }, 'failed', /1,000,000 tokens/],
    [{ kind: 'limit', limit: 'time' }, 'failed', /10 minutes/],
    [{ kind: 'limit', limit: 'loop' }, 'failed', /same steps repeated/],
  ] as const)('%o is told as %s', (ending, outcome, words) => {
    const closing = closingOf(ending, ['Hm.'], LIMITS);
    expect(closing.outcome).toBe(outcome);
    expect(closing.answers.join()).toMatch(words);
  });

  it('says nothing where nothing was written and the person stopped it', () => {
    expect(closingOf({ kind: 'stopped' }, [], LIMITS).answers).toEqual([]);
  });
});
