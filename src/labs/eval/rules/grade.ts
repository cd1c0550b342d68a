// What benchmarks share: lenient grading of answers ("5" is not in "15"), reproducible
// pseudo-random numbers for test material, and statistics of results.

const WORDS =
  'zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen'.split(
    ' ',
  );
const TENS = 'twenty thirty forty fifty sixty seventy eighty ninety'.split(' ');
/** "one of them" is not a number; a bare "one" may be. */
const WORD = new RegExp(
  `\\b(?:(${TENS.join('|')})(?:[- ](${WORDS.slice(1, 10).join('|')})\\b)?|(${WORDS.join('|')})(?! of (?:them|the|these)))\\b`,
  'g',
);
/** With thousands separators; digits within a name like A15 are not a number. */
const DIGITS = /(?<![\w.,-])-?(?:\d{1,3}(?:[, ]\d{3})+(?!\d)|\d+)(?:\.\d+)?/g;
const NONE = /\b(?:none|nobody|no one|nothing|no (?=person|people|other))\b/;
/** Marks of a final result. */
const MARKED = /\b(?:final answer|answer|result|total)\s*(?:is|are|:|=)\s*(.+)$/i;
const CONCLUDES =
  /(?:=|\b(?:is|are|be|equals|makes|gives|was|were|total of)\b)\s*(?:about |exactly )?$/;
/** After a number: an alternative follows. */
const LEAVES_OPEN = /^-?[\w.,]+ (?:or|to|and) (?:maybe |perhaps )?-?\d/;

type Found = { readonly at: number; readonly value: number };

/** Normalises emphasis, case and white space for comparisons. */
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
 * The number that an answer gives: the one marked as its result, the only one, or the one after the
 * last "is" or "="; undefined where none of these applies.
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

/** The part marked as the result, or the whole answer. */
function conclusion(answer: string): string {
  const marked = plain(answer)
    .split('\n')
    .flatMap((line) => MARKED.exec(line)?.[1] ?? []);
  return marked.at(-1) ?? plain(answer);
}

/** A list may follow its heading, so a marked result without candidates is not the whole result. */
function concludedIn(answer: string, candidates: readonly string[]): ReadonlySet<string> {
  const named = namedIn(conclusion(answer), candidates);
  return named.size > 0 ? named : namedIn(answer, candidates);
}

/** The candidates that the text names as whole words, also in the plural. */
function namedIn(text: string, candidates: readonly string[]): ReadonlySet<string> {
  const words = plain(text);
  const named = candidates.filter((candidate) => {
    const quoted = plain(candidate).replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
    return new RegExp(`(?<![\\p{L}\\p{N}])${quoted}s?(?![\\p{L}\\p{N}])`, 'u').test(words);
  });
  return new Set(named);
}

/** The one candidate that an answer names; undefined: none or several. */
export function choiceSaid(answer: string, candidates: readonly string[]): string | undefined {
  const named = [...concludedIn(answer, candidates)];
  if (named.length === 1) return named[0];
  const bold = [...answer.matchAll(/\*\*([^*\n]+)\*\*/g)].map(([, inner = '']) => inner).join('\n');
  const marked = [...namedIn(bold, candidates)];
  return marked.length === 1 ? marked[0] : undefined;
}

export type Retrieval = {
  /** Named and right. */
  readonly right: number;
  /** Named. */
  readonly named: number;
  /** Number of expected items. */
  readonly wanted: number;
};

export const saysNobody = (answer: string) => NONE.test(plain(answer));

/** Compares a listed answer with the expected list. */
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

// Reproducible pseudo-random numbers for test material: the same for the same seed on every
// machine. Never for a secret.

export type Seeded = ReturnType<typeof seeded>;

/** The words of a list, for `pick`. */
export function wordsOf(text: string): readonly [string, ...string[]] {
  const [first = '', ...more] = text.split(' ');
  return [first, ...more];
}

const STEP = 0x6d2b79f5;
const RANGE = 2 ** 32;
const HASH_START = 0x811c9dc5;
const HASH_PRIME = 0x01000193;

/**
 * `stream`: an independent sequence per purpose, so that adding draws to one does not change
 * another.
 */
