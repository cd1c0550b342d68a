// What a plain question about companies and markets asks for: whose figures, which, over what time.
// Read from its words; nothing is guessed where no company is named.

import { tellingWords } from '../../search/rules/search-route.ts';

/** Kinds of figures, each of which one address of the service has. */
export const FIGURES = [
  'price',
  'price_history',
  'income_statements',
  'balance_sheets',
  'cash_flow_statements',
  'metrics',
  'company',
  'news',
  'insider_trades',
  'filings',
  'estimates',
  'crypto_price',
] as const;
export type Figure = (typeof FIGURES)[number];

export type FinanceQuestion = {
  readonly tickers: readonly string[];
  readonly figures: readonly Figure[];
  readonly period: 'annual' | 'quarterly' | 'ttm';
  /** Periods or entries. */
  readonly count: number;
};

const MAX_TICKERS = 5;
const DEFAULT_COUNT = 4;
const MAX_COUNT = 20;

const FIGURE_SIGNS: readonly (readonly [Figure, RegExp])[] = [
  [
    'price_history',
    /\b(?:history|historical|performance|chart|since|over the (?:last|past)|ytd|year to date|trend|kursverlauf)\b/i,
  ],
  [
    'income_statements',
    /\b(?:income|revenue|sales|earnings|profit|eps|net income|gross|operating margin|ebit(?:da)?|umsatz|gewinn)\b/i,
  ],
  [
    'balance_sheets',
    /\b(?:balance sheets?|assets|liabilities|debt|equity|cash position|bilanz|schulden)\b/i,
  ],
  [
    'cash_flow_statements',
    /\b(?:cash ?flows?|free cash|capex|capital expenditure|buybacks?|dividends? paid)\b/i,
  ],
  [
    'metrics',
    /\b(?:p\/?e|ratios?|valuation|market cap|margins?|roe|roic|roa|metrics|multiples?|dividend yield|bewertung)\b/i,
  ],
  [
    'company',
    /\b(?:sector|industry|employees|headquarters|founded|what does .* do|company facts|exchange|ceo)\b/i,
  ],
  ['news', /\b(?:news|headlines?|announce\w*|latest on|nachrichten)\b/i],
  ['insider_trades', /\binsiders?\b/i],
  ['filings', /\b(?:filings?|10-?[kq]|8-?k|sec)\b/i],
  ['estimates', /\b(?:estimates?|forecasts?|guidance|expected|consensus|analysts?)\b/i],
  ['price', /\b(?:price|quote|trading at|share|stock|kurs|worth|close[ds]?)\b/i],
];
const CRYPTO = /^[A-Z0-9]{2,10}-(?:USD|EUR|USDT|BTC)$/;
const TICKER =
  /(?<![\p{L}\p{N}$.-])(?:\$[A-Za-z]{1,5}|[A-Z]{1,5})(?:[.-][A-Z]{1,4})?(?![\p{L}\p{N}])/gu;
/** Written in capitals and no company. */
const NO_TICKERS = new Set(
  'AI API CEO CFO COO CTO EBIT EBITDA EPS ETF EU EUR FY GAAP GDP IPO IR LTM M MRR NYSE NASDAQ OK P PE Q ROA ROE ROI ROIC SEC TTM UK US USA USD YOY YTD PEG DCF CAGR'.split(
    ' ',
  ),
);

/** Of a question in capitals; longer ones are known to `tellingWords`. */
const SHORT_WORDS = new Set(
  'A AN AS AT BE BY DO FOR GO HOW I IN IS IT ME MY NOW OF ON OR SO TO UP WE'.split(' '),
);

export function readFinanceQuestion(question: string): FinanceQuestion {
  const tickers = [...new Set(tickersIn(question))];
  const signs = FIGURE_SIGNS.filter(([, sign]) => sign.test(question)).map(([figure]) => figure);
  // A course over time answers what the price alone would.
  const found = signs.includes('price_history') ? signs.filter((one) => one !== 'price') : signs;
  return {
    tickers: tickers.slice(0, MAX_TICKERS),
    figures: found.length > 0 ? found : ['price', 'company'],
    period: periodOf(question),
    count: countOf(question),
  };
}

export const isCrypto = (ticker: string) => CRYPTO.test(ticker);

function tickersIn(question: string): readonly string[] {
  const isShouted = !/\p{Ll}/u.test(question);
  const found = question.match(TICKER) ?? [];
  return found
    .filter((word) => word.startsWith('$') || isTicker(word, isShouted))
    .map((word) => word.replace('$', '').toUpperCase())
    .filter((word) => !/^Q[1-4]$|^FY$/.test(word));
}

/** Where all is in capitals, words of the question are none; the dollar sign marks a company then. */
function isTicker(word: string, isShouted: boolean): boolean {
  if (word.length < 2 || NO_TICKERS.has(word)) return false;
  if (!isShouted) return true;
  const isCommon = word.length > 2 && tellingWords(word).length === 0;
  return !isCommon && !SHORT_WORDS.has(word) && !FIGURE_SIGNS.some(([, sign]) => sign.test(word));
}

function periodOf(question: string): FinanceQuestion['period'] {
  if (/\bquarter|\bq[1-4]\b|vierteljahr|quartal/i.test(question)) return 'quarterly';
  return /\bttm\b|trailing|last twelve months/i.test(question) ? 'ttm' : 'annual';
}

function countOf(question: string): number {
  const [, digits] =
    /\b(?:last|past|letzten)\s+(\d{1,3})\s+(?:years?|quarters?|periods?|days?|jahre|quartale)/i.exec(
      question,
    ) ?? [];
  return digits === undefined ? DEFAULT_COUNT : Math.min(MAX_COUNT, Math.max(1, Number(digits)));
}
