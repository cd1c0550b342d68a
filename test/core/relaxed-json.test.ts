// JSON as people write it by hand.

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { readRelaxedJson } from '../../src/lib/json/loose-json.ts';

test.each([
  ['{ a: 1, /* c */ "b": [true, null,], } // end', { a: 1, b: [true, null] }],
  ["{ 'it\\'s': 'x\\u0041\\n' }", { "it's": 'xA\n' }],
  ['"http://x/y" ', 'http://x/y'],
  ['[-1.5e3, +2]', [-1500, 2]],
  ['{ __proto__: 1, a: { constructor: 2 } }', { a: {} }],
])('%j is read', (text, value) => {
  expect(readRelaxedJson(text)).toEqual(value);
});

test.each(['', '{', '{ a 1 }', '[1 2]', '{} {}', 'word', '"open', '['.repeat(100)])(
  '%j is no value',
  (text) => {
    expect(readRelaxedJson(text)).toBeUndefined();
  },
);

test('what is JSON is read as JSON', () => {
  fc.assert(
    fc.property(fc.json({ maxDepth: 5 }), (text) => {
      fc.pre(!/__proto__|constructor|prototype/.test(text));
      expect(readRelaxedJson(text)).toEqual(JSON.parse(text));
    }),
    { numRuns: 200 },
  );
});
