// Turns texts into vectors by a server's `/embeddings` (OpenAI, Ollama and compatible servers) or
// by a model in this process, whose package the user installs.

import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { z } from 'zod';
import { type PaidCalls, SpendingRefusedError } from '../../agent/agent.ts';
import { textTokens } from '../../agent/rules/tokens.ts';
import type { Finding } from '../../cli/doctor/machine-checks.ts';
import type { Config } from '../../kernel/config/config.ts';
import type { Home } from '../../kernel/config/files/home.ts';
import type { Kernel } from '../../kernel/feature.ts';
import { NanobotError } from '../../kernel/message/errors.ts';
import type { Payer } from '../../kernel/message/message.ts';
import { parseJson } from '../../lib/json/json.ts';
import { isHomeUrl } from '../../lib/net/address-rules.ts';
import { fetchThrough, proxyErrorIn } from '../../lib/net/proxies.ts';
import { boundedBody } from '../../lib/net/safe-fetch.ts';
import { t } from '../../lib/texts.ts';
import { reasonFirst, withDeadline } from '../../lib/time/clock.ts';
import { createCredentials } from '../../providers/credentials.ts';
import { isLocalVendor, priceOf, splitModelName } from '../../providers/rules/model-names.ts';
import { LOCAL_PACKAGE, LOCAL_PREFIX } from './settings.ts';
import { type EmbeddingKind, prefixesOf } from './vectors.ts';

type EmbeddingFailure =
  | 'embedding_no_key'
  | 'embedding_key_refused'
  | 'embedding_not_found'
  | 'embedding_busy'
  | 'embedding_rejected'
  | 'embedding_failed'
  | 'embedding_unreachable'
  | 'embedding_timeout'
  | 'embedding_malformed'
  | 'embedding_package';

/** The message is for people, without a full stop. */
export class EmbeddingError extends NanobotError {
  override readonly name = 'EmbeddingError';
  declare readonly code: EmbeddingFailure;
  /** How long the server asks to wait. */
  readonly retryAfterMs: number | undefined;
  constructor(
    code: EmbeddingFailure,
    message: string,
    options: { readonly retryAfterMs?: number | undefined; readonly cause?: unknown } = {},
  ) {
    super(code, message, { cause: options.cause });
    this.retryAfterMs = options.retryAfterMs;
  }
}

type Embedded = {
  /** In the order of the texts, each of length 1. */
  readonly vectors: readonly Float32Array[];
  /** As the server counts; undefined if it does not. */
  readonly tokens: number | undefined;
};

export interface Embedder {
  /** Vectors of equal ids can be compared; contains no secret. */
  readonly id: string;
  /** As configured. */
  readonly model: string;
  /** Texts leave one's own machines. */
  readonly isElsewhere: boolean;
  /** Per million tokens; undefined where unknown. */
  readonly price: number | undefined;
  /** @throws EmbeddingError, the signal's reason */
  embed(texts: readonly string[], kind: EmbeddingKind, signal: AbortSignal): Promise<Embedded>;
}

type EmbedderDeps = Pick<Kernel, 'env' | 'clock'> & {
  readonly config: Config;
  readonly home: Pick<Home, 'root'>;
};

type Embed = Embedder['embed'];

/** @throws EmbeddingError embedding_no_key */
export function createEmbedder(deps: EmbedderDeps): Embedder {
  const { config } = deps;
  const { model, dimensions } = config.search.embeddings;
  if (model.startsWith(LOCAL_PREFIX)) {
    const embed = inProcess(model.slice(LOCAL_PREFIX.length), deps);
    return { id: model, model, isElsewhere: false, price: 0, embed: prefixed(model, embed) };
  }
  const server = serverOf(deps);
  const isElsewhere = !isHomeUrl(server.apiBase);
  const { prices } = config.models;
  const price = isElsewhere ? priceOf(model, prices, config.limits.budget.currency)?.input : 0;
  const id = [model, server.apiBase, dimensions ?? ''].join(' ').trim();
  return { id, model, isElsewhere, price, embed: prefixed(model, byServer(server, deps)) };
}

function prefixed(model: string, embed: Embed): Embed {
  const prefixes = prefixesOf(model);
  return (texts, kind, signal) => {
    const words = texts.map((text) => prefixes[kind] + text);
    return embed(words, kind, signal);
  };
}

// A server of the configuration.

type Server = {
  readonly apiBase: string;
  readonly apiKey: string;
  readonly proxy: string;
  readonly model: string;
};

function serverOf({ config, env }: EmbedderDeps): Server {
  const { model, apiBase, apiKey } = config.search.embeddings;
  // A configured address never gets the key of a provider.
  if (apiBase !== '') {
    return { apiBase: apiBase.replace(/\/+$/, ''), apiKey, proxy: config.network.proxy, model };
  }
  const named = splitModelName(model);
  const access = named && createCredentials(config, env, []).accessTo(named.vendor);
  if (named === undefined || access === undefined) {
    throw new EmbeddingError('embedding_no_key', t`there is no API key for ${model}`);
  }
  const key = apiKey || access.apiKey;
  if (key === '' && !isLocalVendor(named.vendor) && !isHomeUrl(access.apiBase)) {
    throw new EmbeddingError('embedding_no_key', t`there is no API key for ${model}`);
  }
  return { ...access, apiKey: key, model: named.model };
}

