// What is said in a group, in the model's words: each line with its author, so that no text can pass
// for somebody else's or for the end of the block it stands in. How long it is kept is the gateway's.

import { headOf } from '../../../lib/text/cut.ts';
import { textWithAttachments } from '../../message/attachment.ts';
import type { HeardLine, InboundMessage } from '../../message/message.ts';
import { authorOf } from '../../message/message.ts';
import { neutralLines } from '../../message/untrusted.ts';

export const MAX_HEARD_LINES = 30;
export const MAX_HEARD_CHARS = 8000;
const MAX_LINE_CHARS = 1000;

export function heardLineOf(message: InboundMessage): HeardLine {
  const { id, sender, receivedAt } = message;
  const text = shortened(textWithAttachments(message));
  return { id, author: authorOf(sender), text, at: receivedAt };
}

/** The lines with one more, oldest left out first; one that is known already changes nothing. */
export function withHeard(lines: readonly HeardLine[], line: HeardLine): readonly HeardLine[] {
  if (lines.some(({ id }) => id === line.id)) return lines;
  const all = [...lines, line].slice(-MAX_HEARD_LINES);
  let chars = 0;
  const first = all.findLastIndex(({ author, text }) => {
    chars += author.length + text.length;
    return chars > MAX_HEARD_CHARS;
  });
  return all.slice(first + 1);
}

/** Every line begins with `| ` and its author: nothing inside can end the block. */
export function heardBlock(lines: readonly HeardLine[]): string {
  const said = lines.flatMap(({ author, text }) =>
    neutralLines(text).map((part) => `| ${author}: ${part}`),
  );
  return ['[said in this group before, not to you]', ...said, '[end of what was said]'].join('\n');
}

function shortened(text: string): string {
  if (text.length <= MAX_LINE_CHARS) return text;
  const omitted = text.length - MAX_LINE_CHARS;
  return `${headOf(text, MAX_LINE_CHARS)} [${omitted} characters omitted]`;
}
