// Reads what a vendor said when a call failed and names it: which class of failure, how long it asks
// us to wait, and the sentence the person is told. Knows vendors' wordings, never their libraries.

import type { ProviderFailure } from '../../kernel/message/errors.ts';
import { shortened } from '../../lib/text/cut.ts';
import { overflowSize } from './overflow-size.ts';

/** What the adapters could make out of a vendor's error. */
export type VendorProblem = {
  /** Whether anything answered at all. */
  readonly source: 'response' | 'connection' | 'parser';
  readonly status?: number;
  /** Machine-readable code or type of the body, where it has one. */
  readonly code?: string;
  readonly message: string;
  /** Of a question that was too long: what the body names beside the message. */
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
/** Local servers that load a model on demand say so with a 4xx or 5xx. */
export const LOADING = /model is loading|loading model|no models loaded|failed to load model/i;
const OVERLOADED = /overloaded|unavailable|api_error|server_error|internal_error|timeout_error/i;
const RATE = /rate.?limit|too many requests|resource_exhausted|tokens per minute/i;

/** The first rule that fits counts: account, key, pace, loading, size, then the vendor's side. */
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
  return { kind: 'context_overflow', ...(contextTokens === undefined ? {} : { contextTokens }) };
}

const server = ({ status, retryAfterMs }: VendorProblem) => ({
  kind: 'server' as const,
  ...(status === undefined ? {} : { status }),
  ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
});

const rateLimited = ({ retryAfterMs }: VendorProblem): ProviderFailure => ({
  kind: 'rate_limited',
  ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
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
 * The wait a vendor asks for, milliseconds: `retry-after-ms`, `Retry-After` in seconds or as a date
 * (RFC 9110 10.2.3), or a hint in the body (Google's RetryInfo, "try again in 1.5s").
 */
export function retryHintMs(
  hints: { readonly retryAfterMs?: string; readonly retryAfter?: string; readonly body: string },
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

/** A vendor's words without keys, short enough for a log line or a chat. */
export function safeDetail(message: string, secrets: readonly string[]): string {
  let text = message;
  for (const secret of secrets) {
    if (secret.length >= 4) text = text.replaceAll(secret, '[key]');
  }
  const oneLine = text.replace(KEY_SHAPES, '[key]').replace(/\s+/g, ' ').trim();
  return shortened(oneLine, MAX_DETAIL_CHARS);
}

/** How long the vendor asks to wait before the next call, milliseconds. */
export function hintOf(failure: ProviderFailure): number | undefined {
  const hints = failure.kind === 'rate_limited' || failure.kind === 'server';
  return hints ? failure.retryAfterMs : undefined;
}

// What a person is told when a model call failed for good: what went wrong and what to do, in plain
// words and without secrets.

export type FailedCall = {
  readonly failure: ProviderFailure;
  /** The vendor as people know it, e.g. `Anthropic`. */
  readonly vendor: string;
  /** Key of the vendor in the configuration, e.g. `zhipuCoding`. */
  readonly configKey: string;
  /** The model as configured. */
  readonly model: string;
  readonly local: boolean;
  readonly apiBase: string;
  /** The vendor's own words, made safe. */
  readonly detail: string;
};

const STAGES = {
  first_token: 'did not begin to answer in time',
  idle: 'stopped in the middle of its answer',
  whole_call: 'took too long to answer',
};

export function sentenceFor(call: FailedCall): string {
  const { failure, vendor, model } = call;
  switch (failure.kind) {
    case 'auth':
      return authSentence(call);
    case 'unknown_model':
      return `${vendor} does not know the model "${model}". Check the spelling, or choose another with /model.`;
    case 'rate_limited':
      return `${vendor} allows no more requests at the moment. ${waitHint(failure.retryAfterMs)}`;
    case 'server':
      return `${vendor} has a problem on its side at the moment. ${waitHint(failure.retryAfterMs)}`;
    case 'network':
      return call.local
        ? `The local model server at ${call.apiBase} does not answer. Start it, then try again.`
        : `I cannot reach ${vendor} at the moment. Please try again in a few minutes.`;
    case 'redirected':
      return redirectSentence(call, failure.to);
    case 'timeout':
      return `${vendor} ${STAGES[failure.stage]}. Please try again, or choose another model with /model.`;
    case 'context_overflow':
      return `Our conversation is too long for the model "${model}". Start anew with /new.`;
    case 'malformed':
      return `${vendor} sent an answer that cannot be read. Please try again.`;
    case 'rejected':
      return `${vendor} refused the request for "${model}"${quoted(call.detail)} Choose another model with /model, or start anew with /new.`;
    case 'cancelled':
      return 'The answer was stopped.';
  }
}

function authSentence({ failure, vendor, configKey }: FailedCall): string {
  if (failure.kind === 'auth' && failure.reason === 'billing') {
    return `The account at ${vendor} has no credit left. The owner can add credit there, or choose another model with /model.`;
  }
  return `${vendor} refused the API key. The owner can set a new one with \`nanobot config set providers.${configKey}.apiKey <key>\`.`;
}

function redirectSentence({ vendor, apiBase, configKey }: FailedCall, to: string): string {
  return `${vendor} at ${apiBase} redirects requests to ${to}. Redirects are not followed, so nothing was sent there. If that is the right address, the owner can set it as providers.${configKey}.apiBase; otherwise check the server, or choose another model with /model.`;
}

function waitHint(retryAfterMs: number | undefined): string {
  if (retryAfterMs === undefined) return 'Please try again in a few minutes.';
  const minutes = Math.ceil(retryAfterMs / 60_000);
  return minutes <= 1
    ? 'Please try again in a minute.'
    : `It asks to wait ${minutes} minutes. Please try again then, or choose another model with /model.`;
}

const quoted = (detail: string) => (detail === '' ? '.' : `: "${detail}".`);
