// Text for people and models: shortening at grapheme borders, hidden characters, line ranges and a
// line diff.

/** Longer graphemes are not examined whole; ordinary ones have up to 35 units. */
const MAX_SIGN_UNITS = 64;
/** How far a run of flag letters is examined: its start determines the pairs. */
const WINDOW_UNITS = 512;
/** Below it every character is a grapheme of its own; the first combining one is U+0300. */
const FIRST_COMBINING = 0x0300;

/** The start, of at most so many units. */
export function headOf(text: string, maxUnits: number): string {
  return text.slice(0, cutBefore(text, maxUnits)).toWellFormed();
}

/** The end, of at most so many units. */
export function tailOf(text: string, maxUnits: number): string {
  return text.slice(cutBehind(text, text.length - maxUnits)).toWellFormed();
}

/** The text between two places, without the graphemes that extend beyond them. */
export function partOf(text: string, start: number, end: number): string {
  const from = cutBehind(text, start);
  return text.slice(from, Math.max(from, cutBefore(text, end))).toWellFormed();
}

/** Line breaks and other runs of white space as one space each. */
export const oneLine = (text: string): string => text.replace(/\s+/g, ' ').trim();

/** The text, or its start followed by the mark; of at most so many units, mark included. */
export function shortened(text: string, maxUnits: number, mark = '…'): string {
  if (text.length <= maxUnits) return text.toWellFormed();
  return `${headOf(text, maxUnits - mark.length).trimEnd()}${mark}`;
}

/**
 * The last place at or before `index` between two graphemes, 0 if the first one extends beyond it.
 * An unreadable grapheme of hundreds of units is cut between code points.
 */
export function cutBefore(text: string, index: number): number {
  if (index <= 0) return 0;
  if (isBorder(text, index)) return Math.min(index, text.length);
  const { start } = signAt(text, index);
  return index - start > MAX_SIGN_UNITS ? pointAt(text, index) : start;
}

/** The first place at or after `index` between two graphemes; otherwise like `cutBefore`. */
export function cutBehind(text: string, index: number): number {
  if (index <= 0) return 0;
  if (isBorder(text, index)) return Math.min(index, text.length);
  const { start, end } = signAt(text, index);
  if (start === index) return index;
  return end - index > MAX_SIGN_UNITS ? pointAt(text, index) : end;
}

/** A quick check without the segmenter: nearly every cut falls between two plain letters. */
function isBorder(text: string, index: number): boolean {
  if (index >= text.length) return true;
  return text.charCodeAt(index - 1) < FIRST_COMBINING && text.charCodeAt(index) < FIRST_COMBINING;
}

/** The grapheme that contains the unit at `index`. */
function signAt(text: string, index: number): { readonly start: number; readonly end: number } {
  const from = pointAt(text, Math.max(0, index - WINDOW_UNITS));
  const around = text.slice(from, index + 2 * MAX_SIGN_UNITS);
  // Created on use: it would cost every start, and few texts need it.
  const segmenter = new Intl.Segmenter('en', { granularity: 'grapheme' });
  const sign = segmenter.segment(around).containing(index - from);
  const start = from + (sign?.index ?? index - from);
  return { start, end: start + (sign?.segment.length ?? 0) };
}

/** `index`, or one less between the halves of a surrogate pair. */
export function pointAt(text: string, index: number): number {
  const isHalf = index > 0 && text.codePointAt(index - 1) !== text.charCodeAt(index - 1);
  return isHalf ? index - 1 : index;
}

// Truncates long texts with a visible marker. The start and the end stay, because errors and totals
// tend to come last.

/** Share of the kept characters that the start gets. */
const HEAD_SHARE = 0.7;

/**
 * At most `maxChars` UTF-16 units, the marker included:
 * `[truncated, 12,345 characters omitted: hint]`. No grapheme is split. A limit too small for the
 * marker keeps only the marker.
 */
export function truncateText(text: string, maxChars: number, hint: string): string {
  if (text.length <= maxChars) return text;
  // The count cannot have more digits than the whole text's length.
  const room = Math.max(0, maxChars - markerOf(text.length, hint).length);
  const headEnd = cutBefore(text, Math.ceil(room * HEAD_SHARE));
  const tailStart = cutBehind(text, text.length - (room - headEnd));
  const marker = markerOf(tailStart - headEnd, hint);
  return `${text.slice(0, headEnd)}${marker}${text.slice(tailStart)}`;
}

