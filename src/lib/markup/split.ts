// Splits styled text into parts that fit a platform's message, on block borders if possible, and
// never inside what a reader sees as one character. Styles end and start again at a split; no
// character is lost.

import { cutBefore, cutBehind, pointAt } from '../text/cut.ts';
import { parseMarkup } from './markup.ts';
import { type Markup, type Run, runsText, type Style } from './writer.ts';

/** A better place to split is preferred over a fuller part only from this share on. */
const MIN_FILL = 0.5;
/** A repeated table header may use this share of a part. */
const MAX_HEADING_SHARE = 0.25;
const ELLIPSIS = '…';

export type Part = {
  readonly runs: readonly Run[];
  /** Units at the start that repeat a table's header and are not in the source. */
  readonly repeatedUnits: number;
};

/** Parts of at most `maxUnits` UTF-16 units of visible text; none for an empty text. */
export function splitMarkdown(markdown: string, maxUnits: number): readonly Part[] {
  return splitMarkup(parseMarkup(markdown), maxUnits, visibleUnits);
}

const visibleUnits = (runs: readonly Run[]) =>
  runs.reduce((units, run) => units + run.text.length, 0);

/** Parts of at most `maxUnits` as `unitsOf` counts them, for dialects whose marks count too. */
export function splitMarkup(
  markup: Markup,
  maxUnits: number,
  unitsOf: (runs: readonly Run[]) => number,
): readonly Part[] {
  const text = runsText(markup.runs);
  const slicer = new Slicer(markup.runs);
  const parts: Part[] = [];
  let start = 0;
  let border = 0;
  while (start < text.length) {
    const heading = slicer.headingAt(start);
    const repeated =
      (heading?.text.length ?? 0) <= maxUnits * MAX_HEADING_SHARE ? heading : undefined;
    const repeatedUnits = repeated?.text.length ?? 0;
    while ((markup.borders[border] ?? Number.POSITIVE_INFINITY) <= start) border += 1;
    let room = maxUnits - repeatedUnits;
    let part: Slice;
    for (;;) {
      const end = partEnd(text, start, start + room, markup.borders, border);
      part = slicer.peek(end, repeated);
      const units = unitsOf(part.runs);
      const taken = end - start;
      if (units <= maxUnits || taken <= 1) break;
      room = Math.max(1, Math.min(taken - 1, Math.floor((taken * maxUnits) / units)));
    }
    const from = start;
    start = slicer.moveTo(part);
    if (text.slice(from, start).trim() === '') continue;
    parts.push({ runs: part.runs, repeatedUnits });
  }
  return parts;
}

/** The beginning of a text that fits, with an ellipsis if something is left out. */
export function truncateMarkup(markup: Markup, maxUnits: number): readonly Run[] {
  const text = runsText(markup.runs);
  if (text.length <= maxUnits) return markup.runs;
  const end = signCut(text, 0, maxUnits - ELLIPSIS.length);
  const kept = new Slicer(markup.runs).peek(end, undefined);
  return [...kept.runs, { text: ELLIPSIS, styles: [] }];
}

/** A beginning is shortened by this factor until its marks fit as well. */
const SHORTER = 0.8;

/** The same, rendered, for a dialect whose marks count. */
export function truncateMarked<Rendered>(
  markup: Markup,
  maxUnits: number,
  render: (runs: readonly Run[]) => Rendered,
  unitsOf: (rendered: Rendered) => number,
): Rendered {
  for (let units = maxUnits; ; units = Math.floor(units * SHORTER)) {
    const rendered = render(truncateMarkup(markup, units));
    if (unitsOf(rendered) <= maxUnits) return rendered;
  }
}

/** The end of a text that fits, with an ellipsis if something is left out. */
export function endOfMarkup(markup: Markup, maxUnits: number): readonly Run[] {
  const text = runsText(markup.runs);
  if (text.length <= maxUnits) return markup.runs;
  const slicer = new Slicer(markup.runs);
  slicer.moveTo(slicer.peek(cutBehind(text, text.length - maxUnits + ELLIPSIS.length), undefined));
  return [{ text: ELLIPSIS, styles: [] }, ...slicer.peek(text.length, undefined).runs];
}

/** Where a part that starts at `start` ends, at most at `limit`. */
function partEnd(
  text: string,
  start: number,
  limit: number,
  borders: readonly number[],
  fromBorder: number,
): number {
  if (text.length <= limit) return text.length;
  const enough = start + (limit - start) * MIN_FILL;
  const block = lastBorder(borders, fromBorder, limit);
  if (block >= enough) return block;
  const line = text.lastIndexOf('\n', limit - 1) + 1;
  if (line >= enough) return line;
  const word = lastWordEnd(text, limit);
  return word >= enough ? word : signCut(text, start, limit);
}

/** After a space, or after a sentence of a script without spaces. */
function lastWordEnd(text: string, limit: number): number {
  return Math.max(...[' ', '。', '！', '？'].map((end) => text.lastIndexOf(end, limit - 1) + 1));
}

function lastBorder(borders: readonly number[], from: number, limit: number): number {
  let found = -1;
  for (let index = from; (borders[index] ?? Number.POSITIVE_INFINITY) <= limit; index += 1) {
    found = borders[index] ?? found;
  }
  return found;
}

/** After the last whole grapheme; one that is longer than a part is cut between code points. */
function signCut(text: string, start: number, limit: number): number {
  const cut = cutBefore(text, limit);
  return cut > start ? cut : Math.max(start + 1, pointAt(text, limit));
}

/** The end of a slice: the run, the run's offset in the whole text, and how much of it is taken. */
type Position = { readonly index: number; readonly offset: number; readonly taken: number };
type Slice = { readonly runs: readonly Run[]; readonly end: Position };

/** Takes runs from left to right. */
class Slicer {
  readonly #runs: readonly Run[];
  #at: Position = { index: 0, offset: 0, taken: 0 };

  constructor(runs: readonly Run[]) {
    this.#runs = runs;
  }

  /** The table header to repeat when a part starts at this offset, inside its table. */
  headingAt(offset: number): Run | undefined {
    const run = this.#runs[this.#at.index];
    if (run === undefined || offset === this.#at.offset) return undefined;
    const pre = run.styles.find((style): style is PreStyle => style.kind === 'pre');
    return pre?.heading === undefined ? undefined : { text: pre.heading, styles: run.styles };
  }

  /** The text between the last move and the offset, below a heading if one is given. */
  peek(end: number, heading: Run | undefined): Slice {
    const runs: Run[] = heading === undefined ? [] : [heading];
    let { index, offset, taken } = this.#at;
    for (let run = this.#runs[index]; run !== undefined; run = this.#runs[index]) {
      const to = Math.min(run.text.length, end - offset);
      if (to > taken) runs.push({ text: run.text.slice(taken, to), styles: run.styles });
      if (to < run.text.length) {
        taken = Math.max(taken, to);
        break;
      }
      index += 1;
      offset += run.text.length;
      taken = 0;
    }
    return { runs, end: { index, offset, taken } };
  }

  /** Marks everything up to the slice's end as done; returns its offset in the whole text. */
  moveTo(slice: Slice): number {
    this.#at = slice.end;
    return slice.end.offset + slice.end.taken;
  }
}

type PreStyle = Extract<Style, { kind: 'pre' }>;
