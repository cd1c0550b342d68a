// Finding notes by words: texts are cut into passages, passages ranked by how many of the words
// they hold and how rare these are. No query syntax, so no query can be wrong.

import { shortened } from '../../../lib/text/cut.ts';

export type NoteFile = { readonly source: string; readonly text: string };

export type Passage = {
  readonly source: string;
  /** 1-based line where it begins. */
  readonly line: number;
  readonly text: string;
};

export type RecallLimits = { readonly maxHits: number; readonly maxChars: number };

const WORD = /[\p{L}\p{N}]+/gu;
const BULLET_OR_HEADING = /^\s*(?:[-*+]|\d+\.|#{1,6})\s/;
/** A word found inside another counts less than the word itself. */
const PART_OF_WORD_SHARE = 0.5;
const WHOLE_PHRASE_BONUS = 1.5;

type Candidate = {
  readonly passage: Passage;
  /** The terms it holds, with what each counts: a whole word or a part of one. */
  readonly shares: ReadonlyMap<string, number>;
  readonly hasPhrase: boolean;
};

/** Best first; files given first win between equals. The sum of the texts keeps to `maxChars`. */
export function rankPassages(
  query: string,
  files: readonly NoteFile[],
  limits: RecallLimits,
): readonly Passage[] {
  const terms = [...new Set(wordsOf(fold(query)))];
  const phrase = terms.length > 1 ? fold(query).trim() : undefined;
  const passages = files.flatMap(passagesOf);
  const candidates = passages.flatMap((passage) => match(passage, terms, phrase));
  const rarity = new Map(
    terms.map((term) => {
      const holding = candidates.filter(({ shares }) => shares.has(term)).length;
      return [term, Math.log(1 + passages.length / Math.max(1, holding))];
    }),
  );
  const scoreOf = ({ shares, hasPhrase }: Candidate) => {
    const sum = shares
      .entries()
      .reduce((all, [term, share]) => all + share * (rarity.get(term) ?? 0), 0);
    return hasPhrase ? sum * WHOLE_PHRASE_BONUS : sum;
  };
  const ranked = candidates
    .map((candidate) => ({ passage: candidate.passage, score: scoreOf(candidate) }))
    .sort((a, b) => b.score - a.score);
  return withinLimits(
    ranked.map(({ passage }) => passage),
    limits,
  );
}

function match(
  passage: Passage,
  terms: readonly string[],
  phrase: string | undefined,
): readonly Candidate[] {
  const folded = fold(passage.text);
  const held = terms.filter((term) => folded.includes(term));
  if (held.length === 0) return [];
  const words = new Set(wordsOf(folded));
  const shares = new Map(held.map((term) => [term, words.has(term) ? 1 : PART_OF_WORD_SHARE]));
  return [{ passage, shares, hasPhrase: phrase !== undefined && folded.includes(phrase) }];
}

/** The first of them, none longer than its share. */
export function withinLimits(
  passages: readonly Passage[],
  { maxHits, maxChars }: RecallLimits,
): readonly Passage[] {
  const perHit = Math.floor(maxChars / maxHits);
  return passages
    .slice(0, maxHits)
    .map((passage) => ({ ...passage, text: shortened(passage.text, perHit) }));
}

/** Bullets and headings one by one, other text by paragraph. */
export function passagesOf({ source, text }: NoteFile): readonly Passage[] {
  const passages: { line: number; lines: string[] }[] = [];
  let isOpen = false;
  for (const [index, line] of text.split('\n').entries()) {
    const last = passages.at(-1);
    if (line.trim() === '') isOpen = false;
    else if (!isOpen || last === undefined || BULLET_OR_HEADING.test(line)) {
      passages.push({ line: index + 1, lines: [line] });
      isOpen = true;
    } else last.lines.push(line);
  }
  return passages.map(({ line, lines }) => ({ source, line, text: lines.join('\n').trim() }));
}

/** Case, accents and compatibility forms do not count. */
function fold(text: string): string {
  return text.normalize('NFKD').replace(/\p{M}/gu, '').toLowerCase();
}

const wordsOf = (folded: string) => folded.match(WORD) ?? [];
