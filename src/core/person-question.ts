// A question that the agent asks the person of the chat, and the words with which the model is told
// what came of it. Asking and waiting are left to gateway/asks.ts.

import { shortened } from './cut.ts';

/** What the model asks; `choices` may be empty where words are allowed. */
export type PersonQuestion = {
  /** Markdown. */
  readonly text: string;
  readonly choices: readonly string[];
  /** Other words than those of the choices are an answer as well. */
  readonly allowsWords: boolean;
};

const MAX_NAMED_CHARS = 300;

/** The choice that words mean: by its number or its label. */
export function choiceMeant(
  { choices }: Pick<PersonQuestion, 'choices'>,
  words: string,
): string | undefined {
  const said = plain(words);
  const number = /^(\d{1,2})[.)]?$/.exec(said)?.[1];
  const byLabel = choices.find((label) => plain(label) === said);
  return byLabel ?? (number === undefined ? undefined : choices[Number(number) - 1]);
}

const plain = (text: string) => text.trim().toLowerCase();

export const answerNote = (question: PersonQuestion, choice: string | undefined) =>
  choice === undefined
    ? `[This answers your question ${named(question)}, unless it is about something else.]`
    : `[This answers your question ${named(question)}: they chose "${choice}".]`;

export const stillOpenNote = (question: PersonQuestion) =>
  `[Your question ${named(question)} is still open: only one of its choices answers it.]`;

export const expiredNote = (question: PersonQuestion) =>
  `[Nobody answered your question ${named(question)} in time; it can no longer be answered.]`;

function named({ text }: PersonQuestion): string {
  const line = text.replace(/\s+/g, ' ').trim();
  return `"${shortened(line, MAX_NAMED_CHARS, ' …')}"`;
}
