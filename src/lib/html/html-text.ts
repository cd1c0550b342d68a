// The text that a person sees of HTML, of mails, pages and documents alike: headings, lists and tables
// in their form, what is hidden left out (case E23). Reads once over the tags and builds no tree.

import { type Hiding, hidingOf, setsReadableSize } from './hidden-style.ts';
import {
  attributeOf,
  BLOCKS,
  type MarkupToken,
  markupTokens,
  OpenElements,
  VOID,
} from './markup-tokens.ts';
import { type Mark, type TableCell, TableText, TextLines } from './text-lines.ts';

type HtmlTextOptions = {
  /** Emphasis, code and links as Markdown writes them. */
  readonly isMarkdown?: boolean;
  /** Addresses that are shown behind the text of their link. */
  readonly links?: RegExp;
  /** Elements may be closed by `/>`. */
  readonly isXml?: boolean;
};

/** Not text, or text that nobody sees as it stands. */
export const UNSEEN_ELEMENTS: ReadonlySet<string> = new Set([
  ...'script style noscript template title iframe object applet svg canvas audio video'.split(' '),
  ...'select datalist textarea noembed noframes frameset portal annotation annotation-xml xml'.split(
    ' ',
  ),
]);
/** Stand apart by an empty line. */
const PARAGRAPHS = new Set('p table ul ol dl blockquote pre section article hr figure'.split(' '));
const HEADING = /^h([1-6])$/;
const EMPHASIS: ReadonlyMap<string, string> = new Map([
  ...(['b', 'strong'] as const).map((name) => [name, '**'] as const),
  ...(['em', 'i'] as const).map((name) => [name, '_'] as const),
  ...(['code', 'kbd'] as const).map((name) => [name, '`'] as const),
]);
const MAX_LINK_CHARS = 2000;
const NOTHING = () => undefined;

export function htmlText(html: string, options: HtmlTextOptions = {}): string {
  const text = new ShownText(options);
  for (const token of markupTokens(html, options.isXml === true ? 'xhtml' : 'html'))
    text.push(token);
  return text.end();
}

type Opening = Extract<MarkupToken, { type: 'open' }>;

class ShownText {
  readonly #options: HtmlTextOptions;
  readonly #elements = new OpenElements();
  readonly #tables: TableText[] = [];
  /** Of the cell that is being read, or of the page. */
  #lines = new TextLines();

  constructor(options: HtmlTextOptions) {
    this.#options = options;
  }

  push(token: MarkupToken): void {
    if (token.type === 'text') {
      if (this.#elements.hidden === undefined) this.#lines.write(token.text);
    } else if (token.type === 'close') this.#close(token.name);
    else if (VOID.has(token.name)) this.#void(token.name);
    else {
      this.#open(token);
      if (token.isClosed) this.#close(token.name);
    }
  }

  end(): string {
    this.#elements.closeAll();
    return this.#lines.end().join('\n');
  }

  #close(name: string): void {
    if (name === 'br') this.#void(name);
    else if (!VOID.has(name)) this.#elements.close(name);
  }

  #void(name: string): void {
    if (name === 'hr') this.#elements.makeRoomFor('p');
    if (this.#elements.hidden !== undefined) return;
    if (name === 'br') this.#lines.lineBreak();
    if (name !== 'hr') return;
    this.#lines.paragraph();
    this.#lines.line('---');
    this.#lines.paragraph();
  }

