// The text a person sees of an HTML mail: no images, no comments, nothing styled away (case E23).

import { convert } from 'html-to-text';

/** Without pictures. Its tree takes up to a hundred times as much memory. */
const MAX_HTML_CHARS = 500_000;
/** A picture written into the text. */
const INLINE_PICTURE = /(data:image\/[a-z0-9.+-]{1,40};base64,)[a-z0-9+/=\s]{100,}/gi;
const MAX_DEPTH = 60;
const MAX_CHILDREN = 5_000;

const HIDING_STYLES = [
  ['display', 'none'],
  ['visibility', 'hidden'],
  ['mso-hide', 'all'],
] as const;
const HIDING_AT_ZERO = ['font-size', 'max-height', 'opacity'];
/** What may stand behind a zero that is no fraction. */
const ZERO_ENDS = [';', ' ', '!', 'px', 'pt', 'em', 'rem', '%'];
const COLONS = [':', ': ', ' :', ' : '];

/** Each hiding style with and without spaces around its colon. */
const HIDDEN = [
  '[hidden]',
  ...HIDING_STYLES.flatMap(([name, value]) =>
    COLONS.map((colon) => `[style*="${name}${colon}${value}" i]`),
  ),
  ...HIDING_AT_ZERO.flatMap((name) =>
    COLONS.flatMap((colon) => [
      `[style$="${name}${colon}0" i]`,
      ...ZERO_ENDS.map((end) => `[style*="${name}${colon}0${end}" i]`),
    ]),
  ),
];

const SELECTORS = [
  { selector: 'a', options: { hideLinkHrefIfSameAsText: true, noAnchorUrl: true } },
  { selector: 'a[href^="mailto:"]', format: 'anchor', options: { ignoreHref: true } },
  ...['h1', 'h2', 'h3', 'h4', 'h5', 'h6'].map((selector) => ({
    selector,
    options: { uppercase: false },
  })),
  ...['img', 'style', 'script', 'title', 'template', 'object', ...HIDDEN].map((selector) => ({
    selector,
    format: 'skip',
  })),
];

export function htmlToVisibleText(html: string): string {
  return convert(html.replace(INLINE_PICTURE, '$1').slice(0, MAX_HTML_CHARS), {
    wordwrap: false,
    limits: { maxDepth: MAX_DEPTH, maxChildNodes: MAX_CHILDREN, maxInputLength: MAX_HTML_CHARS },
    selectors: SELECTORS,
  });
}
