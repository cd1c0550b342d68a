// The text a person sees of an HTML mail: no images, no comments, nothing styled away (case E23).

import { convert } from 'html-to-text';

const MAX_HTML_CHARS = 2_000_000;
const MAX_DEPTH = 60;
const MAX_CHILDREN = 5_000;

const HIDING_STYLES = [
  ['display', 'none'],
  ['visibility', 'hidden'],
  ['font-size', '0px'],
  ['font-size', '0;'],
  ['max-height', '0px'],
  ['max-height', '0;'],
  ['opacity', '0;'],
  ['mso-hide', 'all'],
] as const;

/** Each hiding style with and without spaces around its colon. */
const HIDDEN = [
  '[hidden]',
  ...HIDING_STYLES.flatMap(([name, value]) =>
    [':', ': ', ' : '].map((colon) => `[style*="${name}${colon}${value}" i]`),
  ),
];

const SELECTORS = [
  { selector: 'a', options: { hideLinkHrefIfSameAsText: true, noAnchorUrl: true } },
  { selector: 'a[href^="mailto:"]', format: 'anchor', options: { ignoreHref: true } },
  ...['h1', 'h2', 'h3', 'h4', 'h5', 'h6'].map((selector) => ({
    selector,
    options: { uppercase: false },
  })),
  ...['img', 'style', 'script', 'title', 'object', ...HIDDEN].map((selector) => ({
    selector,
    format: 'skip',
  })),
];

export function htmlToVisibleText(html: string): string {
  return convert(html.slice(0, MAX_HTML_CHARS), {
    wordwrap: false,
    limits: { maxDepth: MAX_DEPTH, maxChildNodes: MAX_CHILDREN, maxInputLength: MAX_HTML_CHARS },
    selectors: SELECTORS,
  });
}
