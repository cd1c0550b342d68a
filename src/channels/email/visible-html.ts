// The text a person sees of an HTML mail (case E23).

import { htmlText } from '../../core/html/html-text.ts';

/** Without pictures. */
const MAX_HTML_CHARS = 500_000;
/** A picture written into the text. */
const INLINE_PICTURE = /(data:image\/[a-z0-9.+-]{1,40};base64,)[a-z0-9+/=\s]{100,}/gi;

export const htmlToVisibleText = (html: string): string =>
  htmlText(html.replace(INLINE_PICTURE, '$1').slice(0, MAX_HTML_CHARS), { links: /^https?:/i });
