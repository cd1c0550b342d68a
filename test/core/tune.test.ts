import { describe, expect, it } from 'vitest';
import {
  doesTask,
  longQuestion,
  type ModelMeasure,
  measureFileSchema,
  TUNE_QUESTIONS,
  TUNE_TASKS,
  tuneVerdict,
  USUAL_DEMANDS,
} from '../../src/labs/tune/rules/tune.ts';

const GOOD: ModelMeasure = {
  model: 'ollama/good',
  contextTokens: 32_768,
  quality: 0.9,
  toolSuccess: 0.9,
  overflowRate: 0,
  firstTokenMs: 400,
  tokensPerSecond: 30,
};

const names = (all: readonly { readonly model: string }[]) => all.map(({ model }) => model);

describe('the verdict over measured models', () => {
  it('puts the better model first, whatever order they came in', () => {
    const weaker = { ...GOOD, model: 'ollama/weaker', quality: 0.6, toolSuccess: 0.6 };
    const slower = { ...GOOD, model: 'ollama/slower', tokensPerSecond: 5, firstTokenMs: 9000 };
    const verdict = tuneVerdict([weaker, slower, GOOD], USUAL_DEMANDS);
    expect(names(verdict.suitable)).toEqual(['ollama/good', 'ollama/slower', 'ollama/weaker']);
    expect(verdict.rejected).toEqual([]);
  });

  it.each([
    [{ quality: 0.4 }, 'correct answers 40 %, minimum 50 %'],
    [{ toolSuccess: 0 }, 'correct tool calls 0 %, minimum 50 %'],
    [{ overflowRate: 1 }, 'long questions lost 100 %, maximum 50 %'],
    [{ firstTokenMs: 30_000 }, 'first token after 30000 ms, maximum 20000'],
    [{ tokensPerSecond: 1.25 }, '1.3 tokens/s, minimum 3'],
    [{ contextTokens: 2048 }, 'context of 2048 tokens, minimum 4096'],
  ])('rejects %o and says why, however good the rest is', (short, reason) => {
    const verdict = tuneVerdict([{ ...GOOD, ...short }], USUAL_DEMANDS);
    expect(verdict.suitable).toEqual([]);
    expect(verdict.rejected).toEqual([{ model: 'ollama/good', reasons: [reason] }]);
  });

  it('is the same for the same figures: a tie goes by name', () => {
    const twins = [
      { ...GOOD, model: 'b' },
      { ...GOOD, model: 'a' },
    ];
    expect(names(tuneVerdict(twins, USUAL_DEMANDS).suitable)).toEqual(['a', 'b']);
  });

  it('takes no figures that cannot be', () => {
    const file = (one: object) => measureFileSchema.safeParse({ version: 1, measured: [one] });
    expect(file(GOOD).success).toBe(true);
    expect(file({ ...GOOD, quality: 7 }).success).toBe(false);
    expect(file({ ...GOOD, speed: 7 }).success).toBe(false);
  });
});

describe('what a model is asked', () => {
  it.each([
    ['43', true],
    ['**43**', true],
    ['143', false],
    ['I cannot know.', false],
  ])('takes %o as right: %s', (answer, isRight) => {
    expect(TUNE_QUESTIONS[0]?.right.test(answer)).toBe(isRight);
  });

  it('takes a call as done only with the right tool and what was asked', () => {
    const timer = TUNE_TASKS.find(({ tool }) => tool === 'set_timer');
    if (timer === undefined) throw new Error('no such task');
    expect(doesTask(timer, 'set_timer', '{"minutes":12,"label":"Tea"}')).toBe(true);
    expect(doesTask(timer, 'set_timer', '{"minutes":120,"label":"Tea"}')).toBe(false);
    expect(doesTask(timer, 'read_file', '{"minutes":12,"label":"Tea"}')).toBe(false);
    expect(doesTask(timer, 'set_timer', 'twelve minutes')).toBe(false);
  });

  it('hides the word of a long question behind about as many tokens as asked', () => {
    const { text, right } = longQuestion(2000);
    expect(right.test(text)).toBe(true);
    expect(text.length).toBeGreaterThan(5000);
    expect(text.length).toBeLessThan(12_000);
  });
});
