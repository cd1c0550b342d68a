// Failures of provider calls: their kinds, texts for people, sizes in overflow messages, what they
// cost, retry decisions, and the health of a server.

import type { ProviderFailure } from '../../kernel/message/errors.ts';
import { defined } from '../../lib/json/json.ts';
import { oneLine, shortened } from '../../lib/text/cut.ts';
import { t } from '../../lib/texts.ts';

/** Plausible bounds of a window, tokens. */
export const LEAST_CONTEXT_TOKENS = 256;
export const MOST_CONTEXT_TOKENS = 100_000_000;

/** Enough for every such sentence; the rest may be the request itself. */
const MAX_READ_CHARS = 2000;
const SIZE = String.raw`\(?\s*(\d[\d,]{2,11})\b`;
const SAID = [
  // llama.cpp, and what is built on it.
  String.raw`n_ctx["']?\s*[:=]?\s*${SIZE}`,
  String.raw`available context size\s*${SIZE}`,
  // vLLM, OpenAI and compatible servers.
  String.raw`max(?:imum)? (?:context|model) (?:length|size|window)(?: (?:is|of)(?: only)?)?\s*${SIZE}`,
  // LM Studio.
  String.raw`context (?:length|size|window) (?:is|of)(?: only)?\s*${SIZE}`,
  // Anthropic, and compatible gateways.
  t`tokens? > ${SIZE} maximum`,
].map((words) => new RegExp(words, 'i'));

/** Tokens; undefined if no plausible size is named. `field`: a field beside the text. */
function overflowSize(said: string, field: unknown): number | undefined {
  const read = said.slice(0, MAX_READ_CHARS);
  const sizes = SAID.map((words) => Number(words.exec(read)?.[1]?.replaceAll(',', '')));
  return [Number(field), ...sizes].find(isPossible);
}

const isPossible = (size: number) =>
  Number.isSafeInteger(size) && size >= LEAST_CONTEXT_TOKENS && size <= MOST_CONTEXT_TOKENS;

/** Failures by which the vendor shows that it did not begin to answer. */
const UNBILLED: readonly ProviderFailure['kind'][] = [
  ...(['auth', 'unknown_model', 'rate_limited', 'rejected'] as const),
  ...(['context_overflow', 'server', 'network'] as const),
];

type EndWithoutUsage = {
  readonly answerTokens: number;
  readonly failure?: Pick<ProviderFailure, 'kind'>;
};

/** The tokens of a call for which the vendor named none. */
export function estimatedUsage(inputTokens: number, { answerTokens, failure }: EndWithoutUsage) {
  const isUnbilled = failure !== undefined && UNBILLED.includes(failure.kind);
  return { input: isUnbilled && answerTokens === 0 ? 0 : inputTokens, output: answerTokens };
}

// Classifies a vendor's error: the class of failure, how long it asks to wait, and the text for the
// person. Knows vendors' wordings, not their libraries.

/** What an adapter extracts from a vendor's error. */
export type VendorProblem = {
  /** Whether there was any response. */
  readonly source: 'response' | 'connection' | 'parser';
  readonly status?: number;
  /** Machine-readable code or type of the body, if present. */
  readonly code?: string;
  readonly message: string;
  /** For a request that was too long: the size named beside the message. */
  readonly windowSize?: unknown;
  readonly retryAfterMs?: number;
};

const OVERFLOW =
  /context[ _-]?(length|window|size)|maximum context|prompt is too long|too many (input )?tokens|input is too long|reduce the length|exceeds? the (available|maximum).{0,30}tokens|token count.{0,40}exceeds|maximum model length|\bn_ctx\b|request_too_large/i;
const UNKNOWN_MODEL =
  /model_not_found|model.{0,80}(not found|does not exist|not exist|no longer available|is not supported for)|no such model|not a valid model|unknown model|invalid model/i;
const BILLING =
  /insufficient_quota|insufficient (balance|credit|funds)|credit balance|exceeded your current quota|billing/i;
const BAD_KEY =
  /invalid_api_key|authentication_error|api key not valid|invalid api key|incorrect api key|permission_(denied|error)/i;
/** Local servers that load a model on demand report so with a 4xx or 5xx. */
export const LOADING = /model is loading|loading model|no models loaded|failed to load model/i;
const OVERLOADED = /overloaded|unavailable|api_error|server_error|internal_error|timeout_error/i;
const RATE = /rate.?limit|too many requests|resource_exhausted|tokens per minute/i;

