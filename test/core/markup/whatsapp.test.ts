import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  beginningForWhatsApp,
  splitForWhatsApp,
  withAddresses,
} from '../../../src/channels/whatsapp/rules/markup.ts';
import { parseMarkup } from '../../../src/lib/markup/markup.ts';
import { runsText } from '../../../src/lib/markup/writer.ts';

const LIMIT = 4000;
const whole = (markdown: string) => splitForWhatsApp(markdown, LIMIT).join('\n\n');

describe('Markdown as WhatsApp text', () => {
  test.each([
    ['**b** *i* ~~s~~ `c`', '*b* _i_ ~s~ `c`'],
    ['# Title\n\ntext', '*Title*\n\ntext'],
    ['## A `b` c', '*A* `b` *c*'],
    ['***both***', '*_both_*'],
    ['**a** **b**', '*a b*'],
    ['**a *b***, _c_', '*a _b_*, _c_'],
    ['(**Note**) x', '(*Note*) x'],
    ['a\nb', 'a\nb'],
    ['[x](https://a.b/?q=1&r)', 'x (https://a.b/?q=1&r)'],
    ['**[x](https://a.b)**', '*x* (https://a.b)'],
    ['[a.b/c](https://a.b/c)', 'a.b/c'],
    ['<https://a.b/c_d_e>', 'https://a.b/c_d_e'],
    ['[write](mailto:a@b.c)', 'write (a@b.c)'],
    ['[x](javascript:alert)', 'x (javascript:alert)'],
    ['![cat](https://a.b/c.png)', 'cat (https://a.b/c.png)'],
    ['- a\n- b\n  - c', '• a\n• b\n   ◦ c'],
    ['3. a\n4. b', '3. a\n4. b'],
    ['- [x] done\n- [ ] open', '• ☑ done\n• ☐ open'],
    ['> q **r**\n> s', '> q *r*\n> s'],
    ['> q\n> > r', '> q\n\n> » r'],
    ['> ```\n> code\n> more\n> ```', '> `code`\n> `more`'],
    ['```js\na < b\n  c\n```', '```a < b\n  c```'],
    ['| a | b |\n|---|--:|\n| 1 | 2 |', '```a | b\n--+--\n1 | 2```'],
    ['**bold `code` bold**', '*bold* `code` *bold*'],
    ['`` a`b ``', '```a`b```'],
  ])('%j becomes %j', (markdown, text) => {
    expect(whole(markdown)).toBe(text);
  });

  test.each([
    ['a mark is closed at the end of a line and opened on the next', '**a\nb**', '*a*\n*b*'],
    ['a mark hugs the text, spaces stay outside', '**a *b* **c', '**a _b_ **c'],
    ['no mark is set inside a word, where it would be shown', 'un**believ**able', 'unbelievable'],
    ['no mark goes around its own sign', '**2 * 3** = 6', '2 * 3 = 6'],
    ['no mark goes behind an address', '**see https://a.b/c**', 'see https://a.b/c'],
  ])('%s', (_, markdown, text) => {
    expect(whole(markdown)).toBe(text);
  });

  test.each([
    ['a product', '5*4*3*2*1 = *120*', '5*4*3*2*1 = _120_'],
    ['signs that mark nothing', '5 * 3 * 2, snake_case_name, ~5', '5 * 3 * 2, snake_case_name, ~5'],
    ['signs that would mark', 'a \\*not bold\\* b', 'a `*not bold*` b'],
    ['ticks that would mark', 'a \\`x\\` b', 'a ```\u200b`x`\u200b``` b'],
    ['a sign that would quote', '\\> no quote', '\u200b> no quote'],
    [
      'fences in a fence',
      '````\n```js\nx\n```\n````',
      '```\u200b``\u200b`js\nx\n``\u200b`\u200b```',
    ],
    ['a code block that ends in a tick', '```\na`\n```', '```a`\u200b```'],
  ])('%s kept literal', (_, markdown, text) => {
    expect(whole(markdown)).toBe(text);
  });
});

/** WhatsApp's reading by rules of its own, as liberal as any client is known to be. */
function seen(text: string): string {
  const opaque: string[] = [];
  const hide = (content: string) => `\u{f0000}${opaque.push(content) - 1}\u{f0001}`;
  let visible = text
    .replaceAll(/```([\s\S]+?)```/g, (_, code: string) => hide(code))
    .replaceAll(/`([^`\n]+)`/g, (_, code: string) => hide(code))
    .replaceAll(/https?:\/\/[^\s`\u{f0000}]+/gu, (address) => `h${hide(address.slice(1))}`)
    .replaceAll(/^> /gm, '');
  for (const sign of ['\\*', '_', '~']) {
    const pair = new RegExp(
      `(?<![\\p{L}\\p{N}])${sign}(?!\\s)([^\\n]+?)(?<!\\s)${sign}(?![\\p{L}\\p{N}])`,
      'gu',
    );
    visible = visible.replaceAll(pair, '$1');
  }
  for (let deep = 0; deep < 3; deep += 1) {
    visible = visible.replaceAll(
      /\u{f0000}(\d+)\u{f0001}/gu,
      (_, index: string) => opaque[Number(index)] ?? '',
    );
  }
  return visible;
}

