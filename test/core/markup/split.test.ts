import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { renderTelegramHtml } from '../../../src/channels/telegram/parts.ts';
import { parseMarkup, plainText } from '../../../src/lib/markup/markup.ts';
import { splitMarkdown, truncateMarkup } from '../../../src/lib/markup/split.ts';
import { runsText } from '../../../src/lib/markup/writer.ts';
import { parseHtml } from '../../support/bot-api-html.ts';

const LIMIT = 4096;

/** What a person reads in a part, by the strict parser, without what the part repeats. */
function seen(html: string) {
  const parsed = parseHtml(html);
  if (!parsed.ok) throw new Error(`${parsed.description} in ${html}`);
  expect(parsed.breaches).toEqual([]);
  return parsed.text;
}

const squeezed = (text: string) => text.replace(/\s+/g, '');

function checkParts(markdown: string, limit: number) {
  const parts = splitMarkdown(markdown, limit);
  for (const part of parts) {
    const text = runsText(part.runs);
    expect(text.length).toBeLessThanOrEqual(limit);
    expect(text.isWellFormed()).toBe(true);
    const html = renderTelegramHtml(part.runs);
    expect(squeezed(seen(html))).toBe(squeezed(text));
  }
  const joined = parts.map((part) => runsText(part.runs).slice(part.repeatedUnits)).join('');
  expect(squeezed(joined)).toBe(squeezed(runsText(parseMarkup(markdown).runs)));
  return parts;
}

const piece = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 40 }),
  fc.string({ unit: 'binary', maxLength: 20 }),
  fc.constantFrom(
    '**',
    '*',
    '_',
    '__',
    '~~',
    '`',
    '```',
    '```js\n',
    '\n',
    '\n\n',
    '\n> ',
    '\n- ',
    '\n  1. ',
    '# ',
    '[a](https://b.c)',
    '[',
    '](',
    ')',
    '![',
    '<b>',
    '</b>',
    '<think>',
    '&amp;',
    '&',
    '<',
    '>',
    '| a | b |\n|--|--|\n| c | d |\n',
    '|',
    '---',
    '\\',
    '👩‍👩‍👧‍👦',
    '🇩🇪',
    'e\u0301',
    '\ud83d',
    '漢字',
    'שלום',
    '<br>',
    '    ',
    '\t',
    '\r\n',
    '\0',
    '[x]: y\n',
    'https://a.b/c_d_e',
  ),
);
const body = fc.array(piece, { maxLength: 60 }).map((pieces) => pieces.join(''));

