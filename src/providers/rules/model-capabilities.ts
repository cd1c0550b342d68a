// What a model can do, by its name: the table of models that run on one's own machine, and what the
// configuration or the server itself says instead. Models of a vendor's service are never cut down for
// a name nobody knows: only what the table is sure of counts against them.

import type { CapabilityOverride } from '../../features/local-models/settings.ts';
import { matchesWildcard } from '../../lib/text/cut.ts';

type SizeClass = 'small' | 'medium' | 'large';

/** How a model that writes its calls as text writes them. */
export type TextDialect = 'json' | 'hermes' | 'qwen' | 'llama' | 'deepseek';

export type ModelCapabilities = {
  readonly sizeClass: SizeClass;
  /** `native`: calls in the fields of the dialect; `text`: in its text; `none`: not at all. */
  readonly toolCalling: 'native' | 'text' | 'none';
  readonly textDialect: TextDialect;
  /** Thinks before it answers, unless it is told not to. */
  readonly thinking: boolean;
  /** Takes only a thread in which person and model speak by turns. */
  readonly strictAlternation: boolean;
  /** Longest answer it writes without going astray, tokens; undefined: no limit of its own. */
  readonly maxReliableOutput?: number;
  /** Of its window, as configured; undefined: its server or the table of names knows. */
  readonly contextTokens?: number;
};

/** What a server says of a model it has. */
export type ServerSaid = { readonly tools?: boolean; readonly thinking?: boolean };

export type CapabilityQuestion = {
  /** With its prefix. */
  readonly name: string;
  readonly local: boolean;
  /** Earlier ones count before later ones. */
  readonly overrides: readonly CapabilityOverride[];
  readonly said?: ServerSaid;
};

/** The configuration counts first, then the server, then the name. */
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

/** Billions of parameters; what lies between is medium. */
const SMALL_BELOW = 6;
const LARGE_FROM = 30;
/** Below it a number is that of something else, as of the context in `-1m`. */
const LEAST = 0.05;
/** Families whose names often go without the number. */
const SMALL_FAMILIES = /nanbeige|functiongemma|ministral|tinyllama|smollm|phi-?[34]-?mini/;

function sizeOf(name: string): SizeClass {
  const billions = billionsIn(name);
  if (billions === undefined) return SMALL_FAMILIES.test(name) ? 'small' : 'medium';
  if (billions < SMALL_BELOW) return 'small';
  return billions < LARGE_FROM ? 'medium' : 'large';
}

/**
 * `qwen3-1.7b` is 1.7, `gemma3:270m` 0.27, `mixtral-8x7b` 56, `gemma-3n-e4b` 4; what of a mixture is
 * active (`30b-a3b`) does not count. Undefined where the name says none.
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

/** Made before models were taught to call, or without being taught. */
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
/** Their chat templates refuse two messages of one side. */
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

/** `*` stands for anything; without one the text may stand anywhere in the name. */
const matches = (name: string, pattern: string): boolean =>
  pattern.includes('*') ? matchesWildcard(name, pattern) : name.includes(pattern);
