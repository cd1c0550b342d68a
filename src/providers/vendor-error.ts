// Turns whatever an SDK threw into our ProviderError: class of failure, hint, words without secrets.
// The vendor's error itself is not kept, since its text and headers may hold keys and prompts.

import { ProviderError, ShortageError, shortageOf } from '../kernel/message/errors.ts';
import type { CallDeadline } from './call-deadline.ts';
import {
  classifyFailure,
  retryHintMs,
  safeDetail,
  type VendorProblem,
} from './rules/provider-failure.ts';

export type FailedCall = {
  readonly provider: string;
  readonly model: string;
  readonly secrets: readonly string[];
  readonly nowMs: number;
  readonly deadline: CallDeadline;
  /** The caller's own signal. */
  readonly signal: AbortSignal;
};

/** @throws ShortageError where the process could not make the call: the vendor was not asked */
export function providerError(error: unknown, call: FailedCall): ProviderError {
  const { provider, model } = call;
  if (error instanceof ProviderError) return error;
  if (call.signal.aborted) {
    const failure = { kind: 'cancelled' } as const;
    return new ProviderError('the call was cancelled', { failure, provider, model });
  }
  if (call.deadline.expired !== undefined) {
    const failure = { kind: 'timeout', stage: call.deadline.expired } as const;
    return new ProviderError(`no answer in time: ${failure.stage}`, { failure, provider, model });
  }
  const shortage = shortageOf(error);
  if (shortage !== undefined) throw new ShortageError(shortage);
  const own = ownError(error);
  if (own !== undefined) {
    return new ProviderError(own.message, { failure: own.failure, provider, model });
  }
  const problem = readVendorError(error, call.nowMs);
  const detail = safeDetail(problem.message, call.secrets);
  return new ProviderError(detail, { failure: classifyFailure(problem), provider, model });
}

/** Of our own fetch, which the libraries wrap into errors of theirs. */
function ownError(error: unknown): ProviderError | undefined {
  for (let at: unknown = error; at instanceof Error; at = at.cause) {
    if (at instanceof ProviderError) return at;
  }
  return undefined;
}

/** A stream that closed without its end event: what came is no answer. */
export function brokenStream(call: Pick<FailedCall, 'provider' | 'model'>): ProviderError {
  return new ProviderError('the stream ended without its end event', {
    failure: { kind: 'network' },
    provider: call.provider,
    model: call.model,
  });
}

type Fields = Readonly<Record<string, unknown>>;

const fieldsOf = (value: unknown): Fields =>
  typeof value === 'object' && value !== null ? (value as Fields) : {};

const textOf = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined;

/** OpenRouter puts the status of whom it asked into the `code` of an error inside the stream. */
const httpStatus = (value: unknown) =>
  typeof value === 'number' && value >= 400 && value < 600 ? value : undefined;

/** Both SDKs throw errors with `status`, `headers` and the parsed body in `error`. */
function readVendorError(error: unknown, nowMs: number): VendorProblem {
  const outer = fieldsOf(error);
  const body = unwrapped(outer['error']);
  const status = httpStatus(outer['status']) ?? httpStatus(body['code']);
  const message = error instanceof Error ? error.message : String(error);
  if (status === undefined && outer['error'] === undefined) {
    return { source: isUnreadable(error) ? 'parser' : 'connection', message: withCause(error) };
  }
  const code = textOf(body['code']) ?? textOf(body['type']) ?? textOf(outer['code']);
  const headers = outer['headers'] instanceof Headers ? outer['headers'] : new Headers();
  const retryAfterMs = retryHintMs(
    {
      ...header(headers, 'retry-after-ms', 'retryAfterMs'),
      ...header(headers, 'retry-after', 'retryAfter'),
      body: JSON.stringify(outer['error'] ?? '') + message,
    },
    nowMs,
  );
  return {
    source: 'response',
    message: textOf(body['message']) ?? message,
    windowSize: body['n_ctx'],
    ...(status === undefined ? {} : { status }),
    ...(code === undefined ? {} : { code: [code, textOf(body['status'])].join(' ').trim() }),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  };
}

/** Google wraps its error in a list, Anthropic in a second `error`. */
function unwrapped(value: unknown): Fields {
  const fields = fieldsOf(Array.isArray(value) ? value[0] : value);
  return typeof fields['error'] === 'object' ? fieldsOf(fields['error']) : fields;
}

function header<Key extends string>(headers: Headers, name: string, key: Key) {
  const value = headers.get(name);
  return value === null ? {} : ({ [key]: value } as { readonly [K in Key]: string });
}

const isUnreadable = (error: unknown) => error instanceof SyntaxError;

/** `fetch failed` alone says nothing; what lies beneath it does. */
function withCause(error: unknown): string {
  const texts: string[] = [];
  for (let at: unknown = error; at instanceof Error && texts.length < 4; at = at.cause) {
    texts.push(at.message.replace(/\.$/, ''));
  }
  return texts.join(': ');
}
