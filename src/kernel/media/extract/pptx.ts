// PowerPoint slides in the order in which they are shown, each with its notes.

import { posix } from 'node:path';
import { attributeOf, type MarkupToken, markupTokens } from '../../../lib/html/markup-tokens.ts';
import { rowLine } from '../../../lib/html/table-text.ts';
import type { Archive } from './archive.ts';
import { Sections } from './sections.ts';

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
