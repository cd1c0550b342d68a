// Documents that are ZIP packages of XML parts: EPUB books, OpenDocument files and PowerPoint slides.

import { posix } from 'node:path';
import { htmlText } from '../../../lib/html/html-text.ts';
import { attributeOf, type MarkupToken, markupTokens } from '../../../lib/html/markup-tokens.ts';
import { rowLine } from '../../../lib/html/text-lines.ts';
import type { Archive } from './archive.ts';
import { DAMAGED, DocumentProblem, LOCKED, Sections } from './sections.ts';

const NO_BOOK_TEXT = 'this book has no text that can be read; it may be copy-protected';

export function readEpub(archive: Archive) {
  const packagePath = firstAttribute(
    archive.text('META-INF/container.xml') ?? '',
    'rootfile',
    'full-path',
  );
  const packaging = packagePath === undefined ? undefined : archive.text(packagePath);
  if (packagePath === undefined || packaging === undefined) throw new DocumentProblem(DAMAGED);
  const sections = new Sections();
  for (const href of readingOrder(packaging)) {
    if (sections.isFull) break;
    const html = archive.text(partName(packagePath, href));
    const text = html === undefined ? '' : htmlText(html, { isXml: true });
    if (text.trim() !== '') sections.add(`chapter ${sections.count + 1}`, text);
  }
  return sections.reading(NO_BOOK_TEXT);
}

function partName(packagePath: string, href: string): string {
  const plain = href.split('#', 1)[0] ?? '';
  return posix.join(posix.dirname(packagePath), decoded(plain));
}

function decoded(href: string): string {
  try {
    return decodeURIComponent(href);
  } catch {
    return href;
  }
}

function readingOrder(packaging: string): readonly string[] {
  const hrefs = new Map<string, string>();
  const order: string[] = [];
  for (const token of markupTokens(packaging)) {
    if (token.type !== 'open') continue;
    const name = token.name.replace(/^.*:/, '');
    if (name === 'item') {
      const href = attributeOf(token.attributes, 'href');
      if (href !== undefined) hrefs.set(attributeOf(token.attributes, 'id') ?? '', href);
    }
    if (name === 'itemref') order.push(attributeOf(token.attributes, 'idref') ?? '');
  }
  return order.flatMap((id) => hrefs.get(id) ?? []);
}

function firstAttribute(xml: string, element: string, attribute: string): string | undefined {
  for (const token of markupTokens(xml)) {
    if (token.type === 'open' && token.name.replace(/^.*:/, '') === element) {
      return attributeOf(token.attributes, attribute);
    }
  }
  return undefined;
}

// OpenDocument texts, sheets and slides: one walk over content.xml (OpenDocument 1.3, part 3).

const NO_DOCUMENT_TEXT = 'this document has no text';
/** What was deleted, what is drawn, what programs keep for themselves. */
const SKIPPED = new Set(['text:tracked-changes', 'office:scripts', 'office:settings', 'svg:desc']);
/** A cell may be repeated to the edge of the sheet. */
const MAX_REPEATS = 100;

type OdfKind = 'text' | 'sheets' | 'slides';

export function readOdf(archive: Archive, kind: OdfKind) {
  const manifest = archive.xml('META-INF/manifest.xml') ?? '';
  if (manifest.includes('encryption-data')) throw new DocumentProblem(LOCKED);
  const xml = archive.xml('content.xml');
  if (xml === undefined) throw new DocumentProblem(DAMAGED);
  const walk = new OdfWalk(kind);
  for (const token of markupTokens(xml)) {
    walk.push(token);
    if (walk.sections.isFull) break;
  }
  walk.endSection();
  return walk.sections.reading(NO_DOCUMENT_TEXT);
}

class OdfWalk {
  readonly sections = new Sections();
  readonly #kind: OdfKind;
  readonly #lines: string[] = [];
  /** The row that is open, and those around it whose cell holds it. */
  #row: string[] | undefined;
  readonly #rowsAround: (string[] | undefined)[] = [];
  #title = '';
  #count = 0;
  #line = '';
  #cellRepeats = 1;
  #lists = 0;
  #paragraphs = 0;
  #skipped: string | undefined;
  #style = '';
  /** Of sheets. */
  readonly #hiddenStyles = new Set<string>();

  constructor(kind: OdfKind) {
    this.#kind = kind;
  }

