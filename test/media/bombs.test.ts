// Documents made to break or to fill the machine that opens them (cases E19 to E21 and X10): each ends
// in a sentence, within bounded memory and time, while the process goes on with its work.

import { deflateSync, gzipSync } from 'node:zlib';
import { expect, it } from 'vitest';
import { extract } from '../../src/kernel/media/extract/extract.ts';
import { createReaderMemory } from '../../src/lib/async.ts';
import { systemClock } from '../../src/lib/time/clock.ts';
import { campaign } from '../support/campaign.ts';
import { watchStretches } from '../support/cpu-time.ts';
import { bytesOf, docx, epub, odf, pdf, pdfOf, xlsx, zerosDeflated, zip } from './documents.ts';

/** The thread's own limits, and how far it comes until it is looked at. */
const MAX_GROWTH_BYTES = 700_000_000;
/** Where this process did the work itself, it would stand still for many seconds. */
const MAX_PAUSE_MS = 1500;

const OPERATORS = campaign({ short: 1_000_000, full: 10_000_000 });
const PAGE_MEGABYTES = campaign({ short: 150, full: 800 });

const zeros = (bytes: number) => new Uint8Array(bytes);
const repeat = (text: string, times: number) => text.repeat(times);

/** A zip of one packed entry whose sizes lie. */
function lyingZip(name: string, content: Uint8Array, claimed: number): Uint8Array {
  const file = Buffer.from(name);
  const header = (signature: number, before: number, length: number) => {
    const bytes = Buffer.alloc(length);
    bytes.writeUInt32LE(signature, 0);
    bytes.writeUInt16LE(8, before + 6);
    bytes.writeUInt32LE(content.length, before + 16);
    bytes.writeUInt32LE(claimed, before + 20);
    bytes.writeUInt16LE(file.length, before + 24);
    return bytes;
  };
  const local = Buffer.concat([header(0x04034b50, 2, 30), file, content]);
  const central = Buffer.concat([header(0x02014b50, 4, 46), file]);
  const end = Buffer.alloc(22);
  end.writeUInt32LE(0x06054b50, 0);
  end.writeUInt16LE(1, 8);
  end.writeUInt16LE(1, 10);
  end.writeUInt32LE(central.length, 12);
  end.writeUInt32LE(local.length, 16);
  return Buffer.concat([local, central, end]);
}

const laughs = `<!DOCTYPE lolz [<!ENTITY a "ha">${[...'bcdefghij']
  .map((name, n) => `<!ENTITY ${name} "${repeat(`&${'abcdefghij'[n]};`, 10)}">`)
  .join('')}]>`;
const outside = '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]>';
const nested = (depth: number): Uint8Array =>
  depth === 0 ? zip({ 'zeros.bin': zeros(5_000_000) }) : zip({ 'inner.zip': nested(depth - 1) });
const wideSheet =
  '<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData><row r="1"><c r="A1"><v>1</v></c></row><row r="1048576"><c r="XFD1048576"><v>1</v></c></row></sheetData></worksheet>';
const pdfBomb = (megabytes: number) => ({
  content: deflateSync(zeros(megabytes * 1_000_000)),
  filters: '/FlateDecode',
});

