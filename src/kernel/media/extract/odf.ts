// OpenDocument texts, sheets and slides: one walk over content.xml (OpenDocument 1.3, part 3).

import { attributeOf, type MarkupToken, markupTokens } from '../../../lib/html/markup-tokens.ts';
import { rowLine } from '../../../lib/html/table-text.ts';
import type { Archive } from './archive.ts';
import { DAMAGED, DocumentProblem, LOCKED } from './problem.ts';
import { Sections } from './sections.ts';

const NO_DOCUMENT_TEXT = 'this document has no text';
/** What was deleted, what is drawn, what programs keep for themselves. */
const SKIPPED = new Set(['text:tracked-changes', 'office:scripts', 'office:settings', 'svg:desc']);
/** A cell may be repeated to the edge of the sheet. */
const MAX_REPEATS = 100;

export type OdfKind = 'text' | 'sheets' | 'slides';

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
