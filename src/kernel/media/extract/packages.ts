// Documents that are ZIP packages of XML parts: EPUB books, OpenDocument files and PowerPoint
// slides.

import { posix } from 'node:path';
import { htmlText } from '../../../lib/html/html-text.ts';
import { rowLine } from '../../../lib/html/text-lines.ts';
import {
  attributeOf,
  childrenOf,
  elementOf,
  localName,
  parseXml,
  type XmlElement,
  xmlText,
  xmlTokens,
} from '../../../lib/html/xml.ts';
import { t } from '../../../lib/texts.ts';
import type { Archive } from './archive.ts';
import { DAMAGED, DocumentProblem, LOCKED, Sections } from './extract.ts';

const NO_BOOK_TEXT = t`this book has no text that can be read; it may be copy-protected`;

export function readEpub(archive: Archive) {
  const container = archive.text('META-INF/container.xml') ?? '';
  const packagePath = [...tagsIn(container, 'rootfile')][0]?.('full-path');
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
  const items = [...tagsIn(packaging, 'item')];
  const hrefs = new Map(items.map((read) => [read('id') ?? '', read('href') ?? '']));
  return [...tagsIn(packaging, 'itemref')].flatMap((read) => hrefs.get(read('idref') ?? '') || []);
}

/** Reads the attributes of every tag of this name, with any prefix. */
export function* tagsIn(
  xml: string,
  name: string,
): Generator<(attribute: string) => string | undefined, void, void> {
  for (const token of xmlTokens(xml)) {
    if (token.type !== 'open' || localName(token.name) !== name) continue;
    yield (attribute) => attributeOf(token, attribute);
  }
}

/** The parts that a part of an office document references, looked up only in the archive. */
export function relations(archive: Archive, part: string) {
  const { dir, base } = posix.parse(part);
  const xml = archive.xml(`${dir}/_rels/${base}.rels`) ?? '';
  return [...tagsIn(xml, 'relationship')].map((read) => {
    const target = read('target') ?? '';
    const path = target.startsWith('/') ? target.slice(1) : posix.join(dir, target);
    return { id: read('id') ?? '', type: read('type') ?? '', path };
  });
}

// OpenDocument texts, sheets and slides: one walk over content.xml (OpenDocument 1.3, part 3).

const NO_DOCUMENT_TEXT = t`this document has no text`;
/** Deleted text, drawings, program data. */
const SKIPPED = new Set(['text:tracked-changes', 'office:scripts', 'office:settings', 'svg:desc']);
/** Read as a whole; everything else is a container of these. */
const UNITS = new Set(['text:p', 'text:h', 'text:list', 'table:table-row', ...SKIPPED]);
/** A cell may be repeated to the edge of the sheet. */
const MAX_REPEATS = 100;

type OdfKind = 'text' | 'sheets' | 'slides';

export function readOdf(archive: Archive, kind: OdfKind) {
  const manifest = archive.xml('META-INF/manifest.xml') ?? '';
  if (manifest.includes('encryption-data')) throw new DocumentProblem(LOCKED);
  const xml = archive.xml('content.xml');
  if (xml === undefined) throw new DocumentProblem(DAMAGED);
  const sections = new Sections();
  const text = new OdfText(kind);
  const hiddenStyles = new Set<string | undefined>();
  let title = '';
  let count = 0;
  const end = () => {
    const written = text.take();
    if (count > 0 || written !== '') sections.add(title, written);
  };
  const begin = (next: string) => {
    end();
    title = next;
    count += 1;
  };
  const tokens = xmlTokens(xml);
  for (const token of tokens) {
    if (sections.isFull) break;
    if (token.type !== 'open') continue;
    const read = (name: string) => attributeOf(token, name);
    if (UNITS.has(token.name)) text.write(elementOf(token, tokens));
    else if (token.name === 'style:style') {
      const isHidden = childrenOf(elementOf(token, tokens), 'table-properties').some(
        (properties) => attributeOf(properties, 'table:display') === 'false',
      );
      if (isHidden) hiddenStyles.add(read('style:name'));
    } else if (token.name === 'draw:page' && kind === 'slides') begin(`slide ${count + 1}`);
    else if (token.name === 'table:table' && kind === 'sheets') {
      const hidden = hiddenStyles.has(read('table:style-name') ?? '') ? ', hidden' : '';
      begin(`sheet ${read('table:name') ?? count + 1}${hidden}`);
    }
  }
  end();
  return sections.reading(NO_DOCUMENT_TEXT);
}

/** A line for each paragraph, item and row. */
class OdfText {
  readonly #kind: OdfKind;
  #lines: string[] = [];
  #line = '';
  /** The row whose cells are being written. */
  #row: string[] | undefined;
  #lists = 0;

  constructor(kind: OdfKind) {
    this.#kind = kind;
  }

  take(): string {
    this.#endLine();
    return this.#lines.splice(0).join('\n');
  }

