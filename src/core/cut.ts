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
