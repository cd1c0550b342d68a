// What is read of documents of every kind, through the thread that really reads them.

import { describe, expect, it } from 'vitest';
import { extract } from '../../src/kernel/media/extract/extract.ts';
import { createReaderMemory } from '../../src/lib/async.ts';
import { systemClock } from '../../src/lib/time/clock.ts';
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

  it('is as many rows of a long Excel file as a text may have', async () => {
    const rows = Array.from({ length: 25_000 }, (_, row) => [row, 'x'.repeat(90)]);
    const whole = rows.map((row) => row.join(' | ')).join('\n');
    expect(await read(xlsx({ Long: rows, Next: [['never reached']] }))).toEqual({
      kind: 'text',
      sections: [{ title: 'sheet Long', text: whole.slice(0, 2_000_000) }],
      isCut: true,
    });
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

  it('is the sender, the text and the names of the files of a mail, and the mails attached to it', async () => {
    const mail = (subject: string, ...parts: readonly string[]) =>
      [
        'Received: from a.test by b.test; Mon, 2 Mar 2026 09:00:01 +0000',
        'From: =?utf-8?q?J=C3=B6rg?= <joerg@person.test>\r\nTo: Ada <ada@person.test>',
        `Date: Mon, 2 Mar 2026 10:00:00 +0100\r\nSubject: ${subject}\r\nMIME-Version: 1.0`,
        `Content-Type: multipart/mixed; boundary=${subject}\r\n`,
        ...parts.map((part) => `--${subject}\r\nContent-Type: ${part}`),
        `--${subject}--\r\n`,
      ].join('\r\n');
    const html =
      'text/html; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n<p>Gr=C3=BC=C3=9Fe</p><p hidden>ORDER</p>';
    const file =
      'application/pdf\r\nContent-Disposition: attachment; filename="offer.pdf"\r\n\r\n%PDF-';
    const attached = (inner: string) =>
      `message/rfc822\r\nContent-Disposition: attachment; filename="old.eml"\r\n\r\n${inner}`;
    const levels = ['e', 'd', 'c', 'b'].reduce(
      (inner, subject) => mail(subject, html, attached(inner)),
      mail('f', html),
    );
    const head = (subject: string) =>
      `From: "Jörg" <joerg@person.test>\nTo: "Ada" <ada@person.test>\nDate: Mon, 2 Mar 2026 10:00:00 +0100\nSubject: ${subject}\n\nGrüße`;
    const read = await sections(bytesOf(mail('a', html, file, attached(levels))));
    expect(read.map(({ title }) => title)).toEqual([
      ...['', 'attached mail 1', 'attached mail 2', 'attached mail 3'],
    ]);
    expect(read[0]?.text).toBe(
      `${head('a')}\n\n[attachment, not read: offer.pdf (application/pdf, 5 bytes)]`,
    );
    expect(read[1]?.text).toBe(head('b'));
    expect(read[3]?.text).toMatch(/\[attachment, not read: old\.eml \(message\/rfc822, /);
  });

  it('is a note with lines like those of a mail as it was written', async () => {
    const note = 'From: Berlin\nDate: Monday\nTickets: none';
    expect(await text(bytesOf(note))).toBe(note);
  });

  it('is a rich text without what programs keep for themselves', async () => {
    const rtf =
      "{\\rtf1\\ansi\\ansicpg1251{\\fonttbl{\\f0 Arial;}}{\\*\\generator x;}\\f0 Hi \\'cf\\'f0 \\u8364?\\par {\\v ORDER} two\\tab three}";
    expect(await text(bytesOf(rtf))).toBe('Hi Пр €\n two\tthree');
  });

  it('is a rich text behind tables that hold characters by their numbers', async () => {
    const rtf = (body: string) => text(bytesOf(`{\\rtf1\\ansi\\ansicpg1252${body}}`));
    const fonts = "{\\fonttbl{\\f0\\fcharset128 \\u65325?\\u65331\\'81;}{\\f1 \\u26032 x;}}";
    expect(await rtf(`${fonts}\\uc1 Dear Anna`)).toBe('Dear Anna');
    expect(await rtf('{\\*\\generator \\u8364}Dear Anna')).toBe('Dear Anna');
    expect(await rtf('{\\v \\u8364 }Dear Anna, {\\uc2\\u26085 ab}x')).toBe('Dear Anna, 日x');
  });

  it('is a rich text in the code page of East Asia', async () => {
    const japanese =
      "{\\rtf1\\ansi\\ansicpg932 \\'93\\'fa\\'96{}\\'7b \\'83e\\'83L {\\uc2\\u35486\\'8c\\'ea}!}";
    expect(await text(bytesOf(japanese.replace('{}', '')))).toBe('日本 テキ 語!');
  });

  it('is the rows of a table in a rich text', async () => {
    const table = '\\trowd a\\cell b\\cell\\row \\trowd c\\cell\\cell\\row after';
    expect(await text(bytesOf(`{\\rtf1 ${table}}`))).toBe('a | b\nc |\nafter');
  });

  it('is the cells of tables in slides and OpenDocument texts, also the empty ones', async () => {
    const slideTable =
      '</a:t></a:r></a:p></p:txBody></p:sp><a:tbl><a:tr><a:tc><a:p><a:r><a:t>a|b</a:t></a:r></a:p></a:tc><a:tc><a:p/></a:tc></a:tr><a:tr><a:tc><a:p/></a:tc><a:tc><a:p><a:r><a:t>d</a:t></a:r></a:p></a:tc></a:tr></a:tbl><p:sp><p:txBody><a:p><a:r><a:t>';
    expect(await text(pptx([{ text: slideTable }]))).toContain('a\\|b |\n | d');
    const cell = (inner: string) => `<table:table-cell>${inner}</table:table-cell>`;
    const row = (...cells: readonly string[]) =>
      `<table:table-row>${cells.map(cell).join('')}</table:table-row>`;
    const p = (words: string) => `<text:p>${words}</text:p>`;
    const inner = `<table:table>${row(p('x'), p('1'))}${row(p('y'), '')}</table:table>`;
    const table = `<table:table>${row(p('a'), '')}${row(p('Order'), inner, p('30'))}</table:table>`;
    expect(await text(odf('text', table))).toBe('a |\nOrder\nx | 1\ny |\n | 30');
  });

  it('is what an Excel file shows: errors, units, formulas without a value, hidden sheets', async () => {
    const main = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"';
    const cell = (at: string, style: number, value: string, type = 'n') =>
      `<c r="${at}1" s="${style}" t="${type}"><v>${value}</v></c>`;
    const row = [
      cell('A', 0, '#DIV/0!', 'e'),
      cell('B', 1, '0.125'),
      cell('C', 2, '-5'),
      cell('D', 3, '1234.5'),
      cell('E', 4, '3'),
      cell('F', 5, '45000.5'),
      cell('G', 0, '0.30000000000000004'),
      '<c r="I1"><f>SUM(A1:B1)</f></c>',
      '<c r="J1" t="inlineStr"><is><t>日</t><rPh sb="0" eb="1"><t>ひ</t></rPh></is></c>',
    ];
    const formats = [
      [164, '&quot;$&quot;#,##0.00;[Red]\\-&quot;$&quot;#,##0.00'],
      [165, '_-* #,##0.00\\ [$€-407]_-'],
      [166, '0&quot; kg&quot;'],
      [167, 'yyyy\\-mm\\-dd\\ hh:mm'],
    ].map(([id, code]) => `<numFmt numFmtId="${id}" formatCode="${code}"/>`);
    const styles = [0, 10, 164, 165, 166, 167].map((id) => `<xf numFmtId="${id}"/>`);
    const content = xlsx(
      { Sums: [], Kept: [] },
      `<worksheet ${main}><sheetData><row r="1">${row.join('')}</row></sheetData></worksheet>`,
      {
        'xl/styles.xml': `<styleSheet ${main}><numFmts>${formats.join('')}</numFmts><cellStyleXfs><xf numFmtId="9"/></cellStyleXfs><cellXfs>${styles.join('')}</cellXfs></styleSheet>`,
        'xl/workbook.xml': `<workbook ${main} xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><sheets><sheet name="Sums" sheetId="1" r:id="rId1"/><sheet name="Kept" sheetId="2" state="veryHidden" r:id="rId2"/></sheets></workbook>`,
      },
    );
    const line =
      '#DIV/0! | 12.5% | -$5.00 | 1234.50 € | 3 kg | 2023-03-15 12:00 | 0.3 |  | =SUM(A1:B1) | 日';
    expect(await sections(content)).toEqual([
      { title: 'sheet Sums', text: line },
      { title: 'sheet Kept, hidden', text: line },
    ]);
    const sheet = (name: string, style: string) =>
      `<table:table table:name="${name}" table:style-name="${style}"><table:table-row><table:table-cell><text:p>x</text:p></table:table-cell></table:table-row></table:table>`;
    const style =
      '<style:style style:name="ta2"><style:table-properties table:display="false"/></style:style>';
    const titles = await sections(
      odf('spreadsheet', style + sheet('A', 'ta1') + sheet('B', 'ta2')),
    );
    expect(titles.map(({ title }) => title)).toEqual(['sheet A', 'sheet B, hidden']);
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

/** The same text, as programs of the world write it. Bytes in hexadecimal. */
const ENCODED: readonly (readonly [name: string, hex: string, text: string])[] = [
  [
    'UTF-16LE with a mark',
    'fffe6e0061006d0065003b004a00f600720067003b00e5652c670d000a0035003b007800',
    'name;Jörg;日本\n5;x',
  ],
  ['UTF-16BE with a mark', 'feff006e0061006d0065003b004a00f600720067', 'name;Jörg'],
  [
    'UTF-32LE with a mark',
    'fffe00006e000000610000006d000000650000003b0000004a000000f6000000720000006700000020000000e5650000',
    'name;Jörg 日',
  ],
  [
    'UTF-32BE with a mark',
    '0000feff0000006e000000610000006d000000650000003b0000004a000000f60000007200000067',
    'name;Jörg',
  ],
  ['UTF-8 with a mark', 'efbbbf6e616d653b4ac3b67267', 'name;Jörg'],
  ['UTF-8', '6974e2809973206e61c3af766520636166c3a920e697a5e69cac20c2bd', 'it’s naïve café 日本 ½'],
  [
    'Shift-JIS',
    '93fa967b8cea82cc8365834c8358836782c582b7814257696e646f777382cc90dd92e8',
    '日本語のテキストです。Windowsの設定',
  ],
  ['Shift-JIS, two letters', '8e8196bc2c938c8b9e', '氏名,東京'],
  ['Shift-JIS with half-wide kana', 'b6c0b6c52093fa967b8cea82cc95b6', 'ｶﾀｶﾅ 日本語の文'],
  ['EUC-JP', 'c6fccbdcb8eca4cea5c6a5ada5b9a5c8a4c7a4b9a1a3c5ecb5fe', '日本語のテキストです。東京'],
  ['ISO-2022-JP', '1b2442467c4b5c386c244e2546252d253925481b2842', '日本語のテキスト'],
  ['GBK', 'c4e3bac3a3accac0bde7a1a3bcdbb8f1ceaacaaed4aaa1a3', '你好，世界。价格为十元。'],
  ['GB18030', 'd0d5c3fb2cb5e7bbb00acdf5ceb02c313233', '姓名,电话\n王伟,123'],
  [
    'Big5',
    'a741a66ea141a540acc9a143b36fac4fa440add3b4fab8d5c0c9aed7a143',
    '你好，世界。這是一個測試檔案。',
  ],
  [
    'EUC-KR',
    'bec8b3e7c7cfbcbcbfe42e20c0ccb0cdc0ba20c7d1b1b9beeeb7ce20c0dbbcbab5c820bdc3c7e820b9aebcadc0d4b4cfb4d92e',
    '안녕하세요. 이것은 한국어로 작성된 시험 문서입니다.',
  ],
  [
    'Windows-1252, apostrophes',
    '6974927320616e6420646f6e92742c2063616e9274',
    'it’s and don’t, can’t',
  ],
  ['Windows-1252, quotes', '9348656c6c6f9420962069749273206e61ef7665', '“Hello” – it’s naïve'],
  [
    'Windows-1252, German',
    'c4d6dc204752d65353452c204772fcdf6520802035206db3',
    'ÄÖÜ GRÖSSE, Grüße € 5 m³',
  ],
  [
    'Windows-1252, French',
    '4c92e974e920e02047656ee876652c206ff920e76120636ffb746520352080',
    'L’été à Genève, où ça coûte 5 €',
  ],
  [
    'Windows-1252, Spanish',
    '456c206e69f16f20636f6d69f320617175ed2c20bf7665726461643f',
    'El niño comió aquí, ¿verdad?',
  ],
  ['Windows-1250, Polish', '5a61bff3b3e62067ea9c6cb9206a619ff1', 'Zażółć gęślą jaźń'],
  ['Windows-1250, Czech', '50f8ed6c699a209e6c759d6f75e86bfd206bf9f2', 'Příliš žluťoučký kůň'],
  [
    'Windows-1250, Hungarian',
    'c17276ed7a74fb72f52074fc6bf67266fa72f367e970',
    'Árvíztűrő tükörfúrógép',
  ],
  ['Windows-1251', 'cae8bfe2209720f1f2eeebe8f6ff20d3eaf0e0bfede8', 'Київ — столиця України'],
  ['Windows-1251, capitals', 'cfd0c8c2c5d220ccc8d0', 'ПРИВЕТ МИР'],
  ['KOI8-R', 'f0d2c9d7c5d42c20dcd4cf20d4c5cbd3d4', 'Привет, это текст'],
  [
    'Windows-1253',
    'cae1ebe7ecddf1e120eafcf3ece52c20e1f5f4fc20e5dfede1e9',
    'Καλημέρα κόσμε, αυτό είναι',
  ],
  [
    'Windows-1254',
    '54fc726be7653a20fdf064fd722c20fe69fe6c692c20e761f0',
    'Türkçe: ığdır, şişli, çağ',
  ],
  [
    'Windows-1256',
    'e3d1cdc8c720c8c7e1dac7e1e320e5d0c720e4d520dad1c8ed',
    'مرحبا بالعالم هذا نص عربي',
  ],
  [
    'Windows-1257',
    'e0fe756f6c61732c20f065f0eb6c69732c20e1646f6d752c20fb6b6973',
    'ąžuolas, šešėlis, įdomu, ūkis',
  ],
];

it.each(ENCODED)('a text in %s keeps its letters', async (_, hex, written) => {
  expect(await text(Buffer.from(hex, 'hex'))).toBe(written);
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
    const outlook = Buffer.from('__properties_version1.0', 'utf16le');
    const message = Buffer.concat([locked.subarray(0, 500), outlook]);
    expect(await reason(message)).toContain('saved as .eml');
    expect(await reason(zip({ 'a.txt': 'hi' }))).toContain('archives are not unpacked');
    expect(await reason(Buffer.from([0, 1, 2, 3, 4, 200, 0]))).toContain('cannot be read as text');
    expect(await reason(new Uint8Array())).toBe('it is empty');
    expect(await reason(bytesOf('%PDF-1.7 nothing else'))).toContain('it is damaged');
    expect(await reason(docx([]))).toBe('this document has no text');
    const long = `From: a\nDate: b\n${'X: y\n'.repeat(500)}\nhi`;
    expect(await reason(bytesOf(long))).toContain('too many or nested too deep');
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
