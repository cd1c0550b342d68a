// The parts of Markdown conversion: the lexer without raw HTML, text functions, and the writer of
// styled runs.

import { Lexer, type MarkedToken, type Token, Tokenizer } from 'marked';

export { type MarkedToken, Parser, Renderer, type Tokens } from 'marked';

/** Nested quotes and lists, on one line or by indentation. */
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

const CJK = '[\\p{sc=Han}\\p{sc=Hiragana}\\p{sc=Katakana}\\p{sc=Hangul}]';
const BEHIND_CJK = new RegExp(`${CJK}$`, 'u');
const BOLD_BEFORE_CJK = new RegExp(
  `^\\*\\*(?!\\s)[^*\\n]+(?<=[\\p{P}\\p{S}])\\*\\*(?=${CJK})`,
  'u',
);
const BOLD_PUNCTUATION = /^\*\*(?=[\p{P}\p{S}])[^*\n]+(?<!\s)\*\*(?!\*)/u;

/**
 * Markdown as models write it. `10~20, 30~40` is two ranges: only `~~` strikes. `2*3*4` is a
 * product. Chinese, Japanese and Korean have no blank beside bold text, without which Markdown sees
 * no bold that begins or ends with punctuation.
 */
export class AnswerTokenizer extends Tokenizer {
  /** A footnote of one word is no address of a link: it stays as written, as longer ones do. */
  override def(src: string) {
    return /^ {0,3}\[\^/.test(src) ? undefined : super.def(src);
  }

  override del(...[src, masked, before]: Parameters<Tokenizer['del']>) {
    return src.startsWith('~~') ? super.del(src, masked, before) : undefined;
  }

  override emStrong(...[src, masked, before = '']: Parameters<Tokenizer['emStrong']>) {
    if (/\d$/.test(before) && /^\*\d/.test(src)) return undefined;
    const bold = src.startsWith('**')
      ? boldBesideCjk(masked.slice(-src.length), before)
      : undefined;
    if (bold === undefined) return super.emStrong(src, masked, before);
    const raw = src.slice(0, bold.length);
    const text = raw.slice(2, -2);
    return { type: 'strong' as const, raw, text, tokens: this.lexer.inlineTokens(text) };
  }
}

function boldBesideCjk(shown: string, before: string): string | undefined {
  const found = BOLD_BEFORE_CJK.exec(shown)?.[0];
  return found ?? (BEHIND_CJK.test(before) ? BOLD_PUNCTUATION.exec(shown)?.[0] : undefined);
}

/** The block tree with every inline part lexed. */
export function lexMarkdown(markdown: string): readonly MarkedToken[] {
  const source = cleanText(markdown);
  if (DEEP_MARKERS.test(source) || DEEP_INDENT.test(source) || WIDE_TABLE.test(source)) {
    return [verbatim(source)];
  }
  const lexer = new Lexer({ gfm: true, tokenizer: new AnswerTokenizer() });
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

/** Normalised line ends, whole surrogate pairs, no control characters. */
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

// Properties of text: character references, HTML escaping and display width.

const NAMED: Readonly<Record<string, string>> = {
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  apos: "'",
  nbsp: '\u00a0',
  hellip: '…',
  mdash: '—',
  ndash: '–',
  rarr: '→',
  larr: '←',
  bull: '•',
  deg: '°',
  times: '×',
  euro: '€',
  copy: '©',
};

/** Resolves character references as in Markdown; unknown ones stay as written. */
export function decodeReferences(text: string): string {
  if (!text.includes('&')) return text;
  return text.replace(
    /&(?:#(\d{1,7})|#[xX]([0-9a-fA-F]{1,6})|([a-z]{2,6}));/g,
    (whole, decimal?: string, hex?: string, name?: string) => {
      if (name !== undefined) return NAMED[name] ?? whole;
      const code = decimal === undefined ? Number.parseInt(hex ?? '', 16) : Number(decimal);
      const isText = code >= 0x20 && code <= 0x10_ffff && !(code >= 0xd800 && code <= 0xdfff);
      return isText && code !== 0x7f ? String.fromCodePoint(code) : whole;
    },
  );
}

const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
};

export function escapeHtml(text: string): string {
  return /[&<>"]/.test(text) ? text.replace(/[&<>"]/g, (char) => ESCAPES[char] ?? char) : text;
}

const NARROW_ONLY = /^[\x20-\x7e]*$/;
const NO_WIDTH = /[\p{M}\u200b-\u200d]/u;
const WIDE =
  /[\p{Emoji_Presentation}\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]/u;

/** Columns the text takes in a fixed-width font. */
export function displayWidth(text: string): number {
  if (NARROW_ONLY.test(text)) return text.length;
  let columns = 0;
  for (const char of text) {
    if (NO_WIDTH.test(char)) continue;
    columns += WIDE.test(char) ? 2 : 1;
  }
  return columns;
}

// Text with styles, from which every chat dialect is written. A run is a piece of text under a list
// of styles, outermost first; a style is one object for its whole extent, so splitting a text
// splits the runs and every part is complete by itself.

export type Style =
  | { readonly kind: 'bold' | 'italic' | 'strike' | 'code' | 'quote' }
  | { readonly kind: 'link'; readonly href: string }
  | {
      readonly kind: 'pre';
      readonly language?: string;
      /** Lines repeated at the top of every further part when the text is split inside. */
      readonly heading?: string;
    };

export type Run = { readonly text: string; readonly styles: readonly Style[] };

export type Markup = {
  readonly runs: readonly Run[];
  /** Offsets, UTF-16 units, at which blocks start; ascending. */
  readonly borders: readonly number[];
};

/** Collects runs; line breaks between blocks have the styles that both sides share. */
export class MarkupWriter {
  readonly #runs: Run[] = [];
  readonly #borders: number[] = [];
  #length = 0;
  #gapLines = 0;

  /** The next text starts a block, this many line breaks below the last one. */
  gap(lines: 1 | 2): void {
    this.#gapLines = Math.max(this.#gapLines, lines);
  }

  write(text: string, styles: readonly Style[]): void {
    if (text === '') return;
    if (this.#gapLines > 0 && this.#length > 0) {
      this.#push(
        '\n'.repeat(this.#gapLines),
        sharedStyles(this.#runs.at(-1)?.styles ?? [], styles),
      );
      this.#borders.push(this.#length);
    }
    this.#gapLines = 0;
    this.#push(text, styles);
  }

  finish(): Markup {
    return { runs: this.#runs, borders: this.#borders };
  }

  #push(text: string, styles: readonly Style[]) {
    this.#runs.push({ text, styles });
    this.#length += text.length;
  }
}

/** The styles that two neighbours have in common, by identity. */
export function sharedStyles(left: readonly Style[], right: readonly Style[]): readonly Style[] {
  let count = 0;
  while (count < left.length && left[count] === right[count]) count += 1;
  return left.slice(0, count);
}

/** The visible text without styles. */
export function runsText(runs: readonly Run[]): string {
  return runs.map((run) => run.text).join('');
}
