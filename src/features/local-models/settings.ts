// The configuration of models on one's own machine: what they can do where their names do not tell, and
// how their servers are treated.

import { z } from 'zod';
import { count, flag, seconds, section, text } from '../../kernel/config/settings-fields.ts';

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
  contextTokens: count(2048, 100_000_000)
    .optional()
    .describe('Tokens of its window, where the server does not say or says otherwise.'),
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

const places = (server: string) =>
  count(1, 1000, 1).describe(`Calls that ${server} answers at once; others wait.`);

export const localModelsSchema = section({
  model: text().describe(
    'What /local changes to, e.g. ollama/qwen3:8b; empty: the first one found.',
  ),
  only: flag(false).describe(
    'No model and no voice service beyond one’s own machines and peers is asked.',
  ),
  smallTools: z
    .array(z.string().min(1).max(200))
    .max(200)
    .default([
      'read_file',
      'write_file',
      'list_dir',
      'exec',
      'web_search',
      'web_fetch',
      'remember',
      'recall',
      'read_result',
      'expand',
      'read_skill',
      'cron',
      'time',
    ])
    .describe('The tools that a small model on a local server is offered; empty: all.'),
  warmUp: flag(true).describe(
    'Has the server load the model at the start and after a change of it.',
  ),
  probeSecs: seconds(0, 3600, 60).describe(
    'How often a local server in use is looked after; 0: never.',
  ),
  places: section({
    ollama: places('Ollama'),
    lmstudio: places('LM Studio'),
    vllm: places('vLLM'),
    local: places('the server of providers.local'),
  }),
});
