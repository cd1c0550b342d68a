// The addresses of financialdatasets.ai, one row for each kind of figures.

import type { Figure, FinanceQuestion } from './rules/finance-question.ts';

type Asked = Pick<FinanceQuestion, 'period' | 'count'> & {
  readonly ticker: string;
  /** Epoch milliseconds. */
  readonly now: number;
};

export type FigureRow = {
  readonly path: string;
  params(asked: Asked): Readonly<Record<string, string>>;
};

const DAY_MS = 86_400_000;
const HISTORY_DAYS = 365;

const plain = ({ ticker }: Asked) => ({ ticker });
const recent = ({ ticker, count }: Asked) => ({ ticker, limit: String(count) });
const perPeriod = ({ ticker, period, count }: Asked) => ({ ticker, period, limit: String(count) });

/** @see https://docs.financialdatasets.ai */
export const FIGURE_ROWS: Readonly<Record<Figure, FigureRow>> = {
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
