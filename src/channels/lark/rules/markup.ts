// Styled text in the Markdown of Lark's cards (JSON 2.0): **bold** *italic* ~~strike~~ `code`,
// fenced blocks, `> ` quotes and links. Literal markup characters are written as entities (Lark:
// "Rich text", special characters), so that no text becomes a mention or markup. Each line is
// marked separately.

import { parseMarkup } from '../../../lib/markup/markup.ts';
import { splitMarkup, truncateMarked } from '../../../lib/markup/split.ts';
import { type Run, runsText, type Style } from '../../../lib/markup/writer.ts';

/** Entities and three-byte characters make a text longer than it looks; a card holds 30 KB. */
const BYTES_PER_UNIT = 5;

/** Parts of at most `maxUnits` UTF-16 units as shown, and five times as many bytes as sent. */
export function splitForLark(markdown: string, maxUnits: number): readonly (readonly Run[])[] {
  return splitMarkup(parseMarkup(markdown), maxUnits, unitsOf).map(({ runs }) => runs);
}

/** As much as one card holds, with an ellipsis if something is left out. */
export const beginningForLark = (markdown: string, maxUnits: number): readonly Run[] =>
  truncateMarked(parseMarkup(markdown), maxUnits, (runs) => runs, unitsOf);

function unitsOf(runs: readonly Run[]): number {
  const bytes = new TextEncoder().encode(renderLark(runs)).length;
  return Math.max(runsText(runs).length, Math.ceil(bytes / BYTES_PER_UNIT));
}

type Line = { readonly isQuoted: boolean; readonly runs: readonly Run[]; readonly pre?: PreStyle };
type PreStyle = Extract<Style, { kind: 'pre' }>;

export function renderLark(runs: readonly Run[]): string {
  const lines = linesOf(runs);
  const fences = fencesOf(lines);
  const written: string[] = [];
  for (const [index, line] of lines.entries()) {
    const prefix = line.isQuoted ? '> ' : '';
    const before = lines[index - 1];
    const after = lines[index + 1];
    if (before?.isQuoted === true && !line.isQuoted && runsText(line.runs) !== '') written.push('');
    if (line.pre === undefined) {
      written.push(prefix + renderLine(line.runs));
      continue;
    }
    const fence = fences.get(line.pre) ?? FENCE;
    if (before?.pre !== line.pre) written.push(`${prefix}${fence}${languageOf(line.pre)}`);
    written.push(prefix + runsText(line.runs));
    if (after?.pre !== line.pre) written.push(prefix + fence);
  }
  return written.join('\n').replace(/^\n+/, '').trimEnd();
}

