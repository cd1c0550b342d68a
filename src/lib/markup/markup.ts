// Markdown to styled text for chats that know bold, links, code and quotes but no lists, headings or
// tables (those become text). Raw HTML is shown as it was written. Splitting is in core/markup/split.ts,
// the dialects in core/markup/telegram.ts, core/markup/plain.ts and core/markup/email.ts.

import type { MarkedToken, Tokens } from 'marked';
import { lexMarkdown, strictTokens } from './lex.ts';
import { writeTable } from './table.ts';
import { decodeReferences } from './text.ts';
import { type Markup, MarkupWriter, type Style } from './writer.ts';

const BULLETS = ['•', '◦', '▪'];
const RULE = '─'.repeat(10);
const INDENT = '   ';

type Place = {
  readonly styles: readonly Style[];
  /** How deep in lists. */
  readonly depth: number;
};

export function parseMarkup(markdown: string): Markup {
  const writer = new MarkupWriter();
  writeBlocks(lexMarkdown(markdown), { styles: [], depth: 0 }, writer);
  return writer.finish();
}

function writeBlocks(tokens: readonly MarkedToken[], place: Place, writer: MarkupWriter) {
  const blocks = tokens.filter((token) => token.type !== 'space');
  for (const [index, token] of blocks.entries()) {
    if (index > 0) writer.gap(place.depth > 0 ? 1 : 2);
    writeBlock(token, place, writer);
  }
}

function writeBlock(token: MarkedToken, place: Place, writer: MarkupWriter) {
  const { styles } = place;
  switch (token.type) {
    case 'heading':
      return writeInline(strictTokens(token.tokens), [...styles, { kind: 'bold' }], writer);
    case 'code':
      return writer.write(token.text, codeStyles(token, styles));
    case 'blockquote':
      return writeQuote(token, place, writer);
    case 'list':
      return writeList(token, place, writer);
    case 'table':
      return writeTable(token, styles, writer, writeInline);
    case 'hr':
      return writer.write(RULE, styles);
    case 'html':
    case 'def':
      return writer.write(token.raw.trimEnd(), styles);
    case 'paragraph':
      return writeInline(strictTokens(token.tokens), styles, writer);
    default:
      return writeInline([token], styles, writer);
  }
}

function codeStyles(token: Tokens.Code, styles: readonly Style[]): readonly Style[] {
  const language = /^[\w+#.-]+/.exec(token.lang ?? '')?.[0];
  const pre: Style = { kind: 'pre', ...(language === undefined ? {} : { language }) };
  return [...styles.filter(({ kind }) => kind === 'quote'), pre];
}

/** A quote inside a quote cannot be shown as one: its lines stay in the outer, marked. */
function writeQuote(token: Tokens.Blockquote, place: Place, writer: MarkupWriter) {
  const isInner = place.styles.some(({ kind }) => kind === 'quote');
  if (isInner) writer.write('» ', place.styles);
  const styles = isInner ? place.styles : [...place.styles, { kind: 'quote' } as const];
  writeBlocks(strictTokens(token.tokens), { ...place, styles }, writer);
}

function writeList(token: Tokens.List, place: Place, writer: MarkupWriter) {
  const first = token.start === '' ? 1 : token.start;
  const bullet = BULLETS[place.depth % BULLETS.length] ?? '•';
  for (const [index, item] of token.items.entries()) {
    writer.gap(1);
    const end = /^\s*\d+\)/.test(item.raw) ? ')' : '.';
    const marker = token.ordered ? `${first + index}${end}` : bullet;
    writer.write(`${INDENT.repeat(place.depth)}${marker} `, place.styles);
    writeItem(item, { ...place, depth: place.depth + 1 }, writer);
  }
}

function writeItem(item: Tokens.ListItem, place: Place, writer: MarkupWriter) {
  let isFirst = true;
  for (const token of strictTokens(item.tokens)) {
    if (token.type === 'space') continue;
    if (!isFirst) {
      writer.gap(1);
      const isText = token.type === 'text' || token.type === 'paragraph';
      if (isText) writer.write(INDENT.repeat(place.depth), place.styles);
    }
    writeBlock(token, place, writer);
    isFirst = token.type === 'checkbox';
  }
}

function writeInline(
  tokens: readonly MarkedToken[],
  styles: readonly Style[],
  writer: MarkupWriter,
): void {
  for (const token of tokens) {
    switch (token.type) {
      case 'strong':
        writeInline(strictTokens(token.tokens), [...styles, { kind: 'bold' }], writer);
        break;
      case 'em':
        writeInline(strictTokens(token.tokens), [...styles, { kind: 'italic' }], writer);
        break;
      case 'del':
        writeInline(strictTokens(token.tokens), [...styles, { kind: 'strike' }], writer);
        break;
      case 'codespan':
        writer.write(token.text, inlineCodeStyles(styles));
        break;
      case 'link':
      case 'image':
        writeLink(token, styles, writer);
        break;
      case 'br':
        writer.write('\n', styles);
        break;
      case 'checkbox':
        writer.write(token.checked ? '☑ ' : '☐ ', styles);
        break;
      case 'escape':
        writer.write(token.text, styles);
        break;
      case 'html':
        writer.write(/^<br *\/?>$/i.test(token.raw) ? '\n' : token.raw, styles);
        break;
      case 'text':
        writeText(token, styles, writer);
        break;
      default:
        writer.write(token.raw, styles);
    }
  }
}

function writeText(token: Tokens.Text, styles: readonly Style[], writer: MarkupWriter) {
  if (token.tokens !== undefined) return writeInline(strictTokens(token.tokens), styles, writer);
  writer.write(token.escaped ? token.text : decodeReferences(token.text), styles);
}

/** Code takes no other style with it but the quote it stands in; inside a link the link wins. */
function inlineCodeStyles(styles: readonly Style[]): readonly Style[] {
  if (styles.some(({ kind }) => kind === 'link')) return styles;
  return [...styles.filter(({ kind }) => kind === 'quote'), { kind: 'code' }];
}

function writeLink(
  token: Tokens.Link | Tokens.Image,
  styles: readonly Style[],
  writer: MarkupWriter,
) {
  const label = strictTokens(token.tokens);
  const href = safeHref(token.href);
  const isBare = token.text === token.href || ('autolink' in token && token.autolink === true);
  if (isBare) return writer.write(token.text, styles);
  if (href === undefined) {
    writeInline(label, styles, writer);
    return writer.write(token.href === '' ? '' : ` (${token.href})`, styles);
  }
  const linked: readonly Style[] = [...styles, { kind: 'link', href }];
  if (label.length === 0) return writer.write(token.text || token.href, linked);
  writeInline(label, linked, writer);
}

// Which addresses may become links: those a reader can judge. Anything else stays text.

/** The address when it is http, https or mailto and has no white space; else undefined. */
export function safeHref(href: string): string | undefined {
  return /^(?:https?:\/\/|mailto:)[^\s<>"]+$/i.test(href) ? href : undefined;
}
