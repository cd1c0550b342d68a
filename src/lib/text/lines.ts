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

// What became of a text, line by line: what went, what came, and what stayed between them.

export type DiffLine = { readonly kind: 'same' | 'gone' | 'new'; readonly text: string };

/** Beyond it lines are not matched: all of the one is gone and all of the other is new. */
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

/** Of what follows each pair of places: the length of the longest row of lines that both have. */
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
