// Local model servers: discovery, the models they list with their context windows, and window sizes
// they refused.

import { z } from 'zod';
import { defined, parseJson } from '../lib/json/json.ts';
import { fetchThrough } from '../lib/net/proxies.ts';
import type { Clock } from '../lib/time/clock.ts';
import type { LocalVendor, ServerSaid } from './rules/model-names.ts';
import { LEAST_CONTEXT_TOKENS, MOST_CONTEXT_TOKENS } from './rules/provider-failure.ts';
import { vendorOf } from './vendors.ts';

export type ModelFacts = ServerSaid & {
  /** Size of the window, in tokens. */
  readonly contextTokens?: number;
  /** In memory now; undefined if the server does not report it. */
  readonly isLoaded?: boolean;
  /** The server forwards requests to a cloud service. */
  readonly isHandedOn?: true;
};

/** Ollama's default names of forwarded models. */
const HANDED_ON = /[:-]cloud$/;

export const isHandedOn = (model: string, facts?: ModelFacts) =>
  HANDED_ON.test(model) || facts?.isHandedOn === true;

/** A server that does not answer within this time is not asked again soon. */
const TIMEOUT_MS = 2000;
/**
 * For servers that load a model with a smaller window than it supports and do not report its size.
 */
const USUAL_CONTEXT_TOKENS = 32_768;

type Ask = (question: Omit<LocalQuestion, 'timeoutMs'>) => Promise<unknown>;
/** Undefined if the server does not speak this dialect. */
type Reader = (ask: Ask, model: string) => Promise<ModelFacts | undefined>;

/** Undefined if the server reports nothing about the model. */
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

/** Set for a model that Ollama forwards. */
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

/** Ollama: `/api/show` of the stored model, `/api/ps` of those in memory. */
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
  return defined({
    contextTokens,
    isHandedOn: isElsewhere || undefined,
    isLoaded: loaded.success && !isElsewhere ? own !== undefined : undefined,
    tools: capabilities?.includes('tools'),
    thinking: capabilities?.includes('thinking'),
  });
}

const namesRemote = ({ remote_host, remote_model }: z.infer<z.ZodObject<typeof remote>>) =>
  Boolean(remote_host) || Boolean(remote_model);

const tags = z.object({
  models: z.array(z.object({ name: z.string(), model: z.string().optional(), ...remote })),
});

