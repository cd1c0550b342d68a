// Configuration of models on one's own machines: capabilities that the model name does not reveal,
// and how their servers are treated.

import { z } from 'zod';
import {
  count,
  flag,
  type Problems,
  seconds,
  section,
  text,
  unless,
} from '../../kernel/config/settings-fields.ts';
import { isLoopbackHost } from '../../lib/net/address-rules.ts';
import { t } from '../../lib/texts.ts';
import { LOCAL_VENDORS } from '../../providers/settings.ts';

const capability = z.strictObject({
  models: z
    .string()
    .min(1)
    .max(200)
    .describe('Part of the name, or the full name with * for any text: qwen3, ollama/gemma*.'),
  sizeClass: z
    .enum(['small', 'medium', 'large'])
    .optional()
    .describe('small: on a local server the model gets only the tools of localModels.smallTools.'),
  toolCalling: z
    .enum(['native', 'text', 'none'])
    .optional()
    .describe(
      'native: tool calls of the API; text: calls are written into the text; none: no tools.',
    ),
  textDialect: z
    .enum(['json', 'hermes', 'qwen', 'llama', 'deepseek'])
    .optional()
    .describe('How tool calls are written into the text.'),
  thinking: z.boolean().optional().describe('The model thinks unless told not to.'),
  strictAlternation: z
    .boolean()
    .optional()
    .describe('The model accepts only alternating messages of person and model.'),
  contextTokens: count(2048, 100_000_000)
    .optional()
    .describe('Context window in tokens, if the server does not report it correctly.'),
  maxReliableOutput: count(1, 1_000_000).optional().describe('Longest answer in tokens.'),
});

export type CapabilityOverride = z.infer<typeof capability>;

export const modelCapabilitiesSchema = z
  .array(capability)
  .max(100)
  .default([])
  .describe(
    'Capabilities of models, if name and server do not show them. The first match applies.',
  );

const program = (what: string) =>
  z.array(z.string().min(1).max(4096)).max(100).default([]).describe(what);
const start = (server: string) =>
  program(
    t`Program and arguments that start ${server} when it does not answer. Empty: not started.`,
  );
const stop = (server: string) =>
  program(t`The same that end ${server} where its program leaves it in the background.`);

const places = (server: string) =>
  count(1, 1000, 1).describe(`Most calls to ${server} at the same time; others wait.`);

export const localModelsSchema = section({
  model: text().describe('Model for /local, e.g. ollama/qwen3:8b. Empty: the first one found.'),
  only: flag(false).describe('Use only models and voice engines on your own machines and peers.'),
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
    .describe('Tools for small models on a local server. Empty: all.'),
  warmUp: flag(true).describe('Load the model on the server at the start and after a change.'),
  probeSecs: seconds(0, 3600, 60).describe(
    'Seconds between checks of a local server in use. 0: never.',
  ),
  memoryGb: z
    .number()
    .min(0)
    .max(100_000)
    .default(0)
    .describe(
      'Most memory for models of servers on this machine, in GB; others are unloaded first. 0: no limit.',
    ),
  start: section({
    ollama: start('Ollama'),
    lmstudio: start('LM Studio'),
    vllm: start('vLLM'),
    local: start(t`the server of providers.local`),
  }),
  stop: section({
    ollama: stop('Ollama'),
    lmstudio: stop('LM Studio'),
    vllm: stop('vLLM'),
    local: stop(t`the server of providers.local`),
  }),
  places: section({
    ollama: places('Ollama'),
    lmstudio: places('LM Studio'),
    vllm: places('vLLM'),
    local: places(t`the server of providers.local`),
  }),
});

/** A program starts servers on this machine only. */
export function localModelConflicts({
  localModels,
  providers,
}: {
  readonly localModels: z.infer<typeof localModelsSchema>;
  readonly providers: Readonly<Record<LocalVendorName, { readonly apiBase: string }>>;
}): Problems {
  return LOCAL_VENDORS.flatMap((vendor) => {
    const { apiBase } = providers[vendor];
    const isHere = apiBase === '' || isLoopbackHost(URL.parse(apiBase)?.hostname ?? '');
    const problem = t`${apiBase} is not an address of this machine`;
    const remedy = t`Start that server on its own machine, and remove the program.`;
    const isFine = isHere || localModels.start[vendor].length === 0;
    return unless(isFine, `localModels.start.${vendor}`, problem, remedy);
  });
}

type LocalVendorName = (typeof LOCAL_VENDORS)[number];