const languageOf = ({ language = '' }: PreStyle) => language.replace(/[^\w+#.-]/g, '');

const FENCE = '```';

/** One character longer than any fence inside, so that nothing closes the block early. */
function fencesOf(lines: readonly Line[]): ReadonlyMap<PreStyle, string> {
  const fences = new Map<PreStyle, string>();
  for (const { pre, runs } of lines) {
    if (pre === undefined) continue;
    const longest = (fences.get(pre) ?? FENCE).length;
    const ticks = (runsText(runs).match(/`{3,}/g) ?? []).map((found) => found.length + 1);
    fences.set(pre, '`'.repeat(Math.max(longest, ...ticks)));
  }
  return fences;
}

function linesOf(runs: readonly Run[]): readonly Line[] {
  const lines: Run[][] = [[]];
  for (const run of runs) {
    for (const [index, text] of run.text.split('\n').entries()) {
      if (index > 0) lines.push([]);
      if (text !== '') lines.at(-1)?.push({ text, styles: run.styles });
    }
  }
  return joinedBlocks(lines, runs);
}

/** An empty line inside a block has no run of its own but belongs to it. */
function joinedBlocks(lines: readonly (readonly Run[])[], runs: readonly Run[]): readonly Line[] {
  const styles = lineStyles(runs);
  return lines.map((line, index) => {
    const own = line[0]?.styles ?? styles[index] ?? [];
    const pre = own.find((style): style is PreStyle => style.kind === 'pre');
    const isQuoted = own.some(({ kind }) => kind === 'quote');
    return { isQuoted, runs: line, ...(pre === undefined ? {} : { pre }) };
  });
}

/** The styles of the run that contains the break before each line. */
function lineStyles(runs: readonly Run[]): readonly (readonly Style[])[] {
  const styles: (readonly Style[])[] = [[]];
  for (const run of runs) {
    for (let breaks = run.text.split('\n').length - 1; breaks > 0; breaks -= 1) {
      styles.push(run.styles);
    }
  }
  return styles;
}

type Mark =
  | { readonly kind: 'bold' | 'italic' | 'strike' | 'code' }
  | Extract<Style, { kind: 'link' }>;
const SIGNS = { bold: '**', italic: '*', strike: '~~' } as const;

function renderLine(runs: readonly Run[]): string {
  const pieces = runs.map(({ text, styles }) => ({ text, marks: marksOf(styles) }));
  return atStart(renderPieces(pieces, { pieces, outer: [] }, 0));
}

/** A mark inside another one of its kind would be read as the end of the outer one. */
function marksOf(styles: readonly Style[]): readonly Mark[] {
  return styles
    .filter((style): style is Mark => style.kind !== 'quote' && style.kind !== 'pre')
    .filter(({ kind }, index, all) => all.findIndex((one) => one.kind === kind) === index);
}

type Piece = { readonly text: string; readonly marks: readonly Mark[] };
/** The whole line, and the marks around the part being written. */
type Around = { readonly pieces: readonly Piece[]; readonly outer: readonly Mark[] };

/** Neighbours under the same outermost mark are written inside one pair of delimiters. */
function renderPieces(pieces: readonly Piece[], around: Around, offset: number): string {
  let written = '';
  let from = offset;
  for (let index = 0; index < pieces.length; ) {
    const mark = pieces[index]?.marks[0];
    let end = index + 1;
    while (mark !== undefined && pieces[end]?.marks[0] === mark) end += 1;
    const group = pieces.slice(index, end);
    const text = group.map((piece) => piece.text).join('');
    const inner = group.map((piece) => ({ ...piece, marks: piece.marks.slice(1) }));
    const next = mark === undefined ? escaped(text) : marked(mark, inner, around, from);
    written += joint(written, next) + next;
    from += text.length;
    index = end;
  }
  return written;
}

/** Two adjacent pairs of delimiters would be read as one. */
const joint = (before: string, next: string) =>
  /[*~`]$/.test(before) && /^[*~`]/.test(next) ? '\u200b' : '';

function marked(mark: Mark, inner: readonly Piece[], around: Around, offset: number): string {
  const text = inner.map((piece) => piece.text).join('');
  if (text.trim() === '') return escaped(text);
  if (mark.kind === 'code') return codeSpan(text);
  const content = renderPieces(inner, { ...around, outer: [...around.outer, mark] }, offset);
  if (mark.kind === 'link') return `[${content}](${addressOf(mark.href)})`;
  const lead = text.length - text.trimStart().length;
  const tail = text.length - text.trimEnd().length;
  const end = offset + text.length - tail;
  if (!holds(text.trim(), around, offset + lead, end)) return content;
  const sign = SIGNS[mark.kind];
  const core = content.slice(lead, content.length - tail);
  return `${text.slice(0, lead)}${sign}${core}${sign}${text.slice(text.length - tail)}`;
}

/** CommonMark, left- and right-flanking delimiter runs: otherwise the delimiters would be shown. */
function holds(text: string, around: Around, start: number, end: number): boolean {
  const isOpen = (inside: string, outside: string) =>
    !isSign(inside) || outside === '' || /\s/u.test(outside) || isSign(outside);
  return (
    isOpen(text.charAt(0), neighbour(around, start - 1)) &&
    isOpen(text.charAt(text.length - 1), neighbour(around, end))
  );
}

/**
 * The neighbouring character. Between two pairs of delimiters is a character that counts as a
 * letter: see `joint`.
 */
function neighbour({ pieces, outer }: Around, at: number): string {
  let from = 0;
  for (const { text, marks } of pieces) {
    const char = at < from ? '' : text.charAt(at - from);
    from += text.length;
    if (char === '') continue;
    const isPlain = marks.every((mark, index) => mark === outer[index]);
    // Spaces at the edge go outside the delimiters, except those of code.
    const isOutside = /\s/u.test(char) && marks.every(({ kind }) => kind !== 'code');
    return isPlain || isOutside ? char : 'x';
  }
  return '';
}

const isSign = (char: string) => /[\p{P}\p{S}]/u.test(char);

function codeSpan(text: string): string {
  if (text.includes('`')) return escaped(text);
  return `\`${text}\``;
}

const addressOf = (href: string) =>
  href.replace(
    /[\s()<>[\]\\"']/g,
    (sign) => `%${sign.charCodeAt(0).toString(16).padStart(2, '0')}`,
  );

const entity = (sign: string) => `&#${sign.charCodeAt(0)};`;

/** Escapes a colon only where it could start the name of an emoji. */
const escaped = (text: string) => text.replace(/[\\`*_~[\]<>|$]|&(?=[#\w])|:(?=\w+:)/g, entity);

/** Escapes what makes a heading, list or rule at the start of a line, and spaces for code. */
function atStart(line: string): string {
  return line
    .replace(/^ +/, (spaces) => '\u00a0'.repeat(spaces.length))
    .replace(/^(\u00a0*)([#+=-])/, (_all, spaces: string, sign: string) => spaces + entity(sign))
    .replace(
      /^(\u00a0*\d{1,9})([.)])/,
      (_all, digits: string, sign: string) => digits + entity(sign),
    );
}
