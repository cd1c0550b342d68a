// Whether a stretch of a conversation bears on a question, by the words they share; the same for the same
// texts. What is made of it is left to whoever asks.

import { foldText } from './index-text.ts';

const WORD = /[\p{L}\p{N}][\p{L}\p{N}_'’-]*/gu;
const MIN_CHARS = 4;

/** Words of questions that say nothing of what they are about, in the languages written most. */
const EMPTY = new Set(
  (
    'what when where which about there their have this that with from were your does been could would ' +
    'should tell said told please again know remember earlier before after then than also just will ' +
    'welche welcher welches wann warum haben hatte wurde nicht noch einmal bitte sagen gesagt mein meine ' +
    'quel quelle quand avec pour dans cual cuando donde como para'
  ).split(' '),
);

/** What a question is about, each word once. */
export function termsOf(question: string): readonly string[] {
  const words = foldText(question).match(WORD) ?? [];
  const telling = words.filter(
    (word) => !EMPTY.has(word) && (word.length >= MIN_CHARS || /\d/.test(word)),
  );
  return [...new Set(telling)];
}

/** How many of the terms stand in the text. */
export function hitsIn(text: string, terms: readonly string[]): number {
  const folded = foldText(text);
  return terms.filter((term) => folded.includes(term)).length;
}

/** Of the terms, which part stands in the text; 0 to 1. */
export const relevance = (text: string, terms: readonly string[]) =>
  terms.length === 0 ? 0 : hitsIn(text, terms) / terms.length;
