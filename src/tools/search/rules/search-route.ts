// Which sources a plain question is sent to, by its words, and what a question about companies and
// markets asks for. In doubt several sources are asked.

/** The sources that can be searched. */
export const SEARCH_SOURCES = ['memory', 'sessions', 'mailbox', 'files', 'web'] as const;
export type SearchSource = (typeof SEARCH_SOURCES)[number];

/** English, German, French, Spanish. */
const SIGNS: Readonly<Record<SearchSource, RegExp>> = {
  memory:
    /\b(?:my|mine|our|i|me|mein\w*|unser\w*|ich|mir|mes|mon|ma|je|mi|mis|yo|remember|prefer\w*|favou?rite|birthday|geburtstag|merk\w*|notier\w*|souviens|recuerd\w*)\b/iu,
  sessions:
    /\b(?:we|you|us|wir|du|nous|tu|nosotros|said|told|talked|discussed|decided|mentioned|conversation|chat|earlier|yesterday|last (?:time|week|month)|gesagt|besprochen|erw[äa]hnt|gestern|letzte\w*|gespr[äa]ch|dit|hier|hablamos|dijiste|ayer)\b/iu,
  mailbox:
    /\b(?:e-?mails?|mails?|inbox|mailbox|wrote to|sent me|unread|newsletter|invoices?|receipts?|posteingang|postfach|geschrieben|rechnung\w*|courriel\w*|correo\w*|facturas?|factures?)\b/iu,
  files:
    /\b(?:files?|folders?|documents?|notes?|drafts?|list|workspace|\w+\.(?:md|txt|pdf|csv|json|docx?|xlsx?)|datei\w*|ordner|dokument\w*|notiz\w*|entwurf|fichiers?|dossier|archivos?|carpeta|notas?)\b/iu,
  web: /\b(?:news|latest|current|today|price|weather|forecast|who is|what is|when (?:is|was|did)|how (?:do|to|much|many)|where is|release|version|website|online|web|internet|stock|nachrichten|aktuell\w*|heute|preis|wetter|wer ist|was ist|wann|wie (?:viel|geht)|actualit[ée]s|m[ée]t[ée]o|prix|noticias|tiempo|precio|qui[ée]n es|qu[ée] es)\b/iu,
};
/** Sources for a general question without a reference to the person's own things. */
const WORLDLY: readonly SearchSource[] = ['memory', 'web'];

/** Among the available sources, in the order in which their answers are shown. */
export function fittingSources(
  question: string,
  available: readonly SearchSource[],
): readonly SearchSource[] {
  const fitting = available.filter((source) => SIGNS[source].test(question));
  if (fitting.length > 0) return fitting;
  const usual = available.filter((source) => WORLDLY.includes(source));
  return usual.length > 0 ? usual : available;
}

/**
 * The next sources if those asked found nothing, or none. A person's own things are searched for
 * only in their own sources; a general question may go to the web after that.
 */
export function nextSources(
  question: string,
  available: readonly SearchSource[],
  asked: readonly SearchSource[],
): readonly SearchSource[] {
  const left = available.filter((source) => !asked.includes(source));
  const own = left.filter((source) => source !== 'web');
  if (own.length > 0) return own;
  const isPersonal = SEARCH_SOURCES.some(
    (source) => source !== 'web' && SIGNS[source].test(question),
  );
  return isPersonal ? [] : left;
}

const MIN_WORD_CHARS = 3;
const MAX_WORDS = 6;
/** Words that occur in any question. */
const COMMON = new Set(
  (
    'the and for are was were has have had did does what when where which who whom whose why how ' +
    'that this these those with about from into your you our ours mine they them their there here ' +
    'can could should would will shall may might must not any some all one two its his her him she ' +
    'find look search tell show give said told please know last time week month year ' +
    'der die das den dem des ein eine einen einem einer und oder ist sind war waren hat haben hatte ' +
    'was wann wer wen wem wie warum welche welcher welches mein meine meinen dein deine unser sein ' +
    'ihr ihre mit von zum zur aus bei nach über auf für nicht auch noch mal bitte suche finde zeig ' +
    'les des une est sont dans pour avec sur mon mes ton tes que qui quoi quand où pourquoi comment ' +
    'los las una unos unas del por para con mis sus qué quién cuándo dónde cómo'
  ).split(' '),
);

