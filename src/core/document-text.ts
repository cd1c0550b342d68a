// The text of a document as one, with a mark before each of its sections, and what of it is asked for.

import { cutBefore } from './cut.ts';

type Section = { readonly title: string; readonly text: string };

/** A mark line per section that has a title. */
export function documentText(sections: readonly Section[]): string {
  return sections
    .map(({ title, text }) => (title === '' ? text : `[${title}]\n${text}`))
    .join('\n\n');
}

/** `3 sections, 12,345 characters` */
export function documentSize({
  sections,
  isCut,
}: {
  readonly sections: readonly Section[];
  readonly isCut: boolean;
}): string {
  const chars = documentText(sections).length.toLocaleString('en-US');
  const [first] = sections;
  const unit = sections.length > 1 ? (first?.title ?? '').split(' ', 1)[0] : '';
  const parts = unit === '' ? '' : `${sections.length.toLocaleString('en-US')} ${unit}s, `;
  return `${parts}${chars} characters${isCut ? ', and more that is never read' : ''}`;
}

export type DocumentPart = {
  readonly text: string;
  /** Where the text goes on; undefined at the end. */
  readonly nextFrom: number | undefined;
  readonly totalChars: number;
};

/** From character `from` on; at most `maxChars`, ending at a line end where one is near. */
export function documentPart(text: string, from: number, maxChars: number): DocumentPart {
  const start = Math.min(Math.max(0, from), text.length);
  const most = Math.min(text.length, start + maxChars);
  const lineEnd = most === text.length ? most : text.lastIndexOf('\n', most);
  const end = lineEnd > start + maxChars / 2 ? lineEnd : Math.max(start + 1, cutBefore(text, most));
  return {
    text: text.slice(start, end).toWellFormed(),
    nextFrom: end < text.length ? end : undefined,
    totalChars: text.length,
  };
}