  write(element: XmlElement) {
    const { tagName: name } = element;
    if (SKIPPED.has(name)) return;
    if (name === 'text:s') this.#line += ' '.repeat(repeatsOf(element, 'text:c'));
    if (name === 'text:tab') this.#line += '\t';
    if (name === 'text:line-break') this.#line += this.#row === undefined ? '\n' : ' ';
    if (name === 'table:table-row') return this.#writeRow(element);
    if (name === 'text:list-item') this.#line += `${'  '.repeat(Math.max(0, this.#lists - 1))}- `;
    if (name === 'text:h') {
      const level = Number(attributeOf(element, 'text:outline-level') ?? 1);
      this.#line += `${'#'.repeat(Math.min(6, Math.max(1, level || 1)))} `;
    }
    if (name === 'text:list') this.#lists += 1;
    this.#writeContent(element);
    if (name === 'text:list') this.#lists -= 1;
    if (name === 'text:p' || name === 'text:h') {
      if (this.#row === undefined) this.#endLine();
      else this.#line += ' ';
    }
    if (name === 'table:table-cell' || name === 'table:covered-table-cell') this.#endCell(element);
  }

  /** Text occurs only in paragraphs; other characters are the layout of the file. */
  #writeContent(element: XmlElement): void {
    const isLayout =
      !element.tagName.startsWith('text:') || element.tagName.startsWith('text:list');
    for (const node of element.childNodes) {
      if ('tagName' in node) this.write(node);
      else if ('value' in node && !isLayout) this.#line += node.value.replace(/\s+/g, ' ');
    }
  }

  #endCell(cell: XmlElement): void {
    const text = this.#line.trim();
    this.#line = '';
    const repeats = repeatsOf(cell, 'table:number-columns-repeated');
    this.#row?.push(...new Array<string>(repeats).fill(text));
  }

  /** A table in a cell has lines of its own, after the current content of its row. */
  #writeRow(element: XmlElement): void {
    const outer = this.#row;
    if (outer !== undefined) {
      if (this.#line.trim() !== '') outer.push(this.#line.trim());
      this.#line = '';
      if (outer.length > 0) this.#lines.push(rowLine(outer.splice(0)));
    }
    const row: string[] = [];
    this.#row = row;
    this.#writeContent(element);
    this.#row = outer;
    // Empty cells continue to the right without end.
    const line = rowLine(row);
    const shown = this.#kind === 'sheets' ? line.replace(/(?: \| )+$/, '') : line;
    if (shown !== '') this.#lines.push(shown);
  }

  #endLine(): void {
    if (this.#line.trim() !== '') this.#lines.push(this.#line);
    this.#line = '';
  }
}

function repeatsOf(element: XmlElement, name: string): number {
  const repeats = Number(attributeOf(element, name) ?? 1);
  return Number.isInteger(repeats) && repeats > 0 ? Math.min(MAX_REPEATS, repeats) : 1;
}

// PowerPoint slides in presentation order, each with its notes.

const NO_SLIDE_TEXT = t`these slides have no text`;
const SLIDE = /^ppt\/slides\/slide(\d+)\.xml$/;
/** Slide number, date and footer repeat on every slide. */
const REPEATED = /^(?:sldnum|dt|ftr|hdr)$/i;

export function readPptx(archive: Archive) {
  const sections = new Sections();
  for (const [index, name] of slideNames(archive).entries()) {
    if (sections.isFull) break;
    const xml = archive.xml(name);
    if (xml === undefined) continue;
    const notes = notesOf(archive, name);
    const isHidden = /<p:sld\b[^>]*\bshow="(?:0|false)"/.test(xml);
    const text = shapesText(xml);
    sections.add(
      `slide ${index + 1}${isHidden ? ', hidden' : ''}`,
      notes === '' ? text : `${text}\n\nNotes:\n${notes}`,
    );
  }
  return sections.reading(NO_SLIDE_TEXT);
}

function slideNames(archive: Archive): readonly string[] {
  const targets = new Map(relations(archive, 'ppt/presentation.xml').map((r) => [r.id, r.path]));
  const listed = [...tagsIn(archive.xml('ppt/presentation.xml') ?? '', 'sldid')]
    .map((read) => targets.get(read('r:id') ?? '') ?? '')
    .filter((path) => archive.has(path));
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

const shapesText = (xml: string): string => shapeLines(parseXml(xml)).join('\n');

/** A line for each paragraph and each row of a table. */
function shapeLines(element: XmlElement): readonly string[] {
  switch (element.tagName) {
    case 'p:sp':
      if (isRepeated(element)) return [];
      break;
    case 'a:p':
      return written([paragraphText(element, '\n')]);
    case 'a:tr':
      return written([rowLine(childrenOf(element, 'tc').map(cellText))]);
  }
  return childrenOf(element).flatMap(shapeLines);
}

const written = (lines: readonly string[]) => lines.filter((line) => line.trim() !== '');

const isRepeated = (element: XmlElement): boolean =>
  childrenOf(element).some((child) =>
    child.tagName === 'p:ph'
      ? REPEATED.test(attributeOf(child, 'type') ?? '')
      : child.tagName.startsWith('p:nv') && isRepeated(child),
  );

const cellText = (cell: XmlElement): string =>
  cell.tagName === 'a:p'
    ? paragraphText(cell, ' ')
    : childrenOf(cell)
        .map(cellText)
        .filter((text) => text !== '')
        .join(' ')
        .trim();

function paragraphText(element: XmlElement, lineBreak: string): string {
  if (element.tagName === 'a:t') return xmlText(element);
  if (element.tagName === 'a:br') return lineBreak;
  return childrenOf(element)
    .map((child) => paragraphText(child, lineBreak))
    .join('');
}
