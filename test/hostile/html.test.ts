// HTML as mails, files, books and pages bring it, through the threads that read each: tables row by row,
// lists and quotes in their form, nothing that a person does not see, and no more work than its length.

import { afterAll, describe, expect, it } from 'vitest';
import { MailReader } from '../../src/channels/email/mail-reader.ts';
import { extract } from '../../src/kernel/media/extract/extract.ts';
import { createReaderMemory } from '../../src/lib/async.ts';
import { HtmlTooComplexError, htmlText } from '../../src/lib/html/html-text.ts';
import { systemClock } from '../../src/lib/time/clock.ts';
import { PageReader } from '../../src/tools/web/web-fetch.ts';
import { bytesOf, docxOf, epub } from '../media/documents.ts';
import { campaign } from '../support/campaign.ts';
import { cpuMs, growthOf, PROPORTIONAL } from '../support/cpu-time.ts';

const signal = new AbortController().signal;
const clock = systemClock;
const memory = createReaderMemory();
const mails = new MailReader({
  clock,
  lookup: async () => {
    throw Object.assign(new Error('no such name'), { code: 'ENOTFOUND' });
  },
});
const pages = new PageReader({ clock });
afterAll(async () => {
  await mails[Symbol.asyncDispose]();
  await pages[Symbol.asyncDispose]();
});

async function inMail(body: string): Promise<string> {
  const head = 'From: anna@person.test\r\nContent-Type: text/html; charset=utf-8\r\n\r\n';
  const { result } = await mails.read(Buffer.from(head + body));
  return result.kind === 'parsed' ? result.mail.text.trim() : `unreadable: ${result.gate}`;
}

async function inDocument(content: Uint8Array): Promise<string> {
  const reading = await extract(content, { clock, signal, memory });
  if (reading.kind === 'unreadable') return `unreadable: ${reading.reason}`;
  return reading.sections.map(({ text }) => text).join('\n');
}

const inFile = (body: string) => inDocument(bytesOf(`<html><body>${body}</body></html>`));
const inBook = (body: string) => inDocument(epub([body]));
const inPage = async (body: string) =>
  (
    await pages.read(
      { bytes: Buffer.from(body), contentType: 'text/html', url: 'https://a.test/' },
      signal,
    )
  ).text;

const READERS = { mail: inMail, file: inFile, peopleRows: inBook, page: inPage };
const readers = Object.entries(READERS);

/** What is written, and what is read of it by whatever reads it. */
const SHOWN: Readonly<Record<string, readonly [html: string, text: string]>> = {
  'a table row by row': [
    '<table><thead><tr><th>Item</th><th>Qty</th><th>Price</th></tr></thead><tbody><tr><td>Bolt</td><td>10</td><td>5.00</td></tr><tr><td>Nut</td><td>2</td><td>17.50</td></tr></tbody></table>',
    'Item | Qty | Price\nBolt | 10 | 5.00\nNut | 2 | 17.50',
  ],
  'empty cells, also the last of a row': [
    '<table><tr><td>a</td><td></td></tr><tr><td>c</td><td>d</td></tr><tr><td></td><td>f</td></tr><tr><td>g</td><td>h</td></tr></table>',
    'a |\nc | d\n | f\ng | h',
  ],
  'cells that go across columns and rows': [
    '<table><tr><td rowspan="2">Fruit</td><td>pear</td><td>1</td></tr><tr><td>plum</td><td>2</td></tr><tr><td colspan="2">Sum</td><td>3</td></tr></table>',
    'Fruit | pear | 1\n | plum | 2\nSum |  | 3',
  ],
  'a table in a cell, in rows of its own': [
    '<table><tr><td>Order 7</td><td><table><tr><td>Bolt</td><td>10</td></tr><tr><td>Nut</td><td>2</td></tr></table></td></tr></table>',
    'Order 7\nBolt | 10\nNut | 2',
  ],
  'cells that hold a table for their look': [
    '<table><tr><td><table><tr><td>Bolt</td></tr></table></td><td><table><tr><td>10</td></tr></table></td></tr></table>',
    'Bolt | 10',
  ],
  'tables that arrange, without their gaps': [
    '<table role="presentation"><tr><td width="20">&nbsp;</td><td><h2>Invoice</h2><table role="presentation"><tr><td>Bolt</td><td>10</td></tr></table></td><td></td></tr><tr><td></td><td>Thank you</td><td></td></tr></table>',
    '## Invoice\n\nBolt | 10\n\nThank you',
  ],
  'a table pasted from Word': [
    '<!--[if gte mso 9]><xml>X</xml><![endif]--><table class="MsoNormalTable" border="1"><tr><td><p class="MsoNormal">Item<o:p></o:p></p></td><td><p class="MsoNormal">Price<o:p></o:p></p></td></tr><tr><td><p class="MsoNormal">Bolt</p></td><td><p class="MsoNormal"><o:p>&nbsp;</o:p></p></td></tr></table>',
    'Item | Price\nBolt |',
  ],
  'a bar in a cell as part of it': [
    '<table><tr><td>4 | 5</td><td>x<br/>y</td></tr></table>',
    '4 \\| 5 | x y',
  ],
  'lists in lists, numbered from their start': [
    '<ol start="3"><li>three</li><li>four<ul><li>deep<ul><li>deeper</li></ul></li></ul></li></ol><p>end</p>',
    '3. three\n4. four\n  - deep\n    - deeper\n\nend',
  ],
  'text that is set': ['<pre>a  b\n  c</pre>', 'a  b\n  c'],
  'quotes in quotes': [
    '<p>Yes</p><blockquote><p>No?</p><blockquote>Why</blockquote></blockquote>',
    'Yes\n\n> No?\n\n> > Why',
  ],
  'lines and gaps': [
    '<div>a<br/>b</div><div><br/></div><div>c</div><hr/><h3>d &oacute;</h3>',
    'a\nb\n\nc\n\n---\n\n### d ó',
  ],
};

