// Tool: searches the web with the configured engines, the next one where one fails.

import { z } from 'zod';
import { ToolError } from '../../kernel/message/errors.ts';
import type { SafeFetch } from '../../lib/net/safe-fetch.ts';
import { headOf, visibleText } from '../../lib/text/cut.ts';
import type { SearchConfig, SearchEngineName } from '../exec/settings.ts';
import { defineTool } from '../tool.ts';
import { QUERY_NAMES } from '../toolbox.ts';

type WebHit = { readonly title: string; readonly url: string; readonly snippet: string };

type SearchSettings = SearchConfig & {
  /** That of the configuration, or of the environment. */
  readonly braveKey: string;
};

type EngineRequest = {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
};

type SearchEngine = {
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
      if (status === 401 || status === 403) return 'Brave refuses the key: check it';
      if (status === 422) return 'Brave refuses the query: make it shorter';
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

export type WebSearchDeps = {
  readonly settings: () => SearchSettings;
  /** The way to an engine that the owner configured: it may be local. */
  fetchFrom(origin: string): SafeFetch;
  /** Masks the values of configured secrets. */
  readonly redact: (text: string) => string;
};

const MAX_QUERY_CHARS = 400;
const MAX_COUNT = 20;
const MAX_BYTES = 2_000_000;

const input = z.object({
  query: z
    .string()
    .trim()
    .min(1)
    .max(MAX_QUERY_CHARS)
    .describe('What to search for, in few words.'),
  count: z.int().min(1).max(MAX_COUNT).optional().describe('Number of hits; default: a few.'),
});

export function createWebSearch(deps: WebSearchDeps) {
  const ready = () => readyEngines(deps.settings());
  return defineTool({
    name: 'web_search',
    aliases: [
      'WebSearch',
      'google',
      'google_search',
      'brave_search',
      'search_web',
      'internet_search',
    ],
    parameterAliases: {
      query: QUERY_NAMES,
      count: ['max_results', 'num_results', 'limit', 'n'],
    },
    access: 'web',
    taints: true,
    input,
    isAvailable: () => ready().length > 0,
    unavailableBecause: () =>
      'no search engine is set up: set tools.web.search.searxngUrl or tools.web.search.braveApiKey',
    describe: ({ query }) => query,
    async run({ query, count = deps.settings().maxResults }, { signal }) {
      if (deps.redact(query) !== query) {
        throw new ToolError('blocked', 'the question contains a secret of the configuration');
      }
      const problems: string[] = [];
      for (const engine of ready()) {
        const found = await ask(engine, query, count, deps, signal).catch((error: unknown) => {
          signal.throwIfAborted();
          problems.push(`${engine.name}: ${error instanceof Error ? error.message : 'failed'}`);
          return undefined;
        });
        if (found !== undefined) return hitsText(found.slice(0, count));
      }
      throw new ToolError('execution', `no engine answered (${problems.join('; ')})`);
    },
  });
}

function readyEngines(settings: SearchSettings): readonly SearchEngine[] {
  return settings.engines.flatMap((name) =>
    ENGINES.filter((engine) => engine.name === name && engine.isReady(settings)),
  );
}

async function ask(
  engine: SearchEngine,
  query: string,
  count: number,
  { settings, fetchFrom }: WebSearchDeps,
  signal: AbortSignal,
): Promise<readonly WebHit[]> {
  const { url, headers } = engine.request(query, count, settings());
  const timeoutMs = settings().timeoutSecs * 1000;
  const limits = { signal, timeoutMs, maxBytes: MAX_BYTES, maxDecompressedBytes: MAX_BYTES };
  const { status, body } = await fetchFrom(new URL(url).origin)(url, { ...limits, headers });
  if (status !== 200) {
    const hint = engine.hint(status);
    throw new Error(`status ${status}${hint === '' ? '' : `, ${hint}`}`);
  }
  return engine.read(parsed(body));
}

function parsed(body: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(body).toString('utf8'));
  } catch {
    throw new Error('the answer is not JSON');
  }
}

function hitsText(hits: readonly WebHit[]): string {
  if (hits.length === 0) return 'Nothing was found.';
  return hits
    .map(({ title, url, snippet }, index) => {
      const lines = [`${index + 1}. ${title === '' ? url : title}`, `   ${url}`];
      return [...lines, ...(snippet === '' ? [] : [`   ${snippet}`])].join('\n');
    })
    .join('\n');
}
