// What models cost, in US dollars per million tokens, as their vendors list it. Prices age: a model
// that is not here has no price rather than a wrong one, and the configuration can name it.

import type { Price } from '../../features/spending/rules/spending.ts';
import { isDemo, isLocalVendor, splitModelName } from './model-names.ts';
import { namesPeer, splitPeerName } from './peer-name.ts';

const PRICE_CURRENCY = 'USD';

export type ConfiguredPrice = Price & { readonly model: string };

const FREE: Price = { input: 0, output: 0, cached: 0 };

type Row = readonly [
  pattern: RegExp,
  input: number,
  output: number,
  cached: number,
  /** To the cache, for five minutes. */
  written?: number,
];

/** A date or `latest` behind a name is the same model. */
const DATED = '(-\\d{4}-?\\d{2}-?\\d{2}|-latest)?$';
const exactly = (name: string) => new RegExp(`(^|/)${name}${DATED}`);

const PRICES: readonly Row[] = [
  [exactly('claude-opus-4[-.][5-6]'), 5, 25, 0.5, 6.25],
  [exactly('claude-opus-4([-.]1)?'), 15, 75, 1.5, 18.75],
  [exactly('claude-sonnet-4([-.][5-6])?'), 3, 15, 0.3, 3.75],
  [exactly('claude-haiku-4[-.]5'), 1, 5, 0.1, 1.25],
  [exactly('gpt-4o'), 2.5, 10, 1.25],
  [exactly('gpt-4o-mini'), 0.15, 0.6, 0.075],
  [exactly('gpt-4\\.1'), 2, 8, 0.5],
  [exactly('gpt-4\\.1-mini'), 0.4, 1.6, 0.1],
  [exactly('gpt-4\\.1-nano'), 0.1, 0.4, 0.025],
  [exactly('gpt-5(\\.1)?'), 1.25, 10, 0.125],
  [exactly('gpt-5-mini'), 0.25, 2, 0.025],
  [exactly('gpt-5-nano'), 0.05, 0.4, 0.005],
  [exactly('o3'), 2, 8, 0.5],
  [exactly('o4-mini'), 1.1, 4.4, 0.275],
  [exactly('gemini-2\\.5-flash'), 0.3, 2.5, 0.075],
  [exactly('gemini-2\\.5-flash-lite'), 0.1, 0.4, 0.025],
];

/** Times the dearest that is known: what nobody knows must not be taken for too cheap. */
const CAUTION = 2;

/** What is done about a model without a price where a budget in money counts. */
export type UnpricedRule = 'refuse' | { readonly input: number; readonly output: number };

/** What such a model is charged; undefined: it is not to be asked. */
export function assumedPrice(rule: UnpricedRule | undefined, currency: string): Price | undefined {
  if (rule === 'refuse') return undefined;
  if (rule !== undefined) return { ...rule, cached: rule.input };
  if (currency !== PRICE_CURRENCY) return undefined;
  const input = CAUTION * Math.max(...PRICES.map(([, each]) => each));
  const output = CAUTION * Math.max(...PRICES.map(([, , each]) => each));
  return { input, output, cached: input };
}

/**
 * The price of a model by its name with prefix; undefined where nobody knows it. Configured prices
 * count first, by the whole name or the one behind the prefix. The table is in US dollars: for
 * another currency every price has to be configured.
 */
export function priceOf(
  model: string,
  configured: readonly ConfiguredPrice[],
  currency: string = PRICE_CURRENCY,
): Price | undefined {
  const bare = (splitModelName(model) ?? splitPeerName(model))?.model;
  const own = configured.find((row) => row.model === model || row.model === bare);
  if (own !== undefined) return own;
  if (isFree(model)) return FREE;
  if (currency !== PRICE_CURRENCY) return undefined;
  const row = PRICES.find(([pattern]) => pattern.test(model.toLowerCase()));
  if (row === undefined) return undefined;
  const [, input, output, cached, written] = row;
  return { input, output, cached, ...(written === undefined ? {} : { written }) };
}

/** Runs on one's own machines, or costs nobody anything. */
function isFree(model: string): boolean {
  const vendor = splitModelName(model)?.vendor;
  return isDemo(model) || namesPeer(model) || (vendor !== undefined && isLocalVendor(vendor));
}
