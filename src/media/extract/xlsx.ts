// Excel sheets, by read-excel-file: a line per row, its cells parted by bars.

import readXlsxFile from 'read-excel-file/universal';
import type { Archive } from './archive.ts';
import { repacked } from './docx.ts';
import { Sections } from './sections.ts';

const NO_TEXT = 'this table is empty';
const SHEET_PARTS =
  /^(?:\[Content_Types\]\.xml|_rels\/\.rels|xl\/[^/]+\.xml|xl\/_rels\/[^/]+|xl\/worksheets\/[^/]+\.xml)$/;
const MIDNIGHT = /T00:00:00\.000Z$/;

export async function readXlsx(archive: Archive) {
  const packed = repacked(archive, SHEET_PARTS);
  const sheets = await readXlsxFile(new Uint8Array(packed).buffer);
  const sections = new Sections();
  for (const { sheet, data } of sheets) {
    if (sections.isFull) break;
    sections.add(`sheet ${sheet}`, rowsText(data));
  }
  return sections.reading(NO_TEXT);
}

/** Without empty cells at the end of a row and empty rows at the end of the sheet. */
function rowsText(rows: readonly (readonly unknown[])[]): string {
  return rows
    .map((row) =>
      row
        .map(cellText)
        .join(' | ')
        .replace(/(?: \| )+$/, ''),
    )
    .join('\n')
    .trimEnd();
}

function cellText(value: unknown): string {
  if (value === null || value === undefined) return '';
  if (value instanceof Date) {
    return Number.isNaN(value.getTime()) ? '' : value.toISOString().replace(MIDNIGHT, '');
  }
  return String(value).replace(/\s+/g, ' ').trim();
}
