// An HTML page as title and Markdown: hidden parts removed, the article if there is one, else
// everything. Runs in a worker; walks without recursion, because pages may be nested deeply.

import { isProbablyReaderable, Readability } from '@mozilla/readability';
import { JSDOM, VirtualConsole } from 'jsdom';
import { hidesText } from '../../lib/html/hidden-style.ts';
import { htmlText, UNSEEN_ELEMENTS } from '../../lib/html/html-text.ts';
import { headOf, oneLine, visibleText } from '../../lib/text/cut.ts';

export type PageSource = {
  readonly bytes: Uint8Array;
  /** From the server; may be empty. */
  readonly contentType: string;
  readonly url: string;
};

export type ReadPage = {
  /** Empty if the page has none. */
  readonly title: string;
  /** Markdown of what a person would see. */
  readonly text: string;
  /** A text, if the page was cut or could not be read normally. */
  readonly note?: string;
};

export type ToReader = { readonly kind: 'read'; readonly page: PageSource };
export type FromReader =
  /** The thread has loaded its parser. */
  | { readonly kind: 'ready' }
  | { readonly kind: 'read'; readonly page: ReadPage }
  | { readonly kind: 'failed'; readonly problem: string };

// Removes from a page what a person would not see: hidden parts, comments, texts of pictures, data
// for programs. Walks without recursion, because a page may be nested a million levels deep.

/** Elements without text, besides those that are always removed. */
const CONTROLS = new Set('link meta embed picture img map area input button'.split(' '));
/** A page that hides these shows them by a script, which is not run here. */
const NEVER_HIDDEN = new Set(['html', 'body', 'main', 'article']);
const KEPT_ATTRIBUTES = new Set([
  'href',
  'class',
  'id',
  'dir',
  'lang',
  'start',
  'value',
  'reversed',
  'colspan',
  'rowspan',
  'role',
]);
/** Evaluated style sheet rules: each costs a walk over the page. */
const MAX_RULES = 300;
const ELEMENT = 1;
const TEXT = 3;

/** Removes invisible parts; returns the depth of the rest. */
function keepVisible(document: Document): number {
  for (const hidden of hiddenByRules(document)) hidden.remove();
  const root = document.documentElement;
  let deepest = 0;
  let depth = 0;
  let node: Node | null = root;
  while (node !== null) {
    deepest = Math.max(deepest, depth);
    const isSeen =
      node.nodeType === TEXT || (node.nodeType === ELEMENT && isVisible(node as Element));
    if (isSeen && node.nodeType === ELEMENT) stripAttributes(node as Element);
    if (isSeen && node.firstChild !== null) {
      node = node.firstChild;
      depth += 1;
      continue;
    }
    const [next, climbed] = following(node, root);
    if (!isSeen) (node as ChildNode).remove();
    node = next;
    depth -= climbed;
  }
  return deepest;
}

/** The next node that is not below this one, and how many levels higher it is. */
function following(node: Node, root: Node): readonly [Node | null, number] {
  let climbed = 0;
  for (let at: Node | null = node; at !== null && at !== root; at = at.parentNode) {
    if (at.nextSibling !== null) return [at.nextSibling, climbed];
    climbed += 1;
  }
  return [null, climbed];
}

function isVisible(element: Element): boolean {
  const name = element.localName;
  if (name === 'head') return false;
  if (UNSEEN_ELEMENTS.has(name) || CONTROLS.has(name)) return false;
  if (name === 'dialog' && !element.hasAttribute('open')) return false;
  if (NEVER_HIDDEN.has(name)) return true;
  if (element.hasAttribute('hidden') || element.getAttribute('aria-hidden') === 'true')
    return false;
  const style = element.getAttribute('style');
  if (style !== null && hidesText(style)) return false;
  const [width, height] = [element.getAttribute('width'), element.getAttribute('height')];
  return !(isHair(width) && isHair(height)) && !isWhite(element.getAttribute('color'));
}

