// Formulas in Markdown: `$$…$$` and `\[…\]` on their own, `$…$` and `\(…\)` in a line. Amounts of money
// stay text.

import type { Token, TokenizerExtension, Tokens } from 'marked';

export type Formula = Tokens.Generic & { readonly text: string; readonly isDisplay: boolean };

const MAX_CHARS = 2000;
const BLOCK = /^ {0,3}(?:\$\$([^$]+)\$\$|\\\[([\s\S]+?)\\\]) *(?:\n+|$)/;
const DISPLAY = /^(?:\$\$([^$\n]+)\$\$|\\\[([^\n]+?)\\\])/;
const INLINE = /^(?:\$(?!\s)((?:\\.|[^\\$\n`])+)(?<!\s)\$(?!\d)|\\\(([^\n]+?)\\\))/;
/** Not behind a letter, a digit or a dollar: `US$5`. */
const START = /(?<![\p{L}\d$\\])\$|\\[([]/u;
const BLOCK_START = /(?:^|\n) {0,3}(?:\$\$|\\\[)/;
/** What is written between two dollars of a formula, and not between two amounts. */
const IS_TEX = /[\\^_=+<>{]/;
const IS_WORD = /\p{L}{2}/u;

function formula(pattern: RegExp, isDisplay: boolean) {
  return (src: string): Formula | undefined => {
    const [raw, dollars, slashes] = pattern.exec(src.slice(0, MAX_CHARS)) ?? [];
    const text = (dollars ?? slashes ?? '').trim();
    if (raw === undefined || text === '') return undefined;
    const isPlain = dollars !== undefined && !IS_TEX.test(text) && IS_WORD.test(text);
    if (isPlain && !isDisplay) return undefined;
    return { type: 'formula', raw, text, isDisplay };
  };
}

const inLine = formula(INLINE, false);
const onItsOwn = formula(DISPLAY, true);

export const FORMULAS: readonly TokenizerExtension[] = [
  {
    name: 'formulaBlock',
    level: 'block',
    start: (src) => BLOCK_START.exec(src)?.index,
    tokenizer: formula(BLOCK, true),
  },
  {
    name: 'formula',
    level: 'inline',
    start: (src) => START.exec(src)?.index,
    tokenizer: (src) => onItsOwn(src) ?? inLine(src),
  },
];

export const isFormula = (token: Token): token is Formula => token.type === 'formula';
