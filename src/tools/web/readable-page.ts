// From the bytes of an HTML page to its title and its text as Markdown: what a person would see, the
// article where there is one, else all of it.

import { isProbablyReaderable, Readability } from '@mozilla/readability';
import { JSDOM, VirtualConsole } from 'jsdom';
import { visibleText } from '../../channels/email/rules/text.ts';
import { htmlText } from '../../lib/html/html-text.ts';
import { headOf } from '../../lib/text/cut.ts';
import type { PageSource, ReadPage } from './page.ts';
import { keepVisible } from './visible-dom.ts';

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
    return bounded(text, 'the page is too complex to be shown in its form; this is its bare text');
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

export const pageMarkdown = (part: HTMLElement): string =>
  htmlText(part.outerHTML, { isMarkdown: true, links: /^(?:https?|mailto):/i })
    .replace(/\n{3,}/g, '\n\n')
    .trim();

/** Every link whole and of a kind one can go to; others stay as text. */
export function resolveLinks(document: Document, base: string): void {
  for (const link of document.getElementsByTagName('a')) {
    const url = URL.parse(link.getAttribute('href') ?? '', base);
    const isUsable = url !== null && ['http:', 'https:', 'mailto:'].includes(url.protocol);
    if (isUsable && url.href.length <= MAX_LINK_CHARS) link.setAttribute('href', url.href);
    else link.removeAttribute('href');
  }
}
