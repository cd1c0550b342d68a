// What a turn wrote for the person, told from what it wrote while it worked.

import type { AssistantEntry, TranscriptEntry } from './transcript.ts';

/** Oldest first; `last` is not recorded yet. Drafts count only where there is nothing else. */
export function writtenTexts(
  answers: readonly AssistantEntry[],
  last: string | undefined,
): readonly string[] {
  const texts = answers.filter(({ text }) => text.trim() !== '');
  const textsOf = (drafts: boolean) =>
    texts.flatMap(({ text, isDraft = false }) => (isDraft === drafts ? [text] : []));
  const meant = [...textsOf(false), ...(last === undefined ? [] : [last])];
  return meant.length > 0 ? meant : textsOf(true);
}

/** What the newest entry of a turn is, where that is an answer that called nothing. */
export function lastWordOf(own: readonly TranscriptEntry[]): 'answer' | 'draft' | undefined {
  const last = own.at(-1);
  if (last?.role !== 'assistant' || last.toolCalls.length > 0) return undefined;
  return last.isDraft === true ? 'draft' : 'answer';
}