const MAX_ANSWER_BYTES = 50_000_000;

function byServer(server: Server, { config, clock }: EmbedderDeps): Embed {
  const { dimensions, timeoutSecs } = config.search.embeddings;
  return (texts, _kind, signal) => {
    const asked = { model: server.model, input: texts, encoding_format: 'float' };
    const body = JSON.stringify(dimensions === undefined ? asked : { ...asked, dimensions });
    const work = reasonFirst((whole) => posted(server, body, whole));
    return withDeadline(clock, timeoutSecs * 1000, tooSlow, signal, work).then((answer) =>
      vectorsIn(answer, texts.length, dimensions),
    );
  };
}

const tooSlow = () => new EmbeddingError('embedding_timeout', t`the server took too long`);

async function posted(server: Server, body: string, signal: AbortSignal): Promise<string> {
  const key = server.apiKey === '' ? {} : { authorization: `Bearer ${server.apiKey}` };
  const response = await fetchThrough(server.proxy)(`${server.apiBase}/embeddings`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...key },
    body,
    // The texts and the key go only to the configured server.
    redirect: 'error',
    signal,
  }).catch((cause: unknown) => {
    const why = proxyErrorIn(cause);
    const text = t`${server.apiBase} cannot be reached, or redirects requests, which is refused`;
    const said = why === undefined ? text : `${text}: ${why.message}`;
    throw new EmbeddingError('embedding_unreachable', said, { cause });
  });
  if (!response.ok) {
    await response.body?.cancel();
    throw refusal(response);
  }
  const read = boundedBody(response.body, MAX_ANSWER_BYTES);
  const answer = await read.catch((cause: unknown) => {
    throw new EmbeddingError('embedding_unreachable', t`the server broke off`, { cause });
  });
  if (answer === undefined) throw malformed(t`the answer is too long`);
  return answer.toString('utf8');
}

/** Seconds, or a date. */
const RETRY_SECONDS = /^\d{1,6}$/;

function refusal({ status, headers }: Response): EmbeddingError {
  if (status === 401 || status === 403) {
    return new EmbeddingError('embedding_key_refused', t`the server refuses the key`);
  }
  if (status === 404) {
    const text = t`the server does not know this address or model`;
    return new EmbeddingError('embedding_not_found', text);
  }
  if (status === 408 || status === 409 || status === 429) {
    const said = headers.get('retry-after') ?? '';
    const retryAfterMs = RETRY_SECONDS.test(said) ? Number(said) * 1000 : undefined;
    return new EmbeddingError('embedding_busy', t`the server is busy`, { retryAfterMs });
  }
  return status >= 500
    ? new EmbeddingError('embedding_failed', t`the server failed with status ${status}`)
    : new EmbeddingError('embedding_rejected', t`the server refused it with status ${status}`);
}

const malformed = (message: string) => new EmbeddingError('embedding_malformed', message);

const embeddingAnswer = z.object({
  data: z.array(z.object({ index: z.int().nonnegative(), embedding: z.array(z.number()).min(1) })),
  usage: z.object({ prompt_tokens: z.int().nonnegative() }).nullish().catch(undefined),
});

function vectorsIn(answer: string, count: number, dimensions: number | undefined): Embedded {
  const found = embeddingAnswer.safeParse(parseJson(answer));
  if (!found.success) throw malformed(t`the server answered no embeddings`);
  const { data, usage } = found.data;
  const ordered = data.toSorted((one, other) => one.index - other.index);
  if (ordered.length !== count || ordered.some(({ index }, at) => index !== at)) {
    throw malformed(t`the server answered ${data.length} vectors for ${count} texts`);
  }
  const length = ordered[0]?.embedding.length ?? 0;
  if (dimensions !== undefined && length !== dimensions) {
    throw malformed(
      t`the vectors have ${length} numbers, not ${dimensions}: remove search.embeddings.dimensions`,
    );
  }
  const vectors = ordered.map(({ embedding }) => unit(embedding));
  return { vectors, tokens: usage?.prompt_tokens };
}

/** Of length 1, so that the product of two is their similarity. */
function unit(values: readonly number[]): Float32Array {
  const sum = Math.hypot(...values);
  return Float32Array.from(values, (value) => (sum === 0 ? 0 : value / sum));
}

// A model in this process. The package downloads it once, into the home.

type Extractor = (
  texts: readonly string[],
  options: { readonly pooling: 'mean'; readonly normalize: true },
) => Promise<{ tolist(): unknown }>;

type Package = {
  readonly env: { cacheDir?: string };
  pipeline(
    task: 'feature-extraction',
    model: string,
    options: { readonly dtype: 'q8' },
  ): Promise<Extractor>;
};

const MODELS_FOLDER = 'models';
const numbers = z.array(z.array(z.number()).min(1));

