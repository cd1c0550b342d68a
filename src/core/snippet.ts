// The words around a match, on one line.

import { partOf } from './cut.ts';

const CHARS_AROUND = 60;

/** Undefined where the text does not hold the query. Case and runs of white space do not count. */
export function findSnippet(text: string, query: string): string | undefined {
  const flat = text.replace(/\s+/g, ' ').trim();
  const wanted = query.replace(/\s+/g, ' ').trim();
  const at = flat.toLowerCase().indexOf(wanted.toLowerCase());
  if (at < 0) return undefined;
  const start = Math.max(0, at - CHARS_AROUND);
  const end = Math.min(flat.length, at + wanted.length + CHARS_AROUND);
  const cut = partOf(flat, start, end);
  return `${start > 0 ? '…' : ''}${cut}${end < flat.length ? '…' : ''}`;
}
