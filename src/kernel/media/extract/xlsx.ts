// Excel sheets: a line per row, its cells parted by bars, numbers with the unit that the sheet shows
// (ECMA-376 part 1, 18.2 to 18.4 and 18.8.30).

import { posix } from 'node:path';
import { attributeOf, markupTokens } from '../../../lib/html/markup-tokens.ts';
import { rowLine } from '../../../lib/html/text-lines.ts';
import type { Archive } from './archive.ts';
import { DAMAGED, DocumentProblem, Sections } from './sections.ts';

const NO_TEXT = 'this table is empty';
const WORKBOOK = 'xl/workbook.xml';
/** Empty cells and rows written in front of others, in one file. */
const MAX_FILLED = 200_000;
const MAX_CELL_CHARS = 100_000;
const DAY_MS = 86_400_000;
const FIRST_DAY_MS = Date.UTC(1899, 11, 30);
/** Days between the two calendars that a file may count by. */
const DAYS_TO_1904 = 1462;
/** Digits that a sheet keeps of a number. */
const DIGITS = 15;

type Sheet = { readonly name: string; readonly path: string; readonly isHidden: boolean };
type Workbook = { readonly sheets: readonly Sheet[]; readonly is1904: boolean };
type Format =
  | { readonly kind: 'plain' | 'date' | 'percent' }
  | {
      readonly kind: 'unit';
      readonly before: string;
      readonly after: string;
      readonly decimals: number;
    };
const PLAIN: Format = { kind: 'plain' };

export function readXlsx(archive: Archive) {
  const { sheets, is1904 } = workbookOf(archive);
  const strings = stringsOf(archive.xml('xl/sharedStrings.xml') ?? '');
  const formats = formatsOf(archive.xml('xl/styles.xml') ?? '');
  const room = { filled: 0 };
  const sections = new Sections();
  for (const { name, path, isHidden } of sheets) {
    if (sections.isFull) break;
    const xml = archive.xml(path);
    if (xml === undefined) continue;
    const rows = new Rows({ strings, formats, is1904, room });
    for (const token of markupTokens(xml)) {
      if (token.type === 'text') rows.text(token.text);
      else if (token.type === 'close') rows.close(localName(token.name));
      else rows.open(localName(token.name), token.attributes, token.isClosed);
    }
    sections.add(`sheet ${name}${isHidden ? ', hidden' : ''}`, rows.end());
  }
  return sections.reading(NO_TEXT);
}

/** Some programs write every name with its prefix. */
const localName = (name: string) => name.slice(name.indexOf(':') + 1);

function workbookOf(archive: Archive): Workbook {
  const paths = new Map<string, string>();
  for (const token of markupTokens(archive.xml('xl/_rels/workbook.xml.rels') ?? '')) {
    if (token.type !== 'open' || localName(token.name) !== 'relationship') continue;
    const target = attributeOf(token.attributes, 'Target') ?? '';
    const path = target.startsWith('/') ? target.slice(1) : posix.join('xl', target);
    paths.set(attributeOf(token.attributes, 'Id') ?? '', path);
  }
  const xml = archive.xml(WORKBOOK);
  if (xml === undefined) throw new DocumentProblem(DAMAGED);
  const sheets: Sheet[] = [];
  let is1904 = false;
  for (const token of markupTokens(xml)) {
    if (token.type !== 'open') continue;
    const read = (name: string) => attributeOf(token.attributes, name);
    if (localName(token.name) === 'workbookpr')
      is1904 = /^(?:1|true)$/.test(read('date1904') ?? '');
    if (localName(token.name) !== 'sheet') continue;
    const path = paths.get(read('r:id') ?? '');
    if (path === undefined || !archive.has(path)) continue;
    const isHidden = /hidden/i.test(read('state') ?? '');
    sheets.push({ name: read('name') ?? `${sheets.length + 1}`, path, isHidden });
  }
  if (sheets.length === 0) throw new DocumentProblem(DAMAGED);
  return { sheets, is1904 };
}

/** Each in one piece, without how it is pronounced. */
function stringsOf(xml: string): readonly string[] {
  const strings: string[] = [];
  let text: string[] = [];
  let isText = false;
  let isPhonetic = false;
  for (const token of markupTokens(xml)) {
    if (token.type === 'text') {
      if (isText && !isPhonetic) text.push(token.text);
      continue;
    }
    const name = localName(token.name);
    const isOpen = token.type === 'open' && !token.isClosed;
    if (name === 't') isText = isOpen;
    else if (name === 'rph') isPhonetic = isOpen;
    else if (name === 'si' && !isOpen) {
      strings.push(text.join(''));
      text = [];
    }
  }
  return strings;
}

/** By the number of a cell's style. */
function formatsOf(xml: string): readonly Format[] {
  const codes = new Map<number, string>();
  const formats: Format[] = [];
  let isInCells = false;
  for (const token of markupTokens(xml)) {
    const name = token.type === 'text' ? '' : localName(token.name);
    if (name === 'cellxfs') isInCells = token.type === 'open';
    if (token.type !== 'open') continue;
    const id = Number(attributeOf(token.attributes, 'numFmtId'));
    if (name === 'numfmt') codes.set(id, attributeOf(token.attributes, 'formatCode') ?? '');
    if (name === 'xf' && isInCells) formats.push(formatOf(id, codes.get(id)));
  }
  return formats;
}

