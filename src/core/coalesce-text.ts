// The words of a batch of messages: the first as it is, each later one with its delay, so that the
// model sees the pace at which the person wrote.

import type { InboundMessage } from './message.ts';

type Worded = Pick<InboundMessage, 'text' | 'quoted' | 'receivedAt'>;

/** One text per message: the first as it is, later ones as `[+350ms] text` (since the first). */
export function joinTexts(messages: readonly Worded[]): readonly string[] {
  const startedAt = messages[0]?.receivedAt ?? 0;
  return messages.map((message, index) => {
    const text = wordsOf(message);
    return index === 0 ? text : `[+${Math.max(0, message.receivedAt - startedAt)}ms] ${text}`;
  });
}

/** What the person wrote, below what they quoted. */
export function wordsOf({ text, quoted }: Pick<InboundMessage, 'text' | 'quoted'>): string {
  if (quoted === undefined) return text;
  const author = quoted.author === undefined ? '' : `${quoted.author} wrote:\n`;
  const lines = `${author}${quoted.text}`.split('\n').map((line) => `> ${line}`);
  return `${lines.join('\n')}\n\n${text}`;
}
