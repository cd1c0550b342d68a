// The search tools, and the one that sends a question to all others: memory, past conversations,
// mailbox, files, the web.

import type { Config } from '../../kernel/config/config.ts';
import type { Environment } from '../../kernel/config/environment.ts';
import type { LiveConfig } from '../../kernel/config/files/live-config.ts';
import { ToolError } from '../../kernel/message/errors.ts';
import { createSafeFetch, type SafeFetch } from '../../lib/net/safe-fetch.ts';
import type { FinanceConfig } from '../exec/settings.ts';
import type { WorkspaceAccess } from '../files/file-tools.ts';
import type { Tool, ToolContext } from '../tool.ts';
import { toolboxSettings } from '../toolbox.ts';
import { createMetaTool, type SubTool } from './meta-tool.ts';
import {
  FIGURES,
  type Figure,
  type FinanceQuestion,
  fittingSources,
  isCrypto,
  nextSources,
  readFinanceQuestion,
  SEARCH_SOURCES,
  type SearchSource,
  tellingWords,
} from './rules/search-route.ts';
import { createSearchFiles } from './search-files.ts';
import { createWebSearch, type WebSearchDeps } from './web-search.ts';

const WEB_HITS = 5;
const FILE_HITS = 15;
const NOTHING = /^(?:Nothing (?:was found|is noted)|There is no)/;

type SearchDeps = {
  /** The available tools. */
  readonly tools: Partial<Readonly<Record<SearchSource, Tool>>>;
  readonly maxResultChars: () => number;
  /** Whether the agent gets the tool of this name. */
  isSwitchedOn(tool: string): boolean;
};

function createSearch({ tools, maxResultChars, isSwitchedOn }: SearchDeps): Tool {
  const subTools = SEARCH_SOURCES.flatMap((name): SubTool<SearchSource>[] => {
    const tool = tools[name];
    return tool === undefined ? [] : [subToolOf(name, tool, isSwitchedOn)];
  });
  const aliases = ['find_out', 'lookup', 'look_up', 'search_all', 'ask_sources'];
  const setup = { name: 'search', aliases, names: SEARCH_SOURCES, subTools, maxResultChars };
  return createMetaTool({ ...setup, route: fittingSources, widen: nextSources }) as Tool;
}

function subToolOf(
  name: SearchSource,
  tool: Tool,
  isSwitchedOn: SearchDeps['isSwitchedOn'],
): SubTool<SearchSource> {
  return {
    name,
    tool: tool.name,
    access: tool.access,
    isAvailable: () => isSwitchedOn(tool.name) && (tool.isAvailable?.() ?? true),
    async ask(question: string, context: ToolContext) {
      const wanted = ARGUMENTS[name](question);
      if (wanted === undefined) return '';
      const found = await tool.run(tool.input.parse(wanted), context);
      return NOTHING.test(found) ? '' : found;
    },
  };
}

/** The arguments for each tool; undefined if the question contains nothing to search for. */
const ARGUMENTS: Readonly<Record<SearchSource, (question: string) => unknown>> = {
  memory: (query) => ({ query }),
  sessions: (question) => byWords(question, (words) => ({ query: words.join(' ') })),
  mailbox: (question) => byWords(question, (words) => ({ query: words.join(' ') })),
  files: (question) =>
    byWords(question, (words) => ({ query: anyOf(words), regex: true, count: FILE_HITS })),
  web: (query) => ({ query, count: WEB_HITS }),
};

function byWords<T>(question: string, make: (words: readonly string[]) => T): T | undefined {
  const words = tellingWords(question);
  return words.length === 0 ? undefined : make(words);
}

const anyOf = (words: readonly string[]) =>
  words.map((word) => word.replace(/[^\p{L}\p{N}]/gu, (sign) => `\\${sign}`)).join('|');

// The tools for external lookups, and the one that asks the others.

export type SearchToolsDeps = {
  readonly web: WebSearchDeps;
  readonly finance: Omit<FinanceDeps, 'maxResultChars'>;
  readonly maxResultChars: () => number;
  /**
   * Whether the agent gets the tool of this name: a tool that is off is not used by `search`
   * either.
   */
  isSwitchedOn(tool: string): boolean;
};

