// Styled text in Telegram's HTML mode (Bot API, "HTML style"). Only tags Telegram knows, always
// closed, never code around or inside another style.

import { escapeHtml, type Run, type Style, sharedStyles } from '../../../lib/markup/writer.ts';

const RANK: Readonly<Record<Style['kind'], number>> = {
  quote: 0,
  link: 1,
  bold: 2,
  italic: 3,
  strike: 4,
  code: 5,
  pre: 5,
};

export function renderTelegramHtml(runs: readonly Run[]): string {
  const html: string[] = [];
  let open: readonly Style[] = [];
  for (const run of runs) {
    const wanted = ordered(run.styles);
    const kept = sharedStyles(open, wanted);
    for (const style of open.slice(kept.length).reverse()) html.push(closing(style));
    for (const style of wanted.slice(kept.length)) html.push(opening(style));
    html.push(escapeHtml(run.text));
    open = wanted;
  }
  for (const style of open.toReversed()) html.push(closing(style));
  return html.join('');
}

/** Outermost first, each kind once. */
function ordered(styles: readonly Style[]): readonly Style[] {
  if (styles.length < 2) return styles;
  const first = styles.filter(
    (style, index) => styles.findIndex(({ kind }) => kind === style.kind) === index,
  );
  return first.sort((a, b) => RANK[a.kind] - RANK[b.kind]);
}

function opening(style: Style): string {
  switch (style.kind) {
    case 'bold':
      return '<b>';
    case 'italic':
      return '<i>';
    case 'strike':
      return '<s>';
    case 'code':
      return '<code>';
    case 'quote':
      return '<blockquote>';
    case 'link':
      return `<a href="${escapeHtml(style.href)}">`;
    case 'pre':
      return style.language === undefined
        ? '<pre>'
        : `<pre><code class="language-${escapeHtml(style.language)}">`;
  }
}

function closing(style: Style): string {
  switch (style.kind) {
    case 'bold':
      return '</b>';
    case 'italic':
      return '</i>';
    case 'strike':
      return '</s>';
    case 'code':
      return '</code>';
    case 'quote':
      return '</blockquote>';
    case 'link':
      return '</a>';
    case 'pre':
      return style.language === undefined ? '</pre>' : '</code></pre>';
  }
}
