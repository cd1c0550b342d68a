// One row per vendor: where it answers, which environment variable holds its key, and the few places
// where its dialect differs. Another OpenAI-speaking vendor is another row here.

import type { ProviderName } from '../kernel/config/config.ts';
import type { ModelRequest } from './provider.ts';
import {
  type ExtraParameters,
  groqThinking,
  localEffort,
  openaiThinking,
  templateThinking,
  thinkingSwitch,
} from './quirks.ts';

export type Vendor = {
  readonly name: ProviderName;
  /** As people know it. */
  readonly label: string;
  readonly apiBase: string;
  /** Environment variables that may hold the key, first one first; local servers need none. */
  readonly keyVariables: readonly string[];
  readonly dialect: 'openai' | 'anthropic';
  readonly quirks: Quirks;
};

/** Where an OpenAI dialect differs; an absent one means: as most do. */
export type Quirks = {
  readonly maxTokensField?: 'max_tokens' | 'max_completion_tokens';
  /** Does not know `stream_options`; sends usage by itself or not at all. */
  readonly noUsageOption?: true;
  /** Wants the thinking of earlier tool calls back as `reasoning_content`. */
  readonly echoesReasoning?: true;
  /** Signs tool calls under `extra_content.google` and wants the signatures back. */
  readonly signsToolCalls?: true;
  /** Writes its thinking into the text, between think tags. */
  readonly thinkTags?: true;
  /** Takes Anthropic's cache marks for models whose name matches. */
  readonly cacheMarksFor?: RegExp;
  /** Knows `prompt_cache_key`, at its own address. */
  readonly takesCacheKey?: true;
  /** Temperature must be left out for models whose name matches. */
  readonly fixedTemperature?: RegExp;
  /** Images it takes in one call, where that is fewer than we show. */
  readonly maxImages?: number;
  readonly extras?: (request: ModelRequest) => ExtraParameters;
};

const cloud = (
  name: ProviderName,
  label: string,
  apiBase: string,
  keyVariable: string,
  quirks: Quirks = {},
): Vendor => ({ name, label, apiBase, keyVariables: [keyVariable], dialect: 'openai', quirks });

const local = (name: ProviderName, label: string, port: number, quirks: Quirks): Vendor => ({
  name,
  label,
  apiBase: `http://127.0.0.1:${port}/v1`,
  keyVariables: [],
  dialect: 'openai',
  quirks: { thinkTags: true, ...quirks },
});

const ROWS: readonly Vendor[] = [
  {
    name: 'anthropic',
    label: 'Anthropic',
    apiBase: 'https://api.anthropic.com',
    keyVariables: ['ANTHROPIC_API_KEY'],
    dialect: 'anthropic',
    quirks: {},
  },
  cloud('openai', 'OpenAI', 'https://api.openai.com/v1', 'OPENAI_API_KEY', {
    maxTokensField: 'max_completion_tokens',
    fixedTemperature: /^(o\d|gpt-[5-9])/,
    takesCacheKey: true,
    extras: openaiThinking,
  }),
  cloud('openrouter', 'OpenRouter', 'https://openrouter.ai/api/v1', 'OPENROUTER_API_KEY', {
    cacheMarksFor: /^anthropic\//,
    extras: ({ thinkingBudget = 0 }) =>
      thinkingBudget > 0 ? { reasoning: { max_tokens: thinkingBudget } } : {},
  }),
  cloud('deepseek', 'DeepSeek', 'https://api.deepseek.com', 'DEEPSEEK_API_KEY', {
    echoesReasoning: true,
    extras: thinkingSwitch,
  }),
  cloud(
    'gemini',
    'Google Gemini',
    'https://generativelanguage.googleapis.com/v1beta/openai',
    'GEMINI_API_KEY',
    { signsToolCalls: true, extras: openaiThinking },
  ),
  cloud('groq', 'Groq', 'https://api.groq.com/openai/v1', 'GROQ_API_KEY', {
    maxImages: 5,
    extras: groqThinking,
  }),
  cloud('zhipu', 'Zhipu', 'https://api.z.ai/api/paas/v4', 'ZHIPU_API_KEY', {
    noUsageOption: true,
    extras: thinkingSwitch,
  }),
  cloud(
    'zhipuCoding',
    'Zhipu Coding',
    'https://api.z.ai/api/coding/paas/v4',
    'ZHIPU_CODING_API_KEY',
    { noUsageOption: true, extras: thinkingSwitch },
  ),
  cloud('huggingface', 'Hugging Face', 'https://router.huggingface.co/v1', 'HF_TOKEN', {
    thinkTags: true,
  }),
  local('ollama', 'Ollama', 11_434, { extras: localEffort }),
  local('lmstudio', 'LM Studio', 1234, { extras: localEffort }),
  local('vllm', 'vLLM', 8000, { extras: templateThinking }),
  local('local', 'the local model server', 8080, { extras: templateThinking }),
];

const BY_NAME: ReadonlyMap<ProviderName, Vendor> = new Map(ROWS.map((row) => [row.name, row]));

export function vendorOf(name: ProviderName): Vendor {
  const row = BY_NAME.get(name);
  if (row === undefined) throw new Error(`no vendor row for ${name}`);
  return row;
}
