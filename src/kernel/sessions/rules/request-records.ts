// The request log: the prompt, tools, settings and rights with which a model was called. Stored in
// pieces beside the conversation, each once, identified by fingerprints; here they are assembled.

import { z } from 'zod';
import { COMPACTION_ENGINES } from '../../../agent/compaction-settings.ts';
import { parseJson } from '../../../lib/json/json.ts';
import { PERMISSIONS, type Rights, TOOL_ACCESSES } from '../../access/rights.ts';
import { AGENT_MODES } from '../../config/settings-fields.ts';
import { FORGOTTEN } from './forgetting.ts';

/** A text with the fingerprint by which others refer to it. */
export type RequestPiece = {
  readonly print: string;
  readonly text: string;
  /** About nobody, and the same in many conversations: stored once for all of them. */
  readonly isCommon?: true;
};

const print = z.string().min(1);
const rights = z.object({
  ...Object.fromEntries(
    TOOL_ACCESSES.map((access) => [access, z.enum(PERMISSIONS).catch('never')]),
  ),
  own: z.array(z.enum(TOOL_ACCESSES)).optional().catch(undefined),
  trustsFiles: z.literal(true).optional().catch(undefined),
});

/**
 * The piece that refers to the others. `prompt` and `tools` are absent if another model was called.
 */
const requestRecord = z.object({
  model: z.string(),
  maxTokens: z.number().optional(),
  temperature: z.number().optional(),
  thinkingBudget: z.number(),
  contextTokens: z.number().optional(),
  mode: z.enum(AGENT_MODES).optional().catch(undefined),
  engine: z.enum(COMPACTION_ENGINES).optional().catch(undefined),
  rights: rights.transform((each) => each as unknown as Rights),
  prompt: z.array(z.tuple([z.string(), print])).optional(),
  tools: z.array(print).optional(),
  config: print.optional(),
});
export type RequestRecord = Readonly<z.infer<typeof requestRecord>>;

const toolSpec = z.object({
  name: z.string(),
  description: z.string(),
  schema: z.record(z.string(), z.unknown()),
});
type RequestTool = Readonly<z.infer<typeof toolSpec>>;

/** As read back. */
export type RecordedAsk = Omit<RequestRecord, 'prompt' | 'tools' | 'config'> & {
  readonly prompt?: readonly { readonly name: string; readonly text: string }[];
  readonly tools?: readonly RequestTool[];
  /** JSON of the settings that shape a turn. */
  readonly config?: unknown;
  /** Parts that are no longer stored, or were erased. */
  readonly lost: readonly string[];
};

/** By fingerprint. */
export type RequestTexts = ReadonlyMap<string, string>;

/** Undefined if it is not recorded, or incomplete. */
export function recordedAsk(
  named: string | undefined,
  texts: RequestTexts,
): RecordedAsk | undefined {
  const parsed = requestRecord.safeParse(jsonOf(texts.get(named ?? '')));
  if (!parsed.success) return undefined;
  const { prompt, tools, config, ...rest } = parsed.data;
  const parts = prompt?.map(([name, piece]) => ({ name, text: texts.get(piece) }));
  const specs = tools?.map((piece) => toolSpec.safeParse(jsonOf(texts.get(piece))));
  const settings = config === undefined ? undefined : jsonOf(texts.get(config));
  const lost = [
    ...(parts ?? []).filter(({ text }) => isLost(text)).map(({ name }) => `prompt: ${name}`),
    ...((specs ?? []).some(({ success }) => !success) ? ['a tool'] : []),
    ...(config !== undefined && settings === undefined ? ['settings'] : []),
  ];
  return {
    ...rest,
    ...(parts && {
      prompt: parts.flatMap(({ name, text }) => (text === undefined ? [] : { name, text })),
    }),
    ...(specs && { tools: specs.flatMap(({ data }) => data ?? []) }),
    ...(settings !== undefined && { config: settings }),
    lost,
  };
}

const isLost = (text: string | undefined) =>
  text === undefined || text.split('\n').includes(FORGOTTEN);

/** Fingerprints of everything that a piece refers to; empty if it refers to nothing. */
export function namedIn(text: string): readonly string[] {
  const parsed = requestRecord.safeParse(jsonOf(text));
  if (!parsed.success) return [];
  const { prompt = [], tools = [], config } = parsed.data;
  return [...prompt.map(([, piece]) => piece), ...tools, ...(config === undefined ? [] : [config])];
}

function jsonOf(text: string | undefined): unknown {
  return text?.startsWith('{') === true ? parseJson(text) : undefined;
}

/** Line by line, for comparison with another request. */
export function requestLines(ask: RecordedAsk): readonly string[] {
  const { model, prompt, tools, config, lost: _, rights: held, ...numbers } = ask;
  const said = Object.entries(numbers).filter(([, value]) => value !== undefined);
  return [
    `model: ${model}`,
    ...said.map(([name, value]) => `${name}: ${String(value)}`),
    `rights: ${TOOL_ACCESSES.map((access) => `${access} ${held[access]}`).join(', ')}`,
    ...leavesOf(config, ''),
    ...(tools ?? []).map(
      (tool) => `tool ${tool.name}: ${tool.description} ${JSON.stringify(tool.schema)}`,
    ),
    ...(prompt ?? []).flatMap(({ name, text }) => [
      `prompt, ${name}:`,
      ...text.split('\n').map((line) => `  ${line}`),
    ]),
  ];
}

/** A line for each setting. */
function leavesOf(value: unknown, path: string): readonly string[] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return value === undefined ? [] : [`${path} = ${JSON.stringify(value)}`];
  }
  return Object.entries(value).flatMap(([key, inner]) =>
    leavesOf(inner, path === '' ? key : `${path}.${key}`),
  );
}
