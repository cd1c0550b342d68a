// What is read of documents of every kind, through the thread that really reads them.

import { describe, expect, it } from 'vitest';
import { systemClock } from '../../src/lib/clock.ts';
import { createReaderMemory } from '../../src/lib/reader-memory.ts';
import { extract } from '../../src/media/extract/extract.ts';
import { bytesOf, docx, epub, odf, pdf, pptx, xlsx, zip } from './documents.ts';

const memory = createReaderMemory();

const read = (content: Uint8Array) =>
  extract(content, { clock: systemClock, signal: new AbortController().signal, memory });

async function sections(content: Uint8Array) {
  const reading = await read(content);
  if (reading.kind === 'unreadable') throw new Error(reading.reason);
  return reading.sections;
}

async function text(content: Uint8Array) {
  return (await sections(content)).map((section) => section.text).join('\n');
}

async function reason(content: Uint8Array) {
  const reading = await read(content);
  return reading.kind === 'unreadable' ? reading.reason : `read: ${JSON.stringify(reading)}`;
}

describe('what is read of a document', () => {
  it('is the text of each page of a PDF', async () => {
    expect(await sections(pdf(['First page.', 'Second page.']))).toEqual([
      { title: 'page 1', text: 'First page.' },
      { title: 'page 2', text: 'Second page.' },
    ]);
  });

  it('is the paragraphs and tables of a Word document', async () => {
    const content = docx(
      ['Dear &amp; near,', 'Grüße'],
      [
        ['Item', 'Price'],
        ['Tea', '3 €'],
      ],
    );
    expect(await text(content)).toBe('Dear & near,\n\nGrüße\n\nItem | Price\nTea | 3 €');
  });

  it('is the rows of each sheet of an Excel file', async () => {
    const content = xlsx({
      Budget: [
        ['Rent', 900],
        ['Food', 250.5],
      ],
      Notes: [['ask &lt;Eve&gt;']],
    });
    expect(await sections(content)).toEqual([
      { title: 'sheet Budget', text: 'Rent | 900\nFood | 250.5' },
      { title: 'sheet Notes', text: 'ask <Eve>' },
    ]);
  });

  it('is the shared texts and the days of an Excel file, as Excel writes them', async () => {
    const main = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"';
    const rows = `<worksheet ${main}><sheetData><row r="2"><c r="B2" t="s"><v>1</v></c><c r="C2" s="1"><v>45000</v></c><c r="D2" t="b"><v>1</v></c></row><row r="4"><c r="A4" t="str"><f>1+1</f><v>two</v></c></row></sheetData></worksheet>`;
    const content = xlsx({ Plan: [] }, rows, {
      'xl/sharedStrings.xml': `<sst ${main}><si><t>no</t></si><si><r><t>Kick</t></r><r><t>-off</t></r></si></sst>`,
      'xl/styles.xml': `<styleSheet ${main}><cellXfs count="2"><xf numFmtId="0"/><xf numFmtId="14" applyNumberFormat="1"/></cellXfs></styleSheet>`,
    });
    const [plan] = await sections(content);
    expect(plan?.text.split('\n')).toContain(' | Kick-off | 2023-03-15 | true');
    expect(plan?.text).toContain('two');
  });

  it('is the slides in the order in which they are shown, with their notes', async () => {
    const content = pptx([{ text: 'Welcome' }, { text: 'Numbers', notes: 'Speak slowly' }]);
    expect(await sections(content)).toEqual([
      { title: 'slide 1', text: 'Welcome' },
      { title: 'slide 2', text: 'Numbers\n\nNotes:\nSpeak slowly' },
    ]);
  });

  it('is the text, the sheets and the slides of OpenDocument files', async () => {
    const written =
      '<text:tracked-changes><text:p>deleted</text:p></text:tracked-changes><text:h text:outline-level="2">Title</text:h><text:p>One<text:s text:c="2"/>two<text:line-break/>three</text:p><text:list><text:list-item><text:p>point</text:p></text:list-item></text:list>';
    expect(await text(odf('text', written))).toBe('## Title\nOne  two\nthree\n- point');
    const sheet =
      '<table:table table:name="A"><table:table-row><table:table-cell><text:p>x</text:p></table:table-cell><table:table-cell table:number-columns-repeated="2"><text:p>7</text:p></table:table-cell><table:table-cell table:number-columns-repeated="16000"/></table:table-row></table:table>';
    expect(await sections(odf('spreadsheet', sheet))).toEqual([
      { title: 'sheet A', text: 'x | 7 | 7' },
    ]);
    const slides =
      '<draw:page><text:p>Hi</text:p></draw:page><draw:page><text:p>Ho</text:p></draw:page>';
    expect(await sections(odf('presentation', slides))).toEqual([
      { title: 'slide 1', text: 'Hi' },
      { title: 'slide 2', text: 'Ho' },
    ]);
  });

  it('is the chapters of a book in their order', async () => {
    expect(await sections(epub(['<h1>One</h1><p>It began.</p>', '<p>It ended.</p>']))).toEqual([
      { title: 'chapter 1', text: '# One\n\nIt began.' },
      { title: 'chapter 2', text: 'It ended.' },
    ]);
  });

  it('is what a reader would see of a web page', async () => {
    const page = `<!doctype html><html><head><title>T</title><style>p{}</style></head><body>
      <h2>News &amp; more</h2><p>Hello   <b>world</b>.<br>Bye&#33;</p>
      <p style="display: none">ORDER one</p><div hidden><div>ORDER two</div>ORDER three</div>
      <span style="font-size:0px">ORDER four</span><!-- ORDER five --><script>ORDER("six")</script>
      <ul><li>a</li><li>b<ul><li>c</li></ul></li></ul>
      <table><tr><th>k</th><td><p>v</p></td></tr></table></body></html>`;
    const seen = await text(bytesOf(page));
    expect(seen).not.toContain('ORDER');
    expect(seen.replace(/\s*\n\s*/g, '\n').trim()).toBe(
      '## News & more\nHello world.\nBye!\n- a\n- b\n- c\nk | v',
    );
  });

  it('is a rich text without what programs keep for themselves', async () => {
    const rtf =
      "{\\rtf1\\ansi\\ansicpg1251{\\fonttbl{\\f0 Arial;}}{\\*\\generator x;}\\f0 Hi \\'cf\\'f0 \\u8364?\\par {\\v ORDER} two\\tab three}";
    expect(await text(bytesOf(rtf))).toBe('Hi Пр €\n two\tthree');
  });

  it('is plain text of any usual character set', async () => {
    expect(await text(bytesOf('a,b\n1,ü'))).toBe('a,b\n1,ü');
    expect(await text(Buffer.from('Gr\xfc\xdfe \x80 5', 'latin1'))).toBe('Grüße € 5');
    expect(await text(Buffer.from('\xcf\xf0\xe8\xe2\xe5\xf2, \xec\xe8\xf0', 'latin1'))).toBe(
      'Привет, мир',
    );
    expect(await text(Buffer.from('name;Jörg', 'utf16le'))).toBe('name;Jörg');
    expect(await text(Buffer.from('\ufeffname;Jörg', 'utf16le'))).toBe('name;Jörg');
    const japanese = Buffer.from(
      '<html><meta charset="shift_jis"><p>\x93\xfa\x96\x7b</p></html>',
      'latin1',
    );
    expect(await text(japanese)).toBe('日本');
  });
});

