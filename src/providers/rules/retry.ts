// What to do after a model call failed: try again and when, let the next model answer, or give up.

import type { ProviderFailure } from '../../kernel/message/errors.ts';
import { hintOf } from './provider-failure.ts';

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
  /** Another model waits. */
  readonly fallbackLeft: boolean;
  /** The call before failed as well. */
  readonly isFailing: boolean;
  /** 0 to 1, random. */
  readonly jitter: number;
};

export type RetryStep =
  | { readonly action: 'retry'; readonly delayMs: number }
  | { readonly action: 'fall_over' }
  | { readonly action: 'give_up' };

/** A vendor that asks for a longer wait than this is not waited for. */
export const LONGEST_HINTED_WAIT_MS = 60_000;
/** Each try of a silent server costs its whole deadline, so it gets one more. */
const MAX_TIMEOUT_RETRIES = 1;
/** Large models take two minutes to be loaded. */
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

/** The model itself is away: no matter what it is asked, the next call fails as well. */
export const isOutage = (failure: ProviderFailure) =>
  isTransient(failure) && failure.kind !== 'rate_limited' && !isLoading(failure);

function isTransient(failure: ProviderFailure): boolean {
  if (failure.kind === 'timeout') return failure.stage !== 'whole_call';
  return ['rate_limited', 'server', 'network', 'malformed'].includes(failure.kind);
}

function retryLimit(failed: FailedTry, { maxRetries }: RetryPolicy): number {
  const { failure, fallbackLeft } = failed;
  // The retries were spent on it already: the person gets the answer of the fallback sooner.
  if (failed.isFailing && fallbackLeft) return 0;
  if (failure.kind === 'timeout') return Math.min(MAX_TIMEOUT_RETRIES, maxRetries);
  const waitsItOut = isLoading(failure) && !fallbackLeft && maxRetries > 0;
  return waitsItOut ? Math.max(MAX_LOADING_RETRIES, maxRetries) : maxRetries;
}

const isLoading = (failure: ProviderFailure) => failure.kind === 'server' && failure.isLoading;

/**
 * 1, 2, 4 ... times the least wait, a quarter more or less by chance, never above the longest. Of a
 * model that is being loaded: 2, 4, 8, 8 ... seconds.
 */
function backoffMs({ failure, retriesUsed, jitter }: FailedTry, policy: RetryPolicy): number {
  if (isLoading(failure)) {
    return Math.min(LONGEST_LOADING_WAIT_MS, FIRST_LOADING_WAIT_MS * 2 ** retriesUsed);
  }
  const base = policy.minMs * 2 ** retriesUsed;
  return Math.round(Math.min(policy.maxMs, base * (0.75 + jitter / 2)));
}

/** Why a call is tried again, for the person who waits. */
export function retryReason(failure: ProviderFailure, vendor: string): string {
  switch (failure.kind) {
    case 'server':
      return failure.isLoading ? `${vendor} is loading the model` : `${vendor} has a problem`;
    case 'rate_limited':
      return `${vendor} is rate limiting`;
    case 'network':
      return `${vendor} could not be reached`;
    case 'timeout':
      return `${vendor} did not answer in time`;
    case 'malformed':
      return `${vendor} sent an unreadable answer`;
    default:
      return `${vendor} has a problem`;
  }
}

// Whether a model that failed is asked again: some failures in a row open the breaker for a while, then one
// try is let through, and a success closes it.

export type Breaker = { readonly failures: number; readonly openUntil: number | undefined };
export type BreakerPolicy = { readonly failures: number; readonly cooldownMs: number };

export const CLOSED: Breaker = { failures: 0, openUntil: undefined };

/** `now`: milliseconds of any clock, the same at each call. */
export function afterFailure({ failures }: Breaker, policy: BreakerPolicy, now: number): Breaker {
  const count = failures + 1;
  return {
    failures: count,
    openUntil: count >= policy.failures ? now + policy.cooldownMs : undefined,
  };
}

export const isOpen = ({ openUntil }: Breaker, now: number) =>
  openUntil !== undefined && now < openUntil;
