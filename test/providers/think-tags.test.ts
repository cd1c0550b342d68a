import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createThinkSplitter } from '../../src/providers/openai/openai.ts';

function splitIn(pieces: readonly string[]) {
  const splitter = createThinkSplitter();
  const parts = [...pieces.map((piece) => splitter.push(piece)), splitter.flush()];
  return {
    text: parts.map((part) => part.text).join(''),
    thinking: parts.map((part) => part.thinking).join(''),
  };
}

test.each([
  ['<think>hm</think>\n\nAnswer', { text: 'Answer', thinking: 'hm' }],
  ['\n<think>\n</think>Answer', { text: 'Answer', thinking: '\n' }],
  ['Answer with <think> in it', { text: 'Answer with <think> in it', thinking: '' }],
  ['<think>never closed', { text: '', thinking: 'never closed' }],
  ['<thin', { text: '<thin', thinking: '' }],
  ['', { text: '', thinking: '' }],
])('%j is taken apart, wherever it is cut', (whole, expected) => {
  fc.assert(
    fc.property(fc.array(fc.nat({ max: whole.length })), (cuts) => {
      const ends = [...new Set([0, ...cuts, whole.length])].sort((a, b) => a - b);
      const pieces = ends.slice(1).map((end, index) => whole.slice(ends[index], end));
      expect(splitIn(pieces)).toEqual(expected);
    }),
    { numRuns: 50 },
  );
});
