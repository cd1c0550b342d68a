// The words of a batch of messages: the first as it is, each later one with its delay, so that the
// model sees the pace at which the person wrote.

import { authorOf, heardBlock } from './group-talk.ts';
import type { InboundMessage } from './message.ts';

type Said = Pick<InboundMessage, 'text' | 'quoted'> &
  Partial<Pick<InboundMessage, 'sender' | 'group' | 'heard'>>;
type Worded = Said & Pick<InboundMessage, 'receivedAt'>;

/** One text per message: the first as it is, later ones as `[+350ms] text` (since the first). */
export function joinTexts(messages: readonly Worded[]): readonly string[] {
  const startedAt = messages[0]?.receivedAt ?? 0;
  return messages.map((message, index) => {
    const text = wordsOf(message);
    return index === 0 ? text : `[+${Math.max(0, message.receivedAt - startedAt)}ms] ${text}`;
  });
}

/** What the person wrote, below what they quoted; in a group with their name and what came before. */
export function wordsOf(message: Said): string {
  const { sender, group, heard = [] } = message;
  const words = withQuote(message);
  if (group === undefined || sender === undefined) return words;
  const before = heard.length === 0 ? '' : `${heardBlock(heard)}\n\n`;
  const separator = message.quoted === undefined ? ' ' : '\n';
  return `${before}${authorOf(sender)}:${separator}${words}`;
}

function withQuote({ text, quoted }: Said): string {
  if (quoted === undefined) return text;
  const author = quoted.author === undefined ? '' : `${quoted.author} wrote:\n`;
  const lines = `${author}${quoted.text}`.split('\n').map((line) => `> ${line}`);
  return `${lines.join('\n')}\n\n${text}`;
}
