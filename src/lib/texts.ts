// All texts for people are tagged: `t` for a text, ngettext(msgid`…`, `…`, count) for one with a
// count. The English text is the key of its translation (docs/develop/translating.md).

import { readFileSync } from 'node:fs';
import { addLocale, gettext, msgid, ngettext, setDedent, t, useLocale } from 'ttag';

export { msgid, ngettext, t };

setDedent(false);

/**
 * In JSON, also for the scripts of the web page; null: English. Many texts are constants of their
 * modules, so it is chosen before they are evaluated.
 */
export const translation = chosen(process.env['NANOBOT_TRANSLATION'] ?? '');

function chosen(path: string): string {
  if (path === '') return 'null';
  try {
    const json = readFileSync(path, 'utf8');
    addLocale('translation', JSON.parse(json));
    useLocale('translation');
    return json;
  } catch (error) {
    process.stderr.write(
      `nanobot: the translation ${path} cannot be used (${String(error)}); texts are in English. Make it with: npm run texts -- compile <folder>\n`,
    );
    return 'null';
  }
}

/** Texts of HTML: between tags and in these attributes. */
export const PAGE_TEXTS =
  /(?<=>|(?:aria-label|placeholder)=")(?<text>(?=[^<>"]*\p{L}{2})[^<>"\n]+)(?=<|")/gu;

export const translatedPage = (html: string) => html.replace(PAGE_TEXTS, (text) => gettext(text));
