// The text that a person sees of HTML in mails, pages and documents: headings, lists and tables
// keep their form, hidden parts are left out (case E23). HTML is parsed as a browser parses it:
// what a browser hides must not be read as text here.

import { type DefaultTreeAdapterTypes, defaultTreeAdapter, parse } from 'parse5';
import { type Hiding, hidingOf, setsReadableSize } from './hidden-style.ts';
import { type Mark, TableText, TextLines } from './text-lines.ts';
import { attributeOf, parseXml } from './xml.ts';

type HtmlTextOptions = {
  /** Writes emphasis, code and links as Markdown. */
  readonly isMarkdown?: boolean;
  /** Addresses that are shown after the text of their link. */
  readonly links?: RegExp;
  /** Elements may be closed by `/>`. */
  readonly isXml?: boolean;
};

type Node = DefaultTreeAdapterTypes.ChildNode;
type Element = DefaultTreeAdapterTypes.Element;

const words = (...lines: readonly string[]) => new Set(lines.join(' ').split(' '));
/** Elements whose content is not text, or not visible as text. */
export const UNSEEN_ELEMENTS: ReadonlySet<string> = words(
  'script style noscript template title iframe object applet svg canvas audio video',
  'select datalist textarea noembed noframes frameset portal annotation annotation-xml xml',
);
/** Elements on lines of their own. */
const BLOCKS = words(
  'address article aside blockquote body center caption dd details dialog dir div dl dt',
  'fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 header hgroup html legend li',
  'main menu nav ol p pre search section summary table tbody td tfoot th thead tr ul xmp',
);
/** Elements separated by an empty line. */
const PARAGRAPHS = words('p table ul ol dl blockquote pre section article hr figure');
const HEADING = /^h([1-6])$/;
const EMPHASIS: Readonly<Record<string, string>> = {
  ...{ b: '**', strong: '**', em: '_', i: '_', code: '`', kbd: '`' },
};
const MAX_LINK_CHARS = 2000;
/** Deeper than any page is written; browsers have such a limit too. */
const MAX_DEPTH = 256;

/** Elements that a parser may create for one tag, over a whole text. */
const MAX_ELEMENTS_PER_TAG = 16;
const MIN_ELEMENTS = 1000;

/**
 * Unclosed formatting is repeated in every following block, so that the number of elements grows
 * quadratically.
 */
export class HtmlTooComplexError extends Error {
  override readonly name = 'HtmlTooComplexError';
}

/** @throws HtmlTooComplexError if the tags stand for many times as many elements */
export function htmlText(html: string, options: HtmlTextOptions = {}): string {
  const { childNodes } = options.isXml === true ? parseXml(html) : parseHtml(html);
  return new ShownText(options).read(childNodes);
}

/** All descendant elements, in document order. */
export function* elementsOf(
  parent: DefaultTreeAdapterTypes.ParentNode,
): Generator<Element, void, void> {
  const open: DefaultTreeAdapterTypes.ChildNode[] = [...parent.childNodes].reverse();
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    if (!('tagName' in node)) continue;
    yield node;
    open.push(...[...node.childNodes].reverse());
  }
}

/** @throws HtmlTooComplexError if the tags stand for many times as many elements */
export function parseHtml(html: string) {
  const tags = html.split('<').length;
  let left = MIN_ELEMENTS + MAX_ELEMENTS_PER_TAG * tags;
  return parse(html, {
    treeAdapter: {
      ...defaultTreeAdapter,
      createElement(...made) {
        left -= 1;
        if (left < 0) throw new HtmlTooComplexError('its tags stand for too many elements');
        return defaultTreeAdapter.createElement(...made);
      },
    },
  });
}

class ShownText {
  readonly #options: HtmlTextOptions;
  readonly #tables: TableText[] = [];
  /** The marks of the surrounding emphasis. */
  readonly #signs = new Set<string>();
  /** Of the current cell, or of the page. */
  #lines = new TextLines();

  constructor(options: HtmlTextOptions) {
    this.#options = options;
  }

  read(nodes: readonly Node[]): string {
    this.#visit(nodes, undefined, 0);
    return this.#lines.end().join('\n');
  }

