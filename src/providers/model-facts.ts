// What a local server says of a model it has: the window it is loaded with, whether it calls tools and
// thinks. Each server has a dialect of its own for that; what none of them says stays unknown.

import { z } from 'zod';
import { askLocal, isOk, type LocalAddress, type LocalQuestion } from './local-http.ts';
import type { ServerSaid } from './rules/model-capabilities.ts';
import type { LocalVendor } from './rules/model-names.ts';
import { LEAST_CONTEXT_TOKENS, MOST_CONTEXT_TOKENS } from './rules/overflow-size.ts';

export type ModelFacts = ServerSaid & {
  /** Of the window, in tokens. */
  readonly contextTokens?: number;
  /** In memory now; undefined where the server does not say. */
  readonly isLoaded?: boolean;
  /** The server hands what it is asked on to a service. */
  readonly isHandedOn?: true;
};

/** What Ollama calls them where nobody gave them another name. */
const HANDED_ON = /[:-]cloud$/;

export const isHandedOn = (model: string, facts?: ModelFacts) =>
  HANDED_ON.test(model) || facts?.isHandedOn === true;

/** Answers at once or is not asked again soon. */
const TIMEOUT_MS = 2000;
/** Servers that load a model with less than it could take, where they do not say with how much. */
const USUAL_CONTEXT_TOKENS = 32_768;

type Ask = (question: Omit<LocalQuestion, 'timeoutMs'>) => Promise<unknown>;
/** Undefined where the server does not speak this dialect. */
type Reader = (ask: Ask, model: string) => Promise<ModelFacts | undefined>;

/** Undefined where the server says nothing of it. */
export async function readModelFacts(
  server: LocalAddress & { readonly vendor: LocalVendor },
  model: string,
  signal: AbortSignal,
): Promise<ModelFacts | undefined> {
  const ask: Ask = async (question) => {
    const answer = await askLocal(server, { ...question, timeoutMs: TIMEOUT_MS }, signal);
    return answer !== undefined && isOk(answer) ? answer.body : undefined;
  };
  for (const read of READERS[server.vendor]) {
    const facts = await read(ask, model);
    if (facts !== undefined) return facts;
  }
  return undefined;
}

const contextSize = z.int().min(LEAST_CONTEXT_TOKENS).max(MOST_CONTEXT_TOKENS);
const maybeSize = contextSize.optional().catch(undefined);

/** Of a model that Ollama hands on. */
const remote = {
  remote_host: z.string().optional().catch(undefined),
  remote_model: z.string().optional().catch(undefined),
};
const shown = z.object({
  ...remote,
  model_info: z.record(z.string(), z.unknown()).default({}),
  parameters: z.string().default(''),
  capabilities: z.array(z.string()).optional(),
});
const running = z.object({
  models: z.array(
    z.object({ name: z.string(), model: z.string().optional(), context_length: maybeSize }),
  ),
});

/** Ollama: `/api/show` of the model as it is kept, `/api/ps` of those in memory. */
async function ollama(ask: Ask, model: string): Promise<ModelFacts | undefined> {
  const [show, ps] = await Promise.all([
    ask({ path: '/api/show', below: 'root', body: { model } }),
    ask({ path: '/api/ps', below: 'root' }),
  ]);
  const kept = shown.safeParse(show);
  if (!kept.success) return undefined;
  const { capabilities } = kept.data;
  const isElsewhere = isHandedOn(model) || namesRemote(kept.data);
  const loaded = running.safeParse(ps);
  const names = [model, `${model}:latest`];
  const own = loaded.data?.models.find((one) =>
    names.some((n) => n === one.name || n === one.model),
  );
  const contextTokens = own?.context_length ?? keptContext(kept.data);
  return {
    ...(contextTokens === undefined ? {} : { contextTokens }),
    ...(isElsewhere ? { isHandedOn: true as const } : {}),
    ...(loaded.success && !isElsewhere ? { isLoaded: own !== undefined } : {}),
    ...(capabilities === undefined
      ? {}
      : { tools: capabilities.includes('tools'), thinking: capabilities.includes('thinking') }),
  };
}

