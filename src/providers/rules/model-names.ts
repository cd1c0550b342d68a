// Names of models: vendor prefixes, defaults, peers, prices per million tokens, and what a model
// can do by its name.

import type { CapabilityOverride } from '../../features/local-models/settings.ts';
import type { Price } from '../../features/spending/rules/spending.ts';
import { matchesWildcard } from '../../lib/text/cut.ts';
import { CLOUD_ORDER, LOCAL_VENDORS, PROVIDER_NAMES, type ProviderName } from '../settings.ts';

export { CLOUD_ORDER, LOCAL_VENDORS };

export const DEMO_MODEL = 'demo/demo';
export const DEMO_CONTEXT_TOKENS = 32_768;
export const isDemo = (name: string) => name === 'demo' || name.startsWith('demo/');

export type LocalVendor = (typeof LOCAL_VENDORS)[number];

export const isLocalVendor = (vendor: ProviderName): vendor is LocalVendor =>
  LOCAL_VENDORS.some((local) => local === vendor);

/** A vendor's prefix before the slash; only one differs from its configuration key. */
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

/** Bare names that clearly belong to one vendor, so that no prompt goes to the wrong one. */
const PATTERNS: readonly NamePattern[] = [
  { pattern: /^claude-/, vendors: ['anthropic'] },
  { pattern: /^(gpt-(?!oss)|chatgpt-|o[1-9](-|$))/, vendors: ['openai'] },
  { pattern: /^gemini-/, vendors: ['gemini'] },
  { pattern: /^deepseek-/, vendors: ['deepseek'] },
  { pattern: /^glm-/, vendors: ['zhipu', 'zhipuCoding'] },
  { pattern: /^llama-.*-(versatile|instant)$/, vendors: ['groq'] },
  /** `maker/model` is the naming scheme of the two marketplaces. */
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

/** The default model of a vendor whose key is set, with its prefix. */
export const defaultModelOf = (vendor: (typeof CLOUD_ORDER)[number]): string =>
  `${prefixOf(vendor)}/${MODELS[vendor].main}`;

/** A cheaper model of the same vendor for background work, with its prefix. */
export function fastModelOf(vendor: ProviderName): string | undefined {
  if (isLocalVendor(vendor)) return undefined;
  return `${prefixOf(vendor)}/${MODELS[vendor].fast}`;
}

/** Tokens of context; the first match counts. Unknown cloud models get `DEFAULT`. */
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
/** Local servers rarely load a model with more, and silently cut what is beyond. */
const LOCAL_CONTEXT_TOKENS = 32_768;

export function contextTokensOf(vendor: ProviderName, model: string): number {
  if (isLocalVendor(vendor)) return LOCAL_CONTEXT_TOKENS;
  const lower = model.toLowerCase();
  return CONTEXT_TOKENS.find((row) => row.pattern.test(lower))?.tokens ?? DEFAULT_CONTEXT_TOKENS;
}

// Names of models on a peer: `peer:<name>/<model>`.

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

/** The name of a model on a server, which may be a peer. */
export function localModelName(
  { vendor, peer }: { readonly vendor: LocalVendor; readonly peer?: string },
  model: string,
): string {
  return peer === undefined ? `${prefixOf(vendor)}/${model}` : peerModelName({ peer, model });
}

export const serverLabel = (label: string, peer: string | undefined) =>
  peer === undefined ? label : `the peer ${peer}`;

// Prices of models in US dollars per million tokens, from the vendors' lists. Prices age: a model
// that is not listed has no price rather than a wrong one, and the configuration can set it.

const PRICE_CURRENCY = 'USD';

export type ConfiguredPrice = Price & { readonly model: string };

const FREE: Price = { input: 0, output: 0, cached: 0 };

type Row = readonly [
  pattern: RegExp,
  input: number,
  output: number,
  cached: number,
  /** Written to the cache, for five minutes. */
  written?: number,
];

/** A name with a date or `latest` at its end is the same model. */
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
  [exactly('text-embedding-3-small'), 0.02, 0, 0.02],
  [exactly('text-embedding-3-large'), 0.13, 0, 0.13],
  [exactly('text-embedding-ada-002'), 0.1, 0, 0.1],
  [exactly('gemini-embedding-001'), 0.15, 0, 0.15],
];

