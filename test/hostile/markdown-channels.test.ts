// A thousand answers of any shape, shown by everything that shows answers: every word of them arrives,
// in order, and nothing is refused. Case B17. The words are told apart by number, so that what is looked
// for does not come from our own reading of the Markdown.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import fc from 'fast-check';
import { JSDOM } from 'jsdom';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { renderEmailHtml } from '../../src/channels/email/rules/text.ts';
import { renderLark, splitForLark } from '../../src/channels/lark/rules/markup.ts';
import { renderTelegramHtml } from '../../src/channels/telegram/parts.ts';
import { splitForWhatsApp } from '../../src/channels/whatsapp/rules/markup.ts';
import { renderPlain } from '../../src/lib/markup/markup.ts';
import { splitMarkdown } from '../../src/lib/markup/split.ts';
import { parseHtml } from '../support/bot-api-html.ts';
import { campaign } from '../support/campaign.ts';

const ANSWERS = campaign({ short: 75, full: 1000 });
const LONG_ANSWERS = campaign({ short: 30, full: 200 });
const SEED = 20_261_121;
const TELEGRAM_UNITS = 4096;
const WHATSAPP_UNITS = 4000;
const LARK_UNITS = 5000;
const PAGE = join(import.meta.dirname, '../../src/http/page');

const dom = new JSDOM('<body></body>', { url: 'http://127.0.0.1/' });
let folder = '';
let draw: (container: unknown, text: string) => void;

/** The page's own modules as the browser gets them. */
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'nanobot-page-'));
  const path = join(folder, 'page.js');
  await build({
    stdin: {
      resolveDir: join(PAGE, 'chat'),
      loader: 'tsx',
      contents: `import { h, render } from 'preact';
        import { Markdown } from './markdown.tsx';
        export const draw = (container, text) => render(h(Markdown, { text }), container);`,
    },
    outfile: path,
    bundle: true,
    format: 'esm',
    plugins: [
      {
        name: 'library of the texts',
        setup({ onResolve }) {
          const path = fileURLToPath(import.meta.resolve('ttag'));
          onResolve({ filter: /^\.\/ttag\.js$/ }, () => ({ path }));
          onResolve({ filter: /^\/texts\.js$/ }, () => ({ path: join(PAGE, 'texts.js') }));
        },
      },
    ],
  });
  vi.stubGlobal('document', dom.window.document);
  // Nothing is near the screen: code keeps one colour, formulas stay as written.
  vi.stubGlobal(
    'IntersectionObserver',
    class {
      observe() {}
    },
  );
  const page: { draw: typeof draw } = await import(pathToFileURL(path).href);
  draw = page.draw;
});

afterAll(async () => {
  vi.unstubAllGlobals();
  await rm(folder, { recursive: true, force: true });
});