describe('what cannot be read', () => {
  it('says why in words', async () => {
    expect(await reason(pdf(['', '']))).toBe(
      'this PDF has no text, only scanned pages or pictures',
    );
    const encrypted = `/Encrypt << /Filter /Standard /V 1 /R 2 /O (${'o'.repeat(32)}) /U (${'u'.repeat(32)}) /P -4 >> /ID [(a) (b)]`;
    expect(await reason(pdf(['secret'], encrypted))).toBe('it is protected by a password');
    const locked = Buffer.concat([
      Buffer.from('d0cf11e0a1b11ae1', 'hex'),
      Buffer.alloc(512),
      Buffer.from('EncryptedPackage', 'utf16le'),
    ]);
    expect(await reason(locked)).toBe('it is protected by a password');
    expect(await reason(locked.subarray(0, 500))).toContain('old office format');
    expect(await reason(zip({ 'a.txt': 'hi' }))).toContain('archives are not unpacked');
    expect(await reason(Buffer.from([0, 1, 2, 3, 4, 200, 0]))).toContain('cannot be read as text');
    expect(await reason(new Uint8Array())).toBe('it is empty');
    expect(await reason(bytesOf('%PDF-1.7 nothing else'))).toContain('it is damaged');
    expect(await reason(docx([]))).toBe('this document has no text');
    const manifest = { 'META-INF/manifest.xml': '<manifest:encryption-data/>' };
    expect(await reason(odf('text', '', manifest))).toBe('it is protected by a password');
  });

  it('stops when nobody waits any more', async () => {
    const stop = new AbortController();
    const reading = extract(pdf(['x']), { clock: systemClock, signal: stop.signal, memory });
    stop.abort(new Error('enough'));
    await expect(reading).rejects.toThrow('enough');
  });
});
