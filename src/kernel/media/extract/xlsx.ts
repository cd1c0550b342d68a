// Excel sheets: a line per row, its cells separated by bars, numbers with the unit that the sheet
// shows (ECMA-376 part 1, 18.2 to 18.4 and 18.8.30).

import { rowLine } from '../../../lib/html/text-lines.ts';
import {
  attributeOf,
  childrenOf,
  elementOf,
  localName,
  type XmlElement,
  xmlText,
  xmlTokens,
} from '../../../lib/html/xml.ts';
import { oneLine } from '../../../lib/text/cut.ts';
import { t } from '../../../lib/texts.ts';
import type { Archive } from './archive.ts';
import { DAMAGED, DocumentProblem, Sections } from './extract.ts';
import { relations, tagsIn } from './packages.ts';

const NO_TEXT = t`this table is empty`;
const WORKBOOK = 'xl/workbook.xml';
/** Empty cells and rows written before others, in one file. */
const MAX_FILLED = 200_000;
const MAX_CELL_CHARS = 100_000;
const DAY_MS = 86_400_000;
const FIRST_DAY_MS = Date.UTC(1899, 11, 30);
/** Days between the two calendars that a file may use. */
const DAYS_TO_1904 = 1462;
/** Digits of a number that a sheet keeps. */
const DIGITS = 15;

type Sheet = { readonly name: string; readonly path: string; readonly isHidden: boolean };
type Format =
  | { readonly kind: 'plain' | 'date' | 'percent' }
  | {
      readonly kind: 'unit';
      readonly before: string;
      readonly after: string;
      readonly decimals: number;
    };
const PLAIN: Format = { kind: 'plain' };

type Workbook = {
  readonly sheets: readonly Sheet[];
  readonly is1904: boolean;
  readonly strings: readonly string[];
  /** By the number of a cell's style. */
  readonly formats: readonly Format[];
  /** Empty cells so far. */
  filled: number;
};

export function readXlsx(archive: Archive) {
  const book = workbookOf(archive);
  const sections = new Sections();
  for (const { name, path, isHidden } of book.sheets) {
    if (sections.isFull) break;
    const xml = archive.xml(path);
    if (xml !== undefined) {
      sections.add(
        `sheet ${name}${isHidden ? ', hidden' : ''}`,
        sheetText(xml, book, sections.room),
      );
    }
  }
  return sections.reading(NO_TEXT);
}

function workbookOf(archive: Archive): Workbook {
  const paths = new Map(relations(archive, WORKBOOK).map(({ id, path }) => [id, path]));
  const xml = archive.xml(WORKBOOK);
  if (xml === undefined) throw new DocumentProblem(DAMAGED);
  const sheets: Sheet[] = [];
  for (const read of tagsIn(xml, 'sheet')) {
    const path = paths.get(read('r:id') ?? '');
    if (path === undefined || !archive.has(path)) continue;
    const isHidden = /hidden/i.test(read('state') ?? '');
    sheets.push({ name: read('name') ?? `${sheets.length + 1}`, path, isHidden });
  }
  if (sheets.length === 0) throw new DocumentProblem(DAMAGED);
  const settings = [...tagsIn(xml, 'workbookpr')];
  return {
    sheets,
    is1904: settings.some((read) => /^(?:1|true)$/.test(read('date1904') ?? '')),
    strings: stringsOf(archive.xml('xl/sharedStrings.xml') ?? ''),
    formats: formatsOf(archive.xml('xl/styles.xml') ?? ''),
    filled: 0,
  };
}

/** The elements of this name, one at a time. */
function* elementsIn(xml: string, name: string): Generator<XmlElement, void, void> {
  const tokens = xmlTokens(xml);
  for (const token of tokens) {
    if (token.type === 'open' && localName(token.name) === name) yield elementOf(token, tokens);
  }
}

const stringsOf = (xml: string): readonly string[] => Array.from(elementsIn(xml, 'si'), richText);

/** The joined text, without phonetic guides. */
const richText = (element: XmlElement): string =>
  childrenOf(element)
    .map((child) => {
      const name = localName(child.tagName);
      return name === 't' ? xmlText(child) : name === 'rph' ? '' : richText(child);
    })
    .join('');

function formatsOf(xml: string): readonly Format[] {
  const codes = new Map<number, string>();
  for (const read of tagsIn(xml, 'numfmt')) {
    codes.set(Number(read('numfmtid')), read('formatcode') ?? '');
  }
  const [cells] = elementsIn(xml, 'cellxfs');
  return (cells === undefined ? [] : childrenOf(cells, 'xf')).map((style) => {
    const id = Number(attributeOf(style, 'numfmtid'));
    return formatOf(id, codes.get(id));
  });
}

