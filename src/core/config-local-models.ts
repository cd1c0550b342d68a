// The configuration of models on one's own machine: what they can do where their names do not tell, and
// how their servers are treated.

import { z } from 'zod';
import { count } from './config-fields.ts';

const capability = z.strictObject({
  models: z
    .string()
    .min(1)
    .max(200)
    .describe('Part of the name, or the whole with * for anything: qwen3, ollama/gemma*.'),
  sizeClass: z
    .enum(['small', 'medium', 'large'])
    .optional()
    .describe('small: on a local server only the tools of localModels.smallTools are offered.'),
  toolCalling: z
    .enum(['native', 'text', 'none'])
    .optional()
    .describe('text: calls are written into the text and read from it; none: no tools.'),
  textDialect: z
    .enum(['json', 'hermes', 'qwen', 'llama', 'deepseek'])
    .optional()
    .describe('How calls are written into the text.'),
  thinking: z.boolean().optional().describe('Thinks unless it is told not to.'),
  strictAlternation: z
    .boolean()
    .optional()
    .describe('Takes only threads in which person and model speak by turns.'),
  maxReliableOutput: count(1, 1_000_000)
    .optional()
    .describe('Longest answer it may be asked for, tokens.'),
});

export type CapabilityOverride = z.infer<typeof capability>;

export const modelCapabilitiesSchema = z
  .array(capability)
  .max(100)
  .default([])
  .describe('What models can do, where the name or the server does not tell; earlier ones count.');
