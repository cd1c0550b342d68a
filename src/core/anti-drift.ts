// How far an answer is from one that is worth being read again by the model that wrote it. Only its
// prose is measured: code, tables, lists, quotes, data and numbers are neither filler nor repetition.

import { loopIn } from './answer-loop.ts';
import { fillerShare } from './anti-drift-words.ts';

export type DriftSignal =
  | 'filler_heavy'
  | 'repetitive'
  | 'babble'
  | 'hallucinated_output'
  | 'already_condensed'
  | 'loop';

export type Drift = {
  /** 0 to 1, in tenths. */
  readonly score: number;
  readonly signals: readonly DriftSignal[];
};

/** An answer taken apart, to be compared with others. */
export type ReadAnswer = {
  readonly text: string;
  /** What the person said before it. */
  readonly asked: string;
  readonly hasCalls: boolean;
  /** Of its prose. */
  readonly words: number;
  readonly trigrams: ReadonlySet<string>;
  /** Words of which every one begins a trigram, those said again included. */
  readonly trigramsSaid: number;
  readonly filler: number;
  /** All that is no prose, and every number: what makes two answers of like words different ones. */
  readonly facts: string;
  readonly hasFigures: boolean;
  /** Words that may be names, in their order. */
  readonly names: string;
};

export type DriftLimits = {
  /** Longer prose is babble where it says little new. */
  readonly babbleWords: number;
  /** 0: no passage counts as a loop. */
  readonly loopRepeats: number;
};

const TENTHS: Readonly<Record<DriftSignal, number>> = {
  filler_heavy: 3,
  repetitive: 3,
  babble: 2,
  hallucinated_output: 2,
  already_condensed: 4,
  loop: 6,
};

const MIN_WORDS = 20;
/** Lines that are no prose, in an answer that has more to show than words. */
const MIN_FIGURES = 3;
const MIN_TRIGRAMS = 8;
const FILLER_HEAVY = 0.3;
const SIMILAR = 0.4;
const NEARLY_THE_SAME = 0.8;
/** Of the trigrams of a long text, those that are not said again; of good prose it is above 0.9. */
const LITTLE_NEW = 0.5;
const BABBLE_FILLER = 0.2;

const CONDENSED = /\[response condensed\]\s*$/;
/** Output of tools that no tool gave, as a line of its own. */
const FAKED =
  /^(?:\[(?:I called|tool (?:result|output)|function (?:result|output)|result of)\b[^\]\n]*\]|<tool_(?:response|result|output)>)/im;

/** `earlier`: the answers before it, oldest first; three of them count. */
export function driftOf(
  answer: ReadAnswer,
  earlier: readonly ReadAnswer[],
  limits: DriftLimits,
): Drift {
  const { text, asked, words, filler, hasCalls, hasFigures, trigrams, trigramsSaid } = answer;
  const isLong = words > limits.babbleWords && !hasCalls && !hasFigures;
  const saysLittle = trigrams.size < trigramsSaid * LITTLE_NEW || filler > BABBLE_FILLER;
  const isFound: Readonly<Record<DriftSignal, boolean>> = {
    filler_heavy: words >= MIN_WORDS && filler > FILLER_HEAVY,
    repetitive: earlier.slice(-3).some((other) => isLike(answer, other, SIMILAR)),
    babble: isLong && saysLittle,
    hallucinated_output: !hasCalls && FAKED.test(withoutCode(text)),
    already_condensed: CONDENSED.test(text),
    loop: limits.loopRepeats > 0 && loopIn(text, limits.loopRepeats, asked) !== undefined,
  };
  const signals = SIGNALS.filter((signal) => isFound[signal]);
  const tenths = signals.reduce((sum, signal) => sum + TENTHS[signal], 0);
  return { score: Math.min(10, tenths) / 10, signals };
}

/** Of an answer that was broken off because it repeated itself. */
export const LOOPING: Drift = { score: TENTHS.loop / 10, signals: ['loop'] };

const SIGNALS = Object.keys(TENTHS) as readonly DriftSignal[];

/** Whether one says what the other said, in nearly the same words; of somebody else it is another. */
export const isNearlyTheSame = (one: ReadAnswer, other: ReadAnswer) =>
  one.names === other.names && isLike(one, other, NEARLY_THE_SAME);

function isLike(one: ReadAnswer, other: ReadAnswer, above: number): boolean {
  if (Math.min(one.trigrams.size, other.trigrams.size) < MIN_TRIGRAMS) return false;
  if (one.facts !== other.facts) return false;
  const shared = [...one.trigrams].filter((trigram) => other.trigrams.has(trigram)).length;
  return shared / (one.trigrams.size + other.trigrams.size - shared) > above;
}

export function readAnswer(text: string, hasCalls: boolean, asked = ''): ReadAnswer {
  const prose = proseOf(text);
  const spoken = prose.text.toLowerCase();
  const said = spoken.match(/\p{L}[\p{L}'’-]*/gu) ?? [];
  const trigrams = said.slice(2).map((word, index) => `${said[index]} ${said[index + 1]} ${word}`);
  return {
    text,
    asked,
    hasCalls,
    words: said.length,
    trigrams: new Set(trigrams),
    trigramsSaid: trigrams.length,
    filler: fillerShare(spoken, said.length),
    facts: [...prose.others, ...(prose.text.match(/\p{N}+/gu) ?? [])].join('\n'),
    hasFigures: prose.others.length >= MIN_FIGURES || FENCE.test(text),
    names: (prose.text.match(NAME) ?? []).join('\n'),
  };
}

const FENCED = /^ {0,3}(`{3,}|~{3,})[^\n]*\n[\s\S]*?(?:^ {0,3}\1[^\n]*$|(?![\s\S]))/gm;
/** Capitals within a sentence, and every word of a script that has none. */
const NAME = /(?<=[\p{L}\p{M}\p{N},:’'–-]\s)\p{Lu}(?!['’])[\p{L}\p{M}'’-]+|\p{Lo}[\p{Lo}\p{M}]+/gu;
const FENCE = /^ {0,3}(?:`{3,}|~{3,})/m;
const SPAN = /`[^`\n]+`|https?:\/\/[^\s)>\]]+/g;
/** Tables, lists, headings, quotes, indented code, data. */
const NO_PROSE_LINE =
  /^(?: {4}|\t|\s*(?:[|>#+*•·–-]|\d+[.):]|\p{L}[.)]\s|[[{}\]"<]))|\|.*\||^[^\p{L}]*$|[;{}]\s*$|^\s*[\w.-]+\s*[=:]\s*\S+$/u;

const withoutCode = (text: string) => text.replace(FENCED, '');

function proseOf(text: string): { readonly text: string; readonly others: readonly string[] } {
  const others: string[] = [];
  const keep = (found: string) => {
    others.push(found);
    return '\n';
  };
  const lines = text.replace(FENCED, keep).replace(SPAN, keep).split('\n');
  const prose = lines.filter((line) => {
    const isProse = !NO_PROSE_LINE.test(line);
    if (!isProse && line.trim() !== '') others.push(line);
    return isProse;
  });
  return { text: prose.join('\n'), others };
}
