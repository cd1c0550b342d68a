// Documents of every kind that is read, made by hand: small, and nobody's.

import { deflateRawSync, deflateSync } from 'node:zlib';
import { zipSync } from 'fflate';

type Parts = Readonly<Record<string, string | Uint8Array>>;

export const bytesOf = (text: string) => new TextEncoder().encode(text);

export function zip(parts: Parts): Uint8Array {
  const entries = Object.entries(parts).map(([name, part]) => [
    name,
    typeof part === 'string' ? bytesOf(part) : part,
  ]);
  return zipSync(Object.fromEntries(entries));
}

const XML = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n';
const WORD = 'http://schemas.openxmlformats.org/wordprocessingml/2006/main';
const OFFICE = 'http://schemas.openxmlformats.org/officeDocument/2006/relationships';
const PACKAGE = 'http://schemas.openxmlformats.org/package/2006';
const DRAWING = 'http://schemas.openxmlformats.org/drawingml/2006/main';

const contentTypes = (overrides: Readonly<Record<string, string>>) =>
  `${XML}<Types xmlns="${PACKAGE}/content-types"><Default Extension="xml" ContentType="application/xml"/><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>${Object.entries(
    overrides,
  )
    .map(([part, type]) => `<Override PartName="/${part}" ContentType="${type}"/>`)
    .join('')}</Types>`;

const relationships = (rows: readonly (readonly [string, string, string])[]) =>
  `${XML}<Relationships xmlns="${PACKAGE}/relationships">${rows
    .map(([id, type, target]) => `<Relationship Id="${id}" Type="${type}" Target="${target}"/>`)
    .join('')}</Relationships>`;

const paragraph = (text: string) => `<w:p><w:r><w:t xml:space="preserve">${text}</w:t></w:r></w:p>`;

/** A Word document of paragraphs and one table. */
export function docx(
  paragraphs: readonly string[],
  table: readonly (readonly string[])[] = [],
  more: Parts = {},
): Uint8Array {
  const rows = table.map(
    (row) => `<w:tr>${row.map((cell) => `<w:tc>${paragraph(cell)}</w:tc>`).join('')}</w:tr>`,
  );
  const tables = rows.length === 0 ? '' : `<w:tbl>${rows.join('')}</w:tbl>`;
  return docxOf(`${paragraphs.map(paragraph).join('')}${tables}`, more);
}

/** @param body in WordprocessingML */
export function docxOf(body: string, more: Parts = {}): Uint8Array {
  const main = 'application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml';
  return zip({
    '[Content_Types].xml': contentTypes({ 'word/document.xml': main }),
    '_rels/.rels': relationships([['rId1', `${OFFICE}/officeDocument`, 'word/document.xml']]),
    'word/document.xml': `${XML}<w:document xmlns:w="${WORD}"><w:body>${body}</w:body></w:document>`,
    ...more,
  });
}

const SPREADSHEET = 'http://schemas.openxmlformats.org/spreadsheetml/2006/main';

export function xlsx(
  sheets: Readonly<Record<string, readonly (readonly (string | number)[])[]>>,
  /** In the place of what would be written for each. */
  sheetXml?: string,
  more: Parts = {},
): Uint8Array {
  const names = Object.keys(sheets);
  const parts = Object.values(sheets).map((rows, index) => {
    const cells = rows.map((row, r) => {
      const columns = row.map((value, c) => {
        const at = `${String.fromCharCode(65 + c)}${r + 1}`;
        return typeof value === 'number'
          ? `<c r="${at}"><v>${value}</v></c>`
          : `<c r="${at}" t="inlineStr"><is><t>${value}</t></is></c>`;
      });
      return `<row r="${r + 1}">${columns.join('')}</row>`;
    });
    const xml = `${XML}<worksheet xmlns="${SPREADSHEET}"><sheetData>${cells.join('')}</sheetData></worksheet>`;
    return [`xl/worksheets/sheet${index + 1}.xml`, sheetXml ?? xml] as const;
  });
  const listed = names.map(
    (name, index) => `<sheet name="${name}" sheetId="${index + 1}" r:id="rId${index + 1}"/>`,
  );
  return zip({
    '[Content_Types].xml': contentTypes({}),
    '_rels/.rels': relationships([['rId1', `${OFFICE}/officeDocument`, 'xl/workbook.xml']]),
    'xl/workbook.xml': `${XML}<workbook xmlns="${SPREADSHEET}" xmlns:r="${OFFICE}"><sheets>${listed.join('')}</sheets></workbook>`,
    'xl/_rels/workbook.xml.rels': relationships(
      names.map((_, i) => [`rId${i + 1}`, `${OFFICE}/worksheet`, `worksheets/sheet${i + 1}.xml`]),
    ),
    'xl/styles.xml': `${XML}<styleSheet xmlns="${SPREADSHEET}"><cellXfs count="1"><xf numFmtId="0"/></cellXfs></styleSheet>`,
    ...Object.fromEntries(parts),
    ...more,
  });
}

const shape = (text: string, holder = '') =>
  `<p:sp><p:nvSpPr><p:nvPr>${holder}</p:nvPr></p:nvSpPr><p:txBody><a:p><a:r><a:t>${text}</a:t></a:r></a:p></p:txBody></p:sp>`;
const slide = (body: string) => `${XML}<p:sld xmlns:a="${DRAWING}" xmlns:p="p">${body}</p:sld>`;