function formatOf(id: number, code: string | undefined): Format {
  if (code === undefined) {
    if (id === 9 || id === 10) return { kind: 'percent' };
    const isDate = (id >= 14 && id <= 22) || (id >= 27 && id <= 36) || (id >= 45 && id <= 58);
    return isDate && id !== 48 && id !== 49 ? { kind: 'date' } : PLAIN;
  }
  const [first = ''] = code.split(';');
  // Units stand in quotes, behind a backslash or in [$...]; colours, conditions and gaps are left out.
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

type RowsDeps = {
  readonly strings: readonly string[];
  readonly formats: readonly Format[];
  readonly is1904: boolean;
  readonly room: { filled: number };
};

class Rows {
  readonly #deps: RowsDeps;
  readonly #lines: string[] = [];
  #row: string[] = [];
  #rowNumber = 0;
  #type = '';
  #style = 0;
  /** What the text belongs to: a value, a formula, a text in the cell. */
  #inside: 'v' | 'f' | 't' | undefined;
  #isPhonetic = false;
  #value = '';
  #formula = '';

  constructor(deps: RowsDeps) {
    this.#deps = deps;
  }

  text(text: string): void {
    if (this.#inside === 'f') {
      if (this.#formula.length < MAX_CELL_CHARS) this.#formula += text;
    } else if (this.#inside !== undefined && !this.#isPhonetic) {
      if (this.#value.length < MAX_CELL_CHARS) this.#value += text;
    }
  }

  open(name: string, attributes: string, isClosed: boolean): void {
    if (name === 'row') this.#beginRow(Number(attributeOf(attributes, 'r')));
    else if (name === 'c') this.#beginCell(attributes);
    else if (name === 'rph') this.#isPhonetic = !isClosed;
    else if ((name === 'v' || name === 'f' || name === 't') && !isClosed) this.#inside = name;
    if (isClosed) this.close(name);
  }

  close(name: string): void {
    if (name === 'v' || name === 'f' || name === 't') this.#inside = undefined;
    else if (name === 'rph') this.#isPhonetic = false;
    else if (name === 'c') this.#row.push(this.#shown().replace(/\s+/g, ' ').trim());
    else if (name === 'row') this.#lines.push(rowLine(this.#row).replace(/(?: \| )+$/, ''));
  }

  end(): string {
    return this.#lines.join('\n').trimEnd();
  }

  #beginRow(number: number): void {
    this.#row = [];
    const next = this.#rowNumber + 1;
    this.#rowNumber = Number.isSafeInteger(number) && number >= next ? number : next;
    // One empty line tells of any number.
    if (this.#rowNumber > next && this.#lines.length > 0) this.#lines.push('');
  }

  #beginCell(attributes: string): void {
    this.#value = '';
    this.#formula = '';
    this.#type = attributeOf(attributes, 't') ?? 'n';
    this.#style = Number(attributeOf(attributes, 's') ?? 0);
    const column = columnOf(attributeOf(attributes, 'r') ?? '');
    const { room } = this.#deps;
    while (this.#row.length < column && room.filled < MAX_FILLED) {
      this.#row.push('');
      room.filled += 1;
    }
  }

  #shown(): string {
    const value = this.#value;
    switch (this.#type) {
      case 's':
        return this.#deps.strings[Number(value)] ?? '';
      case 'b':
        return value === '1' ? 'true' : value === '' ? '' : 'false';
      case 'n': {
        if (value.trim() !== '') return this.#number(Number(value), value);
        // A program that does not calculate leaves the value to be found out.
        return this.#formula === '' ? '' : `=${this.#formula}`;
      }
      default:
        return value;
    }
  }

  #number(number: number, written: string): string {
    if (!Number.isFinite(number)) return written;
    const format = this.#deps.formats[this.#style] ?? PLAIN;
    switch (format.kind) {
      case 'plain':
        return plain(number);
      case 'percent':
        return `${plain(number * 100)}%`;
      case 'date':
        return momentOf(number + (this.#deps.is1904 ? DAYS_TO_1904 : 0)) ?? plain(number);
      case 'unit': {
        const amount = Math.abs(number);
        const rounded = amount.toFixed(Math.min(DIGITS, format.decimals));
        const shown = Number(rounded) === Number(plain(amount)) ? rounded : plain(amount);
        return `${number < 0 ? '-' : ''}${format.before}${shown}${format.after}`;
      }
    }
  }
}

function plain(number: number): string {
  const written = `${number}`;
  return written.length <= DIGITS ? written : `${Number(number.toPrecision(DIGITS))}`;
}

/** From 0; -1 where the cell does not say. */
function columnOf(place: string): number {
  let column = 0;
  for (const letter of /^[A-Z]{1,3}/i.exec(place)?.[0].toUpperCase() ?? '') {
    column = column * 26 + letter.charCodeAt(0) - 64;
  }
  return column - 1;
}

/** Undefined for what is no day of the calendar. */
function momentOf(days: number): string | undefined {
  const moment = new Date(FIRST_DAY_MS + Math.round(days * 86_400) * 1000);
  if (days < 0 || Number.isNaN(moment.getTime())) return undefined;
  const [day = '', time = ''] = moment.toISOString().slice(0, 19).split('T');
  const clock = time.endsWith(':00') ? time.slice(0, 5) : time;
  if (days < 1) return clock;
  return moment.getTime() % DAY_MS === 0 ? day : `${day} ${clock}`;
}
