// Tool: searches the web with the configured engines; if one fails, the next.

import { z } from 'zod';
import { ToolError } from '../../kernel/message/errors.ts';
import { createLanes } from '../../lib/async.ts';
import { decodeReferences } from '../../lib/markup/writer.ts';
import type { SafeFetch } from '../../lib/net/safe-fetch.ts';
import { headOf, oneLine, visibleText } from '../../lib/text/cut.ts';
import type { SearchConfig, SearchEngineName } from '../exec/settings.ts';
import { defineTool, type ToolContext } from '../tool.ts';
import { QUERY_NAMES } from '../toolbox.ts';

type WebHit = { readonly title: string; readonly url: string; readonly snippet: string };

type SearchSettings = SearchConfig & {
  /** Keys by engine, from the configuration or the environment. */
  readonly keys: Readonly<Partial<Record<SearchEngineName, string | undefined>>>;
};

type EngineRequest = {
  /** Path and query after the engine's address. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Makes it a POST of JSON. */
  readonly json?: unknown;
};

type SearchEngine = {
  /** Empty: the owner configures it. */
  readonly address: string;
  /** Absent: it needs no key. A key is sent in a header, never in a URL. */
  readonly keyed?: true;
  /** Least time between two requests to a public service without a key. */
  readonly gapMs?: number;
  isReady?(settings: SearchSettings): boolean;
  request(query: string, count: number, settings: SearchSettings, key: string): EngineRequest;
  /** @throws if the response has another form */
  read(body: string, settings: SearchSettings): readonly WebHit[] | Promise<readonly WebHit[]>;
  /** The remedy for a refusal, for the owner. */
  hint?(status: number): string | undefined;
};

const MAX_TITLE_CHARS = 200;
const MAX_SNIPPET_CHARS = 500;
const MAX_URL_CHARS = 500;
const PAGE = /^https?:\/\/\S+$/i;
/** Pause of a public engine after a refusal. */
const PAUSE_MS = 600_000;
const REFUSALS = [202, 403, 418, 429, 503];
/** The most results that Google's and Exa's APIs return at once. */
const GOOGLE_MAX_COUNT = 10;

const text = z.string().nullish();
const results = <T extends z.ZodRawShape>(shape: T) => z.array(z.object(shape)).default([]);

const searxngAnswer = z.object({
  results: results({ url: z.string(), title: text, content: text }),
});
const braveAnswer = z.object({
  web: z
    .object({ results: results({ url: z.string(), title: text, description: text }) })
    .optional(),
});
const tavilyAnswer = searxngAnswer;
const exaAnswer = z.object({ results: results({ url: z.string(), title: text, text }) });
const serperAnswer = z.object({
  organic: results({ link: z.string(), title: text, snippet: text }),
});
const googleAnswer = z.object({ items: results({ link: z.string(), title: text, snippet: text }) });
const wikipediaAnswer = z.object({
  query: z.object({ search: results({ title: z.string(), snippet: text }) }),
});

const parameters = (values: Readonly<Record<string, string>>) =>
  String(new URLSearchParams(values));