/** Slides whose files are numbered against the order in which they are shown. */
export function pptx(slides: readonly { readonly text: string; readonly notes?: string }[]) {
  const fileOf = (index: number) => `slide${slides.length - index}.xml`;
  const parts = slides.flatMap(({ text, notes }, index) => {
    const own = [
      [
        `ppt/slides/${fileOf(index)}`,
        slide(shape(text) + shape(`${index + 1}`, '<p:ph type="sldNum"/>')),
      ],
    ];
    if (notes === undefined) return own;
    const rels = relationships([['rId1', `${OFFICE}/notesSlide`, `../notesSlides/n${index}.xml`]]);
    return [
      ...own,
      [`ppt/slides/_rels/${fileOf(index)}.rels`, rels],
      [`ppt/notesSlides/n${index}.xml`, slide(shape(notes))],
    ];
  });
  const ids = slides.map((_, index) => `<p:sldId id="${256 + index}" r:id="rId${index}"/>`);
  return zip({
    '[Content_Types].xml': contentTypes({}),
    'ppt/presentation.xml': `${XML}<p:presentation xmlns:p="p" xmlns:r="r"><p:sldIdLst>${ids.join('')}</p:sldIdLst></p:presentation>`,
    'ppt/_rels/presentation.xml.rels': relationships(
      slides.map((_, index) => [`rId${index}`, `${OFFICE}/slide`, `slides/${fileOf(index)}`]),
    ),
    ...Object.fromEntries(parts),
  });
}

export const odf = (
  type: 'text' | 'spreadsheet' | 'presentation',
  body: string,
  more: Parts = {},
) =>
  zip({
    mimetype: `application/vnd.oasis.opendocument.${type}`,
    'content.xml': `${XML}<office:document-content><office:body>${body}</office:body></office:document-content>`,
    ...more,
  });

export const epub = (chapters: readonly string[]) =>
  zip({
    mimetype: 'application/epub+zip',
    'META-INF/container.xml': `${XML}<container><rootfiles><rootfile full-path="OEBPS/book.opf"/></rootfiles></container>`,
    'OEBPS/book.opf': `${XML}<package><manifest>${chapters
      .map((_, n) => `<item id="c${n}" href="text/c%20${n}.xhtml"/>`)
      .join(
        '',
      )}</manifest><spine>${chapters.map((_, n) => `<itemref idref="c${n}"/>`).join('')}</spine></package>`,
    ...Object.fromEntries(
      chapters.map((text, n) => [
        `OEBPS/text/c ${n}.xhtml`,
        `${XML}<!DOCTYPE html><html><head><title>no</title></head><body>${text}</body></html>`,
      ]),
    ),
  });

type PdfStream = { readonly content: Uint8Array; readonly filters?: string };

const packed = (text: string): PdfStream => ({
  content: deflateSync(bytesOf(text)),
  filters: '/FlateDecode',
});

/** A PDF with a page for each text; an empty text is a page without any. */
export const pdf = (pages: readonly string[], trailer = '') =>
  pdfOf(
    pages.map((text) =>
      packed(text === '' ? '0 0 10 10 re f' : `BT /F1 12 Tf 72 700 Td (${text}) Tj ET`),
    ),
    trailer,
  );

export function pdfOf(streams: readonly PdfStream[], trailer = ''): Uint8Array {
  const objects: Uint8Array[] = [];
  const add = (body: string | Uint8Array) =>
    objects.push(typeof body === 'string' ? Buffer.from(body, 'latin1') : body);
  const kids = streams.map((_, index) => `${4 + index * 2} 0 R`).join(' ');
  add('<< /Type /Catalog /Pages 2 0 R >>');
  add(`<< /Type /Pages /Kids [${kids}] /Count ${streams.length} >>`);
  add('<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>');
  streams.forEach(({ content, filters }, index) => {
    add(
      `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >> /Contents ${5 + index * 2} 0 R >>`,
    );
    const filter = filters === undefined ? '' : ` /Filter [${filters}]`;
    const head = `<< /Length ${content.length}${filter} >>\nstream\n`;
    add(Buffer.concat([Buffer.from(head), content, Buffer.from('\nendstream')]));
  });
  const chunks = [Buffer.from('%PDF-1.7\n')];
  const offsets: number[] = [];
  const length = () => chunks.reduce((sum, chunk) => sum + chunk.length, 0);
  objects.forEach((body, index) => {
    offsets.push(length());
    chunks.push(
      Buffer.concat([Buffer.from(`${index + 1} 0 obj\n`), body, Buffer.from('\nendobj\n')]),
    );
  });
  const start = length();
  const rows = offsets.map((offset) => `${String(offset).padStart(10, '0')} 00000 n \n`).join('');
  chunks.push(
    Buffer.from(
      `xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${rows}trailer\n<< /Size ${objects.length + 1} /Root 1 0 R ${trailer} >>\nstartxref\n${start}\n%%EOF\n`,
    ),
  );
  return Buffer.concat(chunks);
}

/** Zeros, packed in pieces so that the test itself stays small. */
export function zerosDeflated(megabytes: number): Uint8Array {
  const piece = Buffer.alloc(1_000_000);
  // Each piece ends at a byte boundary without being the last one.
  const open = deflateRawSync(piece, { finishFlush: 2 });
  const last = deflateRawSync(Buffer.alloc(1));
  return Buffer.concat([...Array.from({ length: megabytes }, () => open), last]);
}