/** Models that an Ollama server reports as forwarded; empty for other servers. */
async function readHandedOn(
  server: LocalAddress,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<ReadonlySet<string>> {
  const said = await askLocal(server, { path: '/api/tags', below: 'root', timeoutMs }, signal);
  const listed = tags.safeParse(said !== undefined && isOk(said) ? said.body : undefined);
  const named = (listed.data?.models ?? []).filter(namesRemote);
  return new Set(named.flatMap(({ name, model = name }) => [name, model]));
}

/** `num_ctx` of its parameters; else its trained size, up to what such a server uses. */
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

/**
 * LM Studio: `/api/v0/models`. A model without `tool_use` can call tools as well, but less
 * reliably.
 */
async function lmStudio(ask: Ask, model: string): Promise<ModelFacts | undefined> {
  const answer = lmModels.safeParse(await ask({ path: '/api/v0/models', below: 'root' }));
  const own = answer.data?.data.find(({ id }) => id === model);
  if (own === undefined) return undefined;
  const most = own.max_context_length;
  const contextTokens =
    own.loaded_context_length ??
    (most === undefined ? undefined : Math.min(most, USUAL_CONTEXT_TOKENS));
  return defined({
    contextTokens,
    isLoaded: own.state === undefined ? undefined : own.state === 'loaded',
    tools: own.capabilities?.includes('tool_use') || undefined,
  });
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

/** A server with only a known address may be any of them. */
const READERS: Readonly<Record<LocalVendor, readonly Reader[]>> = {
  ollama: [ollama],
  lmstudio: [lmStudio],
  vllm: [vllm],
  local: [llamaCpp, lmStudio, vllm],
};

// Windows that a local server named when it refused a request as too long, although it had reported
// larger ones. They take precedence until the server reports another size, or for an hour.

type Refused = {
  readonly size: number;
  /** Reported by the server itself. */
  readonly said: number | undefined;
  readonly until: number;
};

const LASTS_MS = 3_600_000;

export class RefusedWindows {
  readonly #refused = new Map<string, Refused>();
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** `known`: the assumed size. Sizes in tokens; this only reduces a window. */
  refused(model: string, size: number, known: number | undefined): void {
    if (known !== undefined && size >= known) return;
    const before = this.#refused.get(model);
    const said = before === undefined ? known : before.said;
    this.#refused.set(model, { size, said, until: this.#clock.monotonic() + LASTS_MS });
  }

  /** The server's current report about a model, corrected by its refusals. */
  heard(model: string, facts: ModelFacts): ModelFacts {
    const refused = this.#refused.get(model);
    const isOver = refused !== undefined && refused.until <= this.#clock.monotonic();
    if (isOver || refused?.said !== facts.contextTokens) this.#refused.delete(model);
    return this.bounded(model, facts);
  }

  bounded<Facts extends ModelFacts | undefined>(model: string, facts: Facts): Facts | ModelFacts {
    const refused = this.#refused.get(model);
    return refused === undefined ? facts : { ...facts, contextTokens: refused.size };
  }

  forget(model: string): void {
    this.#refused.delete(model);
  }
}

// Finds model servers on this machine: Ollama, LM Studio and llama.cpp at their usual ports,
// nothing beyond loopback. A response counts only in the exact shape of a model list.

export type LocalServer = {
  readonly vendor: LocalVendor;
  readonly apiBase: string;
  /** Models that can chat and run there, in the server's order. */
  readonly models: readonly string[];
  /** Those that it forwards to a service; at least one of the two lists is not empty. */
  readonly handedOn: readonly string[];
};

type DiscoverOptions = {
  readonly signal: AbortSignal;
  /** Where to look; default: the vendors' usual addresses. */
  readonly at?: readonly Place[];
  /** Per server; default: enough for a server on this machine. */
  readonly timeoutMs?: number;
};

type Place = {
  readonly vendor: LocalVendor;
  readonly apiBase: string;
  readonly apiKey?: string;
};

/** A server on this machine answers within this time. */
const PROBE_MS = 300;
const NONE: ReadonlySet<string> = new Set();
const PROBED: readonly LocalVendor[] = ['ollama', 'lmstudio', 'local'];

const modelList = z.object({
  object: z.literal('list'),
  data: z.array(z.object({ id: z.string().min(1).max(200) })).max(10_000),
});
/** Models that embed, rank or transcribe cannot answer. */
const NOT_A_CHAT_MODEL = /embed|rerank|whisper|\bbge-|tts|stable-diffusion/i;

export const canChat = (model: string) => !NOT_A_CHAT_MODEL.test(model);

/** Runs all probes at once; leaves out servers that are absent, slow or answer unexpectedly. */
export async function discoverLocalModels(
  options: DiscoverOptions,
): Promise<readonly LocalServer[]> {
  const { timeoutMs = PROBE_MS } = options;
  const places: readonly Place[] =
    options.at ?? PROBED.map((vendor) => ({ vendor, apiBase: vendorOf(vendor).apiBase }));
  const found = await Promise.all(
    places.map(async ({ vendor, apiBase, apiKey = '' }) => {
      const server = { apiBase, apiKey };
      const [all, remote] = await Promise.all([
        listModels(server, timeoutMs, options.signal),
        vendor === 'ollama' ? readHandedOn(server, timeoutMs, options.signal) : NONE,
      ]);
      const isElsewhere = (model: string) => remote.has(model) || isHandedOn(model);
      const models = all.filter((model) => !isElsewhere(model));
      return { vendor, apiBase, models, handedOn: all.filter(isElsewhere) };
    }),
  );
  return found.filter(({ models, handedOn }) => models.length + handedOn.length > 0);
}

/** The listed models that can chat; empty if the address does not answer as a model server. */
export async function listModels(...asked: Listing): Promise<readonly string[]> {
  return (await listedModels(...asked)).filter(canChat);
}

type Listing = readonly [server: LocalAddress, timeoutMs: number, signal: AbortSignal];

/** All models that it lists, also those that only transcribe or speak. */
export async function listedModels(
  ...[server, timeoutMs, signal]: Listing
): Promise<readonly string[]> {
  const said = await askLocal(server, { path: '/models', below: 'apiBase', timeoutMs }, signal);
  const answer = modelList.safeParse(said !== undefined && isOk(said) ? said.body : undefined);
  return answer.success ? answer.data.data.map((model) => model.id) : [];
}

// Short requests to a local model server beside its model calls: bounded in time and size;
// undefined if the server does not answer as expected.

export type LocalAddress = {
  /** As configured, with the path of the OpenAI dialect: `http://127.0.0.1:11434/v1`. */
  readonly apiBase: string;
  /** Empty if the server needs none. */
  readonly apiKey: string;
  /** The setting; absent: none. */
  readonly proxy?: string;
  /** How it is reached; default: as any address. */
  readonly fetch?: LocalFetch;
};

export type LocalFetch = (url: string | URL, init?: RequestInit) => Promise<Response>;

export type LocalQuestion = {
  /** Relative to the root of the server, or to `apiBase`. */
  readonly path: `/${string}`;
  readonly below: 'root' | 'apiBase';
  /** Sent as JSON; absent: GET. */
  readonly body?: Readonly<Record<string, unknown>>;
  readonly timeoutMs: number;
};

const MAX_BODY_BYTES = 4_000_000;

export type LocalAnswer = {
  readonly status: number;
  /** Undefined if it was no JSON or too long. */
  readonly body: unknown;
};

/** Undefined if there was no response in time. */
export async function askLocal(
  address: LocalAddress,
  { path, below, body: asked, timeoutMs }: LocalQuestion,
  signal: AbortSignal,
): Promise<LocalAnswer | undefined> {
  const base = below === 'root' ? rootOf(address.apiBase) : address.apiBase;
  const headers = {
    ...(address.apiKey === '' ? {} : { authorization: `Bearer ${address.apiKey}` }),
    ...(asked === undefined ? {} : { 'content-type': 'application/json' }),
  };
  try {
    const response = await (address.fetch ?? fetchThrough(address.proxy ?? ''))(`${base}${path}`, {
      headers,
      redirect: 'error',
      signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
      ...(asked === undefined ? {} : { method: 'POST', body: JSON.stringify(asked) }),
    });
    const { boundedBody } = await import('../lib/net/safe-fetch.ts');
    const body = await boundedBody(response.body, MAX_BODY_BYTES);
    return { status: response.status, body: parseJson(body?.toString('utf8') ?? '') };
  } catch {
    return undefined;
  }
}

export const isOk = ({ status }: LocalAnswer) => status >= 200 && status < 300;

/** The base of the server's own dialect, beside OpenAI's. */
const rootOf = (apiBase: string) => apiBase.replace(/\/v1$/, '');