describe.each(readers)('HTML in a %s shows', (_, read) => {
  it.each(Object.entries(SHOWN))('%s', async (_name, [html, text]) => {
    expect((await read(html)).replaceAll('```\n', '').replaceAll('\n```', '').trim()).toBe(
      text.trim(),
    );
  });
});

it('HTML without its end tags is read as a browser reads it', async () => {
  const html =
    '<table><tr><th>Item<th>Qty<tr><td>Bolt<td>10<tr><td>Nut<td></table><ul><li>a<li>b</ul><p>c<p>d<td>e<td>f';
  const text = 'Item | Qty\nBolt | 10\nNut |\n\n- a\n- b\n\nc\n\nd';
  expect(await inMail(html)).toContain(text);
  expect(await inFile(html)).toContain(text);
});

it('a Word document keeps its empty cells, merged ones and tables in tables', async () => {
  const p = (text: string) => `<w:p>${text === '' ? '' : `<w:r><w:t>${text}</w:t></w:r>`}</w:p>`;
  const cell = (text: string, kind = '') => `<w:tc><w:tcPr>${kind}</w:tcPr>${p(text)}</w:tc>`;
  const row = (...cells: readonly string[]) => `<w:tr>${cells.join('')}</w:tr>`;
  const inner = `<w:tbl>${row(cell('x'), cell('1'))}${row(cell('y'), cell(''))}</w:tbl>`;
  const body = `<w:tbl>${row(cell('Item'), cell('Qty'), cell('Price'))}${row(cell('Bolt'), cell('10'), cell(''))}${row(cell('Nut'), cell(''), cell('2.50'))}${row(cell('Sum', '<w:gridSpan w:val="2"/>'), cell('7.50'))}</w:tbl>${p('And')}<w:tbl>${row(cell('In'), `<w:tc>${inner}${p('')}</w:tc>`)}</w:tbl>`;
  expect(await inDocument(docxOf(body))).toBe(
    'Item | Qty | Price\nBolt | 10 |\nNut |  | 2.50\nSum |  | 7.50\n\nAnd\n\nIn\nx | 1\ny |',
  );
});

it('a mail shows where its links lead, a page as Markdown does, a file not at all', async () => {
  const html =
    '<p>See <a href="https://x.test/a"><b>the plan</b></a> or <a href="https://y.test">https://y.test</a>, <a href="mailto:a@b.test">write</a>.</p>';
  expect(await inMail(html)).toBe('See the plan [https://x.test/a] or https://y.test, write.');
  expect(await inFile(html)).toBe('See the plan or https://y.test, write.');
  expect(await inPage(html)).toContain('[**the plan**](https://x.test/a)');
});

