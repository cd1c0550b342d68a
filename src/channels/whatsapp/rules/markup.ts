// Styled text in WhatsApp's markup: *bold* _italic_ ~strike~ `code` ```block``` and `> ` before a
// quoted line. A mark counts only between a non-letter and a non-space, within one line, so each
// line is marked separately and read back; WhatsApp has no escapes.

import { parseMarkup } from '../../../lib/markup/markup.ts';
import { splitMarkup, truncateMarked } from '../../../lib/markup/split.ts';
import type { Markup, Run, Style } from '../../../lib/markup/writer.ts';

/** Messages of at most `maxUnits` UTF-16 units, marks included; none for an empty text. */
export function splitForWhatsApp(markdown: string, maxUnits: number): readonly string[] {
  const markup = withAddresses(parseMarkup(markdown));
  const unitsOf = (runs: readonly Run[]) => renderWhatsApp(runs).length;
  return splitMarkup(markup, maxUnits, unitsOf).map(({ runs }) => renderWhatsApp(runs));
}

/** As much as one message holds, with an ellipsis if something is left out. */
export function beginningForWhatsApp(markdown: string, maxUnits: number): string {
  const markup = withAddresses(parseMarkup(markdown));
  return truncateMarked(markup, maxUnits, renderWhatsApp, ({ length }) => length);
}

/** Writes out the addresses of links, so that they are split and counted like any text. */
export function withAddresses({ runs, borders }: Markup): Markup {
  const written: Run[] = [];
  const moved: number[] = [];
  let offset = 0;
  let added = 0;
  for (const [index, run] of runs.entries()) {
    while (borders[moved.length] === offset) moved.push(offset + added);
    written.push(run);
    offset += run.text.length;
    const link = linkOf(run);
    if (link === undefined || linkOf(runs[index + 1]) === link) continue;
    const address = addressBehind(link, runs, index);
    written.push({ text: address, styles: run.styles.filter(({ kind }) => kind === 'quote') });
    added += address.length;
  }
  return { runs: written.filter(({ text }) => text !== ''), borders: moved };
}

type LinkStyle = Extract<Style, { kind: 'link' }>;

const linkOf = (run: Run | undefined) =>
  run?.styles.find((style): style is LinkStyle => style.kind === 'link');

/** Empty if the label shows the address already: WhatsApp makes bare addresses links by itself. */
function addressBehind(link: LinkStyle, runs: readonly Run[], last: number): string {
  let label = '';
  for (let at = last; linkOf(runs[at]) === link; at -= 1) label = runs[at]?.text + label;
  const bare = (address: string) => address.replace(/^(?:https?:\/\/|mailto:)/i, '');
  const isSame = bare(label.trim()).replace(/\/$/, '') === bare(link.href).replace(/\/$/, '');
  return isSame ? '' : ` (${link.href.replace(/^mailto:/i, '')})`;
}

/** The text of one message. Links must have been written out before. */
function renderWhatsApp(runs: readonly Run[]): string {
  const blocks: string[] = [];
  for (const { pre, runs: inside } of gathered(runs)) {
    blocks.push(pre === 'block' ? codeBlock(inside) : textLines(inside, pre === 'quoted'));
  }
  return blocks.join('').trimEnd().replace(/^\n+/, '');
}

type Gathered = { readonly pre: 'none' | 'block' | 'quoted'; readonly runs: readonly Run[] };

/** Neighbours that are written the same way: code blocks (in a quote by line) and the rest. */
function gathered(runs: readonly Run[]): readonly Gathered[] {
  const groups: { pre: Gathered['pre']; runs: Run[] }[] = [];
  for (const run of runs) {
    const isPre = run.styles.some(({ kind }) => kind === 'pre');
    const pre = isPre ? (isQuoted(run) ? 'quoted' : 'block') : 'none';
    const last = groups.at(-1);
    if (last?.pre === pre) last.runs.push(run);
    else groups.push({ pre, runs: [run] });
  }
  return groups;
}

const isQuoted = (run: Run) => run.styles.some(({ kind }) => kind === 'quote');

