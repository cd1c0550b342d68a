// Markdown of a part of a page.

import { htmlText } from '../../core/html/html-text.ts';

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
