// HTML as the text that a reader would see: headings, lists and tables marked as Markdown does, what
// is hidden left out (case E23).

import { attributeOf, type MarkupToken, markupTokens } from './markup-tokens.ts';

const RAW = new Set(['script', 'style', 'textarea', 'title', 'xmp', 'noembed', 'noframes']);
const NEVER_SHOWN = new Set([
  ...['head', 'script', 'style', 'template', 'noscript', 'svg', 'math', 'iframe', 'object'],
  ...['select', 'canvas', 'audio', 'video', 'title', 'textarea', 'noembed', 'noframes'],
]);
const VOID = new Set(
  'area base br col embed hr img input link meta param source track wbr'.split(' '),
);
const BLOCKS = new Set([
  ...'address article aside blockquote body caption dd details div dl dt fieldset'.split(' '),
  ...'figcaption figure footer form header html legend main nav p pre section summary'.split(' '),
  ...['table', 'thead', 'tbody', 'tfoot', 'tr', 'ul', 'ol', 'li'],
]);
/** Stand apart by an empty line. */
const PARAGRAPHS = new Set(['p', 'table', 'ul', 'ol', 'blockquote', 'pre', 'section', 'article']);
const HEADING = /^h([1-6])$/;
const HIDING_STYLE =
  /display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0(?![.\d]*[1-9])|opacity\s*:\s*0(?![.\d]*[1-9])/i;
const HIDDEN_ATTRIBUTE = /(?:^|\s)hidden(?=[\s=/]|$)/i;

export function htmlText(html: string): string {
  const text = new ShownText();
  for (const token of markupTokens(html, RAW)) text.push(token);
  return text.end();
}

class ShownText {
  readonly #parts: string[] = [];
  /** The element that hides, and how many of its name are open in it. */
  #hidden: { readonly name: string; depth: number } | undefined;
  #lists = 0;
  #preformatted = 0;
  #isCellOpen = false;
  #isLineEmpty = true;

  push(token: MarkupToken): void {
    if (this.#hidden !== undefined) this.#pass(token, this.#hidden);
    else if (token.type === 'text') this.#write(token.text);
    else if (token.type === 'close') this.#close(token.name);
    else if (hides(token)) this.#hidden = { name: token.name, depth: 1 };
    else this.#open(token.name);
  }

  end(): string {
    return this.#parts.join('');
  }

  #pass(token: MarkupToken, hidden: { readonly name: string; depth: number }): void {
    if (token.type === 'text' || token.name !== hidden.name) return;
    if (token.type === 'open') hidden.depth += token.isClosed ? 0 : 1;
    else hidden.depth -= 1;
    if (hidden.depth === 0) this.#hidden = undefined;
  }

  #open(name: string): void {
    const level = HEADING.exec(name)?.[1];
    if (level !== undefined) {
      this.#line(true);
      this.#mark(`${'#'.repeat(Number(level))} `);
    } else if (name === 'br') this.#parts.push('\n');
    else if (name === 'hr') this.#line(true);
    else if (name === 'td' || name === 'th') {
      if (this.#isCellOpen) this.#mark(' | ');
      this.#isCellOpen = true;
    } else if (BLOCKS.has(name) && !this.#isInCell(name)) {
      this.#line(PARAGRAPHS.has(name) && this.#lists === 0);
    }
    if (name === 'ul' || name === 'ol') this.#lists += 1;
    if (name === 'li') this.#mark(`${'  '.repeat(Math.max(0, this.#lists - 1))}- `);
    if (name === 'tr') this.#isCellOpen = false;
    if (name === 'pre') this.#preformatted += 1;
  }

  #close(name: string): void {
    if (name === 'ul' || name === 'ol') this.#lists = Math.max(0, this.#lists - 1);
    if (name === 'pre') this.#preformatted = Math.max(0, this.#preformatted - 1);
    if (name === 'tr' || name === 'table') this.#isCellOpen = false;
    if (this.#isInCell(name)) return;
    if (BLOCKS.has(name) || HEADING.test(name)) this.#line(PARAGRAPHS.has(name));
  }

  /** A paragraph in a cell does not end the row. */
  #isInCell(name: string): boolean {
    return this.#isCellOpen && (name === 'p' || name === 'div');
  }

  #line(isParagraph: boolean): void {
    if (this.#parts.length === 0) return;
    this.#parts.push(isParagraph ? '\n\n' : this.#isLineEmpty ? '' : '\n');
    this.#isLineEmpty = true;
  }

  #mark(mark: string): void {
    this.#parts.push(mark);
    this.#isLineEmpty = true;
  }

  #write(raw: string): void {
    if (this.#preformatted > 0) {
      this.#parts.push(raw);
      this.#isLineEmpty = raw.endsWith('\n');
      return;
    }
    const text = raw.replace(/\s+/g, ' ');
    const shown = this.#isLineEmpty ? text.trimStart() : text;
    if (shown === '') return;
    this.#parts.push(shown);
    this.#isLineEmpty = false;
  }
}

/** Whether it and all in it is not seen. */
function hides({ name, attributes, isClosed }: Extract<MarkupToken, { type: 'open' }>): boolean {
  if (isClosed || VOID.has(name)) return false;
  if (NEVER_SHOWN.has(name)) return true;
  if (attributes === '') return false;
  const unquoted = attributes.replace(/"[^"]*"|'[^']*'/g, '=');
  return (
    HIDDEN_ATTRIBUTE.test(unquoted) || HIDING_STYLE.test(attributeOf(attributes, 'style') ?? '')
  );
}