export const ENGINES: Readonly<Record<SearchEngineName, SearchEngine>> = {
  /** @see https://docs.searxng.org/dev/search_api.html */
  searxng: {
    address: '',
    isReady: ({ searxngUrl }) => searxngUrl !== '',
    request: (q) => ({ path: `/search?${parameters({ q, format: 'json' })}` }),
    read: (body) =>
      searxngAnswer
        .parse(json(body))
        .results.flatMap(({ url, title, content }) => hits(url, title, content)),
    hint: (status) =>
      status === 403
        ? 'SearXNG refuses JSON: add "json" to search.formats in its settings.yml'
        : undefined,
  },
  /** @see https://api-dashboard.search.brave.com/app/documentation/web-search */
  brave: {
    address: 'https://api.search.brave.com',
    keyed: true,
    request: (q, count, _settings, key) => ({
      path: `/res/v1/web/search?${parameters({ q, count: String(count) })}`,
      headers: { 'x-subscription-token': key },
    }),
    read: (body) =>
      (braveAnswer.parse(json(body)).web?.results ?? []).flatMap(({ url, title, description }) =>
        hits(url, title, description),
      ),
    hint: (status) => (status === 422 ? 'Brave refuses the query: make it shorter' : undefined),
  },
  /** @see https://docs.tavily.com/documentation/api-reference/endpoint/search */
  tavily: {
    address: 'https://api.tavily.com',
    keyed: true,
    request: (query, count, _settings, key) => ({
      path: '/search',
      headers: { authorization: `Bearer ${key}` },
      json: { query, max_results: count },
    }),
    read: (body) =>
      tavilyAnswer
        .parse(json(body))
        .results.flatMap(({ url, title, content }) => hits(url, title, content)),
  },
  /** @see https://docs.exa.ai/reference/search */
  exa: {
    address: 'https://api.exa.ai',
    keyed: true,
    request: (query, count, _settings, key) => ({
      path: '/search',
      headers: { 'x-api-key': key },
      json: {
        query,
        numResults: count,
        contents: { text: { maxCharacters: MAX_SNIPPET_CHARS } },
      },
    }),
    read: (body) =>
      exaAnswer
        .parse(json(body))
        .results.flatMap(({ url, title, text: content }) => hits(url, title, content)),
  },
  /** @see https://serper.dev */
  serper: {
    address: 'https://google.serper.dev',
    keyed: true,
    request: (q, count, _settings, key) => ({
      path: '/search',
      headers: { 'x-api-key': key },
      json: { q, num: count },
    }),
    read: (body) =>
      serperAnswer
        .parse(json(body))
        .organic.flatMap(({ link, title, snippet }) => hits(link, title, snippet)),
  },
  /** @see https://developers.google.com/custom-search/v1/reference/rest/v1/cse/list */
  google: {
    address: 'https://customsearch.googleapis.com',
    keyed: true,
    isReady: ({ googleEngineId }) => googleEngineId !== '',
    request: (q, count, { googleEngineId }, key) => ({
      path: `/customsearch/v1?${parameters({
        q,
        cx: googleEngineId,
        num: String(Math.min(count, GOOGLE_MAX_COUNT)),
      })}`,
      headers: { 'x-goog-api-key': key },
    }),
    read: (body) =>
      googleAnswer
        .parse(json(body))
        .items.flatMap(({ link, title, snippet }) => hits(link, title, snippet)),
  },
  /** The page for browsers without scripts: DuckDuckGo has no API. */
  duckduckgo: {
    address: 'https://html.duckduckgo.com',
    gapMs: 2000,
    request: (q) => ({ path: `/html/?${parameters({ q })}`, headers: { accept: 'text/html' } }),
    async read(body) {
      const { readDuckDuckGo } = await import('./rules/duckduckgo-page.ts');
      return readDuckDuckGo(body).flatMap(({ url, title, snippet }) => hits(url, title, snippet));
    },
  },
  /** @see https://www.mediawiki.org/wiki/API:Search */
  wikipedia: {
    address: 'https://{language}.wikipedia.org',
    gapMs: 1000,
    request: (srsearch, count) => ({
      path: `/w/api.php?${parameters({
        ...{ action: 'query', list: 'search', format: 'json', srsearch },
        srlimit: String(count),
      })}`,
    }),
    read: (body, settings) =>
      wikipediaAnswer.parse(json(body)).query.search.flatMap(({ title, snippet }) => {
        const path = `/wiki/${encodeURIComponent(title.replaceAll(' ', '_'))}`;
        return hits(`${addressOf('wikipedia', settings)}${path}`, title, snippet);
      }),
  },
};

function addressOf(name: SearchEngineName, settings: SearchSettings): string {
  const own = name === 'searxng' ? settings.searxngUrl : settings.addresses[name];
  return (own ?? ENGINES[name].address)
    .replace('{language}', settings.wikipediaLanguage)
    .replace(/\/+$/, '');
}

function json(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    throw new Error('the answer is not JSON');
  }
}

/** Empty if it links to no page: URLs of results are untrusted content. */
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

/** Engines mark the matched words, and some return HTML. */
function plain(html: string, maxChars: number): string {
  const bare = html.replace(/<\/?(?:strong|b|em|mark|span)(?: class="[\w-]*")?>/gi, '');
  return headOf(oneLine(visibleText(decodeReferences(bare))), maxChars);
}