/** The first matching rule counts: account, key, rate, loading, size, then the vendor's side. */
export function classifyFailure(problem: VendorProblem): ProviderFailure {
  if (problem.source === 'connection') return { kind: 'network' };
  if (problem.source === 'parser') return { kind: 'malformed' };
  const said = `${problem.code ?? ''} ${problem.message}`;
  const status = problem.status;
  if (status === 402 || BILLING.test(said)) return { kind: 'auth', reason: 'billing' };
  if (status === 401 || status === 403) return { kind: 'auth' };
  if (status === 429) return rateLimited(problem);
  if (LOADING.test(said)) return { ...server(problem), isLoading: true };
  if (status === 413 || (isClientError(status) && OVERFLOW.test(said))) {
    return overflow(problem);
  }
  if (status === 408 || status === 409 || status === 425) return server(problem);
  if (status !== undefined && status >= 500) return server(problem);
  return classifyWords(problem, said);
}

/** 4xx, and error events inside a stream that came with status 200. */
function classifyWords(problem: VendorProblem, said: string): ProviderFailure {
  if (BAD_KEY.test(said)) return { kind: 'auth' };
  if (UNKNOWN_MODEL.test(said)) return { kind: 'unknown_model' };
  if (problem.status === 404 && /not_found_error|model/i.test(said)) {
    return { kind: 'unknown_model' };
  }
  if (problem.status !== undefined) return { kind: 'rejected', status: problem.status };
  if (OVERFLOW.test(said)) return overflow(problem);
  if (RATE.test(said)) return rateLimited(problem);
  if (OVERLOADED.test(said)) return server(problem);
  return /invalid_request/i.test(said) ? { kind: 'rejected' } : server(problem);
}

const isClientError = (status: number | undefined) =>
  status === undefined || (status >= 400 && status < 500);

function overflow({ message, windowSize }: VendorProblem): ProviderFailure {
  const contextTokens = overflowSize(message, windowSize);
  return { kind: 'context_overflow', ...defined({ contextTokens }) };
}

const server = ({ status, retryAfterMs }: VendorProblem) => ({
  kind: 'server' as const,
  ...defined({ status, retryAfterMs }),
});

const rateLimited = ({ retryAfterMs }: VendorProblem): ProviderFailure => ({
  kind: 'rate_limited',
  ...defined({ retryAfterMs }),
});