function formatOf(id: number, code: string | undefined): Format {
  if (code === undefined) {
    if (id === 9 || id === 10) return { kind: 'percent' };
    const isDate = (id >= 14 && id <= 22) || (id >= 27 && id <= 36) || (id >= 45 && id <= 58);
    return isDate && id !== 48 && id !== 49 ? { kind: 'date' } : PLAIN;
  }
  const [first = ''] = code.split(';');
  // Units are in quotes, after a backslash or in [$...]; colours, conditions and gaps are dropped.
  const section = first
    .replace(/\[\$([^\]-]*)[^\]]*\]/g, '"$1"')
    .replace(/\[(?![hms]+\])[^\]]*\]|[_*]./gi, '')
    .replace(/\\(.)/g, '"$1"');
  const bare = section.replace(/"[^"]*"/g, '');
  if (bare.includes('%')) return { kind: 'percent' };
  if (/^general$/i.test(bare.trim())) return PLAIN;
  if (/[dmyhs]/i.test(bare)) return { kind: 'date' };
  const start = section.search(/[#0?](?=(?:[^"]*"[^"]*")*[^"]*$)/);
  if (start < 0) return PLAIN;
  const literal = (part: string) =>
    [...part.matchAll(/"([^"]*)"|(\p{Sc})/gu)].map(([, quoted, sign]) => quoted ?? sign).join('');
  const digits = /^[#0?,]*(?:\.([#0?]*))?/.exec(section.slice(start));
  const before = literal(section.slice(0, start));
  const after = literal(section.slice(start));
  const decimals = digits?.[1]?.length ?? 0;
  return `${before}${after}`.trim() === '' ? PLAIN : { kind: 'unit', before, after, decimals };
}

/** @param room no more rows are read than fill it */
function sheetText(xml: string, book: Workbook, room: number): string {
  const lines: string[] = [];
  let length = 0;
  let number = 0;
  for (const row of elementsIn(xml, 'row')) {
    const next = number + 1;
    const given = Number(attributeOf(row, 'r'));
    number = Number.isSafeInteger(given) && given >= next ? given : next;
    // One empty line stands for any number of them.
    if (number > next && lines.length > 0) lines.push('');
    const cells: string[] = [];
    for (const cell of childrenOf(row, 'c')) {
      const column = columnOf(attributeOf(cell, 'r') ?? '');
      for (; cells.length < column && book.filled < MAX_FILLED; book.filled += 1) cells.push('');
      cells.push(oneLine(cellText(cell, book)));
    }
    const line = rowLine(cells).replace(/(?: \| )+$/, '');
    lines.push(line);
    length += line.trimEnd().length;
    if (length > room) break;
  }
  return lines.join('\n').trimEnd();
}

function cellText(cell: XmlElement, book: Workbook): string {
  const textOf = (name: string) => childrenOf(cell, name).map(xmlText).join('');
  const value = (textOf('v') + childrenOf(cell, 'is').map(richText).join('')).slice(
    0,
    MAX_CELL_CHARS,
  );
  switch (attributeOf(cell, 't') ?? 'n') {
    case 's':
      return book.strings[Number(value)] ?? '';
    case 'b':
      return value === '1' ? 'true' : value === '' ? '' : 'false';
    case 'n': {
      const style = Number(attributeOf(cell, 's') ?? 0);
      if (value.trim() !== '') return numberText(value, book.formats[style] ?? PLAIN, book);
      // A program that does not calculate stores no value.
      const formula = textOf('f').slice(0, MAX_CELL_CHARS);
      return formula === '' ? '' : `=${formula}`;
    }
    default:
      return value;
  }
}

function numberText(written: string, format: Format, { is1904 }: Workbook): string {
  const number = Number(written);
  if (!Number.isFinite(number)) return written;
  switch (format.kind) {
    case 'plain':
      return plain(number);
    case 'percent':
      return `${plain(number * 100)}%`;
    case 'date':
      return momentOf(number + (is1904 ? DAYS_TO_1904 : 0)) ?? plain(number);
    case 'unit': {
      const amount = Math.abs(number);
      const rounded = amount.toFixed(Math.min(DIGITS, format.decimals));
      const shown = Number(rounded) === Number(plain(amount)) ? rounded : plain(amount);
      return `${number < 0 ? '-' : ''}${format.before}${shown}${format.after}`;
    }
  }
}

function plain(number: number): string {
  const written = `${number}`;
  return written.length <= DIGITS ? written : `${Number(number.toPrecision(DIGITS))}`;
}

/** From 0; -1 if the cell has none. */
function columnOf(place: string): number {
  let column = 0;
  for (const letter of /^[A-Z]{1,3}/i.exec(place)?.[0].toUpperCase() ?? '') {
    column = column * 26 + letter.charCodeAt(0) - 64;
  }
  return column - 1;
}

/** Undefined if it is no valid day. */
function momentOf(days: number): string | undefined {
  const moment = new Date(FIRST_DAY_MS + Math.round(days * 86_400) * 1000);
  if (days < 0 || Number.isNaN(moment.getTime())) return undefined;
  const [day = '', time = ''] = moment.toISOString().slice(0, 19).split('T');
  const clock = time.endsWith(':00') ? time.slice(0, 5) : time;
  if (days < 1) return clock;
  return moment.getTime() % DAY_MS === 0 ? day : `${day} ${clock}`;
}