/** Hidden from a person by a browser; each tries to have a simple reader end the hiding too early. */
const HIDDEN = [
  '<p hidden>SECRET</p>',
  '<div hidden/>SECRET</div>',
  '<p style="display:none; display:nonsense">SECRET</p>',
  '<p style="/* x */display:/**/none">SECRET</p>',
  `<p style="${'a:b;'.repeat(3000)}display:none">SECRET</p>`,
  '<p style="display&#58;none">SECRET</p>',
  '<p style="display&colon;none">SECRET</p>',
  '<p style="d\\69splay:none">SECRET</p>',
  '<p title=" style=x" style="display:none">SECRET</p>',
  '<p style="display:none" style="display:block">SECRET</p>',
  '<p a"><i style=\'display:none\' b=">SECRET</i></p>',
  '<p style=display:none>SECRET</p>',
  '<span hidden><div></span>SECRET</div></span>',
  '<div hidden><table><tr><td></div>SECRET</td></tr></table></div>',
  '<![CDATA[><div hidden>]]>SECRET</div>',
  '<!--><p hidden>SECRET</p>',
  '<!-- --!><p hidden>SECRET</p><!-- SECRET -->',
  '<style><!--</style><p hidden>SECRET</p>',
  '<script>"</scripts>SECRET"</script >',
  '<title/>SECRET</title>',
  '<iframe><p></iframe><p hidden>SECRET</p>',
  '<table><tr hidden><td>SECRET</td></tr><tr><td>a</td></tr></table>',
  '<table><tr><td style="font-size:0px"><div style="font-size:1em">SECRET</div></td></tr></table>',
  '<p style="max-height:0">SECRET</p>',
  '<p style="color:transparent">SECRET</p>',
  '<p style="position:absolute;left:-9999px">SECRET</p>',
  '<p style="font-size:1px">SECRET</p>',
  `<div hidden>${'<b>'.repeat(1000)}${'</b>'.repeat(1000)}SECRET</div>`,
  `${'<b>'.repeat(1000)}<p hidden>SECRET</p>`,
  '<a href="',
];

describe.each([
  ['mail', inMail],
  ['file', inFile],
] as const)('HTML in a %s does not show', (_, read) => {
  it.each(HIDDEN)('%.60s', async (html) => {
    const text = await read(`<p>before</p>${html}`);
    expect(text).toContain('before');
    expect(text).not.toContain('SECRET');
  });

  it('less than a browser does', async () => {
    const html =
      '<p hidden>SECRET<p>one</p><table><tr><td style="font-size:0px"><div style="font-size:13px">two</div></td></tr></table><b hidden>SECRET</b>three<![if !mso]>four<![endif]><select><option>SECRET</select>five &#150; six';
    expect((await read(html)).replace(/\s+/g, ' ')).toBe('one two threefourfive – six');
  });
});

/** What could be read in a time that grows with the square of its length. */
const LONG: Readonly<Record<string, readonly [unit: string, before?: string]>> = {
  cells: ['<td>', '<table><tr>'],
  'cells without a table': ['<td>'],
  'tables in tables': ['<table><tr><td>x'],
  'spanning cells': ['<tr><td rowspan=65000 colspan=1000>x', '<table>'],
  'open blocks': ['<div>x'],
  'open letters': ['<b><i><font>x'],
  'ends of nothing': ['</i></span></div></table>x', `${'<div>'.repeat(250)}<b>`],
  'crossing ends': ['<i><p></i>x'],
  'pieces of one line': ['a<b>b</b>'],
  'hidden parts': ['<p style="font-size:1px">x'],
  'lists in lists': ['<ul><li>x'],
  'quotes in quotes': ['<blockquote>x'],
  'open tags': ["<a href='"],
  'open quotes': ['<a "'],
  'open comments': ['<!--'],
  brackets: ['<'],
  'links in links': ['<a href=https://x.test/>x'],
  breaks: ['<br>'],
  declarations: ['a:b;/*', '<p style="'],
};

const CHARS = campaign({ short: 50_000, full: 250_000 });
const REPEATED = campaign({ short: 2500, full: 10_000 });

it.each(Object.entries(LONG))(
  'reads %s in a time that grows with their number',
  async (_, [unit, before = '']) => {
    const spent = (chars: number) => {
      const html = before + unit.repeat(chars / unit.length);
      const begun = cpuMs();
      const { length } = htmlText(html, { links: /^https:/ });
      expect(length).toBeLessThan(html.length * 20);
      return cpuMs() - begun;
    };
    expect(await growthOf(spent, 2 * CHARS)).toBeLessThan(PROPORTIONAL);
  },
);

/** Open formatting that a parser repeats in every paragraph behind it. */
const repeated = (count: number) =>
  `<div>${Array.from({ length: count }, (_, at) => `<b class=a${at}>`).join('')}</div>${'<p>x</p>'.repeat(count)}`;

it('gives up formatting that multiplies, at a cost that grows with its size', async () => {
  const spent = (count: number) => {
    const begun = cpuMs();
    expect(() => htmlText(repeated(count))).toThrow(HtmlTooComplexError);
    return cpuMs() - begun;
  };
  expect(await growthOf(spent, REPEATED)).toBeLessThan(PROPORTIONAL);
  expect(await inMail(`hello ${repeated(REPEATED)}`)).toMatch(/unreadable/);
  expect(await inFile(repeated(REPEATED))).toMatch(/unreadable/);
  expect(await inFile(repeated(3))).toBe('x\n\nx\n\nx');
});

it('reads a mail of nothing but cells within the bounds of the thread', async () => {
  expect(await inMail(`<p>hello</p><table><tr>${'<td>'.repeat(250_000)}`)).toContain('hello');
});
