// An answer around what specialists wrote: their outputs are put in to the letter, whatever the model
// that frames them makes of them.

/** Where the output of this number, counted from 1, belongs. */
export const placeOf = (number: number) => `[[output ${number}]]`;
const PLACE = /\[\[\s*output\s*(\d+)?\s*\]\]/gi;

/**
 * Every output stands in the answer once, between blank lines and as a block of code unless it is a plain line. One that `frame` has no place for stands
 * behind its first paragraph; lines that repeat one to the letter are its place.
 */
export function composedAnswer(frame: string, outputs: readonly string[]): string {
  const placed = new Set<number>();
  const pieces: string[] = [];
  for (const part of partsOf(withPlaces(frame, outputs))) {
    if (typeof part === 'string') pieces.push(part);
    else if (outputs[part] !== undefined && !placed.has(part)) {
      placed.add(part);
      pieces.push(asText(outputs[part]));
    }
  }
  const text = pieces.filter(isSaid);
  const missing = outputs
    .filter((_, at) => !placed.has(at))
    .filter(isSaid)
    .map(asText);
  const all = placed.size === 0 ? withinText(text, missing) : [...text, ...missing];
  return all.filter(isSaid).join('\n\n');
}

/** One line in which nothing can be Markdown. */
const PLAIN = /^(?!\d+[.)] )[\p{L}\p{M}\p{N}](?:[\p{L}\p{M}\p{N}.,;:!?'’"“”()%€$/+–—-]| (?! ))*$/u;

/** A block of code is the one form that every channel shows as it is, whatever Markdown would make of it. */
function asText(output: string): string {
  if (PLAIN.test(output.trim())) return output;
  const longest = Math.max(2, ...[...output.matchAll(/`+/g)].map(([ticks]) => ticks.length));
  const fence = '`'.repeat(longest + 1);
  return `${fence}\n${output}\n${fence}`;
}

/** A frame that put the place, or the output itself, into a block of code already. */
const FENCED_PLACE =
  /^ {0,3}(`{3,}|~{3,})[^\n`]*\n\s*(\[\[\s*output\s*\d*\s*\]\])\s*\n {0,3}\1[ \t]*$/gim;

const isSaid = (piece: string) => piece.trim() !== '';

function withPlaces(frame: string, outputs: readonly string[]): string {
  const marked = outputs.reduce((text, output, at) => {
    const lines = `\n${output}\n`;
    return text.includes(lines) ? text.replace(lines, () => `\n${placeOf(at + 1)}\n`) : text;
  }, `\n${frame}\n`);
  return marked.replace(FENCED_PLACE, '$2').trim();
}

/** Texts as they are, and for each place the index of its output. */
function partsOf(frame: string): readonly (string | number)[] {
  const parts: (string | number)[] = [];
  let from = 0;
  for (const found of frame.matchAll(PLACE)) {
    parts.push(frame.slice(from, found.index).trim(), Number(found[1] ?? 1) - 1);
    from = found.index + found[0].length;
  }
  return [...parts, frame.slice(from).trim()];
}

function withinText(pieces: readonly string[], missing: readonly string[]): readonly string[] {
  const text = pieces.join('\n\n');
  const end = text.search(/\n\s*\n/);
  const [before, after] = end < 0 ? [text, ''] : [text.slice(0, end), text.slice(end).trim()];
  return [before, ...missing, after];
}
