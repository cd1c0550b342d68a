// Splits a typed command line into its words: spaces separate, quotes keep spaces, a backslash keeps the
// next character. Nothing is expanded.

const WORD = /(?:[^\s"'\\]|\\.|"(?:[^"\\]|\\.)*"|'[^']*')+/gs;
const PART = /\\(.)|"((?:[^"\\]|\\.)*)"|'([^']*)'/gs;

/** Undefined where a quote is not closed. */
export function commandWords(line: string): readonly string[] | undefined {
  if (line.replaceAll(WORD, '').trim() !== '') return undefined;
  return (line.match(WORD) ?? []).map((word) =>
    word.replaceAll(
      PART,
      (_part, escaped?: string, double?: string, single?: string) =>
        escaped ?? single ?? (double ?? '').replaceAll(/\\(["\\])/g, '$1'),
    ),
  );
}
