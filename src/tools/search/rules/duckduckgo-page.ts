// Reads the result page that DuckDuckGo shows to browsers without scripts.

import { elementsOf, parseHtml } from '../../../lib/html/html-text.ts';
import { attributeOf, type XmlElement, xmlText } from '../../../lib/html/xml.ts';

type Result = { readonly url: string; readonly title: string; readonly snippet: string };

const BASE = 'https://duckduckgo.com';
/**
 * The marker of a page without results; any other page without results asks whether the visitor is
 * human.
 */
const NO_RESULTS = 'no-results';

/** @throws if the page is no result page */
export function readDuckDuckGo(html: string): readonly Result[] {
  const elements = [...elementsOf(parseHtml(html))];
  const results = elements.filter((one) => hasClass(one, 'result') && !hasClass(one, 'result--ad'));
  if (results.length === 0 && !elements.some((one) => hasClass(one, NO_RESULTS))) {
    throw new Error('it asks for proof that a person searches');
  }
  return results.flatMap((result) => {
    const parts = [...elementsOf(result)];
    const link = parts.find((one) => hasClass(one, 'result__a'));
    const snippet = parts.find((one) => hasClass(one, 'result__snippet'));
    const url = link && targetOf(attributeOf(link, 'href') ?? '');
    if (link === undefined || url === undefined) return [];
    return [{ url, title: xmlText(link), snippet: snippet === undefined ? '' : xmlText(snippet) }];
  });
}

/** The target of a link that goes through DuckDuckGo's redirect. */
function targetOf(href: string): string | undefined {
  const url = URL.parse(href, BASE);
  return url?.searchParams.get('uddg') ?? url?.href;
}

const hasClass = (element: XmlElement, wanted: string) =>
  attributeOf(element, 'class')?.split(/\s+/).includes(wanted) === true;
