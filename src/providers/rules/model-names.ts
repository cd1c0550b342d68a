// Names of models: vendor prefixes, defaults, peers, and prices per million tokens.

import type { Price } from '../../features/spending/rules/spending.ts';
import { CLOUD_ORDER, LOCAL_VENDORS, PROVIDER_NAMES, type ProviderName } from '../settings.ts';

export { CLOUD_ORDER, LOCAL_VENDORS };

export const DEMO_MODEL = 'demo/demo';
export const isDemo = (name: string) => name === 'demo' || name.startsWith('demo/');

export type LocalVendor = (typeof LOCAL_VENDORS)[number];

export const isLocalVendor = (vendor: ProviderName): vendor is LocalVendor =>
  LOCAL_VENDORS.some((local) => local === vendor);

/** How a vendor is written before the slash; only one differs from its configuration key. */
export const prefixOf = (vendor: ProviderName): string =>
  vendor === 'zhipuCoding' ? 'zhipu-coding' : vendor;

const VENDOR_BY_PREFIX: ReadonlyMap<string, ProviderName> = new Map(
  PROVIDER_NAMES.map((vendor) => [prefixOf(vendor), vendor]),
);

export type QualifiedModel = { readonly vendor: ProviderName; readonly model: string };

/** `groq/openai/gpt-oss-120b` is groq's `openai/gpt-oss-120b`; undefined without a known prefix. */
export function splitModelName(name: string): QualifiedModel | undefined {
  const slash = name.indexOf('/');
  if (slash <= 0 || slash === name.length - 1) return undefined;
  const vendor = VENDOR_BY_PREFIX.get(name.slice(0, slash).toLowerCase());
  return vendor === undefined ? undefined : { vendor, model: name.slice(slash + 1) };
}

type NamePattern = { readonly pattern: RegExp; readonly vendors: readonly ProviderName[] };

/** Bare names that belong to one vendor beyond doubt, so that no prompt goes to the wrong house. */
const PATTERNS: readonly NamePattern[] = [
  { pattern: /^claude-/, vendors: ['anthropic'] },
  { pattern: /^(gpt-(?!oss)|chatgpt-|o[1-9](-|$))/, vendors: ['openai'] },
  { pattern: /^gemini-/, vendors: ['gemini'] },
  { pattern: /^deepseek-/, vendors: ['deepseek'] },
  { pattern: /^glm-/, vendors: ['zhipu', 'zhipuCoding'] },
  { pattern: /^llama-.*-(versatile|instant)$/, vendors: ['groq'] },
  /** `maker/model` is how the two market places name what they serve. */
  { pattern: /^[\w.-]+\/[\w.:-]+$/, vendors: ['openrouter', 'huggingface'] },
];

/** Vendors that may serve a bare name, best first. */
export function vendorsOfBareName(name: string): readonly ProviderName[] {
  const lower = name.toLowerCase();
  return PATTERNS.find(({ pattern }) => pattern.test(lower))?.vendors ?? [];
}

type Pair = { readonly main: string; readonly fast: string };

const MODELS: Readonly<Record<(typeof CLOUD_ORDER)[number], Pair>> = {
  anthropic: { main: 'claude-sonnet-5-5', fast: 'claude-haiku-5-5' },
  openai: { main: 'gpt-6-sol', fast: 'gpt-6-luna' },
  openrouter: { main: 'anthropic/claude-sonnet-5', fast: 'anthropic/claude-haiku-4.5' },
  deepseek: { main: 'deepseek-flash', fast: 'deepseek-flash' },
  gemini: { main: 'gemini-flash-latest', fast: 'gemini-flash-lite-latest' },
  groq: { main: 'openai/gpt-oss-120b', fast: 'openai/gpt-oss-20b' },
  zhipu: { main: 'glm-4.7', fast: 'glm-4.5-air' },
  zhipuCoding: { main: 'glm-4.7', fast: 'glm-4.5-air' },
  huggingface: { main: 'openai/gpt-oss-120b', fast: 'openai/gpt-oss-20b' },
};

/** The model a vendor's key alone stands for, with its prefix. */
export const defaultModelOf = (vendor: (typeof CLOUD_ORDER)[number]): string =>
  `${prefixOf(vendor)}/${MODELS[vendor].main}`;

/** A cheaper model of the same vendor for side work, with its prefix. */
export function fastModelOf(vendor: ProviderName): string | undefined {
  if (isLocalVendor(vendor)) return undefined;
  return `${prefixOf(vendor)}/${MODELS[vendor].fast}`;
}

/** Tokens of context; the first match counts. Unknown cloud models are taken at `DEFAULT`. */
const CONTEXT_TOKENS: readonly { readonly pattern: RegExp; readonly tokens: number }[] = [
  { pattern: /claude-(fable|mythos|opus|sonnet)-(5|4-[6-9])/, tokens: 1_000_000 },
  { pattern: /claude-/, tokens: 200_000 },
  { pattern: /gpt-4\.1/, tokens: 1_000_000 },
  { pattern: /gpt-[5-9]/, tokens: 400_000 },
  { pattern: /gpt-oss|gpt-4|llama-3/, tokens: 128_000 },
  { pattern: /gpt-3\.5/, tokens: 16_000 },
  { pattern: /\bo[134]\b/, tokens: 200_000 },
  { pattern: /gemini-/, tokens: 1_000_000 },
  { pattern: /deepseek-(flash|v4)/, tokens: 1_000_000 },
  { pattern: /glm-(5|4\.[67])/, tokens: 200_000 },
];
const DEFAULT_CONTEXT_TOKENS = 128_000;
/** Local servers rarely load a model with more, and cut silently what is beyond. */
const LOCAL_CONTEXT_TOKENS = 32_768;

export function contextTokensOf(vendor: ProviderName, model: string): number {
  if (isLocalVendor(vendor)) return LOCAL_CONTEXT_TOKENS;
  const lower = model.toLowerCase();
  return CONTEXT_TOKENS.find((row) => row.pattern.test(lower))?.tokens ?? DEFAULT_CONTEXT_TOKENS;
}

// How a model on a peer is called: `peer:<name>/<model>`.

const PREFIX = 'peer:';

type PeerModel = { readonly peer: string; readonly model: string };

export const peerModelName = ({ peer, model }: PeerModel) => `${PREFIX}${peer}/${model}`;

export const namesPeer = (name: string) => name.startsWith(PREFIX);

/** Undefined for any other name. */
export function splitPeerName(name: string): PeerModel | undefined {
  const slash = name.indexOf('/');
  if (!namesPeer(name) || slash <= PREFIX.length || slash === name.length - 1) return undefined;
  return { peer: name.slice(PREFIX.length, slash), model: name.slice(slash + 1) };
}

/** As a model of a server is called, which may be that of a peer. */
export function localModelName(
  { vendor, peer }: { readonly vendor: LocalVendor; readonly peer?: string },
  model: string,
): string {
  return peer === undefined ? `${prefixOf(vendor)}/${model}` : peerModelName({ peer, model });
}

export const serverLabel = (label: string, peer: string | undefined) =>
  peer === undefined ? label : `the peer ${peer}`;

// What models cost, in US dollars per million tokens, as their vendors list it. Prices age: a model
// that is not here has no price rather than a wrong one, and the configuration can name it.

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
type UnpricedRule = 'refuse' | { readonly input: number; readonly output: number };

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