/** Factor on the dearest known price, so that an unknown model is not assumed too cheap. */
const CAUTION = 2;

/** How a model without a price is treated under a budget in money. */
type UnpricedRule = 'refuse' | { readonly input: number; readonly output: number };

/** The assumed price of such a model; undefined: it must not be called. */
export function assumedPrice(rule: UnpricedRule | undefined, currency: string): Price | undefined {
  if (rule === 'refuse') return undefined;
  if (rule !== undefined) return { ...rule, cached: rule.input };
  if (currency !== PRICE_CURRENCY) return undefined;
  const input = CAUTION * Math.max(...PRICES.map(([, each]) => each));
  const output = CAUTION * Math.max(...PRICES.map(([, , each]) => each));
  return { input, output, cached: input };
}

/**
 * The price of a model by its name with prefix; undefined if unknown. Configured prices take
 * precedence, by the whole name or the one after the prefix. The table is in US dollars: for
 * another currency every price must be configured.
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

/** Runs on the person's own machines, or is free. */
function isFree(model: string): boolean {
  const vendor = splitModelName(model)?.vendor;
  return isDemo(model) || namesPeer(model) || (vendor !== undefined && isLocalVendor(vendor));
}

// What a model can do, by its name: the table of models that run on a person's own machine,
// overridden by the configuration or the server itself. Models of a vendor's service are not
// restricted for an unknown name: only certain entries of the table count against them.

type SizeClass = 'small' | 'medium' | 'large';

/** The syntax in which a model writes tool calls as text. */
export type TextDialect = 'json' | 'hermes' | 'qwen' | 'llama' | 'deepseek';

export type ModelCapabilities = {
  readonly sizeClass: SizeClass;
  /** `native`: calls in the fields of the dialect; `text`: in its text; `none`: not at all. */
  readonly toolCalling: 'native' | 'text' | 'none';
  readonly textDialect: TextDialect;
  /** Thinks before it answers, unless told not to. */
  readonly thinking: boolean;
  /** Accepts only threads in which user and model alternate. */
  readonly strictAlternation: boolean;
  /** Longest answer that it writes reliably, tokens; undefined: no limit of its own. */
  readonly maxReliableOutput?: number;
  /** Configured size of its window; undefined: from its server or the table of names. */
  readonly contextTokens?: number;
};

/** What a server reports about a model. */
export type ServerSaid = { readonly tools?: boolean; readonly thinking?: boolean };

export type CapabilityQuestion = {
  /** With its prefix. */
  readonly name: string;
  readonly local: boolean;
  /** Earlier ones take precedence. */
  readonly overrides: readonly CapabilityOverride[];
  readonly said?: ServerSaid;
};

/** Precedence: the configuration, the server, the name. */
export function capabilitiesOf(question: CapabilityQuestion): ModelCapabilities {
  const { local, overrides, said = {} } = question;
  const name = question.name.toLowerCase();
  const matching = overrides.filter(({ models }) => matches(name, models.toLowerCase()));
  const base = local ? localModel(name, said) : CLOUD;
  return Object.assign({}, base, ...matching.toReversed().map(configured));
}

function configured({ models: _pattern, ...said }: CapabilityOverride): Partial<ModelCapabilities> {
  const given = Object.entries(said).filter(([, value]) => value !== undefined);
  return Object.fromEntries(given);
}

const CLOUD: ModelCapabilities = {
  sizeClass: 'large',
  toolCalling: 'native',
  textDialect: 'json',
  thinking: false,
  strictAlternation: false,
};

