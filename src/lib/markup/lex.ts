// Markdown text to marked's tree, with guards: input that would make the lexer recurse without end
// or run in square time is shown as it was written instead. Everything else about markup is in
// core/markup.ts and its renderers.

import { Lexer, type MarkedToken, type Token } from 'marked';

export type { MarkedToken, Tokens } from 'marked';

/** Quotes and lists inside one another, on one line or by indentation. */
const MAX_MARKERS_PER_LINE = 16;
const MAX_INDENT_CHARS = 64;
const MAX_TABLE_COLUMNS = 24;
/** Emphasis marks in one paragraph; each may nest. */
const MAX_MARKS_PER_PARAGRAPH = 2000;
/** Marks times characters, summed over one text: about 100 ms of lexing. */
const INLINE_BUDGET = 30_000_000;

const DEEP_MARKERS = new RegExp(
  `^(?:[ \\t]*(?:>|[-+*][ \\t]|\\d{1,9}[.)][ \\t])){${MAX_MARKERS_PER_LINE}}`,
  'm',
);
const DEEP_INDENT = new RegExp(`^[ \\t]{${MAX_INDENT_CHARS},}(?:[-+*>]|\\d{1,9}[.)])`, 'm');
const WIDE_TABLE = new RegExp(`^[ \\t]*\\|?(?:[ \\t]*:?-+:?[ \\t]*\\|){${MAX_TABLE_COLUMNS}}`, 'm');
const INVISIBLE = /(?![\t\n])\p{Cc}/gu;

/** The block tree with every inline part lexed. */
export function lexMarkdown(markdown: string): readonly MarkedToken[] {
  const source = cleanText(markdown);
  if (DEEP_MARKERS.test(source) || DEEP_INDENT.test(source) || WIDE_TABLE.test(source)) {
    return [verbatim(source)];
  }
  const lexer = new Lexer({ gfm: true });
  lexer.blockTokens(source, lexer.tokens);
  let budget = INLINE_BUDGET;
  for (const part of lexer.inlineQueue) {
    const marks = countMarks(part.src);
    const cost = marks * part.src.length;
    if (marks <= MAX_MARKS_PER_PARAGRAPH && cost <= budget) {
      budget -= cost;
      lexer.inlineTokens(part.src, part.tokens);
    } else {
      part.tokens.push({ type: 'text', raw: part.src, text: part.src, escaped: true });
    }
  }
  return strictTokens(lexer.tokens);
}

/** Our parser has no extensions, so the tokens are marked's own. */
export function strictTokens(tokens: readonly Token[] | undefined): readonly MarkedToken[] {
  return (tokens ?? []) as readonly MarkedToken[];
}

/** One kind of line end, whole surrogate pairs, no control characters. */
function cleanText(text: string): string {
  return text.toWellFormed().replace(/\r\n?/g, '\n').replace(INVISIBLE, '');
}

function verbatim(source: string): MarkedToken {
  const text = { type: 'text', raw: source, text: source, escaped: true } as const;
  return { type: 'paragraph', raw: source, text: source, tokens: [text] };
}

function countMarks(text: string): number {
  let marks = 0;
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    // * _ ~ [
    if (code === 42 || code === 95 || code === 126 || code === 91) marks += 1;
  }
  return marks;
}