  push(token: MarkupToken): void {
    if (this.#skipped !== undefined) {
      if (token.type === 'close' && token.name === this.#skipped) this.#skipped = undefined;
    } else if (token.type === 'text') {
      if (this.#paragraphs > 0) this.#line += token.text.replace(/\s+/g, ' ');
    } else if (token.type === 'close') this.#close(token.name);
    else {
      this.#open(token.name, token.attributes, token.isClosed);
      if (token.isClosed) this.#close(token.name);
    }
  }

  endSection(): void {
    this.#endLine();
    if (this.#count > 0 || this.#lines.length > 0) {
      this.sections.add(this.#title, this.#lines.join('\n'));
    }
    this.#lines.length = 0;
  }

  #open(name: string, attributes: string, isClosed: boolean): void {
    if (SKIPPED.has(name) && !isClosed) this.#skipped = name;
    if (name === 'style:style') this.#style = attributeOf(attributes, 'style:name') ?? '';
    if (name === 'style:table-properties' && attributeOf(attributes, 'table:display') === 'false') {
      this.#hiddenStyles.add(this.#style);
    }
    if (name === 'table:table' && this.#kind === 'sheets') {
      const title = `sheet ${attributeOf(attributes, 'table:name') ?? this.#count + 1}`;
      const style = attributeOf(attributes, 'table:style-name') ?? '';
      this.#begin(this.#hiddenStyles.has(style) ? `${title}, hidden` : title);
    }
    if (name === 'draw:page' && this.#kind === 'slides') this.#begin(`slide ${this.#count + 1}`);
    if (name === 'text:h') {
      const level = Number(attributeOf(attributes, 'text:outline-level') ?? 1);
      this.#line += `${'#'.repeat(Math.min(6, Math.max(1, level || 1)))} `;
    }
    if (name === 'text:h' || name === 'text:p') this.#paragraphs += 1;
    if (name === 'text:list') this.#lists += 1;
    if (name === 'text:list-item') this.#line += `${'  '.repeat(Math.max(0, this.#lists - 1))}- `;
    if (name === 'text:s') this.#line += ' '.repeat(repeatsOf(attributes, 'text:c'));
    if (name === 'text:tab') this.#line += '\t';
    if (name === 'text:line-break') this.#line += this.#row === undefined ? '\n' : ' ';
    if (name === 'table:table-row') this.#beginRow();
    if (name === 'table:table-cell' || name === 'table:covered-table-cell') {
      this.#cellRepeats = repeatsOf(attributes, 'table:number-columns-repeated');
    }
  }

  #close(name: string): void {
    if (name === 'text:p' || name === 'text:h') {
      this.#paragraphs = Math.max(0, this.#paragraphs - 1);
      if (this.#row === undefined) this.#endLine();
      else this.#line += ' ';
    }
    if (name === 'text:list') this.#lists = Math.max(0, this.#lists - 1);
    if (name === 'table:table-cell' || name === 'table:covered-table-cell') this.#endCell();
    if (name === 'table:table-row') this.#endRow();
  }

  #begin(title: string): void {
    this.endSection();
    this.#title = title;
    this.#count += 1;
  }

  #endCell(): void {
    const text = this.#line.trim();
    this.#line = '';
    for (let n = 0; n < this.#cellRepeats; n += 1) this.#row?.push(text);
    this.#cellRepeats = 1;
  }

  /** A table in a cell has lines of its own, behind what its row holds so far. */
  #beginRow(): void {
    if (this.#row !== undefined) {
      if (this.#line.trim() !== '') this.#row.push(this.#line.trim());
      this.#line = '';
      if (this.#row.length > 0) this.#lines.push(rowLine(this.#row));
      this.#row.length = 0;
    }
    this.#rowsAround.push(this.#row);
    this.#row = [];
  }

  #endRow(): void {
    const line = rowLine(this.#row ?? []);
    // A sheet goes on without end to the right.
    const shown = this.#kind === 'sheets' ? line.replace(/(?: \| )+$/, '') : line;
    this.#row = this.#rowsAround.pop();
    if (shown !== '') this.#lines.push(shown);
  }

  #endLine(): void {
    if (this.#line.trim() !== '') this.#lines.push(this.#line);
    this.#line = '';
  }
}

function repeatsOf(attributes: string, name: string): number {
  const repeats = Number(attributeOf(attributes, name) ?? 1);
  return Number.isInteger(repeats) && repeats > 0 ? Math.min(MAX_REPEATS, repeats) : 1;
}

// PowerPoint slides in the order in which they are shown, each with its notes.

const NO_SLIDE_TEXT = 'these slides have no text';
const SLIDE = /^ppt\/slides\/slide(\d+)\.xml$/;
/** Slide number, date and footer repeat on every slide. */
const REPEATED = new Set(['sldnum', 'dt', 'ftr', 'hdr']);

export function readPptx(archive: Archive) {
  const sections = new Sections();
  for (const [index, name] of slideNames(archive).entries()) {
    if (sections.isFull) break;
    const xml = archive.xml(name);
    if (xml === undefined) continue;
    const notes = notesOf(archive, name);
    const isHidden = /<p:sld\b[^>]*\bshow="(?:0|false)"/.test(xml);
    const text = notes === '' ? shapesText(xml) : `${shapesText(xml)}\n\nNotes:\n${notes}`;
    sections.add(`slide ${index + 1}${isHidden ? ', hidden' : ''}`, text);
  }
  return sections.reading(NO_SLIDE_TEXT);
}

function slideNames(archive: Archive): readonly string[] {
  const targets = new Map(relations(archive, 'ppt/presentation.xml').map((r) => [r.id, r.path]));
  const listed: string[] = [];
  for (const token of markupTokens(archive.xml('ppt/presentation.xml') ?? '')) {
    if (token.type !== 'open' || token.name !== 'p:sldid') continue;
    const path = targets.get(attributeOf(token.attributes, 'r:id') ?? '');
    if (path !== undefined && archive.has(path)) listed.push(path);
  }
  if (listed.length > 0) return listed;
  const numberOf = (name: string) => Number(SLIDE.exec(name)?.[1] ?? 0);
  return archive.names
    .filter((name) => SLIDE.test(name))
    .toSorted((a, b) => numberOf(a) - numberOf(b));
}

function notesOf(archive: Archive, slide: string): string {
  const found = relations(archive, slide).find(({ type }) => type.endsWith('/notesSlide'));
  const xml = found === undefined ? undefined : archive.xml(found.path);
  return xml === undefined ? '' : shapesText(xml);
}

/** Names of parts, looked up in the archive and nowhere else. */
function relations(archive: Archive, part: string) {
  const { dir, base } = posix.parse(part);
  const found: { id: string; type: string; path: string }[] = [];
  for (const token of markupTokens(archive.xml(`${dir}/_rels/${base}.rels`) ?? '')) {
    if (token.type !== 'open' || token.name !== 'relationship') continue;
    const read = (name: string) => attributeOf(token.attributes, name) ?? '';
    const target = read('Target');
    const path = target.startsWith('/') ? target.slice(1) : posix.join(dir, target);
    found.push({ id: read('Id'), type: read('Type'), path });
  }
  return found;
}

function shapesText(xml: string): string {
  const text = new ShapeText();
  for (const token of markupTokens(xml)) text.push(token);
  return text.end();
}

/** A line per paragraph, the cells of a table row parted by bars. */
class ShapeText {
  readonly #lines: string[] = [];
  #line = '';
  #isInText = false;
  #isInCell = false;
  #row: string[] = [];
  #isRepeated = false;

  push(token: MarkupToken): void {
    if (token.type === 'text') {
      if (this.#isInText) this.#line += token.text;
      return;
    }
    const isOpen = token.type === 'open' && !token.isClosed;
    if (token.name === 'a:t') this.#isInText = isOpen;
    if (token.name === 'a:tc') this.#isInCell = isOpen;
    if (token.type === 'open') this.#open(token.name, token.attributes);
    if (!isOpen) this.#close(token.name);
  }

  end(): string {
    this.#endLine();
    return this.#lines.join('\n');
  }

  #open(name: string, attributes: string): void {
    if (name === 'p:sp') this.#isRepeated = false;
    if (name === 'a:br') this.#line += this.#isInCell ? ' ' : '\n';
    if (name !== 'p:ph') return;
    const type = attributeOf(attributes, 'type') ?? '';
    this.#isRepeated = REPEATED.has(type.toLowerCase());
  }

  #close(name: string): void {
    if (name === 'a:tc') {
      this.#row.push(this.#line.trim());
      this.#line = '';
    }
    if (name === 'a:p' && this.#isInCell) this.#line += ' ';
    if (name === 'a:p' && !this.#isInCell) this.#endLine();
    if (name !== 'a:tr') return;
    this.#line = rowLine(this.#row);
    this.#row = [];
    this.#endLine();
  }

  #endLine(): void {
    if (this.#line.trim() !== '' && !this.#isRepeated) this.#lines.push(this.#line);
    this.#line = '';
  }
}