const BOMBS: Readonly<Record<string, () => Uint8Array>> = {
  'a part of a gigabyte of zeros': () => lyingZip('word/document.xml', zerosDeflated(1000), 1e9),
  'a part that lies about its size': () => lyingZip('word/document.xml', zerosDeflated(500), 100),
  'zips in zips': () => nested(6),
  'a zip of sixteen zips of zeros': () =>
    zip(
      Object.fromEntries(
        Array.from({ length: 16 }, (_, n) => [`lib ${n}.zip`, zip({ zeros: zeros(2_000_000) })]),
      ),
    ),
  'ten thousand parts': () =>
    docx(
      ['x'],
      [],
      Object.fromEntries(Array.from({ length: 10_000 }, (_, n) => [`word/p${n}.xml`, '<x/>'])),
    ),
  'hundred parts that are too much together': () =>
    epub(Array.from({ length: 100 }, (_, n) => `${n}${repeat(' abcdefghij', 180_000)}`)),
  'entities of entities in Word': () =>
    docx([], [], { 'word/document.xml': `${laughs}<w:document>&j;</w:document>` }),
  'entities of entities in OpenDocument': () =>
    odf('text', '', { 'content.xml': `${laughs}<text:p>&j;</text:p>` }),
  'an entity that names a file': () =>
    docx([], [], { 'word/document.xml': `${outside}<w:document>&e;</w:document>` }),
  'entities of entities in a book': () => epub([`${laughs}<p>&j;</p>`]),
  'names that leave the folder': () =>
    zip({ '../../../../tmp/escaped.txt': 'x', '/etc/cron.d/x': 'x', 'C:\\x': 'x' }),
  'a sheet to the last cell there is': () => xlsx({ A: [] }, wideSheet),
  'a cell repeated to the edge': () =>
    odf(
      'spreadsheet',
      `<table:table>${repeat('<table:table-row table:number-rows-repeated="1048576"><table:table-cell table:number-columns-repeated="999999999"><text:p>boom</text:p></table:table-cell></table:table-row>', 2000)}</table:table>`,
    ),
  'spaces by the billion': () => odf('text', `<text:p>a<text:s text:c="4000000000"/>b</text:p>`),
  'elements in elements': () => odf('text', repeat('<text:span>', 2_000_000)),
  'elements in elements in Word': () =>
    docx([], [], { 'word/document.xml': `<w:document>${repeat('<w:p>', 500_000)}` }),
  'a PDF whose page unpacks to hundreds of megabytes': () => pdfOf([pdfBomb(PAGE_MEGABYTES)]),
  'a PDF packed twice': () =>
    pdfOf([
      {
        content: deflateSync(deflateSync(zeros(PAGE_MEGABYTES * 1_000_000))),
        filters: '/FlateDecode /FlateDecode',
      },
    ]),
  'a PDF of pages in a ring': () =>
    Buffer.from(
      Buffer.from(pdf(['x']))
        .toString('latin1')
        .replace('/Type /Page /Parent 2 0 R', '/Type /Pages /Kids [2 0 R]'),
      'latin1',
    ),
  'a PDF with a billion pages': () =>
    Buffer.from(
      Buffer.from(pdf(['x']))
        .toString('latin1')
        .replace('/Count 1', '/Count 999999999'),
      'latin1',
    ),
  'a PDF of millions of operators': () =>
    pdfOf([
      {
        content: deflateSync(bytesOf(`BT /F1 12 Tf ${repeat('(a) Tj ', OPERATORS)} ET`)),
        filters: '/FlateDecode',
      },
    ]),
  'a gigabyte behind gzip': () => gzipSync(zeros(100_000_000)),
  'tags that never end': () => bytesOf(`<html>${repeat('<a "', 1_000_000)}`),
  'comments that never end': () => bytesOf(`<html>${repeat('<!--', 1_000_000)}`),
  'groups in groups in rich text': () => bytesOf(`{\\rtf1 ${repeat('{', 5_000_000)}`),
  'an end of archive cut off': () => Buffer.from(docx(['x'])).subarray(0, -30),
  'a book that leads nowhere': () => epub([]),
};

it('ends every bomb in words, without a crash, within memory, and blocks nobody', async () => {
  for (const [name, make] of Object.entries(BOMBS)) {
    const content = make();
    const start = process.memoryUsage().rss;
    const watch = watching();
    const begun = performance.now();
    const reading = await extract(content, {
      clock: systemClock,
      signal: new AbortController().signal,
      memory: createReaderMemory(),
    });
    const { longestPauseMs, highest } = watch.stop();
    expect(highest - start, name).toBeLessThan(MAX_GROWTH_BYTES);
    expect(longestPauseMs, name).toBeLessThan(MAX_PAUSE_MS);
    expect(performance.now() - begun, name).toBeLessThan(90_000);
    if (reading.kind !== 'text') continue;
    const chars = reading.sections.reduce((sum, section) => sum + section.text.length, 0);
    expect(chars, name).toBeLessThanOrEqual(2_000_000);
  }
}, 400_000);

/** Looks every few milliseconds at the memory, and at how busy this thread was in between. */
function watching() {
  let highest = 0;
  const watch = watchStretches(() => {
    highest = Math.max(highest, process.memoryUsage().rss);
  });
  return {
    stop() {
      watch.stop();
      return { longestPauseMs: watch.longestMs(), highest };
    },
  };
}
