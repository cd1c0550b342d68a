import { describe, expect, it } from 'vitest';
import {
  fittingSources,
  readFinanceQuestion,
  SEARCH_SOURCES,
  tellingWords,
} from '../../src/tools/search/rules/search-route.ts';

describe('a plain question', () => {
  it.each([
    ['what is the latest version of Node?', ['web']],
    ['which file has the rent contract?', ['files']],
    ['what did we decide about the flat last week?', ['sessions']],
    ['did Anna write? look in my inbox', ['memory', 'mailbox']],
    ['what is my favourite tea?', ['memory', 'web']],
    ['Was haben wir gestern besprochen?', ['sessions']],
    ['Wie ist das Wetter heute?', ['web']],
    ['population of Ghana', ['memory', 'web']],
  ])('%s goes to %j', (question, sources) => {
    expect(fittingSources(question, SEARCH_SOURCES)).toEqual(sources);
  });

  it('goes to what there is where nothing fitting can be asked', () => {
    expect(fittingSources('latest news', ['files'])).toEqual(['files']);
    expect(fittingSources('latest news', [])).toEqual([]);
  });

  it.each([
    ['Where did I put the rental contract of 2024?', ['contract', 'rental', '2024']],
    ['Wo ist der Mietvertrag?', ['mietvertrag']],
    ['what is it?', []],
  ])('%s has the telling words %j', (question, words) => {
    const found = tellingWords(question);
    expect(found.filter((word) => words.includes(word))).toEqual(words);
    expect(found.length - words.length).toBeLessThan(2);
  });
});

describe('a question about companies', () => {
  it.each([
    [
      '$AAPL revenue of the last 4 quarters',
      { tickers: ['AAPL'], figures: ['income_statements'], period: 'quarterly', count: 4 },
    ],
    ['Compare the P/E of MSFT and $GOOG', { tickers: ['MSFT', 'GOOG'], figures: ['metrics'] }],
    [
      'NVDA debt and free cash flow, ttm',
      { tickers: ['NVDA'], figures: ['balance_sheets', 'cash_flow_statements'], period: 'ttm' },
    ],
    ['what is the price of BTC-USD', { tickers: ['BTC-USD'], figures: ['price'] }],
    ['TSLA performance over the last year', { tickers: ['TSLA'], figures: ['price_history'] }],
    ['news on $F', { tickers: ['F'], figures: ['news'] }],
    ['BRK.B 10-K filings', { tickers: ['BRK.B'], figures: ['filings'] }],
    ['$aapl and $brk.B revenue', { tickers: ['AAPL', 'BRK.B'] }],
    ['WHAT IS THE PRICE OF AAPL NOW', { tickers: ['AAPL'], figures: ['price'] }],
    ['COMPARE GM REVENUE WITH $NOW', { tickers: ['GM', 'NOW'], figures: ['income_statements'] }],
    ['what will the CEO of USA do for EPS in Q3', { tickers: [] }],
    [
      'tell me about KO',
      { tickers: ['KO'], figures: ['price', 'company'], period: 'annual', count: 4 },
    ],
  ])('%s is read', (question, read) => {
    expect(readFinanceQuestion(question)).toMatchObject(read);
  });
});
