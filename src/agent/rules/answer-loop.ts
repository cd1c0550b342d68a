// A passage that follows itself again and again at the end of a text, as small models write until
// somebody stops them. Only what is the same to the letter counts: refrains, tables with like rows and
// lists that count on are none. Code, tables, forms to fill in, figures and what the person wants said so
// often are given ten times as much.

/** Longest passage, in characters. */
const MAX_PERIOD = 600;
/** Shorter stretches are rulers, ornaments and blank lines, however often they repeat. */
const MIN_CHARS = 1200;
const DATA_FACTOR = 10;
const LOOKED_AT_CHARS = 60_000;
const ASKED_CHARS = 20_000;
/** Beside the passage; a question that is only repeated has none. */
const MIN_OTHER_WORDS = 2;

export type AnswerLoop = {
  /** Where the first passage ends: up to there nothing is said twice. */
  readonly saidAt: number;
  readonly repeats: number;
};

/** `repeats`: from so many on; `asked`: what the person said; undefined: the text does not end in a loop. */
export function loopIn(text: string, repeats: number, asked = ''): AnswerLoop | undefined {
  const tail = text.trimEnd();
  if (tail.length < MIN_CHARS || !endsAgain(tail)) return undefined;
  const reversed = [...tail.slice(-LOOKED_AT_CHARS)].reverse();
  const inCode = isInCode(tail);
  for (let period = 1; period <= MAX_PERIOD; period += 1) {
    const length = period + matchAt(reversed, period);
    const times = Math.floor(length / period);
    if (times < repeats || length < MIN_CHARS) continue;
    const passage = reversed.slice(0, period).reverse().join('');
    const isData = inCode || isNoProse(passage) || isWanted(onceOf(passage), asked);
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

/** A passage that is one several times over, once. */
function onceOf(passage: string): string {
  const period = `${passage}${passage}`.indexOf(passage, 1);
  return passage.slice(0, period);
}

/** Whether its words stand among others of the person, from wherever in the passage they begin. */
function isWanted(passage: string, asked: string): boolean {
  const said = wordsOf(asked.slice(0, ASKED_CHARS));
  const at = passage.search(NO_WORD);
  const words = wordsOf(at < 0 ? passage : passage.slice(at) + passage.slice(0, at));
  if (words.length === 0 || said.length < words.length + MIN_OTHER_WORDS) return false;
  const all = ` ${said.join(' ')} `;
  return words.some((_, first) => {
    const turned = [...words.slice(first), ...words.slice(0, first)].join(' ');
    return all.includes(` ${turned} `);
  });
}

const NO_WORD = /[^\p{L}\p{M}\p{N}]/u;
const wordsOf = (text: string) => text.toLowerCase().match(/[\p{L}\p{M}\p{N}]+/gu) ?? [];

function isInCode(text: string): boolean {
  const fences = text.match(/^ {0,3}(?:`{3,}|~{3,})/gm) ?? [];
  return fences.length % 2 === 1;
}
