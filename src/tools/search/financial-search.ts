// Tool: figures of companies and markets from financialdatasets.ai, for one plain question.

import { ToolError } from '../../kernel/message/errors.ts';
import type { SafeFetch } from '../../lib/net/safe-fetch.ts';
import type { Tool, ToolContext } from '../tool.ts';
import { createMetaTool, type SubTool } from './meta-tool.ts';
import {
  FIGURES,
  type Figure,
  type FinanceQuestion,
  isCrypto,
  readFinanceQuestion,
} from './rules/search-route.ts';
import type { FinanceConfig } from './settings.ts';

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

export type FinanceDeps = {
  readonly settings: () => FinanceConfig;
  /** The way to a service that the owner configured: it may be local. */
  fetchFrom(origin: string): SafeFetch;
  readonly maxResultChars: () => number;
};

const TIMEOUT_MS = 15_000;
const MAX_BYTES = 2_000_000;

export function createFinancialSearch(deps: FinanceDeps): Tool {
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
    unavailableBecause: () => 'there is no key: set tools.finance.apiKey',
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
  // Coins have an address of their own; histories are those of shares.
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
  if (status === 401) return 'the service does not take the key';
  if (status === 402)
    return 'the account at the service has no credit left, or the plan lacks this';
  return status === 429
    ? 'too many questions at once'
    : `the service answered with status ${status}`;
}

/** Nothing where all of it is empty. */
function figuresIn(text: string): string {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    throw new ToolError('execution', 'the answer of the service is no JSON');
  }
  const values = typeof parsed === 'object' && parsed !== null ? Object.values(parsed) : [];
  const isEmpty = values.every((value) => Array.isArray(value) && value.length === 0);
  return isEmpty ? '' : JSON.stringify(parsed);
}
