// The first words of a text on one line, for sentences about it.

const MAX_CHARS = 60;

export function excerptOf(text: string): string {
  const line = text
    .slice(0, 4 * MAX_CHARS)
    .replace(/[\s"“”\p{C}]+/gu, ' ')
    .trim();
  return line.length <= MAX_CHARS ? line : `${line.slice(0, MAX_CHARS).trim().toWellFormed()}…`;
}
