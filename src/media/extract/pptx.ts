// PowerPoint slides in the order in which they are shown, each with its notes.

import { posix } from 'node:path';
import type { Archive } from './archive.ts';
import { attributeOf, markupTokens } from './markup-tokens.ts';
import { Sections } from './sections.ts';

const NO_TEXT = 'these slides have no text';
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
  return sections.reading(NO_TEXT);
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

/** A line per paragraph, the cells of a table row parted by bars. */
function shapesText(xml: string): string {
  const lines: string[] = [];
  let line = '';
  let isInText = false;
  let isInCell = false;
  let isRepeated = false;
  const endLine = () => {
    if (line.trim() !== '' && !isRepeated) lines.push(line);
    line = '';
  };
  for (const token of markupTokens(xml)) {
    if (token.type === 'text') {
      if (isInText) line += token.text;
      continue;
    }
    const isOpen = token.type === 'open' && !token.isClosed;
    if (token.name === 'a:t') isInText = isOpen;
    if (token.name === 'p:sp') isRepeated = false;
    if (token.type === 'open' && token.name === 'p:ph') {
      isRepeated = REPEATED.has((attributeOf(token.attributes, 'type') ?? '').toLowerCase());
    }
    if (token.name === 'a:tc') {
      isInCell = isOpen;
      if (token.type === 'close') line += ' | ';
    }
    if (token.name === 'a:br' && token.type === 'open') line += isInCell ? ' ' : '\n';
    if (token.type !== 'close') continue;
    if (token.name === 'a:p' && isInCell) line += ' ';
    if ((token.name === 'a:p' && !isInCell) || token.name === 'a:tr') {
      line = line.replace(/ +\| +$/, '');
      endLine();
    }
  }
  endLine();
  return lines.join('\n');
}