function localModel(name: string, said: ServerSaid): ModelCapabilities {
  const sizeClass = sizeOf(name);
  const tools = said.tools ?? (TRAINED_TO_CALL.test(name) || !CALLS_NO_TOOLS.test(name));
  return {
    sizeClass,
    toolCalling: tools ? 'native' : 'text',
    textDialect: DIALECTS.find(({ pattern }) => pattern.test(name))?.dialect ?? 'json',
    thinking: said.thinking ?? (THINKS.test(name) && !ANSWERS_AT_ONCE.test(name)),
    strictAlternation: ALTERNATES.test(name) && !TRAINED_TO_CALL.test(name),
    maxReliableOutput:
      OUTPUTS.find(({ pattern }) => pattern.test(name))?.tokens ?? OUTPUT_OF[sizeClass],
  };
}

/** Billions of parameters; in between is medium. */
const SMALL_BELOW = 6;
const LARGE_FROM = 30;
/** A smaller number means something else, e.g. the context in `-1m`. */
const LEAST = 0.05;
/** Families whose names often omit the number. */
const SMALL_FAMILIES = /nanbeige|functiongemma|ministral|tinyllama|smollm|phi-?[34]-?mini/;

function sizeOf(name: string): SizeClass {
  const billions = billionsIn(name);
  if (billions === undefined) return SMALL_FAMILIES.test(name) ? 'small' : 'medium';
  if (billions < SMALL_BELOW) return 'small';
  return billions < LARGE_FROM ? 'medium' : 'large';
}

/**
 * `qwen3-1.7b` is 1.7, `gemma3:270m` 0.27, `mixtral-8x7b` 56, `gemma-3n-e4b` 4; the active part of
 * a mixture (`30b-a3b`) does not count. Undefined if the name has no size.
 */
function billionsIn(name: string): number | undefined {
  const sizes = [...name.matchAll(SIZE)]
    .map(([, times = '1', number = '', unit]) => {
      const billions = unit === 'm' ? Number(number) / 1000 : Number(number);
      return Number(times) * billions;
    })
    .filter((billions) => billions >= LEAST);
  return sizes.length === 0 ? undefined : Math.max(...sizes);
}

const SIZE = /(?<![a-z0-9.])e?(?:(\d{1,2})x)?(\d{1,4}(?:\.\d{1,3})?)([bm])(?![a-z0-9])/g;

/** Not trained to call tools. */
const CALLS_NO_TOOLS = new RegExp(
  [
    'gemma-?[123](?!\\d)|gemma[:-]7b|phi-?[23](?!\\d)|llama-?2(?!\\d)|llama-?3(?!\\.[1-9]|\\d)',
    'tinyllama|vicuna|llava|codellama|\\borca|zephyr|stablelm|openchat|wizardlm',
    'deepseek-(?:r1|coder)|mistral.*v0\\.[12]',
  ].join('|'),
);
const TRAINED_TO_CALL = /function|tool|hermes/;
const THINKS =
  /qwq|qwen-?3(?!\d)|deepseek-r1|nemotron|orchestrator|gpt-oss|magistral|thinking|reason/;
const ANSWERS_AT_ONCE = /non-?thinking|(?:instruct|coder|qwen3-vl)(?!.*thinking)/;
/** Their chat templates refuse two consecutive messages of one side. */
const ALTERNATES = /gemma|mistral|mixtral|ministral|llama-?2(?![0-9])/;

const DIALECTS: readonly { readonly pattern: RegExp; readonly dialect: TextDialect }[] = [
  { pattern: /hermes/, dialect: 'hermes' },
  { pattern: /deepseek/, dialect: 'deepseek' },
  { pattern: /qwen|qwq/, dialect: 'qwen' },
  { pattern: /llama-?3/, dialect: 'llama' },
];

const OUTPUTS: readonly { readonly pattern: RegExp; readonly tokens: number }[] = [
  { pattern: /nanbeige|functiongemma/, tokens: 512 },
  { pattern: /ministral-3/, tokens: 1024 },
];
const OUTPUT_OF: Readonly<Record<SizeClass, number>> = { small: 2048, medium: 4096, large: 16_384 };

/** `*` matches anything; without one the text may occur anywhere in the name. */
const matches = (name: string, pattern: string): boolean =>
  pattern.includes('*') ? matchesWildcard(name, pattern) : name.includes(pattern);
