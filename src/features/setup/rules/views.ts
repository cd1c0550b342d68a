// What the HTTP API answers about the setup; the page has its types from here.

import { z } from 'zod';

const shownModel = z.object({
  name: z.string().describe('With its prefix.'),
  isDemo: z.boolean().describe('The built-in demo answers: no model is connected.'),
  problem: z.string().exactOptional().describe('Why it cannot answer, for people.'),
});
export const modelChoices = z.object({
  current: shownModel,
  found: z
    .array(
      z.object({
        model: z.string().describe('With its prefix.'),
        label: z.string().describe('The provider or the server.'),
        keyVariable: z
          .string()
          .exactOptional()
          .describe('The environment variable with its key; absent for a server on this machine.'),
      }),
    )
    .describe(
      'Can be used at once: servers that answer on this machine, and keys in the environment.',
    ),
  vendors: z
    .array(
      z.object({
        vendor: z.string(),
        label: z.string(),
        defaultModel: z.string(),
        hasKey: z.boolean().describe('A key is configured.'),
      }),
    )
    .describe('Providers with a key.'),
});
export const connectedModel = z.object({
  model: z.string(),
  latencyMs: z.number().describe('Of the test request.'),
});
export const listedModels = z.object({
  models: z.array(z.string()).describe('Empty if the server does not answer or lists none.'),
});
