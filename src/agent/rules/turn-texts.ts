// What a turn wrote for the person, told from what it wrote while it worked.

import type { AssistantEntry, TranscriptEntry } from '../../kernel/message/transcript.ts';

/**
 * Oldest first; `last` is not recorded yet. Drafts count only where there is nothing else, an answer that
 * was asked for anew where nothing came of that.
 */
export function writtenTexts(
  answers: readonly AssistantEntry[],
  last: string | undefined,
): readonly string[] {
  const texts = answers.filter(({ text }) => text.trim() !== '');
  const newest =
    last === undefined ? texts.findLastIndex((each) => each.isDraft !== true) : texts.length;
  const isMeant = ({ isDraft, unsupported }: AssistantEntry, place: number) =>
    isDraft !== true || (unsupported !== undefined && place > newest);
  const meant = [
    ...texts.filter(isMeant).map(({ text }) => text),
    ...(last === undefined ? [] : [last]),
  ];
  return meant.length > 0 ? meant : texts.map(({ text }) => text);
}

/** What the newest entry of a turn is, where that is an answer that called nothing. */
export function lastWordOf(
  own: readonly TranscriptEntry[],
): 'answer' | 'draft' | { readonly unsupported: readonly string[] } | undefined {
  const last = own.at(-1);
  if (last?.role !== 'assistant' || last.toolCalls.length > 0) return undefined;
  const { unsupported } = last;
  if (unsupported !== undefined) return { unsupported };
  return last.isDraft === true ? 'draft' : 'answer';
}