/** What a person reads, by where they read it. */
const READERS: Readonly<Record<string, (markdown: string) => string>> = {
  'on Telegram': (markdown) =>
    splitMarkdown(markdown, TELEGRAM_UNITS)
      .map(({ runs }) => {
        const parsed = parseHtml(renderTelegramHtml(runs));
        if (!parsed.ok) throw new Error(parsed.description);
        expect(parsed.breaches).toEqual([]);
        expect(parsed.text.length).toBeLessThanOrEqual(TELEGRAM_UNITS);
        return parsed.text;
      })
      .join(''),
  'on WhatsApp': (markdown) => {
    const parts = splitForWhatsApp(markdown, WHATSAPP_UNITS);
    for (const part of parts) expect(part.length).toBeLessThanOrEqual(WHATSAPP_UNITS);
    return parts.join('');
  },
  'on Lark': (markdown) =>
    splitForLark(markdown, LARK_UNITS)
      .map((runs) => renderLark(runs))
      .join('')
      .replace(/&#(\d+);/g, (_, code: string) => String.fromCodePoint(Number(code))),
  'in a mail as HTML': (markdown) => {
    const html = renderEmailHtml(markdown);
    expect(html).not.toMatch(/<(?:script|img|iframe|object|svg)\b|<[^>]*\son\w+=/i);
    dom.window.document.body.innerHTML = html;
    return dom.window.document.body.textContent ?? '';
  },
  'in a mail as text': renderPlain,
  'on the page': (markdown) => {
    const container = dom.window.document.createElement('div');
    draw(container, markdown);
    expect(container.querySelectorAll('script, img, iframe, object').length).toBe(0);
    return container.textContent ?? '';
  },
};

type Doc = {
  readonly markdown: string;
  /** In order. */
  readonly words: readonly string[];
};

const LETTERS = ['w', 'ж', '漢', 'שלום', 'é', '😀', '👩‍👩‍👧‍👦', '🇩🇪', 'ﷺ', 'e\u0301', 'مرحبا'];

/** Takes numbers, so that no word is another's beginning. */
class Words {
  readonly taken: string[] = [];

  next(letter: string): string {
    const word = `${letter}q${this.taken.length}z`;
    this.taken.push(word);
    return word;
  }
}

type Inline = {
  readonly kind:
    | 'word'
    | 'bold'
    | 'italic'
    | 'strike'
    | 'code'
    | 'link'
    | 'image'
    | 'html'
    | 'both';
  readonly letter: string;
};
type Block = {
  readonly kind:
    | 'paragraph'
    | 'heading'
    | 'item'
    | 'number'
    | 'quote'
    | 'fence'
    | 'nested'
    | 'task';
  readonly spans: readonly Inline[];
};

const span: fc.Arbitrary<Inline> = fc.record({
  kind: fc.constantFrom<Inline['kind'][]>(
    ...['word', 'word', 'bold', 'italic', 'strike', 'code', 'link', 'image', 'html', 'both'].map(
      (kind) => kind as Inline['kind'],
    ),
  ),
  letter: fc.constantFrom(...LETTERS),
});
const block: fc.Arbitrary<Block> = fc.record({
  kind: fc.constantFrom<Block['kind'][]>(
    ...[
      'paragraph',
      'paragraph',
      'heading',
      'item',
      'number',
      'quote',
      'fence',
      'nested',
      'task',
    ].map((kind) => kind as Block['kind']),
  ),
  spans: fc.array(span, { minLength: 1, maxLength: 8 }),
});

function written({ kind, letter }: Inline, words: Words): string {
  const word = words.next(letter);
  switch (kind) {
    case 'word':
      return word;
    case 'bold':
      return `**${word}**`;
    case 'italic':
      return `*${word} ${words.next('i')}*`;
    case 'strike':
      return `~~${word}~~`;
    case 'code':
      return `\`${word} <b> ${words.next('c')}\``;
    case 'link':
      return `[${word}](https://a.example/b_c?d=*e*)`;
    case 'image':
      return `![${word}](https://a.example/p.png)`;
    case 'html':
      return `<span onclick="x">${word}</span>`;
    case 'both':
      return `***${word}* and ${words.next('n')}**`;
  }
}

function blockText({ kind, spans }: Block, words: Words): string {
  const texts = () => spans.map((one) => written(one, words));
  switch (kind) {
    case 'paragraph':
      return texts().join(' ');
    case 'heading':
      return `## ${texts().join(' ')}`;
    case 'item':
      return texts()
        .map((text) => `- ${text}`)
        .join('\n');
    case 'number':
      return texts()
        .map((text, index) => `${index + 1}. ${text}`)
        .join('\n');
    case 'task':
      return texts()
        .map((text, index) => `- [${index % 2 === 0 ? 'x' : ' '}] ${text}`)
        .join('\n');
    case 'quote':
      return texts()
        .map((text, index) => `${'> '.repeat(1 + (index % 3))}${text}`)
        .join('\n');
    case 'nested':
      return texts()
        .map((text, index) => `${'  '.repeat(index)}- ${text}`)
        .join('\n');
    case 'fence':
      return `\`\`\`ts\n${spans.map(({ letter }) => `${words.next(letter)} *x* <b> & _y_`).join('\n')}\n\`\`\``;
  }
}

const doc: fc.Arbitrary<Doc> = fc.array(block, { minLength: 1, maxLength: 10 }).map((blocks) => {
  const words = new Words();
  const markdown = blocks.map((one) => blockText(one, words)).join('\n\n');
  return { markdown, words: words.taken };
});

/** What stands between the words may be anything. */
const NOISE = [
  ...[
    '**',
    '*',
    '_',
    '__',
    '~~',
    '`',
    '\n',
    '\n\n',
    '\n> ',
    '\n- ',
    '\n  1. ',
    '\n# ',
    '[',
    '](',
    ')',
  ],
  ...['![', '<b>', '</b>', '<think>', '&amp;', '&', '<', '>', '\n---\n', '\\', '\ud83d', '<br>'],
  ...[
    '    ',
    '\t',
    '\r\n',
    '\0',
    '\u200b',
    '\u202e',
    '\u2028',
    ' ',
    ' ',
    '||',
    '$$',
    '@x',
    '#y',
    '&#42;',
  ],
];
const noisy: fc.Arbitrary<Doc> = fc
  .array(
    fc.tuple(fc.array(fc.constantFrom(...NOISE), { maxLength: 4 }), fc.constantFrom(...LETTERS)),
    {
      minLength: 1,
      maxLength: 40,
    },
  )
  .map((pieces) => {
    const words = new Words();
    const markdown = pieces
      .map(([noise, letter]) => `${noise.join('')} ${words.next(letter)} `)
      .join('');
    return { markdown, words: words.taken };
  });

/** Around a message's limit, to the unit. */
const long: fc.Arbitrary<Doc> = fc
  .tuple(fc.array(block, { minLength: 4, maxLength: 8 }), fc.integer({ min: 4090, max: 4100 }))
  .map(([blocks, length]) => {
    const words = new Words();
    let markdown = '';
    for (let at = 0; ; at += 1) {
      const one = blocks[at % blocks.length];
      const mark = words.taken.length;
      const next = one === undefined ? '' : `${blockText(one, words)}\n\n`;
      if (markdown.length + next.length > length) {
        words.taken.length = mark;
        break;
      }
      markdown += next;
    }
    return { markdown: markdown + 'x'.repeat(length - markdown.length), words: words.taken };
  });

/** The first word that does not arrive behind the one before it. */
function missing({ markdown, words }: Doc, read: (markdown: string) => string): string | undefined {
  const shown = read(markdown).normalize('NFC');
  let from = 0;
  for (const word of words.map((one) => one.normalize('NFC'))) {
    const at = shown.indexOf(word, from);
    if (at === -1) return word;
    from = at + word.length;
  }
  return undefined;
}

describe.each(Object.entries(READERS))('%s', (_, read) => {
  const arrives = (docs: fc.Arbitrary<Doc>, numRuns: number) =>
    fc.assert(
      fc.property(docs, (one) => {
        expect(missing(one, read)).toBeUndefined();
      }),
      { seed: SEED, numRuns },
    );

  it('every word of random answers arrives, in order', () => arrives(doc, ANSWERS), 120_000);

  it('and of those with marks in any place', () => arrives(noisy, ANSWERS), 120_000);

  it('and of those as long as a message may be', () => arrives(long, LONG_ANSWERS), 120_000);

  it('every cell of a table arrives', () => {
    for (const columns of [1, 2, 3, 5, 9]) {
      const cells = Array.from({ length: columns * 12 }, (_, n) => `t${n}q`);
      const rows = Array.from({ length: 12 }, (_, row) =>
        cells.slice(row * columns, (row + 1) * columns),
      ).map((row) => `| ${row.join(' | ')} |`);
      const [head = '', ...body] = rows;
      const shown = read([head, `|${'---|'.repeat(columns)}`, ...body].join('\n'));
      expect(cells.filter((cell) => !shown.includes(cell))).toEqual([]);
    }
  });
});
