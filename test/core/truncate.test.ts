import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { keepFirstLines, keepLastLines, truncateText } from '../../src/lib/text/cut.ts';

describe('a truncated text', () => {
  it('keeps its beginning and its end and says how much is missing', () => {
    const text = `begin${'x'.repeat(20_000)}end`;
    const cut = truncateText(text, 1000, 'ask for a part');
    expect(cut).toMatch(/^begin/);
    expect(cut).toMatch(/end$/);
    expect(cut).toMatch(/\[truncated, 19,\d{3} characters omitted: ask for a part\]/);
    expect(cut.length).toBeLessThanOrEqual(1000);
  });

  it('never grows, never splits a character, and counts what it left out', () => {
    const text = fc.string({ unit: 'binary', minLength: 0, maxLength: 2000 });
    fc.assert(
      fc.property(text, fc.integer({ min: 200, max: 1500 }), (whole, maxChars) => {
        const cut = truncateText(whole, maxChars, 'h');
        if (whole.length <= maxChars) {
          expect(cut).toBe(whole);
          return;
        }
        expect(cut.length).toBeLessThanOrEqual(maxChars);
        expect(cut.isWellFormed()).toBe(whole.isWellFormed());
        const marker = /\n\[truncated, ([\d,]+) characters omitted: h\]\n/.exec(cut);
        const omitted = Number(marker?.[1]?.replaceAll(',', ''));
        expect(cut.length - (marker?.[0].length ?? 0) + omitted).toBe(whole.length);
      }),
    );
  });

  it('by lines keeps whole lines from either side', () => {
    expect(keepFirstLines('one\ntwo\nthree', 8)).toBe('one\ntwo');
    expect(keepFirstLines('one\ntwo\nthree', 7)).toBe('one\ntwo');
    expect(keepLastLines('one\ntwo\nthree', 9)).toBe('two\nthree');
    expect(keepLastLines('one\ntwo\nthree', 8)).toBe('three');
    expect(keepLastLines('one long line', 5)).toBe('');
  });
});
