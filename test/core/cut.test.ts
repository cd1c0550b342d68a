import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { headOf, partOf, shortened, tailOf, truncateText } from '../../src/lib/text/cut.ts';

const FAMILY = '👩‍👩‍👧‍👦';
const WAVE = '👋🏽';
const FLAG = '🇩🇪';
const ACCENTED = 'e\u0301\u0323';
const HINDI = 'क्षि';
const KEY = '1️⃣';
const HALF = '\ud83d';

const signsOf = (text: string) =>
  [...new Intl.Segmenter('en', { granularity: 'grapheme' }).segment(text)].map(
    ({ segment }) => segment,
  );

const sign = fc.constantFrom('a', 'ß', '漢', '한', ' ', FAMILY, WAVE, FLAG, ACCENTED, HINDI, KEY);
const words = fc.array(sign, { maxLength: 40 }).map((signs) => signs.join(''));
const limit = fc.integer({ min: 0, max: 120 });

describe('a text that is cut', () => {
  it.each([
    ['a family', FAMILY],
    ['a skin colour', WAVE],
    ['a flag', FLAG],
    ['accents', ACCENTED],
    ['a syllable of Devanagari', HINDI],
    ['a key', KEY],
  ])('loses a sign that does not fit whole: %s', (_, whole) => {
    for (let units = 2; units < whole.length + 2; units += 1) {
      expect(headOf(`ab${whole}cd`, units)).toBe('ab');
      expect(tailOf(`ab${whole}cd`, units)).toBe('cd');
    }
    expect(headOf(`ab${whole}cd`, whole.length + 2)).toBe(`ab${whole}`);
    expect(tailOf(`ab${whole}cd`, whole.length + 2)).toBe(`${whole}cd`);
    expect(partOf(`${whole}ab${whole}`, 1, whole.length + 3)).toBe('ab');
    expect(partOf(whole, 1, whole.length - 1)).toBe('');
  });

  it('knows which letters make a flag far inside a row of them', () => {
    expect(signsOf(headOf(FLAG.repeat(60), 202))).toEqual(Array(50).fill(FLAG));
    expect(signsOf(tailOf(FLAG.repeat(60), 202))).toEqual(Array(50).fill(FLAG));
  });

  it('keeps whole signs only, as many as there is room for', () => {
    fc.assert(
      fc.property(words, limit, (text, max) => {
        const signs = signsOf(text);
        const head = headOf(text, max);
        const kept = signsOf(head);
        expect(kept).toEqual(signs.slice(0, kept.length));
        expect(head.length).toBeLessThanOrEqual(max);
        const next = signs[kept.length]?.length ?? Number.POSITIVE_INFINITY;
        expect(head.length + next).toBeGreaterThan(max);

        const tail = tailOf(text, max);
        expect(signsOf(tail)).toEqual(signs.slice(signs.length - signsOf(tail).length));
        expect(tail.length).toBeLessThanOrEqual(max);
      }),
    );
  });

  it('says that it is cut, within the limit', () => {
    expect(shortened('five!', 5)).toBe('five!');
    expect(shortened('five words', 6)).toBe('five…');
    expect(shortened(`hi ${FAMILY}`, 10)).toBe('hi…');
    expect(shortened('a longer line', 10, ' [...]')).toBe('a lo [...]');
  });

  it('keeps both sides whole where the middle is left out', () => {
    const cut = truncateText(FAMILY.repeat(100), 200, 'h');
    const [head = '', tail = ''] = cut.split(/\n\[.*\]\n/);
    expect(new Set(signsOf(head + tail))).toEqual(new Set([FAMILY]));
  });

  it('gives way where one sign is longer than anybody writes, and mends halves', () => {
    const monster = `x${'\u0301'.repeat(300)}`;
    expect(headOf(monster, 200)).toBe(monster.slice(0, 200));
    expect(tailOf(monster, 200)).toBe(monster.slice(-200));
    expect(headOf(`a${HALF}b`, 2)).toBe('a\ufffd');
    expect(shortened(HALF, 9)).toBe('\ufffd');
  });
});
