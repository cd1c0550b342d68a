// An HTML page as title and Markdown: hidden parts removed, the article where there is one, else
// everything. Runs in a worker; walks without recursion, as pages may be nested deeply.

import { isProbablyReaderable, Readability } from '@mozilla/readability';
import { JSDOM, VirtualConsole } from 'jsdom';
import { hidesText } from '../../lib/html/hidden-style.ts';
import { htmlText, UNSEEN_ELEMENTS } from '../../lib/html/html-text.ts';
import { headOf, visibleText } from '../../lib/text/cut.ts';

export type PageSource = {
  readonly bytes: Uint8Array;
  /** As the server says; may be empty. */
  readonly contentType: string;
  readonly url: string;
};

export type ReadPage = {
  /** Empty where the page has none. */
  readonly title: string;
  /** Markdown of what a person would see. */
  readonly text: string;
  /** In words, where the page was cut or could not be read as it is. */
  readonly note?: string;
};

export type ToReader = { readonly kind: 'read'; readonly page: PageSource };
export type FromReader =
  /** The thread has loaded what it reads with. */
  | { readonly kind: 'ready' }
  | { readonly kind: 'read'; readonly page: ReadPage }
  | { readonly kind: 'failed'; readonly problem: string };

// Takes out of a page what a person would not see: hidden parts, comments, texts of pictures, what
// only programs read. Walks without recursion, as a page may be nested a million deep.

/** Beside those that are never text: what a page works with. */
const CONTROLS = new Set('link meta embed picture img map area input button'.split(' '));
/** A page that hides these shows them by a program that we do not run. */
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
/** Rules of a style sheet that are looked at: each costs a walk over the page. */
const MAX_RULES = 300;
const ELEMENT = 1;
const TEXT = 3;

/** Removes what is not seen; returns how deep the rest is nested. */
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

/** The next node that is not below this one, and how many levels higher it stands. */
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
/** `<font color=white>`: the page's ground is white unless it says otherwise. */
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
    // A selector that the parser does not know hides nothing here.
    return [];
  }
}

// From the bytes of an HTML page to its title and its text as Markdown: what a person would see, the
// article where there is one, else all of it.

/** Deeper than people write; above it text is taken without its form. */
const MAX_DEPTH = 250;
const MAX_ELEMENTS = 100_000;
const MAX_TITLE_CHARS = 300;
const MAX_TEXT_CHARS = 500_000;
/** An article with less than this part of the visible text leaves out too much. */
const MIN_ARTICLE_SHARE = 0.3;

export function readablePage({ bytes, contentType, url }: PageSource): ReadPage {
  const dom = new JSDOM(bytes, {
    url,
    contentType: contentType === '' ? 'text/html' : contentType,
    virtualConsole: new VirtualConsole(),
  });
  try {
    const { document } = dom.window;
    const title = visibleText(document.title).replace(/\s+/g, ' ').trim();
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

/** Undefined where the page has no article that stands for it. */
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

/** Every link whole and of a kind one can go to; others stay as text. */
function resolveLinks(document: Document, base: string): void {
  for (const link of document.getElementsByTagName('a')) {
    const url = URL.parse(link.getAttribute('href') ?? '', base);
    const isUsable = url !== null && ['http:', 'https:', 'mailto:'].includes(url.protocol);
    if (isUsable && url.href.length <= MAX_LINK_CHARS) link.setAttribute('href', url.href);
    else link.removeAttribute('href');
  }
}