/** What must be read: order and all characters but spaces, and what is invisible anyway. */
const squeezed = (text: string) => text.replace(/[\s\u200b]+/g, '');

function checkParts(markdown: string, limit: number) {
  const parts = splitForWhatsApp(markdown, limit);
  for (const part of parts) {
    expect(part.length).toBeLessThanOrEqual(limit);
    expect(part.isWellFormed()).toBe(true);
    expect(part.trim()).not.toBe('');
  }
  return parts;
}

const piece = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 40 }),
  fc.string({ unit: 'binary', maxLength: 20 }),
  fc.constantFrom(
    ...['**', '*', '_', '__', '~~', '~', '`', '```', '```js\n', '\n', '\n\n', '\n> ', '\n- '],
    ...['\n  1. ', '# ', '[a](https://b.c)', '[*b*](https://b.c/d_e_f)', '[', '](', ')', '![', '<'],
    ...['\\*', '\\_', '\\`', '\\~', '\\>', 'word', ' ', 'x*y', 'https://a.b/c_d_e', '\u200b'],
    ...[
      '| a | b |\n|--|--|\n| c | d |\n',
      '|',
      '---',
      '👩‍👩‍👧‍👦',
      '🇩🇪',
      'e\u0301',
      '\ud83d',
      '漢字',
      'שלום',
    ],
  ),
);
const body = fc.array(piece, { maxLength: 60 }).map((pieces) => pieces.join(''));

/** Table headers repeat in later parts, so what is compared has none. */
const withoutTables = body.filter((markdown) => !/^[ \t>]*[|:-][ \t|:-]*$/m.test(markdown));

describe('splitting for WhatsApp', () => {
  test('every character of any text arrives, in parts none of which is over the limit', () => {
    fc.assert(
      fc.property(withoutTables, fc.integer({ min: 60, max: 300 }), (markdown, limit) => {
        const wanted = runsText(withAddresses(parseMarkup(markdown)).runs);
        const arrived = checkParts(markdown, limit).map(seen).join('');
        expect(squeezed(arrived)).toBe(squeezed(wanted));
      }),
      { numRuns: 2000 },
    );
  });

  test('any text with tables keeps to the limit', () => {
    fc.assert(
      fc.property(body, fc.integer({ min: 60, max: 300 }), (markdown, limit) => {
        checkParts(markdown, limit);
      }),
      { numRuns: 500 },
    );
  });

  test('the beginning of any text fits', () => {
    fc.assert(
      fc.property(body, fc.integer({ min: 60, max: 300 }), (markdown, limit) => {
        expect(beginningForWhatsApp(markdown, limit).length).toBeLessThanOrEqual(limit);
      }),
      { numRuns: 500 },
    );
  });

  test('the marks count: a text of marked words is cut before they push it over', () => {
    const markdown = Array.from({ length: 300 }, (_, n) => `**w${n}** *x*`).join(' ');
    const parts = checkParts(markdown, 1000);
    for (const part of parts.slice(0, -1)) expect(part.length).toBeGreaterThan(600);
    expect(parts.join(' ')).toBe(markdown.replaceAll(' *x*', ' _x_').replaceAll('**', '*'));
  });

  test('a code block longer than a message is closed and opened again', () => {
    const lines = Array.from({ length: 400 }, (_, line) => `  line ${line} of the program`);
    const parts = checkParts(`before\n\n\`\`\`ts\n${lines.join('\n')}\n\`\`\`\n\nafter`, LIMIT);
    expect(parts.length).toBeGreaterThan(2);
    expect(parts[0]).toMatch(/^before\n\n``` {2}line 0 [^`]*```$/);
    expect(parts[1]).toMatch(/^``` {2}line \d+ [^`]*```$/);
    expect(parts.at(-1)).toMatch(/```\n\nafter$/);
  });

  test('a quote and an address longer than a message go on in the next', () => {
    const parts = checkParts(`> ${'word '.repeat(1500)}`, LIMIT);
    for (const part of parts) expect(part).toMatch(/^> word /);
    const address = `https://a.b/${'x'.repeat(5000)}`;
    expect(checkParts(`[here](${address})`, LIMIT).join('')).toBe(`here (${address})`);
  });

  test('paragraphs stay whole where they fit', () => {
    const paragraph = 'A sentence of some words. '.repeat(60).trim();
    const markdown = Array.from({ length: 8 }, () => paragraph).join('\n\n');
    for (const part of checkParts(markdown, LIMIT)) {
      expect(part.split('\n\n').every((one) => one === paragraph)).toBe(true);
    }
  });

  const hostile = ['*', '_a', '*a* ', '`a', '``', '> ', '~', '[a](https://b.c) ', '\\*a\\* ', ' '];
  test.each(hostile)(
    '100 kB of %j is rendered in time',
    (unit) => {
      checkParts(`x${unit.repeat(100_000 / unit.length)}`, LIMIT);
    },
    60_000,
  );
});
