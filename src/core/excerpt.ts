// The first words of a text on one line, for sentences about it.

import { headOf, shortened } from './cut.ts';

const MAX_CHARS = 60;

export function excerptOf(text: string): string {
  const line = headOf(text, 4 * MAX_CHARS).replace(/[\s"“”\p{C}]+/gu, ' ');
  return shortened(line.trim(), MAX_CHARS);
}