function markerOf(omitted: number, hint: string): string {
  return `\n[truncated, ${omitted.toLocaleString('en-US')} characters omitted: ${hint}]\n`;
}

/** The first lines that fit into `maxChars`, whole lines only. */
export function keepFirstLines(text: string, maxChars: number): string {
  if (text.length <= maxChars) return text;
  const end = text.lastIndexOf('\n', maxChars);
  return end < 0 ? '' : text.slice(0, end);
}

/** The last lines that fit into `maxChars`, whole lines only. */
export function keepLastLines(text: string, maxChars: number): string {
  if (text.length <= maxChars) return text;
  // A line may start exactly at the limit, so the break before it counts too.
  const start = text.indexOf('\n', text.length - maxChars - 1);
  return start < 0 ? '' : text.slice(start + 1);
}

// The first words of a text on one line, for sentences about it.

const MAX_CHARS = 60;

export function excerptOf(text: string): string {
  const line = headOf(text, 4 * MAX_CHARS).replace(/[\s"“”\p{C}]+/gu, ' ');
  return shortened(line.trim(), MAX_CHARS);
}

// The text around a match, on one line.

const CHARS_AROUND = 60;

/**
 * Undefined if the text does not contain every word of the query. Ignores case and runs of white
 * space.
 */
export function findSnippet(text: string, query: string): string | undefined {
  const flat = oneLine(text);
  const lowered = flat.toLowerCase();
  const whole = oneLine(query.toLowerCase());
  const words = whole.split(' ');
  if (!words.every((word) => lowered.includes(word))) return undefined;
  const [shown = ''] = lowered.includes(whole) ? [whole] : words;
  const at = lowered.indexOf(shown);
  const start = Math.max(0, at - CHARS_AROUND);
  const end = Math.min(flat.length, at + shown.length + CHARS_AROUND);
  const cut = partOf(flat, start, end);
  return `${start > 0 ? '…' : ''}${cut}${end < flat.length ? '…' : ''}`;
}

// Invisible characters that change what is read: direction marks, tags, zero widths (case J04).
// Joiners between letters and variation selectors are in normal use.

/**
 * Bidirectional controls (UAX 9), tags, zero widths, invisible operators, fillers, other controls.
 */
const HIDDEN =
  /(?!\t|\n|\r|\f|\u200C|\u200D)[\p{Cc}\u00AD\u061C\u180E\u200B-\u200F\u202A-\u202E\u2060-\u206F\u3164\uFFA0\uFFF9-\uFFFB\u{E0000}-\u{E007F}]|(?<!^)\uFEFF|\u{E0100}/u;
/** Joiners are meaningful only between letters and symbols. */
const STRAY_JOINER = /(?<!\p{L}|\p{M}|\p{S}|\p{N}|\uFE0F)(?:\u200C|\u200D)|(?:\u200C|\u200D){2}/u;

/** The first one as `U+202E`; undefined if there is none. */
export function hiddenCharactersIn(text: string): string | undefined {
  const [found] = HIDDEN.exec(text) ?? STRAY_JOINER.exec(text) ?? [];
  if (found === undefined) return undefined;
  const code = (found.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0');
  return `U+${code}`;
}

const BREAKS_LINE = /[\t\n\v\f\r\u0085\u2028\u2029]/;
/** In addition to those that JSON escapes itself. */
const NOT_ESCAPED = /[\u007F-\u009F\u2028\u2029\p{Cf}\u3164\uFFA0]|\u{E0100}/gu;

/** A file name as part of one line: unchanged, or as JSON if it is deceptive. */
export function nameOnLine(name: string): string {
  if (!BREAKS_LINE.test(name) && hiddenCharactersIn(name) === undefined) return name;
  return JSON.stringify(name).replace(NOT_ESCAPED, (found) => {
    return Array.from({ length: found.length }, (_, at) => unitEscape(found.charCodeAt(at))).join(
      '',
    );
  });
}

const unitEscape = (unit: number) => `\\u${unit.toString(16).padStart(4, '0')}`;

// Closes a code block in a text that was cut off, so that following text is not part of it.

export function withFenceClosed(text: string): string {
  const fences = text.match(/^ {0,3}(?:`{3,}|~{3,})/gm) ?? [];
  return fences.length % 2 === 1 ? `${text}\n${fences.at(-1)?.trim() ?? ''}` : text;
}

// A stream of bytes of which only the start and the end are kept, in bounded memory.

export type Kept = {
  readonly head: Buffer;
  readonly tail: Buffer;
  /** Bytes between the two that were dropped; 0: `head` and `tail` are the whole. */
  readonly omitted: number;
};

export class HeadAndTail {
  readonly #headBytes: number;
  readonly #tailBytes: number;
  readonly #head: Buffer[] = [];
  #tail: Buffer[] = [];
  #headSize = 0;
  #tailSize = 0;
  #total = 0;

  constructor(maxBytes: number) {
    this.#headBytes = Math.ceil(maxBytes / 2);
    this.#tailBytes = Math.floor(maxBytes / 2);
  }

  push(part: Buffer): void {
    this.#total += part.length;
    const first = part.subarray(0, Math.max(0, this.#headBytes - this.#headSize));
    if (first.length > 0) {
      this.#head.push(Buffer.from(first));
      this.#headSize += first.length;
    }
    const rest = part.subarray(first.length);
    if (rest.length === 0) return;
    this.#tail.push(Buffer.from(rest.subarray(Math.max(0, rest.length - this.#tailBytes))));
    this.#tailSize += Math.min(rest.length, this.#tailBytes);
    // Joined only occasionally: many small parts must not cost quadratic time.
    if (this.#tailSize > 2 * this.#tailBytes || this.#tail.length > 1000) this.#shrink();
  }

  /** All bytes received. */
  get total(): number {
    return this.#total;
  }

  get kept(): Kept {
    this.#shrink();
    const head = Buffer.concat(this.#head);
    const tail = this.#tail[0] ?? Buffer.alloc(0);
    return { head, tail, omitted: this.#total - head.length - tail.length };
  }

  #shrink() {
    const whole = Buffer.concat(this.#tail);
    const tail = Buffer.from(whole.subarray(Math.max(0, whole.length - this.#tailBytes)));
    this.#tail = [tail];
    this.#tailSize = tail.length;
  }
}

// Ranges of lines as a model writes them, `a:b`, 1-based and inclusive; also `a:`, `:b`, `a-b`,
// `a`.

type LineRange = { readonly first: number; readonly last: number };

const RANGE = /^(\d{1,9})?\s*([:-])?\s*(\d{1,9})?$/;

/** Undefined if the text is no range. */
export function parseLineRange(text: string): LineRange | undefined {
  const match = RANGE.exec(text.trim());
  if (match === null) return undefined;
  const [, from, separator, to] = match;
  if (from === undefined && to === undefined) return undefined;
  const first = Math.max(1, Number(from ?? 1));
  const end = separator === undefined ? first : Number.POSITIVE_INFINITY;
  const last = to === undefined ? end : Number(to);
  return last < first ? undefined : { first, last };
}

/** The lines of the text without the empty one after a final newline. */
export function linesOf(text: string): readonly string[] {
  const lines = text.split('\n');
  return lines.at(-1) === '' ? lines.slice(0, -1) : lines;
}

// A line diff of two texts: removed, added and unchanged lines.

export type DiffLine = { readonly kind: 'same' | 'gone' | 'new'; readonly text: string };

/** Beyond it lines are not matched: all old lines are gone and all new ones are new. */
const MAX_CELLS = 4_000_000;

export function lineDiff(before: readonly string[], after: readonly string[]): readonly DiffLine[] {
  if (before.length * after.length > MAX_CELLS) {
    return [...lines('gone', before), ...lines('new', after)];
  }
  const common = commonLengths(before, after);
  const found: DiffLine[] = [];
  let left = 0;
  let right = 0;
  while (left < before.length || right < after.length) {
    const old = before[left];
    const fresh = after[right];
    if (old !== undefined && old === fresh) {
      found.push({ kind: 'same', text: old });
      left += 1;
      right += 1;
    } else if (
      fresh === undefined ||
      (old !== undefined && (common[left + 1]?.[right] ?? 0) >= (common[left]?.[right + 1] ?? 0))
    ) {
      found.push({ kind: 'gone', text: old ?? '' });
      left += 1;
    } else {
      found.push({ kind: 'new', text: fresh });
      right += 1;
    }
  }
  return found;
}

const lines = (kind: DiffLine['kind'], texts: readonly string[]): readonly DiffLine[] =>
  texts.map((text) => ({ kind, text }));

/** For each pair of places, the length of the longest common subsequence of lines that follow. */
function commonLengths(before: readonly string[], after: readonly string[]) {
  const table = Array.from({ length: before.length + 1 }, () =>
    new Array<number>(after.length + 1).fill(0),
  );
  for (let left = before.length - 1; left >= 0; left -= 1) {
    for (let right = after.length - 1; right >= 0; right -= 1) {
      const row = table[left];
      const below = table[left + 1];
      if (row === undefined || below === undefined) continue;
      row[right] =
        before[left] === after[right]
          ? (below[right + 1] ?? 0) + 1
          : Math.max(below[right] ?? 0, row[right + 1] ?? 0);
    }
  }
  return table;
}

/** Tags by which models and their hosts separate thinking and tool calls from text. */
export const HIDDEN_TAGS = [
  'think',
  'thinking',
  'thought',
  'reasoning',
  'tool_call',
  'tool_calls',
  'tool_response',
  'function_calls',
];

/**
 * Zero-width, bidirectional and tag characters, and controls; joiners of scripts and emoji stay.
 */
const INVISIBLE = /(?![\n\t\u200C\u200D])[\p{Cc}\p{Cf}]/gu;

export function visibleText(text: string): string {
  const visible = text.replace(/\r\n?/g, '\n').replace(INVISIBLE, '');
  // Line by line: an expression for blanks at line ends takes quadratic time on long runs.
  const lines = visible.split('\n').map((line) => line.trimEnd());
  return lines.join('\n').replace(/\n{4,}/g, '\n\n\n');
}

// "Did you mean ...": the known name closest to a mistyped one.

const MAX_RELATIVE_DISTANCE = 0.4;

/** Undefined if nothing is close enough to suggest. Ignores case, `_` and `-`. */
export function nearestName(wrong: string, known: readonly string[]): string | undefined {
  const plainWrong = plain(wrong);
  let best: { readonly name: string; readonly distance: number } | undefined;
  for (const name of known) {
    const distance = editDistance(plainWrong, plain(name));
    if (distance > MAX_RELATIVE_DISTANCE * Math.max(plainWrong.length, plain(name).length))
      continue;
    if (best === undefined || distance < best.distance) best = { name, distance };
  }
  return best?.name;
}

const plain = (name: string) => name.toLowerCase().replace(/[_-]/g, '');

/**
 * Insertions, deletions, replacements and swaps of neighbours that turn one text into the other.
 */
function editDistance(from: string, to: string): number {
  let beforeLast: readonly number[] = [];
  let last: readonly number[] = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let row = 1; row <= from.length; row += 1) {
    const current = [row];
    for (let column = 1; column <= to.length; column += 1) {
      const same = from[row - 1] === to[column - 1];
      const choices = [
        (current[column - 1] ?? 0) + 1,
        (last[column] ?? 0) + 1,
        (last[column - 1] ?? 0) + (same ? 0 : 1),
      ];
      const swapped = from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1];
      if (swapped) choices.push((beforeLast[column - 2] ?? 0) + 1);
      current.push(Math.min(...choices));
    }
    beforeLast = last;
    last = current;
  }
  return last[to.length] ?? 0;
}

// Patterns in which `*` matches any text.

/** Matches the whole text; a pattern without `*` matches only itself. */
export function matchesWildcard(text: string, pattern: string): boolean {
  const [first = '', ...rest] = pattern.split('*');
  const last = rest.pop();
  if (last === undefined) return pattern === text;
  if (!text.startsWith(first)) return false;
  let at = first.length;
  for (const part of rest) {
    const found = text.indexOf(part, at);
    if (found < 0) return false;
    at = found + part.length;
  }
  return text.length - last.length >= at && text.endsWith(last);
}
