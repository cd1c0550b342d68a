// Names of models: prefixes, what a bare name says of its vendor, and the tables of defaults, cheaper
// siblings and context sizes. Names age; everything that knows one by heart is in this file.

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
