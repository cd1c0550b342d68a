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

const TAGS: Readonly<Record<Style['kind'], string>> = {
  ...{ bold: 'b', italic: 'i', strike: 's', code: 'code', pre: 'pre' },
  ...{ quote: 'blockquote', link: 'a' },
};

function opening(style: Style): string {
  if (style.kind === 'link') return `<a href="${escapeHtml(style.href)}">`;
  const language = style.kind === 'pre' ? style.language : undefined;
  const inner = language === undefined ? '' : `<code class="language-${escapeHtml(language)}">`;
  return `<${TAGS[style.kind]}>${inner}`;
}

function closing(style: Style): string {
  const hasLanguage = style.kind === 'pre' && style.language !== undefined;
  return `${hasLanguage ? '</code>' : ''}</${TAGS[style.kind]}>`;
}