/** The significant words of a question, longest first. */
export function tellingWords(question: string): readonly string[] {
  const words = question.toLowerCase().match(/[\p{L}\p{N}][\p{L}\p{N}_.-]*[\p{L}\p{N}]/gu) ?? [];
  const telling = words.filter((word) => word.length >= MIN_WORD_CHARS && !COMMON.has(word));
  return [...new Set(telling)].sort((a, b) => b.length - a.length).slice(0, MAX_WORDS);
}

// What a plain question about companies and markets asks for: which companies, which figures, over
// what time. Read from its words; nothing is guessed if no company is named.

/** Kinds of figures, each with one endpoint of the service, and the words that ask for it. */
const FIGURE_SIGNS = {
  price: /\b(?:price|quote|trading at|share|stock|kurs|worth|close[ds]?)\b/i,
  price_history:
    /\b(?:history|historical|performance|chart|since|over the (?:last|past)|ytd|year to date|trend|kursverlauf)\b/i,
  income_statements:
    /\b(?:income|revenue|sales|earnings|profit|eps|net income|gross|operating margin|ebit(?:da)?|umsatz|gewinn)\b/i,
  balance_sheets:
    /\b(?:balance sheets?|assets|liabilities|debt|equity|cash position|bilanz|schulden)\b/i,
  cash_flow_statements:
    /\b(?:cash ?flows?|free cash|capex|capital expenditure|buybacks?|dividends? paid)\b/i,
  metrics:
    /\b(?:p\/?e|ratios?|valuation|market cap|margins?|roe|roic|roa|metrics|multiples?|dividend yield|bewertung)\b/i,
  company:
    /\b(?:sector|industry|employees|headquarters|founded|what does .* do|company facts|exchange|ceo)\b/i,
  news: /\b(?:news|headlines?|announce\w*|latest on|nachrichten)\b/i,
  insider_trades: /\binsiders?\b/i,
  filings: /\b(?:filings?|10-?[kq]|8-?k|sec)\b/i,
  estimates: /\b(?:estimates?|forecasts?|guidance|expected|consensus|analysts?)\b/i,
  // By its ticker alone.
  crypto_price: undefined,
} satisfies Readonly<Record<string, RegExp | undefined>>;
export type Figure = keyof typeof FIGURE_SIGNS;
export const FIGURES = Object.keys(FIGURE_SIGNS) as [Figure, ...Figure[]];

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

const CRYPTO = /^[A-Z0-9]{2,10}-(?:USD|EUR|USDT|BTC)$/;
const TICKER =
  /(?<![\p{L}\p{N}$.-])(?:\$[A-Za-z]{1,5}|[A-Z]{1,5})(?:[.-][A-Z]{1,4})?(?![\p{L}\p{N}])/gu;
/** Capitalised words that are no companies. */
const NO_TICKERS = new Set(
  'AI API CEO CFO COO CTO EBIT EBITDA EPS ETF EU EUR FY GAAP GDP IPO IR LTM M MRR NYSE NASDAQ OK P PE Q ROA ROE ROI ROIC SEC TTM UK US USA USD YOY YTD PEG DCF CAGR'.split(
    ' ',
  ),
);

/** In a question in capitals; `tellingWords` knows the longer ones. */
const SHORT_WORDS = new Set(
  'A AN AS AT BE BY DO FOR GO HOW I IN IS IT ME MY NOW OF ON OR SO TO UP WE'.split(' '),
);

export function readFinanceQuestion(question: string): FinanceQuestion {
  const tickers = [...new Set(tickersIn(question))];
  const signs = FIGURES.filter((figure) => FIGURE_SIGNS[figure]?.test(question));
  // A price history includes the current price.
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

/** In a text in capitals, common words are no tickers; the dollar sign marks a company then. */
function isTicker(word: string, isShouted: boolean): boolean {
  if (word.length < 2 || NO_TICKERS.has(word)) return false;
  if (!isShouted) return true;
  const isCommon = word.length > 2 && tellingWords(word).length === 0;
  return (
    !isCommon &&
    !SHORT_WORDS.has(word) &&
    !FIGURES.some((figure) => FIGURE_SIGNS[figure]?.test(word))
  );
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