export type WebSearchDeps = {
  readonly settings: () => SearchSettings;
  /** The fetch for an engine that the owner configured: it may be local. */
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
  const ask = createAsking(deps);
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
      'no search engine is set up: name one in tools.web.search.engines that needs no key, or set its key',
    describe: ({ query }) => query,
    async run({ query, count = deps.settings().maxResults }, context) {
      if (deps.redact(query) !== query) {
        throw new ToolError('blocked', 'the question contains a secret of the configuration');
      }
      const problems: string[] = [];
      for (const engine of ready()) {
        const found = await ask(engine, query, count, context).catch((error: unknown) => {
          context.signal.throwIfAborted();
          problems.push(`${engine}: ${error instanceof Error ? error.message : 'failed'}`);
          return undefined;
        });
        if (found !== undefined) return hitsText(found.slice(0, count));
      }
      throw new ToolError('execution', `no engine answered (${problems.join('; ')})`);
    },
  });
}

/** Set up, in the order of use. */
export const readyEngines = (settings: SearchSettings): readonly SearchEngineName[] =>
  settings.engines.filter((name) => {
    const { keyed, isReady } = ENGINES[name];
    const hasKey = keyed === undefined || (settings.keys[name] ?? '') !== '';
    return hasKey && isReady?.(settings) !== false;
  });

/** Spaces requests to public engines, and pauses an engine that refuses. */
export function createAsking({
  settings,
  fetchFrom,
}: Pick<WebSearchDeps, 'settings' | 'fetchFrom'>) {
  const lanes = createLanes();
  const nextAt = new Map<SearchEngineName, number>();

  async function request(
    name: SearchEngineName,
    query: string,
    count: number,
    signal: AbortSignal,
  ): Promise<readonly WebHit[]> {
    const engine = ENGINES[name];
    const now = settings();
    const { path, headers, json: sent } = engine.request(query, count, now, now.keys[name] ?? '');
    const url = `${addressOf(name, now)}${path}`;
    const limits = { maxBytes: MAX_BYTES, maxDecompressedBytes: MAX_BYTES };
    const { status, body } = await fetchFrom(new URL(url).origin)(url, {
      ...{ signal, timeoutMs: now.timeoutSecs * 1000, ...limits },
      headers: { accept: 'application/json', ...headers },
      ...(sent === undefined ? {} : { json: sent }),
    });
    if (status !== 200) throw new EngineRefusal(name, status);
    return engine.read(Buffer.from(body).toString('utf8'), now);
  }

  return async (
    name: SearchEngineName,
    query: string,
    count: number,
    { clock, signal }: Pick<ToolContext, 'clock' | 'signal'>,
  ): Promise<readonly WebHit[]> => {
    const { gapMs } = ENGINES[name];
    if (gapMs === undefined) return request(name, query, count, signal);
    return lanes.run(name, async () => {
      const waitMs = (nextAt.get(name) ?? 0) - clock.now();
      if (waitMs > gapMs) {
        throw new Error(
          `it refused too many requests; next try in ${Math.ceil(waitMs / 60_000)} min`,
        );
      }
      if (waitMs > 0) await clock.sleep(waitMs, signal);
      nextAt.set(name, clock.now() + gapMs);
      return request(name, query, count, signal).catch((error: unknown) => {
        const isRefused = error instanceof EngineRefusal && REFUSALS.includes(error.status);
        if (isRefused) nextAt.set(name, clock.now() + PAUSE_MS);
        throw error;
      });
    });
  };
}

class EngineRefusal extends Error {
  override readonly name = 'EngineRefusal';
  readonly status: number;
  constructor(engine: SearchEngineName, status: number) {
    const { keyed, hint } = ENGINES[engine];
    super(
      [`status ${status}`, hint?.(status) ?? (keyed && keyHint(status))].filter(Boolean).join(', '),
    );
    this.status = status;
  }
}

function keyHint(status: number): string | undefined {
  if (status === 401 || status === 403) return 'the key is refused: check it';
  return status === 402 || status === 429 ? 'the quota is used up for now' : undefined;
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