/** Line breaks at its edges stay outside: the fences touch the code. */
function codeBlock(runs: readonly Run[]): string {
  const text = runs.map((run) => run.text).join('');
  if (text.trim() === '') return text;
  const code = text.trimEnd().replace(/^\n+/, '');
  const start = text.length - text.replace(/^\n+/, '').length;
  return text.slice(0, start) + fenced(code) + text.slice(start + code.length);
}

function textLines(runs: readonly Run[], isCode: boolean): string {
  return linesOf(runs, isCode).map(renderLine).join('\n');
}

function linesOf(runs: readonly Run[], isCode: boolean): readonly MarkedLine[] {
  type Line = { isQuoted: boolean; spans: Span[] };
  let line: Line = { isQuoted: false, spans: [] };
  const lines: Line[] = [line];
  for (const run of runs) {
    const styles = isCode ? (['code'] as const) : marksOf(run);
    for (const [index, text] of run.text.split('\n').entries()) {
      if (index > 0) {
        line = { isQuoted: false, spans: [] };
        lines.push(line);
      }
      if (text === '') continue;
      line.spans.push({ text, styles });
      line.isQuoted ||= isQuoted(run);
    }
  }
  return lines;
}

const RANK = ['bold', 'italic', 'strike', 'code'] as const;

/** Outermost first, each kind once. */
const marksOf = (run: Run) =>
  RANK.filter((kind) => run.styles.some((style) => style.kind === kind));

// One line in WhatsApp's markup. Styles that WhatsApp would not show are left out; a line that
// would lose characters as marks is written more plainly, at last as code, where no character is a
// mark.

type MarkStyle = 'bold' | 'italic' | 'strike' | 'code';

type Span = { readonly text: string; readonly styles: readonly MarkStyle[] };
type MarkedLine = { readonly isQuoted: boolean; readonly spans: readonly Span[] };

const SIGNS = { bold: '*', italic: '_', strike: '~' } as const;
type Emphasis = keyof typeof SIGNS;
const EMPHASES = ['bold', 'italic', 'strike'] as const;
const QUOTE = '> ';

type Piece = {
  readonly text: string;
  readonly isCode: boolean;
  readonly isSpace: boolean;
  readonly emphases: Set<Emphasis>;
};

