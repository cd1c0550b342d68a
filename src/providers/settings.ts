// The vendors' part of the configuration: their names, keys and addresses.

import { z } from 'zod';
import { proxy, secret, text } from '../kernel/config/settings-fields.ts';

const providerEntry = z.strictObject({
  apiKey: secret()
    .default('')
    .describe('Key of the service. Empty: its environment variable, e.g. ANTHROPIC_API_KEY.'),
  apiBase: text().describe('Base URL. Empty: the provider’s own.'),
  proxy,
});

/** In the order in which a key makes a vendor the default. */
export const CLOUD_ORDER = [
  'anthropic',
  'openai',
  'openrouter',
  'deepseek',
  'gemini',
  'groq',
  'zhipu',
  'zhipuCoding',
  'huggingface',
] as const;
/** Servers that people run themselves. */
export const LOCAL_VENDORS = ['ollama', 'lmstudio', 'vllm', 'local'] as const;

export const PROVIDER_NAMES = [...CLOUD_ORDER, ...LOCAL_VENDORS] as const;
export type ProviderName = (typeof PROVIDER_NAMES)[number];

export const providersSchema = z.strictObject(
  Object.fromEntries(PROVIDER_NAMES.map((name) => [name, providerEntry.prefault({})])) as Record<
    ProviderName,
    z.ZodPrefault<typeof providerEntry>
  >,
);
