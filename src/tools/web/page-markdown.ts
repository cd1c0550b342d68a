// Markdown of a part of a page.

import TurndownService from 'turndown';

const MAX_LINK_CHARS = 2000;

export function pageMarkdown(part: HTMLElement): string {
  return converter()
    .turndown(part)
    .replace(/\n{3,}/g, '\n\n')
    .trim();
}

function converter(): TurndownService {
  const service = new TurndownService({
    headingStyle: 'atx',
    bulletListMarker: '-',
    codeBlockStyle: 'fenced',
    emDelimiter: '_',
  });
  service.addRule('cell', {
    filter: ['th', 'td'],
    replacement: (content) => ` ${content.replace(/\s*\n\s*/g, ' ').trim()} |`,
  });
  service.addRule('row', {
    filter: 'tr',
    replacement: (content, row) => `\n|${content}${isHeading(row) ? divider(row) : ''}`,
  });
  service.addRule('table', {
    filter: ['table', 'thead', 'tbody', 'tfoot'],
    replacement: (content, node) => (node.nodeName === 'TABLE' ? `\n\n${content}\n\n` : content),
  });
  service.addRule('empty link', {
    filter: (node) => node.nodeName === 'A' && (node.textContent ?? '').trim() === '',
    replacement: () => '',
  });
  return service;
}

const isHeading = (row: Node) =>
  row.firstChild !== null && [...row.childNodes].every((cell) => cell.nodeName !== 'TD');
const divider = (row: Node) =>
  `\n|${[...row.childNodes].map((cell) => (cell.nodeName === 'TH' ? ' --- |' : '')).join('')}`;

/** Every link whole and of a kind one can go to; others stay as text. */
export function resolveLinks(document: Document, base: string): void {
  for (const link of document.getElementsByTagName('a')) {
    const url = URL.parse(link.getAttribute('href') ?? '', base);
    const isUsable = url !== null && ['http:', 'https:', 'mailto:'].includes(url.protocol);
    if (isUsable && url.href.length <= MAX_LINK_CHARS) link.setAttribute('href', url.href);
    else link.removeAttribute('href');
  }
}