/** `others`: further tools that `search` uses. */
export function createSearchTools(
  { web, finance, maxResultChars, isSwitchedOn }: SearchToolsDeps,
  access: WorkspaceAccess,
  others: Partial<Readonly<Record<SearchSource, Tool>>>,
): readonly Tool[] {
  const webSearch = createWebSearch(web);
  const searchFiles = createSearchFiles(access);
  const tools = { ...others, files: searchFiles, web: webSearch };
  return [
    webSearch,
    searchFiles,
    createSearch({ tools, maxResultChars, isSwitchedOn }),
    createFinancialSearch({ ...finance, maxResultChars }),
  ];
}

// Creates the tools for services that the owner configured.

const FINANCE_KEY = 'FINANCIAL_DATASETS_API_KEY';
/** The environment variables with the keys of the engines. */
export const KEY_VARIABLES = {
  brave: 'BRAVE_API_KEY',
  tavily: 'TAVILY_API_KEY',
  exa: 'EXA_API_KEY',
  serper: 'SERPER_API_KEY',
  google: 'GOOGLE_SEARCH_API_KEY',
} as const;

export function buildSearch(live: LiveConfig, env: Environment): SearchToolsDeps {
  return {
    web: {
      ...webSearchAccess(() => live.config, env),
      redact: live.redact,
    },
    finance: {
      fetchFrom: (origin) => fetchFrom(origin, () => live.config),
      settings() {
        const { finance } = live.config.tools;
        return { ...finance, apiKey: finance.apiKey || (env[FINANCE_KEY] ?? '') };
      },
    },
    maxResultChars: () => live.defaults.maxToolResultChars,
    isSwitchedOn: (tool) => !toolboxSettings(live.config).disabled.includes(tool),
  };
}

/** The engines of a configuration with their keys, and how they are reached. */
export function webSearchAccess(
  config: () => Config,
  env: Environment,
): Pick<WebSearchDeps, 'settings' | 'fetchFrom'> {
  return {
    fetchFrom: (origin) => fetchFrom(origin, config),
    settings() {
      const { search, enabled } = config().tools.web;
      const keys = {
        brave: search.braveApiKey || env[KEY_VARIABLES.brave],
        tavily: search.tavilyApiKey || env[KEY_VARIABLES.tavily],
        exa: search.exaApiKey || env[KEY_VARIABLES.exa],
        serper: search.serperApiKey || env[KEY_VARIABLES.serper],
        google: search.googleApiKey || env[KEY_VARIABLES.google],
      };
      return { ...search, keys, engines: enabled ? search.engines : [] };
    },
  };
}

/**
 * Reaches only the host that the owner configured, at any address; a redirect leads nowhere else.
 */
function fetchFrom(origin: string, config: () => Config): SafeFetch {
  const { host, hostname, port, protocol } = new URL(origin);
  const named = port === '' ? `${hostname}:${protocol === 'http:' ? 80 : 443}` : host;
  const rules = { ports: [], allowPrivateHosts: [named] };
  return createSafeFetch({ rules: () => rules, proxy: () => config().network.proxy });
}

// Tool: figures of companies and markets from financialdatasets.ai, for one plain question.

type Asked = Pick<FinanceQuestion, 'period' | 'count'> & {
  readonly ticker: string;
  /** Epoch milliseconds. */
  readonly now: number;
};

type FigureRow = {
  readonly path: string;
  params(asked: Asked): Readonly<Record<string, string>>;
};

const DAY_MS = 86_400_000;
const HISTORY_DAYS = 365;

const plain = ({ ticker }: Asked) => ({ ticker });
const recent = ({ ticker, count }: Asked) => ({ ticker, limit: String(count) });
const perPeriod = ({ ticker, period, count }: Asked) => ({ ticker, period, limit: String(count) });

/** @see https://docs.financialdatasets.ai */
const FIGURE_ROWS: Readonly<Record<Figure, FigureRow>> = {
  price: { path: '/prices/snapshot', params: plain },
  price_history: {
    path: '/prices',
    params: ({ ticker, now }) => ({
      ticker,
      interval: 'week',
      interval_multiplier: '1',
      start_date: dayOf(now - HISTORY_DAYS * DAY_MS),
      end_date: dayOf(now),
    }),
  },
  income_statements: { path: '/financials/income-statements', params: perPeriod },
  balance_sheets: { path: '/financials/balance-sheets', params: perPeriod },
  cash_flow_statements: { path: '/financials/cash-flow-statements', params: perPeriod },
  metrics: { path: '/financial-metrics/snapshot', params: plain },
  company: { path: '/company/facts', params: plain },
  news: { path: '/news', params: recent },
  insider_trades: { path: '/insider-trades', params: recent },
  filings: { path: '/filings', params: recent },
  estimates: {
    path: '/analyst-estimates',
    params: ({ ticker, period }) => ({ ticker, period: period === 'ttm' ? 'annual' : period }),
  },
  crypto_price: { path: '/crypto/prices/snapshot', params: plain },
};