const namesRemote = (said: {
  readonly remote_host?: string | undefined;
  readonly remote_model?: string | undefined;
}) => Boolean(said.remote_host) || Boolean(said.remote_model);

const tags = z.object({
  models: z.array(z.object({ name: z.string(), model: z.string().optional(), ...remote })),
});

/** Those that an Ollama says it hands on; empty where it is none. */
export async function readHandedOn(
  server: LocalAddress,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<ReadonlySet<string>> {
  const said = await askLocal(server, { path: '/api/tags', below: 'root', timeoutMs }, signal);
  const listed = tags.safeParse(said !== undefined && isOk(said) ? said.body : undefined);
  const named = (listed.data?.models ?? []).filter(namesRemote);
  return new Set(named.flatMap(({ name, model = name }) => [name, model]));
}

/** `num_ctx` of its parameters; else what it was trained for, as far as such a server goes. */
function keptContext({ parameters, model_info }: z.infer<typeof shown>): number | undefined {
  const written = /^num_ctx\s+(\d+)/m.exec(parameters)?.[1];
  const configured = contextSize.safeParse(Number(written));
  if (configured.success) return configured.data;
  const trained = Object.entries(model_info).find(([key]) => key.endsWith('.context_length'))?.[1];
  const most = contextSize.safeParse(trained);
  return most.success ? Math.min(most.data, USUAL_CONTEXT_TOKENS) : undefined;
}

const lmModels = z.object({
  data: z.array(
    z.object({
      id: z.string(),
      state: z.string().optional(),
      max_context_length: maybeSize,
      loaded_context_length: maybeSize,
      capabilities: z.array(z.string()).optional().catch(undefined),
    }),
  ),
});

/** LM Studio: `/api/v0/models`. A model without `tool_use` calls tools all the same, only less well. */
async function lmStudio(ask: Ask, model: string): Promise<ModelFacts | undefined> {
  const answer = lmModels.safeParse(await ask({ path: '/api/v0/models', below: 'root' }));
  const own = answer.data?.data.find(({ id }) => id === model);
  if (own === undefined) return undefined;
  const most = own.max_context_length;
  const contextTokens =
    own.loaded_context_length ??
    (most === undefined ? undefined : Math.min(most, USUAL_CONTEXT_TOKENS));
  return {
    ...(contextTokens === undefined ? {} : { contextTokens }),
    ...(own.state === undefined ? {} : { isLoaded: own.state === 'loaded' }),
    ...(own.capabilities?.includes('tool_use') === true ? { tools: true } : {}),
  };
}

const props = z.object({ default_generation_settings: z.object({ n_ctx: contextSize }) });

/** llama.cpp: `/props`; the window is that of one slot. */
async function llamaCpp(ask: Ask): Promise<ModelFacts | undefined> {
  const answer = props.safeParse(await ask({ path: '/props', below: 'root' }));
  if (!answer.success) return undefined;
  return { contextTokens: answer.data.default_generation_settings.n_ctx, isLoaded: true };
}

const served = z.object({
  data: z.array(z.object({ id: z.string(), max_model_len: maybeSize })),
});

/** vLLM: `max_model_len` in the list of models. */
async function vllm(ask: Ask, model: string): Promise<ModelFacts | undefined> {
  const answer = served.safeParse(await ask({ path: '/models', below: 'apiBase' }));
  const own = answer.data?.data.find(({ id }) => id === model)?.max_model_len;
  return own === undefined ? undefined : { contextTokens: own, isLoaded: true };
}

/** A server of which only the address is known may be any of them. */
const READERS: Readonly<Record<LocalVendor, readonly Reader[]>> = {
  ollama: [ollama],
  lmstudio: [lmStudio],
  vllm: [vllm],
  local: [llamaCpp, lmStudio, vllm],
};
