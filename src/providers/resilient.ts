// One model call with everything that makes it dependable: retries with backoff, fallback models in
// order, a shared pause when the vendor asks for one, one log line per try, and a last error that a
// person understands. The decisions are core/retry.ts; this only carries them out.

import { ProviderError, type ProviderFailure } from '../core/errors.ts';
import { sentenceFor } from '../core/provider-sentence.ts';
import { decideRetry, type RetryPolicy, retryReason } from '../core/retry.ts';
import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../lib/logger.ts';
import type { LLMProvider, ModelEvent, ModelRequest } from './provider.ts';
import type { ProviderHealth } from './provider-health.ts';
import type { Vendor } from './vendors.ts';

/** A model that may answer, ready to be asked. */
export type Candidate = {
  /** As configured, with its prefix. */
  readonly name: string;
  /** As the vendor knows it. */
  readonly model: string;
  readonly provider: LLMProvider;
  readonly vendor: Pick<Vendor, 'name' | 'label'>;
  readonly local: boolean;
  readonly apiBase: string;
  readonly health: ProviderHealth;
};

export type ResilientDeps = {
  readonly clock: Clock;
  readonly log: Logger;
  /** 0 to 1. */
  readonly random: () => number;
  readonly policy: RetryPolicy;
};

/** With a fallback at hand a pause longer than this is not waited for. */
const LONGEST_PAUSE_BEFORE_FALLBACK_MS = 5000;

type Request = Omit<ModelRequest, 'model'>;
type Attempt = { outputShown: boolean };

export async function* streamResilient(
  candidates: readonly [Candidate, ...Candidate[]],
  request: Request,
  signal: AbortSignal,
  deps: ResilientDeps,
): AsyncGenerator<ModelEvent, void, void> {
  const queue = [...candidates];
  let candidate = candidates[0];
  queue.shift();
  let retriesUsed = 0;
  for (;;) {
    const attempt: Attempt = { outputShown: false };
    let failure: ProviderError;
    try {
      yield* pauseForVendor(candidate, queue.length > 0, signal, deps);
      yield* tryOnce(candidate, request, signal, attempt, deps);
      return;
    } catch (error) {
      failure = asProviderError(error, candidate, signal);
    }
    const step = decideRetry(
      {
        failure: failure.failure,
        retriesUsed,
        outputShown: attempt.outputShown,
        fallbackLeft: queue.length > 0,
        jitter: deps.random(),
      },
      deps.policy,
    );
    const next = step.action === 'fall_over' ? queue.shift() : undefined;
    if (step.action === 'retry') {
      retriesUsed += 1;
      yield* waitToRetry(candidate, failure.failure, step.delayMs, signal, deps);
    } else if (next === undefined) {
      throw forThePerson(failure, candidate);
    } else {
      const reason = `${retryReason(failure.failure, candidate.vendor.label)}, asking ${next.name}`;
      yield { type: 'retrying', reason, delayMs: 0 };
      candidate = next;
      retriesUsed = 0;
    }
  }
}

async function* waitToRetry(
  candidate: Candidate,
  failure: ProviderFailure,
  delayMs: number,
  signal: AbortSignal,
  { clock }: ResilientDeps,
): AsyncGenerator<ModelEvent, void, void> {
  yield { type: 'retrying', reason: retryReason(failure, candidate.vendor.label), delayMs };
  await sleepOrCancel(delayMs, candidate, signal, clock);
}

/** Another call was told to wait: so does this one, or it leaves the vendor to a fallback. */
async function* pauseForVendor(
  candidate: Candidate,
  fallbackLeft: boolean,
  signal: AbortSignal,
  { clock, random }: ResilientDeps,
): AsyncGenerator<ModelEvent, void, void> {
  const waitMs = candidate.health.waitMs();
  if (waitMs === 0) return;
  const failure = { kind: 'rate_limited', retryAfterMs: waitMs } as const;
  if (fallbackLeft && waitMs > LONGEST_PAUSE_BEFORE_FALLBACK_MS) {
    const message = 'the vendor asked all calls to wait';
    throw new ProviderError(message, {
      failure,
      provider: candidate.vendor.name,
      model: candidate.name,
    });
  }
  const delayMs = Math.round(waitMs * (1 + random() / 4));
  yield* waitToRetry(candidate, failure, delayMs, signal, { clock, random } as ResilientDeps);
}

async function* tryOnce(
  candidate: Candidate,
  request: Request,
  signal: AbortSignal,
  attempt: Attempt,
  { clock, log }: ResilientDeps,
): AsyncGenerator<ModelEvent, void, void> {
  const startedAt = clock.monotonic();
  const fields = () => ({
    model: candidate.name,
    elapsedMs: Math.round(clock.monotonic() - startedAt),
  });
  try {
    for await (const event of candidate.provider.stream(
      { ...request, model: candidate.model },
      signal,
    )) {
      if (event.type === 'text' && event.delta !== '') attempt.outputShown = true;
      if (event.type !== 'finished') {
        yield event;
        continue;
      }
      candidate.health.noteSuccess();
      log.info('model called', { ...fields(), status: event.stop, ...event.usage });
      yield { ...event, model: candidate.name };
    }
  } catch (error) {
    const failed = asProviderError(error, candidate, signal);
    candidate.health.noteFailure(failed.failure);
    const level = failed.failure.kind === 'cancelled' ? 'info' : 'warn';
    log[level]('model call failed', { ...fields(), status: failed.failure.kind, error: failed });
    throw failed;
  }
}

async function sleepOrCancel(
  delayMs: number,
  candidate: Candidate,
  signal: AbortSignal,
  clock: Clock,
): Promise<void> {
  try {
    await clock.sleep(delayMs, signal);
  } catch (error) {
    throw asProviderError(error, candidate, signal);
  }
}

function asProviderError(error: unknown, candidate: Candidate, signal: AbortSignal): ProviderError {
  if (error instanceof ProviderError) return error;
  if (!signal.aborted) throw error;
  return new ProviderError('the call was cancelled', {
    failure: { kind: 'cancelled' },
    provider: candidate.vendor.name,
    model: candidate.name,
  });
}

function forThePerson(error: ProviderError, candidate: Candidate): ProviderError {
  const { failure } = error;
  return new ProviderError(error.message, {
    failure,
    provider: candidate.vendor.name,
    model: candidate.name,
    userText: sentenceFor({
      failure,
      vendor: candidate.vendor.label,
      configKey: candidate.vendor.name,
      model: candidate.name,
      local: candidate.local,
      apiBase: candidate.apiBase,
      detail: error.message,
    }),
  });
}