  #open(token: Opening): void {
    const { name } = token;
    if (this.#elements.makeRoomFor(name) === 'row') {
      this.#open({ type: 'open', name: 'tr', attributes: '', isClosed: false });
    }
    const hidden = this.#hidingOf(token);
    if (this.#elements.isFull) {
      if (hidden !== undefined) this.#elements.hideRest();
      else if (BLOCKS.has(name)) this.#lines.breakLine();
      return;
    }
    const end = hidden === 'all' ? NOTHING : this.#begin(token);
    this.#elements.push({ name, hidden, end });
  }

  #hidingOf({ name, attributes }: Opening): Hiding {
    const outer = this.#elements.hidden;
    if (outer === 'all' || UNSEEN_ELEMENTS.has(name)) return 'all';
    if (attributes === '') return name === 'dialog' ? 'all' : outer;
    const read = (wanted: string) => attributeOf(attributes, wanted);
    if (read('hidden') !== undefined) return 'all';
    if (name === 'dialog' && read('open') === undefined) return 'all';
    const style = read('style');
    if (style === undefined) return outer;
    return hidingOf(style) ?? (setsReadableSize(style) ? undefined : outer);
  }

  /** What is to be done at its end. */
  #begin({ name, attributes }: Opening): () => void {
    const lines = this.#lines;
    const read = (wanted: string) => attributeOf(attributes, wanted);
    const level = HEADING.exec(name)?.[1];
    if (level !== undefined) return this.#heading(Number(level));
    if ((name === 'td' || name === 'th') && this.#elements.has('table')) {
      return this.#cell(name, countOf(read('colspan')), countOf(read('rowspan')));
    }
    switch (name) {
      case 'table':
        return this.#table(/^(?:presentation|none)$/i.test(read('role') ?? ''));
      case 'tr':
        this.#tables.at(-1)?.beginRow();
        return this.#block(name);
      case 'ul':
      case 'menu':
      case 'dir':
        return this.#list(undefined, 1);
      case 'ol':
        return this.#list(integer(read('start')) ?? 1, read('reversed') === undefined ? 1 : -1);
      case 'li':
        return this.#item(integer(read('value')));
      case 'blockquote':
        lines.paragraph();
        lines.quotes += 1;
        return () => {
          lines.paragraph();
          lines.quotes -= 1;
        };
      case 'pre':
        return this.#preformatted();
      case 'a':
        return this.#link(read('href')?.trim() ?? '');
      case 'q':
        lines.write('"');
        return () => lines.write('"');
      default:
        return this.#emphasis(name) ?? this.#block(name);
    }
  }

  #block(name: string): () => void {
    if (!BLOCKS.has(name)) return NOTHING;
    const lines = this.#lines;
    const apart = () => (PARAGRAPHS.has(name) ? lines.paragraph() : lines.breakLine());
    apart();
    return apart;
  }

  #heading(level: number): () => void {
    const lines = this.#lines;
    lines.paragraph();
    const mark: Mark = { open: `${'#'.repeat(level)} `, close: () => '' };
    lines.open(mark);
    return () => {
      lines.close(mark);
      lines.paragraph();
    };
  }

  #table(isArrangement: boolean): () => void {
    const lines = this.#lines;
    const table = new TableText(isArrangement);
    this.#tables.push(table);
    return () => {
      this.#tables.pop();
      const found = table.end();
      if (found.isTable) this.#cells.add(lines);
      if (found.isTable) lines.paragraph();
      else lines.breakLine();
      for (const line of found.lines) lines.line(line);
      if (found.isTable) lines.paragraph();
    };
  }

  /** Cells that hold rows of their own. */
  readonly #cells = new WeakSet<TextLines>();

  #cell(name: string, columns: number, rows: number): () => void {
    const outer = this.#lines;
    const table = this.#tables.at(-1);
    const lines = new TextLines();
    this.#lines = lines;
    if (name === 'th') table?.addHeading();
    return () => {
      const cell: TableCell = { lines: lines.end(), holdsRows: this.#cells.has(lines) };
      table?.addCell(cell, { columns, rows });
      this.#lines = outer;
    };
  }

  #list(first: number | undefined, step: number): () => void {
    const lines = this.#lines;
    const apart = () => (lines.lists.length === 0 ? lines.paragraph() : lines.breakLine());
    apart();
    const list = { next: first, step };
    lines.lists.push(list);
    return () => {
      lines.lists.splice(lines.lists.indexOf(list), 1);
      apart();
    };
  }

  #item(value: number | undefined): () => void {
    const lines = this.#lines;
    const list = lines.lists.at(-1);
    const number = value ?? list?.next;
    if (list === undefined || list.next === undefined || number === undefined) lines.item('- ');
    else {
      lines.item(`${number}. `);
      list.next = number + list.step;
    }
    return () => lines.item('');
  }

  #preformatted(): () => void {
    const lines = this.#lines;
    const isFenced = this.#options.isMarkdown === true && lines.preformatted === 0;
    lines.paragraph();
    if (isFenced) lines.line('```');
    lines.preformatted += 1;
    return () => {
      lines.preformatted -= 1;
      lines.breakLine();
      if (isFenced) lines.line('```');
      lines.paragraph();
    };
  }

  #link(href: string): () => void {
    const { links, isMarkdown } = this.#options;
    if (links?.test(href) !== true || href.length > MAX_LINK_CHARS) return NOTHING;
    if (isMarkdown === true) return this.#marked('[', `](${href})`);
    return this.#marked('', (shown) => (shown === href ? '' : ` [${href}]`));
  }

  /** Undefined where it is none, or stands in such emphasis already. */
  #emphasis(name: string): (() => void) | undefined {
    const sign = this.#options.isMarkdown === true ? EMPHASIS.get(name) : undefined;
    const isInside = [...EMPHASIS].some(
      ([other, its]) => its === sign && this.#elements.has(other),
    );
    return sign === undefined || isInside ? undefined : this.#marked(sign);
  }

  #marked(open: string, close: string | Mark['close'] = open): () => void {
    const lines = this.#lines;
    if (lines.preformatted > 0) return NOTHING;
    const mark: Mark = { open, close: typeof close === 'string' ? () => close : close };
    lines.open(mark);
    return () => lines.close(mark);
  }
}

const integer = (text: string | undefined): number | undefined => {
  const number = Number.parseInt(text ?? '', 10);
  return Number.isSafeInteger(number) ? number : undefined;
};

const countOf = (text: string | undefined): number => Math.max(1, integer(text) ?? 1);
