// Cuts styled text into parts that fit a platform's message, on block borders where it can, and
// never inside what a reader sees as one character. Styles end and begin again at a cut; every
// character arrives.

import { parseMarkup } from './markup.ts';
import type { Markup, Run, Style } from './markup-writer.ts';
import { runsText } from './markup-writer.ts';

/** A part is at least this full before a better place to cut is preferred over a fuller part. */
const MIN_FILL = 0.5;
/** A repeated table header may take this share of a part. */
const MAX_HEADING_SHARE = 0.25;
const ELLIPSIS = '…';

export type Part = {
  readonly runs: readonly Run[];
  /** Units at the beginning that repeat a table's header and are not in the source. */
  readonly repeatedUnits: number;
};

/** Parts of at most `maxUnits` UTF-16 units of visible text; none for a text without any. */
export function splitMarkdown(markdown: string, maxUnits: number): readonly Part[] {
  return splitMarkup(parseMarkup(markdown), maxUnits);
}

function splitMarkup(markup: Markup, maxUnits: number): readonly Part[] {
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
    const end = cutBefore(text, start, start + maxUnits - repeatedUnits, markup.borders, border);
    const runs = slicer.take(end);
    start = end;
    if (runs.every((run) => run.text.trim() === '')) continue;
    parts.push({ runs: repeated === undefined ? runs : [repeated, ...runs], repeatedUnits });
  }
  return parts;
}

/** The beginning of a text that fits, with an ellipsis where something is left out. */
export function truncateMarkup(markup: Markup, maxUnits: number): readonly Run[] {
  const text = runsText(markup.runs);
  const slicer = new Slicer(markup.runs);
  if (text.length <= maxUnits) return slicer.take(text.length);
  const kept = slicer.take(graphemeCut(text, 0, maxUnits - ELLIPSIS.length));
  return [...kept, { text: ELLIPSIS, styles: [] }];
}

/** Where a part that begins at `start` ends, at most at `limit`. */
function cutBefore(
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
  return word >= enough ? word : graphemeCut(text, start, limit);
}

/** Behind a space, or behind a sentence of a script that has none. */
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

/** The last border between graphemes at or before `limit`; inside a monstrous one, between code points. */
function graphemeCut(text: string, start: number, limit: number): number {
  const window = text.slice(start, limit + 64);
  const segmenter = new Intl.Segmenter(undefined, { granularity: 'grapheme' });
  const cut = segmenter.segment(window).containing(limit - start)?.index ?? limit - start;
  if (cut > 0) return start + cut;
  const isPair = /^[\udc00-\udfff]/.test(text.slice(limit, limit + 1));
  return Math.max(start + 1, isPair ? limit - 1 : limit);
}

/** Hands out runs from left to right. */
class Slicer {
  readonly #runs: readonly Run[];
  #index = 0;
  /** Offset in the whole text of the current run, and how much of it is taken. */
  #offset = 0;
  #taken = 0;

  constructor(runs: readonly Run[]) {
    this.#runs = runs;
  }

  /** The table header to repeat when a part begins at this offset, inside its table. */
  headingAt(offset: number): Run | undefined {
    const run = this.#runs[this.#index];
    if (run === undefined || offset === this.#offset) return undefined;
    const pre = run.styles.find((style): style is PreStyle => style.kind === 'pre');
    return pre?.heading === undefined ? undefined : { text: pre.heading, styles: run.styles };
  }

  /** Everything not yet taken up to the offset. */
  take(end: number): readonly Run[] {
    const taken: Run[] = [];
    for (let run = this.#runs[this.#index]; run !== undefined; run = this.#runs[this.#index]) {
      const from = this.#taken;
      const to = Math.min(run.text.length, end - this.#offset);
      if (to > from) taken.push({ text: run.text.slice(from, to), styles: run.styles });
      if (to < run.text.length) {
        this.#taken = Math.max(from, to);
        break;
      }
      this.#index += 1;
      this.#offset += run.text.length;
      this.#taken = 0;
    }
    return taken;
  }
}

type PreStyle = Extract<Style, { kind: 'pre' }>;
