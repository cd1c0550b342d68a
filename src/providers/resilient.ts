// One model call with everything that makes it dependable: retries with backoff, fallback models in
// order, a shared pause when the vendor asks for one, and a last error that a person understands. The
// decisions are core/retry.ts; this only carries them out.

import { ProviderError, type ProviderFailure } from '../core/errors.ts';
import { decideRetry, type RetryPolicy, retryReason } from '../core/retry.ts';
import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../lib/logger.ts';
import { asProviderError, type Candidate, forThePerson } from './candidate.ts';
import { meteredStream } from './metered-stream.ts';
import type { CallMeter, ModelEvent, ModelRequest } from './provider.ts';

export type ResilientDeps = {
  readonly clock: Clock;
  readonly log: Logger;
  /** 0 to 1. */
  readonly random: () => number;
  readonly policy: RetryPolicy;
  /** Asked before every try. */
  readonly meter?: CallMeter;
};

/** With a fallback at hand a pause longer than this is not waited for. */
const LONGEST_PAUSE_BEFORE_FALLBACK_MS = 5000;

type Request = Omit<ModelRequest, 'model'>;
type Events = AsyncGenerator<ModelEvent, void, void>;

/** @throws ProviderError with a sentence for the person */
export function streamResilient(
  candidates: readonly [Candidate, ...Candidate[]],
  request: Request,
  signal: AbortSignal,
  deps: ResilientDeps,
): Events {
  return new ResilientCall(candidates, request, signal, deps).events();
}

class ResilientCall {
  readonly #request: Request;
  readonly #signal: AbortSignal;
  readonly #deps: ResilientDeps;
  readonly #fallbacks: Candidate[];
  #candidate: Candidate;
  #retriesUsed = 0;
  #outputShown = false;

  constructor(
    [first, ...fallbacks]: readonly [Candidate, ...Candidate[]],
    request: Request,
    signal: AbortSignal,
    deps: ResilientDeps,
  ) {
    this.#candidate = first;
    this.#fallbacks = fallbacks;
    this.#request = request;
    this.#signal = signal;
    this.#deps = deps;
  }

  async *events(): Events {
    for (;;) {
      try {
        yield* this.#pauseForVendor();
        yield* this.#tryOnce();
        return;
      } catch (error) {
        yield* this.#recover(asProviderError(error, this.#candidate, this.#signal));
      }
    }
  }

  /** Prepares the next try, or throws for good. */
  async *#recover(error: ProviderError): Events {
    const step = decideRetry(
      {
        failure: error.failure,
        retriesUsed: this.#retriesUsed,
        outputShown: this.#outputShown,
        fallbackLeft: this.#fallbacks.length > 0,
        jitter: this.#deps.random(),
      },
      this.#deps.policy,
    );
    if (step.action === 'retry') {
      this.#retriesUsed += 1;
      return yield* this.#wait(error.failure, step.delayMs);
    }
    const next = step.action === 'fall_over' ? this.#fallbacks.shift() : undefined;
    if (next === undefined) throw forThePerson(error, this.#candidate);
    const reason = `${this.#reasonFor(error.failure)}, asking ${next.name}`;
    yield { type: 'retrying', reason, delayMs: 0 };
    this.#candidate = next;
    this.#retriesUsed = 0;
  }

  /** Another call was told to wait: so does this one, or it leaves the vendor to a fallback. */
  async *#pauseForVendor(): Events {
    const { health, vendor, name } = this.#candidate;
    const waitMs = health.waitMs();
    if (waitMs === 0) return;
    const failure = { kind: 'rate_limited', retryAfterMs: waitMs } as const;
    if (this.#fallbacks.length > 0 && waitMs > LONGEST_PAUSE_BEFORE_FALLBACK_MS) {
      const message = 'the vendor asked all calls to wait';
      throw new ProviderError(message, { failure, provider: vendor.name, model: name });
    }
    yield* this.#wait(failure, Math.round(waitMs * (1 + this.#deps.random() / 4)));
  }

  async *#wait(failure: ProviderFailure, delayMs: number): Events {
    yield { type: 'retrying', reason: this.#reasonFor(failure), delayMs };
    try {
      await this.#deps.clock.sleep(delayMs, this.#signal);
    } catch (error) {
      throw asProviderError(error, this.#candidate, this.#signal);
    }
  }

  async *#tryOnce(): Events {
    const { clock, log, meter } = this.#deps;
    const { name, model, provider, health } = this.#candidate;
    const startedAt = clock.monotonic();
    const elapsed = () => {
      const elapsedMs = Math.round(clock.monotonic() - startedAt);
      return { ...meter?.about, model: name, elapsedMs };
    };
    try {
      const request = { ...this.#request, model };
      const events = meteredStream({ provider, name, meter }, request, this.#signal);
      for await (const event of events) {
        if (event.type === 'text') this.#outputShown = true;
        if (event.type !== 'finished') {
          yield event;
          continue;
        }
        health.noteSuccess();
        log.info('model called', { ...elapsed(), status: event.stop, ...event.usage });
        yield { ...event, model: name };
      }
    } catch (error) {
      const failed = asProviderError(error, this.#candidate, this.#signal);
      health.noteFailure(failed.failure);
      const level = failed.failure.kind === 'cancelled' ? 'info' : 'warn';
      log[level]('model call failed', { ...elapsed(), status: failed.failure.kind, error: failed });
      throw failed;
    }
  }

  #reasonFor(failure: ProviderFailure): string {
    return retryReason(failure, this.#candidate.vendor.label);
  }
}