export function renderLine({ isQuoted, spans }: MarkedLine): string {
  const text = spans.map((span) => span.text).join('');
  if (text.trim() === '') return text;
  const begin = (line: string) => (isQuoted ? QUOTE + line : withoutQuoteSign(line));
  const isPlain = spans.every(({ styles }) => styles.length === 0) && !/[*_~`]/.test(text);
  if (isPlain) return begin(text);
  const sober = piecesOf(spans.map(withoutEmphasis));
  const plain = emit(sober, withoutFences);
  if (showsWhole(plain, text)) {
    const marked = emit(emphasized(piecesOf(spans)), withoutFences);
    return begin(showsWhole(marked, text) ? marked : plain);
  }
  const guarded = emit(sober, signsAsCode);
  if (showsWhole(guarded, text)) return begin(guarded);
  const [before, core, after] = edgesOf(text);
  return begin(before + fenced(core) + after);
}

const withoutEmphasis = ({ text, styles }: Span): Span => ({
  text,
  styles: styles.filter((kind) => kind === 'code'),
});

/** Joins neighbours of one style, with the spaces at their edges separate. */
function piecesOf(spans: readonly Span[]): readonly Piece[] {
  const merged: { text: string; styles: readonly MarkStyle[] }[] = [];
  for (const { text, styles } of spans) {
    const last = merged.at(-1);
    if (last !== undefined && last.styles.join() === styles.join()) last.text += text;
    else merged.push({ text, styles });
  }
  return merged.flatMap(({ text, styles }) => {
    const isCode = styles.includes('code');
    const emphases = new Set(isCode ? [] : EMPHASES.filter((kind) => styles.includes(kind)));
    return edgesOf(text).flatMap((part, index) =>
      part === ''
        ? []
        : [{ text: part, isCode: isCode && index === 1, isSpace: index !== 1, emphases }],
    );
  });
}

/** Keeps the emphases that WhatsApp will show. */
function emphasized(pieces: readonly Piece[]): readonly Piece[] {
  const marked = pieces.map((piece) => ({ ...piece, emphases: new Set(piece.emphases) }));
  for (const piece of marked) {
    // A mark after an address would become part of the link.
    const isAddress = /https?:\/\//i.test(piece.text);
    for (const kind of EMPHASES) {
      if (isAddress || piece.text.includes(SIGNS[kind])) piece.emphases.delete(kind);
    }
  }
  for (const [index, piece] of marked.entries()) {
    if (!piece.isSpace) continue;
    const [left, right] = [coreBeside(marked, index, -1), coreBeside(marked, index, 1)];
    for (const kind of EMPHASES) {
      if (!(left?.emphases.has(kind) && right?.emphases.has(kind))) piece.emphases.delete(kind);
      else piece.emphases.add(kind);
    }
  }
  for (const kind of EMPHASES) dropInsideWords(marked, kind);
  return marked;
}

function coreBeside(pieces: readonly Piece[], index: number, step: 1 | -1): Piece | undefined {
  let at = index + step;
  while (pieces[at]?.isSpace === true) at += step;
  return pieces[at];
}

/** Emphasis that touches a letter outside stays unmarked. */
function dropInsideWords(pieces: readonly Piece[], kind: Emphasis): void {
  let start = 0;
  while (start < pieces.length) {
    let end = start;
    while (pieces[end]?.emphases.has(kind) === true) end += 1;
    if (end > start) {
      const [left, right] = [pieces[start - 1], pieces[end]];
      const touchesLeft = left?.isCode === false && isWord([...left.text].at(-1));
      const touchesRight = right?.isCode === false && isWord([...right.text][0]);
      if (touchesLeft || touchesRight) {
        for (const piece of pieces.slice(start, end)) piece.emphases.delete(kind);
      }
    }
    start = end + 1;
  }
}

/** The words from the first mark character to the last become code. */
function signsAsCode(text: string): string {
  const first = text.search(/[*_~`]/);
  if (first < 0) return text;
  const last = Math.max(...['*', '_', '~', '`'].map((sign) => text.lastIndexOf(sign)));
  const start = text.lastIndexOf(' ', first) + 1;
  const space = text.indexOf(' ', last);
  const end = space < 0 ? text.length : space;
  return text.slice(0, start) + asCode(text.slice(start, end)) + text.slice(end);
}

function emit(pieces: readonly Piece[], write: (text: string) => string): string {
  let line = '';
  let open: readonly Emphasis[] = [];
  const turnTo = (wanted: readonly Emphasis[]) => {
    let kept = 0;
    while (kept < open.length && open[kept] === wanted[kept]) kept += 1;
    for (const kind of open.slice(kept).reverse()) line += SIGNS[kind];
    for (const kind of wanted.slice(kept)) line += SIGNS[kind];
    open = wanted;
  };
  for (const piece of pieces) {
    turnTo(EMPHASES.filter((kind) => piece.emphases.has(kind)));
    const written = piece.isCode ? asCode(piece.text) : write(piece.text);
    // Backticks of two neighbours must not be read as one longer row.
    line += line.endsWith('`') && written.startsWith('`') ? ZERO_WIDTH + written : written;
  }
  turnTo([]);
  return line;
}

const asCode = (text: string) => (text.includes('`') ? fenced(text) : `\`${text}\``);

/** The text without the spaces at its edges, between them. */
function edgesOf(text: string): readonly [string, string, string] {
  const core = text.trim();
  const start = text.length - text.trimStart().length;
  return [text.slice(0, start), core, text.slice(start + core.length)];
}

// How WhatsApp reads its markup, with a generous reading of marks: what a reader would still see of
// a line if every pair that may count as marks is removed. Rendered lines are checked against this,
// so that no character of an answer can vanish as a mark.

/**
 * Separates a row of backticks, or a quote sign from the start of a line, invisibly. It is not put
 * beside single marks: whether a client treats it as a letter or a space there is unknown.
 */