function inProcess(model: string, { home }: EmbedderDeps): Embed {
  let loading: Promise<Extractor> | undefined;
  const load = async () => {
    const { pipeline, env } = await loadPackage(home.root);
    env.cacheDir = join(home.root, MODELS_FOLDER);
    return pipeline('feature-extraction', model, { dtype: 'q8' });
  };
  return async (texts, _kind, signal) => {
    loading ??= load();
    const extract = await loading.catch((cause: unknown) => {
      loading = undefined;
      if (cause instanceof EmbeddingError) throw cause;
      const why = cause instanceof Error ? cause.message : '';
      const text = t`the model ${model} cannot be loaded: ${why}`;
      throw new EmbeddingError('embedding_not_found', text, { cause });
    });
    signal.throwIfAborted();
    const found = await extract(texts, { pooling: 'mean', normalize: true });
    const vectors = numbers.safeParse(found.tolist()).data;
    if (vectors?.length !== texts.length) throw malformed(t`the model returned no embeddings`);
    return { vectors: vectors.map(unit), tokens: undefined };
  };
}

/** Installed beside the program, or in the home. @throws EmbeddingError embedding_package */
async function loadPackage(root: string): Promise<Package> {
  const beside = await import(LOCAL_PACKAGE).catch(() => undefined);
  try {
    const inHome = () => createRequire(join(root, 'package.json')).resolve(LOCAL_PACKAGE);
    return beside ?? (await import(pathToFileURL(inHome()).href));
  } catch (cause) {
    const text = t`the package ${LOCAL_PACKAGE} is not installed: npm install --prefix ${root} ${LOCAL_PACKAGE}`;
    throw new EmbeddingError('embedding_package', text, { cause });
  }
}

// An embedding that is paid: reserved in the budgets before it and settled after it.

/** Estimates of tokens err. */
const MARGIN = 1.25;
/** Failures after which the server may have charged. */
const MAYBE_BILLED: readonly EmbeddingFailure[] = [
  'embedding_timeout',
  'embedding_unreachable',
  'embedding_malformed',
];

type PaidEmbedding = {
  readonly embedder: Embedder;
  readonly spending: Pick<PaidCalls, 'reservePaid'>;
  readonly payer: Payer;
};

/** @throws EmbeddingError, SpendingRefusedError, the signal's reason */
export async function embedPaid(
  texts: readonly string[],
  kind: EmbeddingKind,
  { embedder, spending, payer }: PaidEmbedding,
  signal: AbortSignal,
): Promise<readonly Float32Array[]> {
  const estimate = MARGIN * texts.reduce((sum, text) => sum + textTokens(text), 0);
  const costOf = (tokens: number) => Math.ceil(tokens * (embedder.price ?? 0));
  const micros = costOf(estimate);
  if (micros === 0) return (await embedder.embed(texts, kind, signal)).vectors;
  const reserved = await spending.reservePaid({ payer, micros }, signal);
  if (reserved.kind === 'refused') throw new SpendingRefusedError(reserved);
  try {
    const { vectors, tokens } = await embedder.embed(texts, kind, signal);
    reserved.settle(costOf(tokens ?? estimate / MARGIN));
    return vectors;
  } catch (error) {
    const isFree = error instanceof EmbeddingError && !MAYBE_BILLED.includes(error.code);
    reserved.settle(isFree ? 0 : micros);
    throw error;
  }
}

// The check of `nanobot doctor`.

const TURN_ON = t`To search notes, conversations and documents by meaning, set search.embeddings.model, e.g. ollama/nomic-embed-text or openai/text-embedding-3-small.`;
const CHECK = 'search';

export async function checkEmbeddings(
  { env, home, clock }: Pick<EmbedderDeps, 'env' | 'clock'> & { readonly home: Home },
  config: Config,
  isLive: boolean,
): Promise<readonly Finding[]> {
  const { model } = config.search.embeddings;
  if (model === '') return [{ check: CHECK, level: 'ok', text: t`by words only. ${TURN_ON}` }];
  try {
    const embedder = createEmbedder({ config, env, home, clock });
    if (model.startsWith(LOCAL_PREFIX)) await loadPackage(home.root);
    const unpriced =
      embedder.price === undefined ? t`, unknown price: not counted in budgets in money` : '';
    const name = `${model}${unpriced}`;
    if (!isLive) {
      const text = t`by meaning with ${name} (not tested; --live sends a test request)`;
      return [{ check: CHECK, level: 'ok', text }];
    }
    const { vectors } = await embedder.embed(['nanobot'], 'query', AbortSignal.timeout(LIVE_MS));
    const text = t`by meaning with ${name}: answers with ${vectors[0]?.length ?? 0} numbers`;
    return [{ check: CHECK, level: 'ok', text }];
  } catch (error) {
    if (!(error instanceof EmbeddingError)) throw error;
    return [{ check: CHECK, level: 'fail', text: `${model}: ${error.message}`, remedy: REMEDY }];
  }
}

const LIVE_MS = 60_000;
const REMEDY = t`Until this is mended, only words are searched. Check search.embeddings and its server.`;
