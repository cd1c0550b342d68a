// The vendors' part of the configuration: their names, keys and addresses.

import { z } from 'zod';
import { secret } from './config-fields.ts';

const providerEntry = z.strictObject({
  apiKey: secret().default(''),
  apiBase: z.string().default('').describe('Base URL; empty: the vendor’s own.'),
});

export const PROVIDER_NAMES = [
  'anthropic',
  'openai',
  'openrouter',
  'deepseek',
  'gemini',
  'groq',
  'zhipu',
  'zhipuCoding',
  'huggingface',
  'ollama',
  'lmstudio',
  'vllm',
  'local',
] as const;
export type ProviderName = (typeof PROVIDER_NAMES)[number];

export const providersSchema = z.strictObject(
  Object.fromEntries(PROVIDER_NAMES.map((name) => [name, providerEntry.prefault({})])) as Record<
    ProviderName,
    z.ZodPrefault<typeof providerEntry>
  >,
);