const isHair = (size: string | null) => size !== null && /^[01](px)?$/.test(size.trim());
/** `<font color=white>`: the page's background is white by default. */
const isWhite = (color: string | null) => color !== null && /^(#?fff(fff)?|white)$/i.test(color);

function stripAttributes(element: Element): void {
  for (const { name } of [...element.attributes]) {
    if (!KEPT_ATTRIBUTES.has(name)) element.removeAttribute(name);
  }
}

function hiddenByRules(document: Document): readonly Element[] {
  const selectors: string[] = [];
  for (const sheet of document.styleSheets) {
    for (const rule of sheet.cssRules) {
      if (selectors.length >= MAX_RULES || !('selectorText' in rule) || !('style' in rule))
        continue;
      const style = (rule as CSSStyleRule).style.cssText;
      if (hidesText(style)) selectors.push(String(rule.selectorText));
    }
  }
  return selectors.flatMap((selector) => matching(document, selector));
}

function matching(document: Document, selector: string): readonly Element[] {
  try {
    const found = [...document.querySelectorAll(selector)];
    return found.filter((element) => !NEVER_HIDDEN.has(element.localName));
  } catch {
    // A selector that the parser does not know hides nothing.
    return [];
  }
}

// Converts the bytes of an HTML page to its title and its text as Markdown: what a person would
// see, the article if there is one, else everything.

/** Deeper than people write; beyond it text is taken without structure. */
const MAX_DEPTH = 250;
const MAX_ELEMENTS = 100_000;
const MAX_TITLE_CHARS = 300;
const MAX_TEXT_CHARS = 500_000;
/** An article with a smaller share of the visible text leaves out too much. */
const MIN_ARTICLE_SHARE = 0.3;

export function readablePage({ bytes, contentType, url }: PageSource): ReadPage {
  const dom = new JSDOM(bytes, {
    url,
    contentType: contentType === '' ? 'text/html' : contentType,
    virtualConsole: new VirtualConsole(),
  });
  try {
    const { document } = dom.window;
    const title = oneLine(visibleText(document.title));
    return { title: headOf(title, MAX_TITLE_CHARS), ...textOf(document) };
  } finally {
    dom.window.close();
  }
}

function textOf(document: Document): Omit<ReadPage, 'title'> {
  const base = document.baseURI;
  const depth = keepVisible(document);
  const count = document.getElementsByTagName('*').length;
  if (depth > MAX_DEPTH || count > MAX_ELEMENTS) {
    const text = (document.documentElement.textContent ?? '').replace(/[ \t]+/g, ' ');
    return bounded(text, 'the page is too complex to format; this is its plain text');
  }
  resolveLinks(document, base);
  return bounded(articleOf(document) ?? pageMarkdown(document.body));
}

/** Undefined if the page has no article that represents it. */
function articleOf(document: Document): string | undefined {
  if (!isProbablyReaderable(document)) return undefined;
  const copy = document.cloneNode(true) as Document;
  const article = new Readability<HTMLElement>(copy, {
    disableJSONLD: true,
    serializer: (node) => node as HTMLElement,
  }).parse();
  const seen = (document.body.textContent ?? '').replace(/\s+/g, ' ').length;
  if (article?.content == null) return undefined;
  if ((article.textContent ?? '').length < seen * MIN_ARTICLE_SHARE) return undefined;
  return pageMarkdown(article.content);
}

function bounded(text: string, note?: string): Omit<ReadPage, 'title'> {
  const cut = visibleText(headOf(text, MAX_TEXT_CHARS));
  const isCut = text.length > MAX_TEXT_CHARS;
  const notes = [note, isCut ? 'the page is longer than what is kept of it' : undefined];
  const said = notes.filter((one) => one !== undefined).join('; ');
  return { text: cut.trim(), ...(said === '' ? {} : { note: said }) };
}

// Markdown of a part of a page.

const MAX_LINK_CHARS = 2000;

const pageMarkdown = (part: HTMLElement): string =>
  htmlText(part.outerHTML, { isMarkdown: true, links: /^(?:https?|mailto):/i })
    .replace(/\n{3,}/g, '\n\n')
    .trim();

/** Makes links absolute; links of other kinds than web and mail become text. */
function resolveLinks(document: Document, base: string): void {
  for (const link of document.getElementsByTagName('a')) {
    const url = URL.parse(link.getAttribute('href') ?? '', base);
    const isUsable = url !== null && ['http:', 'https:', 'mailto:'].includes(url.protocol);
    if (isUsable && url.href.length <= MAX_LINK_CHARS) link.setAttribute('href', url.href);
    else link.removeAttribute('href');
  }
}
