// A vote among answers to one question: the first answer that leads every other by k wins; before
// that a gate may accept what the pilot voters agree on. A tie stays a tie, and malformed answers
// do not vote. The caller defines which answers are equal and who is asked.

import type { Gate } from '../settings.ts';

/** Why an answer is unreliable and does not vote. */
export type RedFlag = 'empty' | 'too long' | 'malformed';

/** `key`: the answer in comparable form. */
export type Ballot =
  | { readonly kind: 'vote'; readonly key: string }
  | { readonly kind: 'flagged'; readonly flag: RedFlag };

export type VoteTerms = {
  /** Values below 1 count as 1. */
  readonly aheadBy: number;
  /** Maximum number of ballots, including flagged ones. */
  readonly most: number;
  /** Nothing wins while a greater share of the ballots is flagged. */
  readonly maxFlagged: number;
  /** Left out: the full vote at once. */
  readonly gate?: Gate;
};

export type Figures = {
  readonly votes: number;
  readonly flagged: number;
  /** Shannon entropy in bits: 0 where all answers agree. */
  readonly entropy: number;
  readonly margin: number;
  readonly confidence: number;
  /** The number of votes of the leading answer. */
  readonly agreed: number;
};

export type Verdict =
  /** Ask `more` voters concurrently: fewer cannot decide the vote. */
  | { readonly kind: 'ask'; readonly more: number; readonly figures: Figures }
  | {
      readonly kind: 'won';
      readonly key: string;
      readonly by: 'gate' | 'lead';
      readonly figures: Figures;
    }
  /** `leaders`: those with the most votes, by time of their first vote. */
  | {
      readonly kind: 'undecided';
      readonly why: 'tie' | 'no lead' | 'red flags';
      readonly leaders: readonly string[];
      readonly figures: Figures;
    };

type Counted = { readonly key: string; readonly votes: number };

/** Default limit of voters: room for falling k behind and then leading by k. */
export const usualMost = (aheadBy: number) => 2 * Math.max(1, aheadBy) + 1;

/** The same for the same ballots, in whatever batches they were cast. */
export function verdictOf(ballots: readonly Ballot[], terms: VoteTerms): Verdict {
  const counts = countsOf(ballots);
  const figures = figuresOf(ballots, counts);
  const [first] = counts;
  const cast = ballots.length;
  const pilot = Math.min(terms.gate?.voters ?? 0, terms.most);
  if (cast < pilot) return { kind: 'ask', more: pilot - cast, figures };
  const aheadBy = Math.max(1, terms.aheadBy);
  const isTrusted = cast === 0 || figures.flagged / cast <= terms.maxFlagged;
  if (first !== undefined && isTrusted) {
    const { key } = first;
    if (cast === pilot && passes(figures, terms.gate)) {
      return { kind: 'won', key, by: 'gate', figures };
    }
    if (leadOf(counts) >= aheadBy) return { kind: 'won', key, by: 'lead', figures };
  }
  const more = stillNeeded(aheadBy - leadOf(counts), figures, terms);
  if (cast + more <= terms.most) return { kind: 'ask', more, figures };
  const leaders = counts.filter(({ votes }) => votes === first?.votes).map(({ key }) => key);
  const why =
    !isTrusted || first === undefined ? 'red flags' : leaders.length > 1 ? 'tie' : 'no lead';
  return { kind: 'undecided', why, leaders, figures };
}

/** The least number of votes that could bring the lead and enough valid ballots. */
function stillNeeded(
  missing: number,
  { votes, flagged }: Figures,
  { maxFlagged }: VoteTerms,
): number {
  const forTrust = maxFlagged <= 0 ? Number.POSITIVE_INFINITY : flagged / maxFlagged;
  const sound = flagged === 0 ? 0 : Math.ceil(forTrust - votes - flagged - 1e-9);
  return Math.max(1, missing, sound);
}

/** Most votes first; ties by the first vote. */
function countsOf(ballots: readonly Ballot[]): readonly Counted[] {
  const keys = ballots.flatMap((ballot) => (ballot.kind === 'vote' ? [ballot.key] : []));
  return [...Map.groupBy(keys, (key) => key)]
    .map(([key, same]) => ({ key, votes: same.length }))
    .sort((one, other) => other.votes - one.votes);
}

