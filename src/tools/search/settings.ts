// The configuration of what looks things up outside: engines for the web, figures of companies.

import { z } from 'zod';
import { count, seconds, secret } from '../../kernel/config/settings-fields.ts';

const SEARCH_ENGINES = ['searxng', 'brave'] as const;
export type SearchEngineName = (typeof SEARCH_ENGINES)[number];

const webAddress = z
  .string()
  .regex(/^(?:https?:\/\/[^\s?#]+)?$/, 'Write an address like http://localhost:8888');

export const searchSection = z.strictObject({
  engines: z
    .array(z.enum(SEARCH_ENGINES))
    .default([...SEARCH_ENGINES])
    .describe('In which order they are asked: the next one where one fails or is not set up.'),
  searxngUrl: webAddress
    .default('')
    .describe('Your SearXNG; its settings need "json" among search.formats. It may be local.'),
  braveApiKey: secret()
    .default('')
    .describe('From api-dashboard.search.brave.com. Empty: the variable BRAVE_API_KEY.'),
  braveUrl: webAddress
    .default('https://api.search.brave.com')
    .describe('Where Brave is asked, for a proxy of your own.'),
  maxResults: count(1, 20, 5).describe('Hits of one search where the model names no number.'),
  timeoutSecs: seconds(1, 60, 10).describe('Longest wait for one engine.'),
});

export const financeSection = z.strictObject({
  apiKey: secret()
    .default('')
    .describe('From financialdatasets.ai. Empty: the variable FINANCIAL_DATASETS_API_KEY.'),
  apiBase: webAddress
    .default('https://api.financialdatasets.ai')
    .describe('Where it is asked, for a proxy of your own.'),
});

export type SearchConfig = z.infer<typeof searchSection>;
export type FinanceConfig = z.infer<typeof financeSection>;