describe('splitting', () => {
  test('any text arrives whole, in valid parts, none over the limit', () => {
    fc.assert(
      fc.property(body, fc.integer({ min: 40, max: 300 }), (markdown, limit) => {
        checkParts(markdown, limit);
      }),
      { numRuns: 1000 },
    );
  });

  test('the beginning of any text fits and is valid', () => {
    fc.assert(
      fc.property(body, fc.integer({ min: 20, max: 200 }), (markdown, limit) => {
        const runs = truncateMarkup(parseMarkup(markdown), limit);
        expect(runsText(runs).length).toBeLessThanOrEqual(limit);
        seen(renderTelegramHtml(runs));
      }),
      { numRuns: 300 },
    );
  });

  const lengths = Array.from({ length: 11 }, (_, index) => LIMIT - 6 + index);
  const fillings = [
    ['letters', 'x'],
    ['emoji', '😀'],
    ['families', '👩‍👩‍👧‍👦'],
    ['flags', '🇩🇪'],
    ['accents', 'e\u0301'],
    ['right to left', 'שלום '],
    ['CJK', '漢字。'],
    ['words', 'word '],
    ['lines', 'line\n'],
    ['items', '- item\n'],
    ['specials', '<&>'],
  ] as const;
  test.each(fillings)('texts of %s around the limit lose nothing and keep graphemes', (_, unit) => {
    for (const length of lengths) {
      const markdown = unit
        .repeat(Math.ceil(length / unit.length))
        .slice(0, length)
        .toWellFormed();
      const parts = checkParts(markdown, LIMIT);
      expect(parts.length).toBeLessThanOrEqual(3);
      const segmenter = new Intl.Segmenter(undefined, { granularity: 'grapheme' });
      const whole = [...segmenter.segment(runsText(parseMarkup(markdown).runs))].length;
      const split = parts.map((part) => [...segmenter.segment(runsText(part.runs))].length);
      expect(split.reduce((sum, count) => sum + count, 0)).toBe(whole);
    }
  });

  test('a code block longer than a message is closed and opened again with its language', () => {
    const code = Array.from({ length: 400 }, (_, line) => `  line ${line} of the program`).join(
      '\n',
    );
    const parts = checkParts(`before\n\n\`\`\`ts\n${code}\n\`\`\`\n\nafter`, LIMIT);
    const html = parts.map((part) => renderTelegramHtml(part.runs));
    expect(html.length).toBeGreaterThan(1);
    expect(html[0]).toMatch(/^before\n\n<pre><code class="language-ts">[\s\S]*\n<\/code><\/pre>$/);
    expect(html[1]).toMatch(/^<pre><code class="language-ts"> {2}line \d+/);
  });

  test('a table longer than a message is cut between rows and repeats its header', () => {
    const rows = Array.from({ length: 500 }, (_, row) => `| item ${row} | ${row * 7} |`).join('\n');
    const parts = checkParts(`| name | value |\n|---|--:|\n${rows}`, LIMIT);
    expect(parts.length).toBeGreaterThan(1);
    for (const part of parts) {
      expect(runsText(part.runs)).toMatch(/^name +\| value\n-+\+-+\nitem/);
    }
  });

  test('paragraphs stay whole where they fit', () => {
    const paragraph = 'A sentence of some words. '.repeat(60).trim();
    const parts = checkParts(Array.from({ length: 8 }, () => paragraph).join('\n\n'), LIMIT);
    for (const part of parts) {
      expect(runsText(part.runs).trim().split('\n\n')).toEqual(
        runsText(part.runs)
          .trim()
          .split('\n\n')
          .map(() => paragraph),
      );
    }
  });

  test('white space alone makes no message', () => {
    expect(splitMarkdown(' \n\n \t\n', LIMIT)).toEqual([]);
    expect(splitMarkdown(`\`\`\`\n${'\n'.repeat(9000)}x\n\`\`\``, LIMIT)).toHaveLength(1);
  });
});

describe('hostile text', () => {
  const N = 100_000;
  const filled = (unit: string) => unit.repeat(Math.ceil(N / unit.length));
  const cases: Readonly<Record<string, string>> = {
    brackets: filled('['),
    images: filled('![a'),
    stars: filled('**a '),
    underscores: filled('__a'),
    mixed: filled('a*b_'),
    'nested emphasis': `${'*a _b '.repeat(N / 12)}${'c_ d*'.repeat(N / 10)}`,
    'closed stars': `${'**'.repeat(N / 4)}a${'**'.repeat(N / 4)}`,
    ticks: filled('`a'),
    quotes: filled('>'),
    'numbered in one line': filled('1. '),
    'nested list': Array.from({ length: 300 }, (_, i) => `${' '.repeat(i * 2)}- a`).join('\n'),
    'wide table': `|${'a|'.repeat(500)}\n|${'-|'.repeat(500)}\n${filled('|a|b|\n')}`,
    'long table': `|a|b|\n|-|-|\n${filled('|a|b|\n')}`,
    angles: filled('<a '),
    entities: filled('&#'),
    fences: filled('```\n'),
    dashes: filled('-'),
    'delimiter row': `${filled('-')}|`,
    marks: `e${filled('\u0301')}`,
    lines: filled('\n'),
    backslashes: filled('\\'),
  };
  test.each(Object.entries(cases))(
    '100 kB of %s is rendered, every character of it',
    (_, markdown) => {
      const parts = splitMarkdown(markdown, LIMIT);
      for (const part of parts) plainText(part.runs);
      const html = parts.map((part) => renderTelegramHtml(part.runs));
      for (const part of html) seen(part);
    },
    // Square time would take minutes.
    60_000,
  );
});