const ZERO_WIDTH = '\u200b';
const OPAQUE = /```(.+?)```|`([^`]+)`|https?:\/\/[^\s`]+/gu;
const MARKS = ['*', '_', '~'] as const;

/** One character, or code or an address as a whole: nothing inside those is a mark. */
type Atom = {
  readonly visible: string;
  readonly first: string;
  readonly last: string;
  readonly mayMark: boolean;
};

/** The text without any ```: only our own fences open or end a block. */
function withoutFences(text: string): string {
  return text.replaceAll(/``(?=`)/g, `\`\`${ZERO_WIDTH}`);
}

/** The text between fences, with inner rows of backticks separated. */
export function fenced(text: string): string {
  const before = text.startsWith('`') ? ZERO_WIDTH : '';
  const after = text.endsWith('`') ? ZERO_WIDTH : '';
  return `\`\`\`${before}${withoutFences(text)}${after}\`\`\``;
}

/** Protects a text that would begin a quote at the start of a line. */
function withoutQuoteSign(line: string): string {
  return line.startsWith('> ') ? ZERO_WIDTH + line : line;
}

/** Whether a reader sees all of the text in this rendered line, with or without styles. */
function showsWhole(rendered: string, text: string): boolean {
  const plain = (value: string) => value.replaceAll(ZERO_WIDTH, '');
  return plain(visibleOf(rendered)) === plain(text);
}

function visibleOf(line: string): string {
  const atoms = atomsOf(line);
  const closers = new Map(MARKS.map((mark) => [mark as string, closersOf(mark, atoms)]));
  return read(atoms, closers, 0, atoms.length);
}

function atomsOf(line: string): readonly Atom[] {
  const atoms: Atom[] = [];
  const letters = (text: string) => {
    for (const char of text) {
      atoms.push({ visible: char, first: char, last: char, mayMark: true });
    }
  };
  let end = 0;
  for (const match of line.matchAll(OPAQUE)) {
    letters(line.slice(end, match.index));
    const [whole, block, code] = match;
    atoms.push({
      visible: block ?? code ?? whole,
      first: whole.slice(0, 1),
      last: [...whole].at(-1) ?? '',
      mayMark: false,
    });
    end = match.index + whole.length;
  }
  letters(line.slice(end));
  return atoms;
}

/** A mark opens if it touches what follows and no letter precedes it. */
const opens = (atoms: readonly Atom[], at: number) =>
  !isWord(atoms[at - 1]?.last) && !isSpace(atoms[at + 1]?.first);

const closes = (atoms: readonly Atom[], at: number) =>
  !isSpace(atoms[at - 1]?.last) && !isWord(atoms[at + 1]?.first);

export const isWord = (char: string | undefined) =>
  char !== undefined && /[\p{L}\p{N}]/u.test(char);
const isSpace = (char: string | undefined) => char === undefined || /\s/.test(char);

/** For each place the next one, itself included, that closes the mark. */
function closersOf(mark: string, atoms: readonly Atom[]): readonly number[] {
  const next: number[] = new Array(atoms.length + 1).fill(Number.POSITIVE_INFINITY);
  for (let at = atoms.length - 1; at >= 0; at -= 1) {
    const atom = atoms[at];
    const isCloser = atom?.mayMark === true && atom.visible === mark && closes(atoms, at);
    next[at] = isCloser ? at : (next[at + 1] ?? Number.POSITIVE_INFINITY);
  }
  return next;
}

function read(
  atoms: readonly Atom[],
  closers: ReadonlyMap<string, readonly number[]>,
  from: number,
  to: number,
): string {
  let text = '';
  for (let at = from; at < to; at += 1) {
    const { visible = '', mayMark = false } = atoms[at] ?? {};
    const closer = closers.get(visible)?.[at + 2] ?? Number.POSITIVE_INFINITY;
    if (mayMark && closer < to && opens(atoms, at)) {
      text += read(atoms, closers, at + 1, closer);
      at = closer;
    } else {
      text += visible;
    }
  }
  return text;
}