/** 0 where two lead. */
function leadOf([first, second]: readonly Counted[]): number {
  return (first?.votes ?? 0) - (second?.votes ?? 0);
}

function figuresOf(ballots: readonly Ballot[], counts: readonly Counted[]): Figures {
  const votes = counts.reduce((sum, one) => sum + one.votes, 0);
  const shares = counts.map((one) => one.votes / votes);
  const agreed = counts[0]?.votes ?? 0;
  return {
    ...{ votes, flagged: ballots.length - votes, agreed },
    entropy: shares.reduce((sum, share) => sum + share * Math.log2(1 / share), 0),
    margin: votes === 0 ? 0 : leadOf(counts) / votes,
    confidence: ballots.length === 0 ? 0 : agreed / ballots.length,
  };
}

function passes({ entropy, margin, confidence }: Figures, gate: Gate | undefined): boolean {
  if (gate === undefined) return false;
  const { maxEntropy, minMargin, minConfidence } = gate;
  return entropy < maxEntropy && margin >= minMargin && confidence >= minConfidence;
}

/** For people. */
export function undecidedText({ why, figures }: Extract<Verdict, { kind: 'undecided' }>): string {
  const { votes, flagged } = figures;
  const given = `${votes} ${votes === 1 ? 'vote' : 'votes'}${flagged === 0 ? '' : ` and ${flagged} unusable answers`}`;
  if (why === 'tie') return `undecided, a tie after ${given}`;
  if (why === 'red flags') return `undecided, too few usable answers: ${given}`;
  return `undecided, no answer is far enough ahead after ${given}`;
}

/** Ignores case, white space, surrounding markup and a full stop. */
export function normalised(text: string): string {
  return text
    .normalize('NFKC')
    .toLowerCase()
    .replace(/\s+/g, ' ')
    .replace(/^[\s*_`"'#>]+|[\s*_`"'.!]+$/g, '');
}

const JSON_START = /^(?:```(?:json)?\s*)?[[{]/;
const FENCE = /^```(?:json)?\s*|\s*```$/g;

/** A text or JSON answer; one that begins like JSON and does not parse is malformed. */
export function textBallot(answer: string, maxChars: number): Ballot {
  const text = answer.trim();
  if (text.length > maxChars) return { kind: 'flagged', flag: 'too long' };
  const key = normalised(text);
  if (key === '') return { kind: 'flagged', flag: 'empty' };
  if (!JSON_START.test(text)) return { kind: 'vote', key };
  try {
    return { kind: 'vote', key: valueKey(JSON.parse(text.replaceAll(FENCE, ''))) };
  } catch {
    return { kind: 'flagged', flag: 'malformed' };
  }
}

/** The key of a JSON value: independent of the order of fields, with normalised texts. */
export function valueKey(value: unknown): string {
  return JSON.stringify(comparable(value));
}

function comparable(value: unknown): unknown {
  if (typeof value === 'string') return normalised(value);
  if (Array.isArray(value)) return value.map(comparable);
  if (typeof value !== 'object' || value === null) return value;
  const sorted = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1));
  return Object.fromEntries(sorted.map(([name, inner]) => [name, comparable(inner)]));
}

/** The largest number of voters that is recommended. */
const MAX_VOTERS = 15;
/** The targeted probability of a right answer. */
export const VOTE_TARGET = 0.999;

/**
 * The smallest odd number of voters whose majority is right with this probability; undefined: more
 * than 15.
 */
export function votersFor(rate: number, target: number): number | undefined {
  for (let voters = 1; voters <= MAX_VOTERS; voters += 2) {
    if (majorityRight(rate, voters) >= target) return voters;
  }
  return undefined;
}

function majorityRight(rate: number, voters: number): number {
  let sum = 0;
  for (let right = (voters + 1) / 2; right <= voters; right += 1) {
    sum += combinations(voters, right) * rate ** right * (1 - rate) ** (voters - right);
  }
  return sum;
}

function combinations(all: number, some: number): number {
  let result = 1;
  for (let at = 1; at <= some; at += 1) result = (result * (all - some + at)) / at;
  return result;
}
