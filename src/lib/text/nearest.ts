// "Did you mean ...": the known name closest to a mistyped one.

const MAX_RELATIVE_DISTANCE = 0.4;

/** Undefined where nothing is close enough to be worth suggesting. Case, `_` and `-` do not count. */
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

/** Insertions, deletions, replacements and swaps of neighbours that turn one text into the other. */
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

// Patterns in which `*` stands for any text.

/** The whole text; a pattern without `*` means only itself. */
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
