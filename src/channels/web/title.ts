// The name of a chat in a list: the first words of what was said first.

import { headOf } from '../../lib/text/cut.ts';

const MAX_TITLE_CHARS = 60;
const ELLIPSIS = '…';
/** A list shows plain text: a notice may begin with something bold. */
const MARKED = /(\*\*|`)(\S.*?)\1/gu;

export function titleOf(text: string): string {
  const line = text.toWellFormed().replace(/\s+/gu, ' ').replace(MARKED, '$2').trim();
  if (line.length <= MAX_TITLE_CHARS) return line;
  const cut = headOf(line, MAX_TITLE_CHARS - 1);
  const border = cut.lastIndexOf(' ');
  const words = border > MAX_TITLE_CHARS / 2 ? cut.slice(0, border) : cut;
  return `${words}${ELLIPSIS}`;
}
