// Where a text is cut so that no sign a person sees is halved: an emoji with its skin colour, a family, a
// flag, a letter with its accents. Limits are UTF-16 units, and what is kept is well-formed.

/** A sign of more units is not looked at whole; ordinary ones have up to 35. */
const MAX_SIGN_UNITS = 64;
/** How far a run of flags is looked at: where it begins tells which letters belong together. */
const WINDOW_UNITS = 512;
/** Below it stand only signs of their own; the first combining one is U+0300. */
const FIRST_COMBINING = 0x0300;

/** The beginning, of at most so many units. */
export function headOf(text: string, maxUnits: number): string {
  return text.slice(0, cutBefore(text, maxUnits)).toWellFormed();
}

/** The end, of at most so many units. */
export function tailOf(text: string, maxUnits: number): string {
  return text.slice(cutBehind(text, text.length - maxUnits)).toWellFormed();
}

/** What lies between two places, without the signs that reach beyond them. */
export function partOf(text: string, start: number, end: number): string {
  const from = cutBehind(text, start);
  return text.slice(from, Math.max(from, cutBefore(text, end))).toWellFormed();
}

/** The text, or its beginning with the mark behind it; of at most so many units, the mark included. */
export function shortened(text: string, maxUnits: number, mark = '…'): string {
  if (text.length <= maxUnits) return text.toWellFormed();
  return `${headOf(text, maxUnits - mark.length).trimEnd()}${mark}`;
}

/**
 * The last place at or before `index` that lies between two signs, 0 where the text's first sign reaches
 * beyond it. A sign that nobody can read, of hundreds of units, is cut between code points.
 */
export function cutBefore(text: string, index: number): number {
  if (index <= 0) return 0;
  if (isBorder(text, index)) return Math.min(index, text.length);
  const { start } = signAt(text, index);
  return index - start > MAX_SIGN_UNITS ? pointAt(text, index) : start;
}

/** The first place at or behind `index` that lies between two signs; else as `cutBefore`. */
export function cutBehind(text: string, index: number): number {
  if (index <= 0) return 0;
  if (isBorder(text, index)) return Math.min(index, text.length);
  const { start, end } = signAt(text, index);
  if (start === index) return index;
  return end - index > MAX_SIGN_UNITS ? pointAt(text, index) : end;
}

/** Told without asking: nearly every cut falls between two plain letters. */
function isBorder(text: string, index: number): boolean {
  if (index >= text.length) return true;
  return text.charCodeAt(index - 1) < FIRST_COMBINING && text.charCodeAt(index) < FIRST_COMBINING;
}

/** The sign that the unit at `index` belongs to. */
function signAt(text: string, index: number): { readonly start: number; readonly end: number } {
  const from = pointAt(text, Math.max(0, index - WINDOW_UNITS));
  const around = text.slice(from, index + 2 * MAX_SIGN_UNITS);
  // Made anew: it would cost every start, and few texts need it.
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

// Cuts long texts so that the cut announces itself. The beginning and the end stay, because errors
// and totals tend to stand last.

/** Share of the kept characters that the beginning gets. */
const HEAD_SHARE = 0.7;

/**
 * At most `maxChars` UTF-16 units, the marker included: `[truncated, 12,345 characters omitted: hint]`.
 * No sign is halved. A limit too small for the marker keeps the marker alone.
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

/** The lines from the beginning that fit into `maxChars`, whole lines only. */
export function keepFirstLines(text: string, maxChars: number): string {
  if (text.length <= maxChars) return text;
  const end = text.lastIndexOf('\n', maxChars);
  return end < 0 ? '' : text.slice(0, end);
}

/** The lines up to the end that fit into `maxChars`, whole lines only. */
export function keepLastLines(text: string, maxChars: number): string {
  if (text.length <= maxChars) return text;
  // A line may begin exactly where the room begins, so the break before it counts too.
  const start = text.indexOf('\n', text.length - maxChars - 1);
  return start < 0 ? '' : text.slice(start + 1);
}

// The first words of a text on one line, for sentences about it.

const MAX_CHARS = 60;

export function excerptOf(text: string): string {
  const line = headOf(text, 4 * MAX_CHARS).replace(/[\s"“”\p{C}]+/gu, ' ');
  return shortened(line.trim(), MAX_CHARS);
}

// The words around a match, on one line.

const CHARS_AROUND = 60;

/** Undefined where the text does not hold the query. Case and runs of white space do not count. */
export function findSnippet(text: string, query: string): string | undefined {
  const flat = text.replace(/\s+/g, ' ').trim();
  const wanted = query.replace(/\s+/g, ' ').trim();
  const at = flat.toLowerCase().indexOf(wanted.toLowerCase());
  if (at < 0) return undefined;
  const start = Math.max(0, at - CHARS_AROUND);
  const end = Math.min(flat.length, at + wanted.length + CHARS_AROUND);
  const cut = partOf(flat, start, end);
  return `${start > 0 ? '…' : ''}${cut}${end < flat.length ? '…' : ''}`;
}
