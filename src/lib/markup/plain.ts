// Markdown as plain text: for clients without any markup and as the second try where a platform
// refuses the marked-up one. Addresses of links are written out, quotes marked by `>`.

import { parseMarkup } from './markup.ts';
import type { Run, Style } from './writer.ts';

type LinkStyle = Extract<Style, { kind: 'link' }>;

export function renderPlain(markdown: string): string {
  return plainText(parseMarkup(markdown).runs);
}

export function plainText(runs: readonly Run[]): string {
  let text = '';
  let isLineStart = true;
  for (const [index, run] of runs.entries()) {
    const isQuoted = run.styles.some(({ kind }) => kind === 'quote');
    if (isQuoted && isLineStart) text += '> ';
    text += isQuoted ? run.text.replaceAll(/\n(?!$)/g, '\n> ') : run.text;
    const link = linkOf(run);
    if (link !== undefined && linkOf(runs[index + 1]) !== link) text += address(link.href);
    isLineStart = run.text.endsWith('\n');
  }
  return text;
}

const linkOf = (run: Run | undefined) =>
  run?.styles.find((style): style is LinkStyle => style.kind === 'link');

const address = (href: string) => ` (${href.replace(/^mailto:/i, '')})`;
