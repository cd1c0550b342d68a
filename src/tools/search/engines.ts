// The engines of the web search, one row each: how they are asked and what is made of the answer.

import { z } from 'zod';
import { visibleText } from '../../channels/email/rules/text.ts';
import { headOf } from '../../lib/text/cut.ts';
import type { SearchConfig, SearchEngineName } from './settings.ts';

export type WebHit = { readonly title: string; readonly url: string; readonly snippet: string };

export type SearchSettings = SearchConfig & {
  /** That of the configuration, or of the environment. */
  readonly braveKey: string;
};

export type EngineRequest = {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
};

export type SearchEngine = {
  readonly name: SearchEngineName;
  isReady(settings: SearchSettings): boolean;
  request(query: string, count: number, settings: SearchSettings): EngineRequest;
  /** @throws where the answer has another form */
  read(body: unknown): readonly WebHit[];
  /** What to do about a refusal, for the owner. */
  hint(status: number): string;
};

const MAX_TITLE_CHARS = 200;
const MAX_SNIPPET_CHARS = 500;
const MAX_URL_CHARS = 500;
const PAGE = /^https?:\/\/\S+$/i;

const text = z.string().nullish();

/** @see https://docs.searxng.org/dev/search_api.html */
const searxngAnswer = z.object({
  results: z.array(z.object({ url: z.string(), title: text, content: text })),
});

/** @see https://api-dashboard.search.brave.com/app/documentation/web-search */
const braveAnswer = z.object({
  web: z
    .object({
      results: z.array(z.object({ url: z.string(), title: text, description: text })),
    })
    .optional(),
});

export const ENGINES: readonly SearchEngine[] = [
  {
    name: 'searxng',
    isReady: ({ searxngUrl }) => searxngUrl !== '',
    request(query, _count, { searxngUrl }) {
      const asked = new URLSearchParams({ q: query, format: 'json' });
      const url = `${searxngUrl.replace(/\/+$/, '')}/search?${asked}`;
      return { url, headers: { accept: 'application/json' } };
    },
    read: (body) =>
      searxngAnswer
        .parse(body)
        .results.flatMap(({ url, title, content }) => hits(url, title, content)),
    hint: (status) =>
      status === 403
        ? 'SearXNG refuses JSON: add "json" to search.formats in its settings.yml'
        : '',
  },
  {
    name: 'brave',
    isReady: ({ braveKey }) => braveKey !== '',
    request(query, count, { braveKey, braveUrl }) {
      const asked = new URLSearchParams({ q: query, count: String(count) });
      return {
        url: `${braveUrl.replace(/\/+$/, '')}/res/v1/web/search?${asked}`,
        headers: { accept: 'application/json', 'x-subscription-token': braveKey },
      };
    },
    read: (body) =>
      (braveAnswer.parse(body).web?.results ?? []).flatMap(({ url, title, description }) =>
        hits(url, title, description),
      ),
    hint(status) {
      if (status === 401 || status === 403) return 'Brave does not take the key: check it';
      if (status === 422) return 'Brave does not take the question: ask it shorter';
      return status === 429 ? 'the quota at Brave is used up for now' : '';
    },
  },
];

/** None where it leads to no page: an engine passes on what others named so. */
function hits(
  url: string,
  title: string | null = '',
  snippet: string | null = '',
): readonly WebHit[] {
  if (!PAGE.test(url)) return [];
  const shown = {
    title: plain(title ?? '', MAX_TITLE_CHARS),
    snippet: plain(snippet ?? '', MAX_SNIPPET_CHARS),
  };
  return [{ url: url.slice(0, MAX_URL_CHARS), ...shown }];
}

/** Engines mark the words that were found. */
function plain(html: string, maxChars: number): string {
  const bare = html.replace(/<\/?(?:strong|b|em|mark)>/gi, '');
  return headOf(visibleText(bare).replace(/\s+/g, ' ').trim(), maxChars);
}
