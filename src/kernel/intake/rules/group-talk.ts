// Group talk as text for the model: each line with its author, so that no text can pass for another
// author's or for the end of its block. The gateway decides how long it is kept.

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

/** The lines after something was said, or one of them was changed or deleted by its author. */
export function withSaid(lines: readonly HeardLine[], message: InboundMessage) {
  const { amends } = message;
  const line = heardLineOf(message);
  if (amends === undefined) return withHeard(lines, line);
  const changed = amends.kind === 'withdrawn' ? [] : [line.text];
  return lines.flatMap((one) =>
    one.id === amends.id ? changed.map((text) => ({ ...one, text })) : one,
  );
}

/** The lines with one more, dropping the oldest first; a known one changes nothing. */
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

/** Every line starts with `| ` and its author: nothing inside can end the block. */
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
