// Markdown as styled text for chats with bold, links, code and quotes; tables become aligned text
// or paragraphs. Also as plain text, for clients without markup. Raw HTML is shown as written.

import type { MarkedToken, Tokens } from 'marked';
import {
  decodeReferences,
  displayWidth,
  lexMarkdown,
  type Markup,
  MarkupWriter,
  type Run,
  runsText,
  type Style,
  strictTokens,
} from './writer.ts';

/** A phone shows about this many fixed-width columns before lines wrap. */
const MAX_COLUMNS = 42;

function writeTable(table: Tokens.Table, styles: readonly Style[], writer: MarkupWriter): void {
  const rows = [table.header, ...table.rows].map((row) => row.map(plainCell));
  const widths = table.header.map((_, column) =>
    rows.reduce((widest, row) => Math.max(widest, displayWidth(row[column]?.text ?? '')), 1),
  );
  const totalWidth = widths.reduce((sum, width) => sum + width + 3, -3);
  const hasLinks = rows.some((row) => row.some((cell) => cell.hasLink));
  if (totalWidth > MAX_COLUMNS || hasLinks) {
    writeRows(table, styles, writer);
    return;
  }
  const lines = rows.map((row) => alignedLine(row, widths, table.align));
  const rule = widths.map((width) => '-'.repeat(width)).join('-+-');
  const heading = `${lines[0]}\n${rule}\n`;
  const quotes = styles.filter(({ kind }) => kind === 'quote');
  writer.write(heading + lines.slice(1).join('\n'), [...quotes, { kind: 'pre', heading }]);
}

type Cell = { readonly text: string; readonly hasLink: boolean };

function plainCell(cell: Tokens.TableCell): Cell {
  const scratch = new MarkupWriter();
  writeInline(strictTokens(cell.tokens), [], scratch);
  const { runs } = scratch.finish();
  return {
    text: runsText(runs).replaceAll('\n', ' '),
    hasLink: runs.some((run) => run.styles.some(({ kind }) => kind === 'link')),
  };
}

function alignedLine(
  cells: readonly Cell[],
  widths: readonly number[],
  align: readonly (string | null)[],
): string {
  const padded = widths.map((width, column) => {
    const text = cells[column]?.text ?? '';
    const space = Math.max(0, width - displayWidth(text));
    if (align[column] === 'right') return ' '.repeat(space) + text;
    const left = align[column] === 'center' ? Math.floor(space / 2) : 0;
    return ' '.repeat(left) + text + ' '.repeat(space - left);
  });
  return padded.join(' | ').trimEnd();
}

/** Wide tables: the first cell as a title, the others below it under their column's name. */
function writeRows(table: Tokens.Table, styles: readonly Style[], writer: MarkupWriter) {
  const bold: readonly Style[] = [...styles, { kind: 'bold' }];
  for (const [column, cell] of (table.rows.length === 0 ? table.header : []).entries()) {
    if (column > 0) writer.write(' | ', styles);
    writeInline(strictTokens(cell.tokens), bold, writer);
  }
  for (const row of table.rows) {
    writer.gap(1);
    for (const [column, cell] of row.entries()) {
      const isTitle = column === 0;
      const header = table.header[column];
      if (!isTitle) writer.write('\n• ', styles);
      if (header !== undefined && header.text !== '') {
        writeInline(strictTokens(header.tokens), bold, writer);
        writer.write(': ', styles);
      }
      writeInline(strictTokens(cell.tokens), isTitle ? bold : styles, writer);
    }
  }
}

const EMPHASIS = { strong: 'bold', em: 'italic', del: 'strike' } as const;
const BULLETS = ['•', '◦', '▪'];
const RULE = '─'.repeat(10);
const INDENT = '   ';

type Place = {
  readonly styles: readonly Style[];
  /** Depth of nested lists. */
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
      return writeTable(token, styles, writer);
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

/** A quote inside a quote cannot be shown: its lines stay in the outer one, marked. */
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
      case 'em':
      case 'del':
        writeInline(
          strictTokens(token.tokens),
          [...styles, { kind: EMPHASIS[token.type] }],
          writer,
        );
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

/**
 * Code combines with no other style except the quote around it; inside a link the link takes
 * precedence.
 */
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

/** The address if it is http, https or mailto and has no white space; else undefined. */
export function safeHref(href: string): string | undefined {
  return /^(?:https?:\/\/|mailto:)[^\s<>"]+$/i.test(href) ? href : undefined;
}

// Markdown as plain text: for clients without markup, and for the second try if a platform refuses
// markup. Addresses of links are written out, quotes marked by `>`.

type LinkStyle = Extract<Style, { kind: 'link' }>;

export function renderPlain(markdown: string): string {
  return plainText(parseMarkup(markdown).runs);
}

export function plainText(runs: readonly Run[]): string {
  let text = '';
  let isLineStart = true;
  for (const [index, run] of runs.entries()) {
    const isQuoted = run.styles.some(({ kind }) => kind === 'quote');
    if (isQuoted && isLineStart) text += '> ';
    text += isQuoted ? run.text.replaceAll(/\n(?!$)/g, '\n> ') : run.text;
    const link = linkOf(run);
    if (link !== undefined && linkOf(runs[index + 1]) !== link) text += address(link.href);
    isLineStart = run.text.endsWith('\n');
  }
  return text;
}

const linkOf = (run: Run | undefined) =>
  run?.styles.find((style): style is LinkStyle => style.kind === 'link');

const address = (href: string) => ` (${href.replace(/^mailto:/i, '')})`;
