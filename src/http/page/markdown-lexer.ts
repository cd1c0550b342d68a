// Markdown to marked's tokens, with guards: text that would make the lexer recurse without end or
// run in quadratic time is shown as written instead. (The server's own are in
// src/lib/markup/writer.ts.)

import { Lexer, Marked, type Token } from 'marked';
import { AnswerTokenizer } from '../../lib/markup/writer.ts';
import { FORMULAS } from './chat/formula-syntax.ts';

const MAX_MARKERS_PER_LINE = 16;
const MAX_INDENT_CHARS = 64;
const MAX_TABLE_COLUMNS = 24;
const MAX_MARKS_PER_PARAGRAPH = 2000;
/** Marks times characters, summed over one text. */
const INLINE_BUDGET = 30_000_000;

const TOO_DEEP = [
  new RegExp(`^(?:[ \\t]*(?:>|[-+*][ \\t]|\\d{1,9}[.)][ \\t])){${MAX_MARKERS_PER_LINE}}`, 'm'),
  new RegExp(`^[ \\t]{${MAX_INDENT_CHARS},}(?:[-+*>]|\\d{1,9}[.)])`, 'm'),
  new RegExp(`^[ \\t]*\\|?(?:[ \\t]*:?-+:?[ \\t]*\\|){${MAX_TABLE_COLUMNS}}`, 'm'),
];
const GRAMMAR = new Marked({ gfm: true, extensions: [...FORMULAS] }).defaults;
const INVISIBLE = /(?![\t\n])\p{Cc}/gu;

/** Normalised line ends, whole surrogate pairs, no control characters. */
export function cleanText(text: string): string {
  return text.toWellFormed().replace(/\r\n?/g, '\n').replace(INVISIBLE, '');
}

/** The block tree of clean text, with every inline part lexed. */
export function lexMarkdown(source: string): readonly Token[] {
  if (TOO_DEEP.some((pattern) => pattern.test(source))) return [verbatim(source)];
  const lexer = new Lexer({ ...GRAMMAR, tokenizer: new AnswerTokenizer() });
  lexer.blockTokens(source, lexer.tokens);
  let budget = INLINE_BUDGET;
  for (const part of lexer.inlineQueue) {
    const marks = part.src.match(/[*_~[]/g)?.length ?? 0;
    const cost = marks * part.src.length;
    if (marks <= MAX_MARKS_PER_PARAGRAPH && cost <= budget) {
      budget -= cost;
      lexer.inlineTokens(part.src, part.tokens);
    } else {
      part.tokens.push({ type: 'text', raw: part.src, text: part.src, escaped: true });
    }
  }
  return lexer.tokens;
}

function verbatim(source: string): Token {
  const text = { type: 'text', raw: source, text: source, escaped: true };
  return { type: 'paragraph', raw: source, text: source, tokens: [text] };
}
