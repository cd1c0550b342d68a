// Ranges of lines as a model writes them, `a:b`, 1-based and inclusive; also `a:`, `:b`, `a-b`, `a`.

export type LineRange = { readonly first: number; readonly last: number };

const RANGE = /^(\d{1,9})?\s*([:-])?\s*(\d{1,9})?$/;

/** Undefined where the text is no range. */
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

/** The lines of the text without the empty one behind a final newline. */
export function linesOf(text: string): readonly string[] {
  const lines = text.split('\n');
  return lines.at(-1) === '' ? lines.slice(0, -1) : lines;
}
