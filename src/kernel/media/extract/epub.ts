// Electronic books: the chapters in their reading order (EPUB 3.3, sections 4.2 and 5).

import { posix } from 'node:path';
import { htmlText } from '../../../lib/html/html-text.ts';
import { attributeOf, markupTokens } from '../../../lib/html/markup-tokens.ts';
import type { Archive } from './archive.ts';
import { DAMAGED, DocumentProblem } from './problem.ts';
import { Sections } from './sections.ts';

const NO_BOOK_TEXT = 'this book has no text that can be read; it may be copy-protected';

export function readEpub(archive: Archive) {
  const packagePath = firstAttribute(
    archive.text('META-INF/container.xml') ?? '',
    'rootfile',
    'full-path',
  );
  const packaging = packagePath === undefined ? undefined : archive.text(packagePath);
  if (packagePath === undefined || packaging === undefined) throw new DocumentProblem(DAMAGED);
  const sections = new Sections();
  for (const href of readingOrder(packaging)) {
    if (sections.isFull) break;
    const html = archive.text(partName(packagePath, href));
    const text = html === undefined ? '' : htmlText(html, { isXml: true });
    if (text.trim() !== '') sections.add(`chapter ${sections.count + 1}`, text);
  }
  return sections.reading(NO_BOOK_TEXT);
}

function partName(packagePath: string, href: string): string {
  const plain = href.split('#', 1)[0] ?? '';
  return posix.join(posix.dirname(packagePath), decoded(plain));
}

function decoded(href: string): string {
  try {
    return decodeURIComponent(href);
  } catch {
    return href;
  }
}

function readingOrder(packaging: string): readonly string[] {
  const hrefs = new Map<string, string>();
  const order: string[] = [];
  for (const token of markupTokens(packaging)) {
    if (token.type !== 'open') continue;
    const name = token.name.replace(/^.*:/, '');
    if (name === 'item') {
      const href = attributeOf(token.attributes, 'href');
      if (href !== undefined) hrefs.set(attributeOf(token.attributes, 'id') ?? '', href);
    }
    if (name === 'itemref') order.push(attributeOf(token.attributes, 'idref') ?? '');
  }
  return order.flatMap((id) => hrefs.get(id) ?? []);
}

function firstAttribute(xml: string, element: string, attribute: string): string | undefined {
  for (const token of markupTokens(xml)) {
    if (token.type === 'open' && token.name.replace(/^.*:/, '') === element) {
      return attributeOf(token.attributes, attribute);
    }
  }
  return undefined;
}
