// One line in WhatsApp's marks. Styles that WhatsApp would not show are left out; a line that would
// lose characters as marks is written more plainly, at last as code, where nothing counts.

import {
  fenced,
  isWord,
  showsWhole,
  withoutFences,
  withoutQuoteSign,
  ZERO_WIDTH,
} from './whatsapp-reader.ts';

type MarkStyle = 'bold' | 'italic' | 'strike' | 'code';

export type Span = { readonly text: string; readonly styles: readonly MarkStyle[] };
export type MarkedLine = { readonly isQuoted: boolean; readonly spans: readonly Span[] };

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
  const sober = piecesOf(spans.map(withoutEmphasis));
  const begin = (line: string) => (isQuoted ? QUOTE + line : withoutQuoteSign(line));
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

/** Neighbours of one style together, with the spaces at their edges apart. */
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

/** With the emphases that WhatsApp will show. */
function emphasized(pieces: readonly Piece[]): readonly Piece[] {
  const marked = pieces.map((piece) => ({ ...piece, emphases: new Set(piece.emphases) }));
  for (const piece of marked) {
    // A mark behind an address would become part of the link.
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

/** A stretch of one emphasis that touches a letter outside stays unmarked. */
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

/** What stands from the first sign to the last, with the words they are in, becomes code. */
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
    // Ticks of two neighbours must not be read as one longer row.
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