export function seeded(seed: number, stream = '') {
  let state = hashed(`${seed}/${stream}`);
  // Mulberry32, public domain (T. Ettinger).
  /** 0 (inclusive) to 1 (exclusive). */
  const next = () => {
    state = (state + STEP) | 0;
    const mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    const more = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((more ^ (more >>> 14)) >>> 0) / RANGE;
  };
  /** A whole number from 0 (inclusive) to `count` (exclusive). */
  const below = (count: number) => Math.floor(next() * count);
  return {
    below,
    pick: <T>(items: readonly [T, ...T[]]): T => items[below(items.length)] ?? items[0],
    /** A permutation of the items. */
    shuffled<T>(items: readonly T[]): readonly T[] {
      const keyed = items.map((item) => ({ item, at: next() }));
      return keyed.sort((one, other) => one.at - other.at).map(({ item }) => item);
    },
  };
}

/** FNV-1a over UTF-16 units. */
function hashed(text: string): number {
  let hash = HASH_START;
  for (let at = 0; at < text.length; at += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(at), HASH_PRIME);
  }
  return hash;
}

// Statistics of the benchmarks: intervals, windows, transfer, surprise, leads.

type Interval = { readonly low: number; readonly high: number };

/** 95 % of a normal distribution lie within this many standard deviations. */
const Z_95 = 1.959964;

/** The 95 % confidence interval of a rate (Wilson, 1927); 0 to 1 without data. */
export function wilson(successes: number, total: number): Interval {
  if (total === 0) return { low: 0, high: 1 };
  const rate = successes / total;
  const spread = Z_95 ** 2 / total;
  const middle = rate + spread / 2;
  const half = Z_95 * Math.sqrt((rate * (1 - rate)) / total + spread / (4 * total));
  const low = (middle - half) / (1 + spread);
  return { low: Math.max(0, low), high: Math.min(1, (middle + half) / (1 + spread)) };
}

export function mean(values: readonly number[]): number | undefined {
  return values.length === 0
    ? undefined
    : values.reduce((sum, one) => sum + one, 0) / values.length;
}

export function median(values: readonly number[]): number | undefined {
  const sorted = values.toSorted((one, other) => one - other);
  const half = Math.floor(sorted.length / 2);
  const upper = sorted[half];
  const lower = sorted[sorted.length % 2 === 0 ? half - 1 : half];
  return upper === undefined || lower === undefined ? undefined : (lower + upper) / 2;
}

/** In seconds, from milliseconds; undefined without data. */
export function medianSeconds(milliseconds: readonly number[]): number | undefined {
  const middle = median(milliseconds);
  return middle === undefined ? undefined : middle / 1000;
}

/** Moving averages over `size` values. */
export function windows(values: readonly number[], size: number): readonly number[] {
  if (values.length < size) return [];
  return values.slice(size - 1).map((_, at) => mean(values.slice(at, at + size)) ?? 0);
}

/**
 * The rate of the second half divided by that of the first; undefined where the first half is empty
 * or has rate 0.
 */
export function forwardTransfer(successes: readonly boolean[]): number | undefined {
  const half = Math.floor(successes.length / 2);
  const rate = (some: readonly boolean[]) => mean(some.map(Number)) ?? 0;
  const first = rate(successes.slice(0, half));
  return first === 0 ? undefined : rate(successes.slice(half)) / first;
}

/** The share of tasks that took more than twice the mean. */
export function surpriseRate(iterations: readonly number[]): number | undefined {
  const usual = mean(iterations);
  if (usual === undefined) return undefined;
  return mean(iterations.map((taken) => (taken > 2 * usual ? 1 : 0)));
}

/**
 * The lead in votes with which all `steps` are right with this probability, in the worst case that
 * all wrong answers agree (gambler's ruin). Undefined where voters are wrong more often than right.
 */
export function leadFor(rate: number, steps: number, target: number): number | undefined {
  if (rate >= 1) return 1;
  if (rate <= 0.5 || steps <= 0) return undefined;
  const perStep = target ** (1 / steps);
  const odds = (1 - rate) / rate;
  return Math.max(1, Math.ceil(Math.log((1 - perStep) / perStep) / Math.log(odds) - 1e-9));
}