const dayOf = (at: number) => new Date(at).toISOString().slice(0, 10);

type FinanceDeps = {
  readonly settings: () => FinanceConfig;
  /** The fetch for a service that the owner configured: it may be local. */
  fetchFrom(origin: string): SafeFetch;
  readonly maxResultChars: () => number;
};

const TIMEOUT_MS = 15_000;
const MAX_BYTES = 2_000_000;

function createFinancialSearch(deps: FinanceDeps): Tool {
  const isAvailable = () => deps.settings().apiKey !== '';
  const subTools = FIGURES.map((name): SubTool<Figure> => {
    return {
      name,
      access: 'web',
      isAvailable,
      ask: (query, context) => ask(name, query, context, deps),
    };
  });
  const tool = createMetaTool({
    name: 'financial_search',
    aliases: ['finance', 'stock_search', 'get_financials', 'stock_price'],
    names: FIGURES,
    subTools,
    route: (query) => figuresFor(readFinanceQuestion(query)),
    maxResultChars: deps.maxResultChars,
  });
  return {
    ...tool,
    access: 'web',
    unavailableBecause: () => 'no API key: set tools.finance.apiKey',
  } as Tool;
}

function figuresFor({ tickers, figures }: FinanceQuestion): readonly Figure[] {
  const coins = tickers.filter(isCrypto);
  if (coins.length === 0) return figures;
  return coins.length === tickers.length ? ['crypto_price'] : [...figures, 'crypto_price'];
}

async function ask(
  figure: Figure,
  query: string,
  context: ToolContext,
  deps: FinanceDeps,
): Promise<string> {
  const question = readFinanceQuestion(query);
  // Coins have an endpoint of their own; histories exist only for shares.
  const tickers = question.tickers.filter(
    (ticker) => isCrypto(ticker) === (figure === 'crypto_price'),
  );
  if (question.tickers.length === 0) {
    const message = 'name the companies by their ticker in the question, e.g. "$AAPL revenue"';
    throw new ToolError('invalid_arguments', message);
  }
  const now = context.clock.now();
  const asked = tickers.map((ticker) => ({ ...question, ticker, now }));
  const found = await Promise.all(asked.map((one) => fetchFigures(figure, one, context, deps)));
  return found.filter((text) => text !== '').join('\n');
}

async function fetchFigures(
  figure: Figure,
  asked: FinanceQuestion & { readonly ticker: string; readonly now: number },
  { signal }: ToolContext,
  { settings, fetchFrom }: FinanceDeps,
): Promise<string> {
  const { apiBase, apiKey } = settings();
  const { path, params } = FIGURE_ROWS[figure];
  const url = `${apiBase.replace(/\/+$/, '')}${path}?${new URLSearchParams(params(asked))}`;
  const limits = { timeoutMs: TIMEOUT_MS, maxBytes: MAX_BYTES, maxDecompressedBytes: MAX_BYTES };
  const headers = { accept: 'application/json', 'x-api-key': apiKey };
  const answer = await fetchFrom(new URL(url).origin)(url, { ...limits, headers, signal });
  if (answer.status === 404) return '';
  if (answer.status !== 200) {
    throw new ToolError('execution', `${asked.ticker}: ${refusal(answer.status)}`);
  }
  const body = figuresIn(Buffer.from(answer.body).toString('utf8'));
  return body === '' ? '' : `${asked.ticker}: ${body}`;
}

function refusal(status: number): string {
  if (status === 401) return 'the service refuses the key';
  if (status === 402)
    return 'the account at the service has no credit left, or the plan lacks this';
  return status === 429
    ? 'too many questions at once'
    : `the service answered with status ${status}`;
}

/** Empty if all of it is empty. */
function figuresIn(text: string): string {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    throw new ToolError('execution', 'the answer of the service is not JSON');
  }
  const values = typeof parsed === 'object' && parsed !== null ? Object.values(parsed) : [];
  const isEmpty = values.every((value) => Array.isArray(value) && value.length === 0);
  return isEmpty ? '' : JSON.stringify(parsed);
}