const UNIT_MS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 } as const;
const DURATION = /(\d+(?:\.\d+)?)(ms|s|m|h)/g;
const BODY_HINT =
  /(?:try again in|retry after|retry in|retryDelay"?:?)\s*"?((?:\d+(?:\.\d+)?(?:ms|s|m|h)\s*)+)/i;

/** `1m2.5s`, `34s`, `250ms`. */
function durationMs(text: string): number {
  let total = 0;
  for (const [, amount, unit] of text.matchAll(DURATION)) {
    total += Number(amount) * UNIT_MS[unit as keyof typeof UNIT_MS];
  }
  return Math.ceil(total);
}

/**
 * The wait that a vendor asks for, milliseconds: `retry-after-ms`, `Retry-After` in seconds or as a
 * date (RFC 9110 10.2.3), or a hint in the body (Google's RetryInfo, "try again in 1.5s").
 */
export function retryHintMs(
  hints: {
    readonly retryAfterMs?: string | null;
    readonly retryAfter?: string | null;
    readonly body: string;
  },
  nowMs: number,
): number | undefined {
  const exact = Number(hints.retryAfterMs ?? 'none');
  if (Number.isFinite(exact) && exact >= 0) return Math.ceil(exact);
  const header = hints.retryAfter?.trim() ?? '';
  if (/^\d+(\.\d+)?$/.test(header)) return Math.ceil(Number(header) * 1000);
  const date = header === '' ? Number.NaN : Date.parse(header);
  if (!Number.isNaN(date)) return Math.max(0, date - nowMs);
  const match = BODY_HINT.exec(hints.body);
  return match?.[1] === undefined ? undefined : durationMs(match[1]);
}

const KEY_SHAPES = /\b(sk-[\w*-]{4,}|gsk_[\w*]{4,}|hf_[\w*]{4,}|AIza[\w*-]{8,})|Bearer\s+\S+/g;
const MAX_DETAIL_CHARS = 300;

/** A vendor's text without keys, short enough for a log line or a chat. */
export function safeDetail(message: string, secrets: readonly string[]): string {
  let text = message;
  for (const secret of secrets) {
    if (secret.length >= 4) text = text.replaceAll(secret, '[key]');
  }
  return shortened(oneLine(text.replace(KEY_SHAPES, '[key]')), MAX_DETAIL_CHARS);
}

/** How long the vendor asks to wait before the next call, milliseconds. */
export function hintOf(failure: ProviderFailure): number | undefined {
  const hints = failure.kind === 'rate_limited' || failure.kind === 'server';
  return hints ? failure.retryAfterMs : undefined;
}

// The text for the person when a model call finally failed: what went wrong and what to do, without
// secrets.

export type FailedCall = {
  readonly failure: ProviderFailure;
  /** The vendor's name for people, e.g. `Anthropic`. */
  readonly vendor: string;
  /** Key of the vendor in the configuration, e.g. `zhipuCoding`. */
  readonly configKey: string;
  /** The model as configured. */
  readonly model: string;
  readonly local: boolean;
  readonly apiBase: string;
  /** The vendor's own text, redacted. */
  readonly detail: string;
};

const STAGES = {
  first_token: t`did not begin to answer in time`,
  idle: t`stopped in the middle of its answer`,
  whole_call: t`took too long to answer`,
};

export function sentenceFor(call: FailedCall): string {
  const { failure, vendor, model } = call;
  switch (failure.kind) {
    case 'auth':
      return failure.reason === 'billing'
        ? t`The account at ${vendor} has no credit left. The owner can add credit there, or choose another model with /model.`
        : t`${vendor} refused the API key. The owner can set a new one with \`nanobot config set providers.${call.configKey}.apiKey <key>\`.`;
    case 'unknown_model':
      return t`${vendor} does not know the model "${model}". Check the spelling, or choose another with /model.`;
    case 'rate_limited':
      return t`${vendor} allows no more requests at the moment. ${waitHint(failure.retryAfterMs)}`;
    case 'server':
      return t`${vendor} has a problem at the moment. ${waitHint(failure.retryAfterMs)}`;
    case 'network':
      if (failure.proxy !== undefined) return t`I cannot reach ${vendor}: ${failure.proxy}`;
      return call.local
        ? t`The local model server at ${call.apiBase} does not answer. Start it, then try again.`
        : t`I cannot reach ${vendor} at the moment. Please try again in a few minutes.`;
    case 'redirected':
      return t`${vendor} at ${call.apiBase} redirects requests to ${failure.to}. Redirects are not followed, so nothing was sent there. If that is the right address, the owner can set it as providers.${call.configKey}.apiBase; otherwise check the server, or choose another model with /model.`;
    case 'timeout':
      return t`${vendor} ${STAGES[failure.stage]}. Please try again, or choose another model with /model.`;
    case 'context_overflow':
      return t`Our conversation is too long for the model "${model}". Start again with /new.`;
    case 'malformed':
      return t`${vendor} sent an answer that cannot be read. Please try again.`;
    case 'rejected':
      return t`${vendor} refused the request for "${model}"${quoted(call.detail)} Choose another model with /model, or start again with /new.`;
    case 'cancelled':
      return t`The answer was stopped.`;
  }
}

function waitHint(retryAfterMs: number | undefined): string {
  if (retryAfterMs === undefined) return t`Please try again in a few minutes.`;
  const minutes = Math.ceil(retryAfterMs / 60_000);
  return minutes <= 1
    ? t`Please try again in a minute.`
    : t`It asks to wait ${minutes} minutes. Please try again then, or choose another model with /model.`;
}

const quoted = (detail: string) => (detail === '' ? '.' : `: "${detail}".`);

// What to do after a failed model call: retry and when, use the next model, or give up.

export type RetryPolicy = {
  /** Retries of one model after its first try. */
  readonly maxRetries: number;
  readonly minMs: number;
  readonly maxMs: number;
};

export type FailedTry = {
  readonly failure: ProviderFailure;
  /** Retries of this model so far. */
  readonly retriesUsed: number;
  /** Text of this answer has been delivered: a second answer would contradict the first. */
  readonly outputShown: boolean;
  /** Another model is available. */
  readonly fallbackLeft: boolean;
  /** The previous call failed as well. */
  readonly isFailing: boolean;
  /** 0 to 1, random. */
  readonly jitter: number;
};

type RetryStep =
  | { readonly action: 'retry'; readonly delayMs: number }
  | { readonly action: 'fall_over' }
  | { readonly action: 'give_up' };

/** A longer wait that a vendor asks for is not waited for. */
export const LONGEST_HINTED_WAIT_MS = 60_000;
/** Each try of a silent server takes its whole deadline, so there is only one retry. */
const MAX_TIMEOUT_RETRIES = 1;
/** Large models take two minutes to load. */
const MAX_LOADING_RETRIES = 16;
const FIRST_LOADING_WAIT_MS = 2000;
const LONGEST_LOADING_WAIT_MS = 8000;

export function decideRetry(failed: FailedTry, policy: RetryPolicy): RetryStep {
  const { failure } = failed;
  if (failed.outputShown || failure.kind === 'cancelled') return { action: 'give_up' };
  const next: RetryStep = { action: failed.fallbackLeft ? 'fall_over' : 'give_up' };
  if (!isTransient(failure)) return next;
  if (failed.retriesUsed >= retryLimit(failed, policy)) return next;
  const hintMs = hintOf(failure) ?? 0;
  if (hintMs > LONGEST_HINTED_WAIT_MS) return next;
  const backoff = backoffMs(failed, policy);
  return { action: 'retry', delayMs: Math.max(hintMs, backoff) };
}

/** The model itself is unavailable: the next call fails as well, whatever its content. */
export const isOutage = (failure: ProviderFailure) =>
  isTransient(failure) && failure.kind !== 'rate_limited' && !isLoading(failure);

function isTransient(failure: ProviderFailure): boolean {
  if (failure.kind === 'timeout') return failure.stage !== 'whole_call';
  return ['rate_limited', 'server', 'network', 'malformed'].includes(failure.kind);
}

function retryLimit(failed: FailedTry, { maxRetries }: RetryPolicy): number {
  const { failure, fallbackLeft } = failed;
  // The previous call already spent its retries on it: the fallback answers sooner.
  if (failed.isFailing && fallbackLeft) return 0;
  if (failure.kind === 'timeout') return Math.min(MAX_TIMEOUT_RETRIES, maxRetries);
  const waitsItOut = isLoading(failure) && !fallbackLeft && maxRetries > 0;
  return waitsItOut ? Math.max(MAX_LOADING_RETRIES, maxRetries) : maxRetries;
}

const isLoading = (failure: ProviderFailure) => failure.kind === 'server' && failure.isLoading;

/**
 * 1, 2, 4 ... times the shortest wait, plus or minus a random quarter, never above the longest. For
 * a model that is loading: 2, 4, 8, 8 ... seconds.
 */
function backoffMs({ failure, retriesUsed, jitter }: FailedTry, policy: RetryPolicy): number {
  if (isLoading(failure)) {
    return Math.min(LONGEST_LOADING_WAIT_MS, FIRST_LOADING_WAIT_MS * 2 ** retriesUsed);
  }
  const base = policy.minMs * 2 ** retriesUsed;
  return Math.round(Math.min(policy.maxMs, base * (0.75 + jitter / 2)));
}

const REASONS: Readonly<Partial<Record<ProviderFailure['kind'], string>>> = {
  rate_limited: t`is rate limiting`,
  network: t`could not be reached`,
  timeout: t`did not answer in time`,
  malformed: t`sent an unreadable answer`,
  auth: t`refused the API key`,
  unknown_model: t`does not know the model`,
  rejected: t`refused the request`,
};

/** Why a call is retried, for the waiting person. */
export function retryReason(failure: ProviderFailure, vendor: string): string {
  if (isLoading(failure)) return t`${vendor} is loading the model`;
  if (failure.kind === 'auth' && failure.reason === 'billing')
    return t`the account at ${vendor} has no credit left`;
  return `${vendor} ${REASONS[failure.kind] ?? t`has a problem`}`;
}

// Whether a failed model is called again: several consecutive failures open the breaker for a
// while, then one try is permitted, and a success closes it.

export type Breaker = { readonly failures: number; readonly openUntil: number | undefined };
export type BreakerPolicy = { readonly failures: number; readonly cooldownMs: number };

export const CLOSED: Breaker = { failures: 0, openUntil: undefined };

/** `now`: milliseconds of any clock, the same for each call. */
export function afterFailure({ failures }: Breaker, policy: BreakerPolicy, now: number): Breaker {
  const count = failures + 1;
  return {
    failures: count,
    openUntil: count >= policy.failures ? now + policy.cooldownMs : undefined,
  };
}

export const isOpen = ({ openUntil }: Breaker, now: number) =>
  openUntil !== undefined && now < openUntil;

// Whether an own model server is up, by the results of its checks, and whether a model of it is
// ready. A single failure does not count: only after three in a row is the server down, and each
// change is reported once.

export type ServerHealth = {
  readonly state: 'unknown' | 'up' | 'down';
  /** Since its last answer. */
  readonly failures: number;
};

export type HealthChange = 'went_down' | 'came_back';

/** How close a model is to answering at once. */
export type Warmth =
  | { readonly kind: 'warming' }
  | { readonly kind: 'ready'; readonly tookMs: number }
  | { readonly kind: 'failed' };

export const UNKNOWN_HEALTH: ServerHealth = { state: 'unknown', failures: 0 };
const FAILURES_UNTIL_DOWN = 3;

export function afterProbe(
  { state, failures }: ServerHealth,
  answered: boolean,
): { readonly health: ServerHealth; readonly change?: HealthChange } {
  if (answered) {
    const health: ServerHealth = { state: 'up', failures: 0 };
    return state === 'down' ? { health, change: 'came_back' } : { health };
  }
  const more = failures + 1;
  if (more < FAILURES_UNTIL_DOWN || state === 'down') return { health: { state, failures: more } };
  return { health: { state: 'down', failures: more }, change: 'went_down' };
}
