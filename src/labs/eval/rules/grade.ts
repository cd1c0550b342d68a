// Grades answers as a person would: whole sentences, number words, units, another case. "5" is not in
// "15", and an answer that leaves open which of several it means has not answered.

const WORDS: readonly string[] = [
  ...['zero', 'one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine', 'ten'],
  ...['eleven', 'twelve', 'thirteen', 'fourteen', 'fifteen', 'sixteen', 'seventeen'],
  ...['eighteen', 'nineteen'],
];
const TENS: readonly string[] = [
  ...['twenty', 'thirty', 'forty', 'fifty', 'sixty', 'seventy', 'eighty', 'ninety'],
];
/** "one of them" counts nothing; a bare "one" may. */
const WORD = new RegExp(
  `\\b(?:(${TENS.join('|')})(?:[- ](${WORDS.slice(1, 10).join('|')})\\b)?|(${WORDS.join('|')})(?! of (?:them|the|these)))\\b`,
  'g',
);
/** With separators of thousands; what is part of a name like A15 is none. */
const DIGITS = /(?<![\w.,-])-?(?:\d{1,3}(?:[, ]\d{3})+(?!\d)|\d+)(?:\.\d+)?/g;
const NONE = /\b(?:none|nobody|no one|nothing|no (?=person|people|other))\b/;
/** What a model marks as its result. */
const MARKED = /\b(?:final answer|answer|result|total)\s*(?:is|are|:|=)\s*(.+)$/i;
const CONCLUDES =
  /(?:=|\b(?:is|are|be|equals|makes|gives|was|were|total of)\b)\s*(?:about |exactly )?$/;
/** Behind a number: another may be meant as well. */
const LEAVES_OPEN = /^-?[\w.,]+ (?:or|to|and) (?:maybe |perhaps )?-?\d/;

type Found = { readonly at: number; readonly value: number };

/** Compared without marks of emphasis, case and kinds of spaces. */
export function plain(text: string): string {
  return text
    .normalize('NFKC')
    .toLowerCase()
    .replace(/[*_`"“”„]/g, '')
    .replace(/[ \t]+/g, ' ')
    .trim();
}

function numbersIn(text: string): readonly Found[] {
  const digits = [...text.matchAll(DIGITS)].map(({ 0: found, index: at }) => ({
    at,
    value: Number(found.replace(/[, ]/g, '')),
  }));
  const words = [...text.matchAll(WORD)].map(({ 1: ten, 2: unit = '', 3: word, index: at }) => ({
    at,
    value:
      ten === undefined
        ? WORDS.indexOf(word ?? '')
        : (TENS.indexOf(ten) + 2) * 10 + Math.max(0, WORDS.indexOf(unit)),
  }));
  return [...digits, ...words].sort((one, other) => one.at - other.at);
}

/**
 * The number an answer gives: the one it marks as its result, the only one, or the one behind the last
 * "is" or "="; undefined where none of these tells.
 */
export function numberSaid(answer: string): number | undefined {
  const bold = new Set(
    [...answer.matchAll(/\*\*([^*\n]+)\*\*/g)].flatMap(([, inner = '']) =>
      numbersIn(plain(inner)).map(({ value }) => value),
    ),
  );
  const text = conclusion(answer);
  const found = numbersIn(text);
  const values = new Set(found.map(({ value }) => value));
  if (values.size === 0) return NONE.test(text) ? 0 : undefined;
  if (values.size === 1) return [...values][0];
  if (bold.size === 1) return [...bold][0];
  const concluding = found.filter(({ at }) => CONCLUDES.test(text.slice(0, at))).at(-1);
  if (concluding === undefined || LEAVES_OPEN.test(text.slice(concluding.at))) return undefined;
  return concluding.value;
}

/** What is marked as the result, or all of the answer. */
function conclusion(answer: string): string {
  const marked = plain(answer)
    .split('\n')
    .flatMap((line) => MARKED.exec(line)?.[1] ?? []);
  return marked.at(-1) ?? plain(answer);
}

/** A list may stand below its heading: a result that names none of them is not the whole of it. */
function concludedIn(answer: string, candidates: readonly string[]): ReadonlySet<string> {
  const named = namedIn(conclusion(answer), candidates);
  return named.size > 0 ? named : namedIn(answer, candidates);
}

/** Those of the candidates that the text names as whole words, in the plural too. */
function namedIn(text: string, candidates: readonly string[]): ReadonlySet<string> {
  const words = plain(text);
  const named = candidates.filter((candidate) => {
    const quoted = plain(candidate).replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
    return new RegExp(`(?<![\\p{L}\\p{N}])${quoted}s?(?![\\p{L}\\p{N}])`, 'u').test(words);
  });
  return new Set(named);
}

/** The one candidate an answer names, those of the question not counted; undefined: none or several. */
export function choiceSaid(
  answer: string,
  candidates: readonly string[],
  inQuestion: readonly string[] = [],
): string | undefined {
  const open = candidates.filter((candidate) => !inQuestion.includes(candidate));
  const named = [...concludedIn(answer, open)];
  if (named.length === 1) return named[0];
  const bold = [...answer.matchAll(/\*\*([^*\n]+)\*\*/g)].map(([, inner = '']) => inner).join('\n');
  const marked = [...namedIn(bold, open)];
  return marked.length === 1 ? marked[0] : undefined;
}

export type Retrieval = {
  /** Named and right. */
  readonly right: number;
  /** Named. */
  readonly named: number;
  /** That should have been named. */
  readonly wanted: number;
};

export const saysNobody = (answer: string) => NONE.test(plain(answer));

/** How a list that was asked for compares with the right one. */
export function listSaid(
  answer: string,
  wanted: readonly string[],
  candidates: readonly string[],
): Retrieval {
  const named = concludedIn(answer, candidates);
  const right = wanted.filter((one) => named.has(one)).length;
  return { right, named: named.size, wanted: wanted.length };
}

export const isExact = ({ right, named, wanted }: Retrieval) =>
  right === wanted && named === wanted;
