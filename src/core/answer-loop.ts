// A passage that follows itself again and again at the end of a text, as small models write until
// somebody stops them. Only what is the same to the letter counts: refrains, tables with like rows and
// lists that count on are none. Code, tables, forms to fill in and figures are given ten times as much.

/** Longest passage, in characters. */
const MAX_PERIOD = 600;
/** Shorter stretches are rulers, ornaments and blank lines, however often they repeat. */
const MIN_CHARS = 1200;
const DATA_FACTOR = 10;
const LOOKED_AT_CHARS = 60_000;

export type AnswerLoop = {
  /** Where the first passage ends: up to there nothing is said twice. */
  readonly saidAt: number;
  readonly repeats: number;
};

/** `repeats`: from so many on; undefined: the text does not end in a loop. */
export function loopIn(text: string, repeats: number): AnswerLoop | undefined {
  const tail = text.trimEnd();
  if (tail.length < MIN_CHARS || !endsAgain(tail)) return undefined;
  const reversed = [...tail.slice(-LOOKED_AT_CHARS)].reverse();
  const inCode = isInCode(tail);
  for (let period = 1; period <= MAX_PERIOD; period += 1) {
    const length = period + matchAt(reversed, period);
    const times = Math.floor(length / period);
    if (times < repeats || length < MIN_CHARS) continue;
    const passage = reversed.slice(0, period).reverse().join('');
    const isData = inCode || isNoProse(passage);
    const least = isData ? DATA_FACTOR : 1;
    if (times < repeats * least || length < MIN_CHARS * least) continue;
    const looped = reversed.slice(0, length - period).join('').length;
    return { saidAt: tail.length - looped, repeats: times };
  }
  return undefined;
}

/** A cheap look before the dear one: the last words stand just before them as well. */
function endsAgain(tail: string): boolean {
  const end = tail.slice(-24);
  const before = tail.lastIndexOf(end, tail.length - end.length - 1);
  return before >= 0 && tail.length - end.length - before <= MAX_PERIOD * 2;
}

/** How many characters from there on are those of the beginning. */
function matchAt(text: readonly string[], start: number): number {
  let length = 0;
  while (start + length < text.length && text[start + length] === text[length]) length += 1;
  return length;
}

/** Marks of code and tables, blanks and boxes of a form; every line indented as code is. */
function isNoProse(passage: string): boolean {
  if (!/\p{L}/u.test(passage) || /[|\t{}<>=;]|_{3}|\.{4}|…{2}|\[ ?\]|[☐□]/.test(passage))
    return true;
  const lines = `${passage}${passage}`.split('\n').slice(1, -1);
  return lines.length > 0 && lines.every((line) => /^(?: {4}.|\s*$)/.test(line));
}

function isInCode(text: string): boolean {
  const fences = text.match(/^ {0,3}(?:`{3,}|~{3,})/gm) ?? [];
  return fences.length % 2 === 1;
}
