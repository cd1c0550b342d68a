// Thinking, textual tool calls and control tokens never reach a chat; nothing else is touched.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  HIDDEN_TEXT_START,
  reveal,
  revealAll,
  revealRest,
} from '../../src/lib/html/hidden-text.ts';

describe('hidden text', () => {
  it.each([
    ['<think>hm\n\nlet me see</think>\n\nHello', 'Hello'],
    ['<THINK>hm</THINK>Hello', 'Hello'],
    ['<think>a</think>\n<thinking>b</thinking>\nHello', 'Hello'],
    ['Hello\n<think>hm</think>\nthere', 'Hello\nthere'],
    ['so the person wants...\n</think>\n\nHello', 'Hello'],
    ['<think>never closed', ''],
    ['Hello<|im_end|>', 'Hello'],
    ['<|start|>Hello', 'Hello'],
    ['<tool_call>{"name":"x"}</tool_call>', ''],
    ['<think>a</think>\n    indented', '    indented'],
  ])('%j is shown as %j', (text, shown) => {
    expect(revealAll(text)).toBe(shown);
  });

  it.each([
    'if a < b and b <= c then <i>nothing</i> happens',
    'The tag `<think>` opens a thought, `</think>` closes it; `<|im_end|>` ends a message.',
    'Use it so:\n\n```xml\n<think>\n  visible\n</think>\n<|im_end|>\n```\n\nDone.',
    '~~~\n<tool_call>\n~~~\n',
    'a\n\n\n    code();\n\t\ttabs();   \n\n- list',
    'I <think> therefore I am',
    '<thin',
    '<<|',
    '  ',
  ])('%j is shown as it is', (text) => {
    expect(revealAll(text)).toBe(text);
  });

  it('is the same however the stream is cut', () => {
    const piece = fc.constantFrom(
      '<think>',
      '</think>',
      '<|im_end|>',
      '<tool_call>',
      '</tool_call>',
      '```',
      '`',
      '\n',
      ' ',
      'a',
      '<',
      '|',
      'think>',
      'é',
      '\u{1f600}',
    );
    const text = fc.array(piece, { maxLength: 30 }).map((pieces) => pieces.join(''));
    fc.assert(
      fc.property(text, fc.array(fc.integer({ min: 1, max: 6 })), (whole, cuts) => {
        let state = HIDDEN_TEXT_START;
        let shown = '';
        let at = 0;
        while (at < whole.length) {
          const length = cuts[at % Math.max(1, cuts.length)] ?? 3;
          const step = reveal(state, whole.slice(at, at + length));
          state = step.state;
          if (step.isRetracted) shown = '';
          shown += step.text;
          at += length;
        }
        expect(shown + revealRest(state)).toBe(revealAll(whole));
      }),
      { numRuns: 2000 },
    );
  });

  it('leaves every text without such marks alone', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 200 }), (text) => {
        fc.pre(!/<[|/a-z]/i.test(text));
        expect(revealAll(text)).toBe(text);
      }),
    );
  });
});