  #visit(nodes: readonly Node[], hidden: Hiding, depth: number): void {
    for (const node of nodes) {
      if ('value' in node && hidden === undefined) this.#lines.write(node.value);
      if (!('tagName' in node)) continue;
      const inside = hidingIn(node, hidden);
      if (inside === 'all') continue;
      if (depth > MAX_DEPTH) this.#flat(node, hidden);
      else this.#show(node, inside, () => this.#visit(node.childNodes, inside, depth + 1));
    }
  }

  /** The text of content that is nested too deep to show its form. */
  #flat(element: Element, outer: Hiding): void {
    const waiting: (readonly [Node, Hiding])[] = [[element, outer]];
    for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
      const [node, hidden] = next;
      if ('value' in node && hidden === undefined) this.#lines.write(node.value);
      const inside = 'tagName' in node ? hidingIn(node, hidden) : 'all';
      if (!('tagName' in node) || inside === 'all') continue;
      if (BLOCKS.has(node.tagName)) this.#lines.breakLine();
      for (const child of node.childNodes.toReversed()) waiting.push([child, inside]);
    }
  }

  /** @param content writes the content of the element */
  #show(element: Element, hidden: Hiding, content: () => void) {
    const { tagName: name } = element;
    const lines = this.#lines;
    const read = (wanted: string) => attributeOf(element, wanted);
    const level = HEADING.exec(name)?.[1];
    if (level !== undefined) return this.#heading(Number(level), content);
    switch (name) {
      case 'br':
        return hidden === undefined ? lines.lineBreak() : undefined;
      case 'hr':
        return hidden === undefined ? apart(lines, () => lines.line('---')) : undefined;
      case 'td':
      case 'th':
        return this.#cell(element, content);
      case 'table':
        return this.#table(/^(?:presentation|none)$/i.test(read('role') ?? ''), content);
      case 'tr':
        this.#tables.at(-1)?.beginRow();
        return this.#block(name, content);
      case 'ul':
      case 'menu':
      case 'dir':
        return this.#list(undefined, 1, content);
      case 'ol': {
        const step = read('reversed') === undefined ? 1 : -1;
        return this.#list(integer(read('start')) ?? 1, step, content);
      }
      case 'li':
        return this.#item(integer(read('value')), content);
      case 'blockquote':
        return apart(lines, () => {
          lines.quotes += 1;
          content();
          lines.paragraph();
          lines.quotes -= 1;
        });
      case 'pre':
        return this.#preformatted(content);
      case 'a':
        return this.#link(read('href')?.trim() ?? '', content);
      case 'q':
        lines.write('"');
        content();
        return lines.write('"');
      default:
        return this.#emphasis(EMPHASIS[name], () => this.#block(name, content));
    }
  }

  #block(name: string, content: () => void) {
    const lines = this.#lines;
    if (!BLOCKS.has(name)) return content();
    if (PARAGRAPHS.has(name)) return apart(lines, content);
    lines.breakLine();
    content();
    lines.breakLine();
  }

  #heading(level: number, content: () => void) {
    const lines = this.#lines;
    apart(lines, () => {
      const mark: Mark = { open: `${'#'.repeat(level)} `, close: () => '' };
      lines.open(mark);
      content();
      lines.close(mark);
    });
  }

  #table(isArrangement: boolean, content: () => void) {
    const lines = this.#lines;
    const table = new TableText(isArrangement);
    this.#tables.push(table);
    content();
    this.#tables.pop();
    const found = table.end();
    lines.holdsRows ||= found.isTable;
    if (found.isTable) lines.paragraph();
    else lines.breakLine();
    for (const line of found.lines) lines.line(line);
    if (found.isTable) lines.paragraph();
  }

  #cell(element: Element, content: () => void) {
    const table = this.#tables.at(-1);
    if (table === undefined) return this.#block(element.tagName, content);
    const outer = this.#lines;
    const lines = new TextLines();
    this.#lines = lines;
    if (element.tagName === 'th') table.addHeading();
    content();
    const span = (name: string) => Math.max(1, integer(attributeOf(element, name)) ?? 1);
    const cell = { lines: lines.end(), holdsRows: lines.holdsRows };
    table.addCell(cell, { columns: span('colspan'), rows: span('rowspan') });
    this.#lines = outer;
  }

  #list(first: number | undefined, step: number, content: () => void) {
    const lines = this.#lines;
    const gap = () => (lines.lists.length === 0 ? lines.paragraph() : lines.breakLine());
    gap();
    lines.lists.push({ next: first, step });
    content();
    lines.lists.pop();
    gap();
  }

  #item(value: number | undefined, content: () => void) {
    const lines = this.#lines;
    const list = lines.lists.at(-1);
    const number = value ?? list?.next;
    if (list === undefined || list.next === undefined || number === undefined) lines.item('- ');
    else {
      lines.item(`${number}. `);
      list.next = number + list.step;
    }
    content();
    lines.item('');
  }

  #preformatted(content: () => void) {
    const lines = this.#lines;
    const isFenced = this.#options.isMarkdown === true && lines.preformatted === 0;
    apart(lines, () => {
      if (isFenced) lines.line('```');
      lines.preformatted += 1;
      content();
      lines.preformatted -= 1;
      lines.breakLine();
      if (isFenced) lines.line('```');
    });
  }

  #link(href: string, content: () => void) {
    const { links, isMarkdown } = this.#options;
    if (links?.test(href) !== true || href.length > MAX_LINK_CHARS) return content();
    if (isMarkdown === true) return this.#marked('[', () => `](${href})`, content);
    this.#marked('', (shown) => (shown === href ? '' : ` [${href}]`), content);
  }

  /** Not repeated inside the same emphasis. */
  #emphasis(sign: string | undefined, content: () => void) {
    const isWanted = this.#options.isMarkdown === true && sign !== undefined;
    if (!isWanted || this.#signs.has(sign)) return content();
    this.#signs.add(sign);
    this.#marked(sign, () => sign, content);
    this.#signs.delete(sign);
  }

  #marked(open: string, close: Mark['close'], content: () => void) {
    const lines = this.#lines;
    if (lines.preformatted > 0) return content();
    const mark: Mark = { open, close };
    lines.open(mark);
    content();
    lines.close(mark);
  }
}

function apart(lines: TextLines, content: () => void): void {
  lines.paragraph();
  content();
  lines.paragraph();
}

/** Whether the content of the element is hidden, by itself or by its surroundings. */
function hidingIn(element: Element, outer: Hiding): Hiding {
  const { tagName: name, attrs } = element;
  if (outer === 'all' || UNSEEN_ELEMENTS.has(name)) return 'all';
  if (attrs.length === 0) return name === 'dialog' ? 'all' : outer;
  if (attributeOf(element, 'hidden') !== undefined) return 'all';
  if (name === 'dialog' && attributeOf(element, 'open') === undefined) return 'all';
  const style = attributeOf(element, 'style');
  if (style === undefined) return outer;
  return hidingOf(style) ?? (setsReadableSize(style) ? undefined : outer);
}

const integer = (text: string | undefined): number | undefined => {
  const number = Number.parseInt(text ?? '', 10);
  return Number.isSafeInteger(number) ? number : undefined;
};
