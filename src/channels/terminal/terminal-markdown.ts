// Markdown as a terminal shows it: the styles that terminals have, the text of everything else.

import { styleText } from 'node:util';
import { parseMarkup } from '../../lib/markup/markup.ts';
import type { Run, Style } from '../../lib/markup/writer.ts';

type Look = 'bold' | 'italic' | 'strikethrough' | 'cyan' | 'dim' | 'underline';

const LOOKS: Readonly<Record<Style['kind'], readonly Look[]>> = {
  bold: ['bold'],
  italic: ['italic'],
  strike: ['strikethrough'],
  code: ['cyan'],
  pre: ['cyan'],
  quote: ['dim'],
  link: ['underline'],
};

/** Control characters of the text never reach the terminal. */
const CONTROLS = /[^\P{Cc}\n\t]/gu;

/** Without colours the text stays as the agent wrote it. */
export function renderTerminal(markdown: string, hasColors: boolean): string {
  const clean = markdown.replace(CONTROLS, '');
  if (!hasColors) return clean;
  return parseMarkup(clean).runs.map(renderRun).join('');
}

function renderRun({ text, styles }: Run): string {
  const target = styles.find((style) => style.kind === 'link');
  const address = target !== undefined && target.href !== text ? ` (${target.href})` : '';
  const looks = styles.flatMap((style) => LOOKS[style.kind]);
  if (looks.length === 0) return text + address;
  // Line by line, so that a style never reaches over the end of a line.
  const styled = text
    .split('\n')
    .map((line) => (line === '' ? '' : styleText([...looks], line, { validateStream: false })));
  return styled.join('\n') + address;
}
