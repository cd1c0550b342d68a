// PDF by pdf.js: the text of each page as it was set. Scripts, forms, fonts and files that a
// document references are not used.

import { getDocumentProxy } from 'unpdf';
import { t } from '../../../lib/texts.ts';
import { DAMAGED, DocumentProblem, LOCKED, Sections } from './extract.ts';

const NO_TEXT = t`this PDF has no text, only scanned pages or pictures`;

export async function readPdf(content: Uint8Array) {
  const pdf = await opened(content);
  const sections = new Sections();
  for (let number = 1; number <= pdf.numPages && !sections.isFull; number += 1) {
    const page = await pdf.getPage(number);
    const { items } = await page.getTextContent();
    sections.add(`page ${number}`, linesOf(items));
    page.cleanup();
  }
  return sections.reading(NO_TEXT);
}

type Items = readonly (
  | { readonly str: string; readonly hasEOL: boolean }
  | { readonly type: string }
)[];

const linesOf = (items: Items) =>
  items.map((item) => ('str' in item ? `${item.str}${item.hasEOL ? '\n' : ''}` : '')).join('');

async function opened(content: Uint8Array) {
  try {
    return await getDocumentProxy(content, {
      verbosity: 0,
      disableAutoFetch: true,
      useWorkerFetch: false,
      useSystemFonts: false,
      enableXfa: false,
    });
  } catch (error) {
    const isLocked = error instanceof Error && error.name === 'PasswordException';
    throw new DocumentProblem(isLocked ? LOCKED : DAMAGED);
  }
}
