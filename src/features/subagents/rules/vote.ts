// A vote among answers to one question: the first that is ahead of every other by k has won; before that
// a gate may accept what two pilot voters agree on. A tie stays a tie, and who answers carelessly does
// not vote. What makes two answers the same, and who is asked, is for whoever counts.

import type { Gate } from '../settings.ts';

/** Whoever answers so is not to be relied on. */
export type RedFlag = 'empty' | 'too long' | 'malformed';

/** `key`: the answer, made comparable. */
export type Ballot =
  | { readonly kind: 'vote'; readonly key: string }
  | { readonly kind: 'flagged'; readonly flag: RedFlag };

export type VoteTerms = {
  /** Below 1 it counts as 1. */
  readonly aheadBy: number;
  /** Ballots, flagged ones included. */
  readonly most: number;
  /** Nothing is won while a greater share of the ballots is flagged. */
  readonly maxFlagged: number;
  /** Left out: the full vote at once. */
  readonly gate?: Gate;
};

export type Figures = {
  readonly votes: number;
  readonly flagged: number;
  /** Shannon's, in bits: 0 where all say the same. */
  readonly entropy: number;
  readonly margin: number;
  readonly confidence: number;
  /** The most votes for one answer. */
  readonly agreed: number;
};

export type Verdict =
  /** So many more at once: fewer cannot decide it. */
  | { readonly kind: 'ask'; readonly more: number; readonly figures: Figures }
  | {
      readonly kind: 'won';
      readonly key: string;
      readonly by: 'gate' | 'lead';
      readonly figures: Figures;
    }
  /** `leaders`: with the most votes, in the order in which they were first given. */
  | {
      readonly kind: 'undecided';
      readonly why: 'tie' | 'no lead' | 'red flags';
      readonly leaders: readonly string[];
      readonly figures: Figures;
    };

type Counted = { readonly key: string; readonly votes: number };

/** So many are asked at most, unless more are wanted: k behind, and k ahead again, and one. */
export const usualMost = (aheadBy: number) => 2 * Math.max(1, aheadBy) + 1;

/** The same for the same ballots, whatever was asked at once. */
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

/** Fewer cannot bring the lead, nor enough votes beside those that were flagged. */
function stillNeeded(
  missing: number,
  { votes, flagged }: Figures,
  { maxFlagged }: VoteTerms,
): number {
  const forTrust = maxFlagged <= 0 ? Number.POSITIVE_INFINITY : flagged / maxFlagged;
  const sound = flagged === 0 ? 0 : Math.ceil(forTrust - votes - flagged - 1e-9);
  return Math.max(1, missing, sound);
}

/** Most votes first; a tie in the order of the first vote. */
function countsOf(ballots: readonly Ballot[]): readonly Counted[] {
  const keys = ballots.flatMap((ballot) => (ballot.kind === 'vote' ? [ballot.key] : []));
  return [...Map.groupBy(keys, (key) => key)]
    .map(([key, same]) => ({ key, votes: same.length }))
    .sort((one, other) => other.votes - one.votes);
}

/** Of nobody where two have the same number of votes. */
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

/** For people; nothing where it is not over. */
export function undecidedText({ why, figures }: Extract<Verdict, { kind: 'undecided' }>): string {
  const { votes, flagged } = figures;
  const given = `${votes} ${votes === 1 ? 'vote' : 'votes'}${flagged === 0 ? '' : ` and ${flagged} unusable answers`}`;
  if (why === 'tie') return `undecided, a tie after ${given}`;
  if (why === 'red flags') return `undecided, too few usable answers: ${given}`;
  return `undecided, no answer is far enough ahead after ${given}`;
}

/** The same without case, spacing, marks around it and a full stop. */
export function normalised(text: string): string {
  return text
    .normalize('NFKC')
    .toLowerCase()
    .replace(/\s+/g, ' ')
    .replace(/^[\s*_`"'#>]+|[\s*_`"'.!]+$/g, '');
}

const JSON_START = /^(?:```(?:json)?\s*)?[[{]/;
const FENCE = /^```(?:json)?\s*|\s*```$/g;

/** An answer in words, or one that is JSON; what begins like JSON and is none is malformed. */
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

/** Of a JSON value: whatever the order of its fields, its texts normalised. */
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

/** The most that are worth asking. */
const MAX_VOTERS = 15;
/** So sure an answer is to be. */
export const VOTE_TARGET = 0.999;

/** The smallest odd number of voters whose majority is right so often; undefined: more than 15. */
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
