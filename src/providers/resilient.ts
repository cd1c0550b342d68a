// A resilient model call: the candidates that may answer it, one metered try each, retries with
// backoff, fallback models in order, the shared pause that a vendor asks for, and a final error
// with a text for the person.

import type { ProviderName } from '../kernel/config/config.ts';
import { NanobotError, ProviderError, type ProviderFailure } from '../kernel/message/errors.ts';
import { defined } from '../lib/json/json.ts';
import type { Logger } from '../lib/logger.ts';
import { t } from '../lib/texts.ts';
import type { Clock } from '../lib/time/clock.ts';
import type { ProviderHealth } from './connections.ts';
import type { LocalSite, Place } from './local-site.ts';
import {
  type CallMeter,
  FALLBACK_ASKED,
  FALLBACK_REFUSED,
  type FailedModel,
  type LLMProvider,
  type ModelEvent,
  type ModelRequest,
  PASSED_OVER,
  type TryEnd,
} from './provider.ts';
import type { ModelCapabilities } from './rules/model-names.ts';
import {
  decideRetry,
  type RetryPolicy,
  retryReason,
  sentenceFor,
} from './rules/provider-failure.ts';
import { type Manners, speaking } from './vendors.ts';

export type Candidate = {
  /** As configured, with its prefix. */
  readonly name: string;
  /** The vendor's name of it. */
  readonly model: string;
  readonly provider: LLMProvider;
  readonly vendor: { readonly name: ProviderName | 'demo'; readonly label: string };
  readonly local: boolean;
  readonly capabilities: ModelCapabilities;
  readonly contextTokens: number;
  readonly apiBase: string;
  readonly health: ProviderHealth;
  readonly manners: Manners;
  /** The server, if it is a local one. */
  readonly site?: LocalSite;
};

/** Converts provider failures and the caller's abort; other errors pass. */
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
  const { failure, message: detail } = error;
  const { vendor, name: model, local, apiBase } = candidate;
  const called = { vendor: vendor.label, configKey: vendor.name, model, local, apiBase };
  const userText = sentenceFor({ failure, ...called, detail });
  return new ProviderError(detail, { failure, provider: vendor.name, model, userText });
}

type MeteredModel = {
  readonly provider: LLMProvider;
  /** With its prefix. */
  readonly name: string;
  readonly meter: CallMeter | undefined;
  /** For a place at a local server; undefined: none was needed. */
  readonly waitedMs: number | undefined;
  readonly insteadOf: FailedModel | undefined;
};

/** @throws what the meter throws, before anything is requested; then what the provider throws */
async function* meteredStream(
  { provider, name, meter, waitedMs, insteadOf }: MeteredModel,
  request: ModelRequest,
  signal: AbortSignal,
): AsyncGenerator<ModelEvent, void, void> {
  if (meter === undefined) return yield* provider.stream(request, signal);
  const at = defined({ base: provider.base, waitedMs, insteadOf });
  const attempt = await meter.begin(name, signal, at);
  let answerChars = 0;
  const failed = (failure: ProviderFailure): TryEnd => ({ kind: 'failed', failure, answerChars });
  let end = failed({ kind: 'cancelled' });
  try {
    const bounded = { ...request, maxTokens: Math.min(request.maxTokens, attempt.maxTokens) };
    for await (const event of provider.stream(bounded, signal)) {
      if ('delta' in event) answerChars += event.delta.length;
      end = event.type === 'finished' ? finished(event) : failed({ kind: 'cancelled' });
      // Before the event is passed on: the consumer may stop after the last event.
      if (end.kind === 'finished') attempt.end(end);
      yield event;
    }
  } catch (error) {
    if (error instanceof ProviderError) end = failed(error.failure);
    throw error;
  } finally {
    if (end.kind === 'failed') attempt.end(end);
  }
}

function finished(event: Extract<ModelEvent, { type: 'finished' }>): TryEnd {
  const { text, thinking, toolCalls, usage } = event;
  const parts = [
    text,
    ...thinking.map((block) => block.text),
    ...toolCalls.map((call) => call.name + call.arguments),
  ];
  const answerChars = parts.reduce((sum, part) => sum + part.length, 0);
  return { kind: 'finished', answerChars, ...defined({ usage }) };
}

export type ResilientDeps = {
  readonly clock: Clock;
  readonly log: Logger;
  /** 0 to 1. */
  readonly random: () => number;
  readonly policy: RetryPolicy;
  /** A person decides whether a fallback model answers. */
  readonly asksFirst: boolean;
  /** Called before every try. */
  readonly meter?: CallMeter;
};

/** If a fallback is available, a longer pause is not waited for. */
const LONGEST_PAUSE_BEFORE_FALLBACK_MS = 5000;

type Request = Omit<ModelRequest, 'model'>;
type Events = AsyncGenerator<ModelEvent, void, void>;

/** Events of the call. @throws ProviderError with a text for the person */
export const streamResilient = (...call: ConstructorParameters<typeof ResilientCall>): Events =>
  new ResilientCall(...call).events();

class ResilientCall {
  readonly #request: Request;
  readonly #signal: AbortSignal;
  readonly #deps: ResilientDeps;
  readonly #fallbacks: Candidate[];
  readonly #first: Candidate;
  #candidate: Candidate;
  /** The model before it, and its error. */
  #failed: FailedModel | undefined;
  #error: ProviderError | undefined;
  #retriesUsed = 0;
  #outputShown = false;
  #hasPassedOver = false;

  constructor(
    [first, ...fallbacks]: readonly [Candidate, ...Candidate[]],
    request: Request,
    signal: AbortSignal,
    deps: ResilientDeps,
  ) {
    this.#first = first;
    this.#candidate = first;
    this.#fallbacks = fallbacks;
    this.#request = request;
    this.#signal = signal;
    this.#deps = deps;
  }

  async *events(): Events {
    for (;;) {
      try {
        yield* this.#passOver();
        yield* this.#pauseForVendor();
        yield* this.#tryOnce();
        return;
      } catch (error) {
        if (this.#leavesRefused(error)) continue;
        if (codeOf(error) === FALLBACK_REFUSED) throw this.#error ?? error;
        yield* this.#recover(asProviderError(error, this.#candidate, this.#signal));
      }
    }
  }

  /** Prepares the next try, or throws the final error. */
  async *#recover(error: ProviderError): Events {
    const step = decideRetry(
      {
        failure: error.failure,
        retriesUsed: this.#retriesUsed,
        outputShown: this.#outputShown,
        isFailing: this.#candidate.health.isFailing(),
        fallbackLeft: this.#fallbacks.length > 0,
        jitter: this.#deps.random(),
      },
      this.#deps.policy,
    );
    if (step.action === 'retry') {
      this.#retriesUsed += 1;
      return yield* this.#wait(error.failure, step.delayMs);
    }
    if (!this.#outputShown) this.#candidate.health.noteGivenUp(error.failure);
    const next = step.action === 'fall_over' ? this.#fallbacks.shift() : undefined;
    if (next === undefined) throw forThePerson(error, this.#candidate);
    yield* this.#fallOver(error, next);
  }

  /** A model that is known to be unavailable is called only after the others. */
  async *#passOver(): Events {
    const failure = this.#candidate.health.restsAfter();
    if (failure === undefined) return;
    const at = this.#fallbacks.findIndex(({ health }) => health.restsAfter() === undefined);
    const [next] = at === -1 ? [] : this.#fallbacks.splice(at, 1, this.#candidate);
    if (next === undefined) return;
    this.#hasPassedOver = true;
    const { vendor, name: model } = this.#candidate;
    const known = { failure, provider: vendor.name, model };
    yield* this.#fallOver(new ProviderError(t`it failed before`, known), next);
  }

  /**
   * If the meter refuses a fallback, as in a conversation that stays local, the paused model is
   * called.
   */
  #leavesRefused(error: unknown): boolean {
    if (error instanceof ProviderError || this.#signal.aborted) return false;
    const code = codeOf(error);
    const isNext = code === PASSED_OVER || (this.#hasPassedOver && code !== FALLBACK_ASKED);
    const next = isNext ? this.#fallbacks.shift() : undefined;
    if (next === undefined) return false;
    if (error instanceof NanobotError && code === PASSED_OVER) {
      const { userText: text = '' } = error;
      this.#failed = { model: this.#candidate.name, reason: text, text };
    }
    this.#candidate = next;
    this.#retriesUsed = 0;
    return true;
  }

  async *#fallOver(error: ProviderError, next: Candidate): Events {
    const why = this.#reasonFor(error.failure);
    const reason = this.#deps.asksFirst ? why : t`${why}, asking ${next.name}`;
    yield { type: 'retrying', reason, delayMs: 0 };
    this.#error = forThePerson(error, this.#candidate);
    const { model, userText: text = '' } = this.#error;
    this.#failed = { model, reason: why, text };
    this.#candidate = next;
    this.#retriesUsed = 0;
  }

  /** The vendor asked another call to wait: this one waits too, or goes to a fallback. */
  async *#pauseForVendor(): Events {
    const { health, vendor, name } = this.#candidate;
    const waitMs = health.waitMs();
    if (waitMs === 0) return;
    const failure = { kind: 'rate_limited', retryAfterMs: waitMs } as const;
    if (this.#fallbacks.length > 0 && waitMs > LONGEST_PAUSE_BEFORE_FALLBACK_MS) {
      const message = t`the provider asked all calls to wait`;
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
    const { name, health, site } = this.#candidate;
    const place = yield* this.#enter(site);
    const waited = defined({ waitedMs: place?.waitedMs });
    const startedAt = clock.monotonic();
    const elapsed = () => {
      const elapsedMs = Math.round(clock.monotonic() - startedAt);
      return { ...meter?.about, model: name, elapsedMs, ...waited };
    };
    try {
      const speaker = speaking(this.#metered(place), this.#candidate);
      for await (const event of speaker.stream(this.#asked, this.#signal)) {
        if (event.type === 'text') this.#outputShown = true;
        // The model was asked to correct itself, and its earlier text is withdrawn.
        if (event.type === 'retrying') this.#outputShown = false;
        if (event.type !== 'finished') {
          yield event;
          continue;
        }
        health.noteSuccess();
        site?.answered(this.#candidate.model);
        // The consumer may stop after the last event.
        place?.[Symbol.dispose]();
        log.info('model called', { ...elapsed(), status: event.stop, ...event.usage });
        yield { ...event, model: name };
      }
    } catch (error) {
      const failed = asProviderError(error, this.#candidate, this.#signal);
      health.noteFailure(failed.failure);
      if (failed.failure.kind === 'context_overflow') {
        const { model, contextTokens } = this.#candidate;
        site?.overflowed(model, failed.failure.contextTokens, contextTokens);
      }
      const level = failed.failure.kind === 'cancelled' ? 'info' : 'warn';
      log[level](t`model call failed`, {
        ...elapsed(),
        status: failed.failure.kind,
        error: failed,
      });
      throw failed;
    } finally {
      place?.[Symbol.dispose]();
    }
  }

  /** Each call is a try of its own; the place is waited for once. */
  #metered(place: Place | undefined): LLMProvider {
    const { provider, name } = this.#candidate;
    const { meter } = this.#deps;
    const insteadOf = this.#candidate === this.#first ? undefined : this.#failed;
    let waitedMs = place?.waitedMs;
    return {
      name: provider.name,
      stream(request, signal) {
        const events = meteredStream(
          { provider, name, meter, waitedMs, insteadOf },
          request,
          signal,
        );
        waitedMs = undefined;
        return events;
      },
    };
  }

  /** The request for this model: the answer is no longer than it writes well. */
  get #asked(): ModelRequest {
    const { model, capabilities } = this.#candidate;
    const { maxReliableOutput = Number.POSITIVE_INFINITY } = capabilities;
    const maxTokens = Math.min(this.#request.maxTokens, maxReliableOutput);
    return { ...this.#request, model, maxTokens, capabilities };
  }

  /** Local servers accept few calls at once; the wait is not part of the try. */
  async *#enter(site: LocalSite | undefined): AsyncGenerator<ModelEvent, Place | undefined, void> {
    if (site === undefined) return undefined;
    const { ahead } = site;
    const entering = site.enter(this.#candidate.model, this.#signal);
    let isIn = false;
    try {
      const server = this.#candidate.vendor.label;
      if (ahead > 0) yield { type: 'waiting', server, ahead };
      const place = await entering.catch((error) => this.#noRoom(error));
      if (ahead > 0) yield { type: 'waiting', server, ahead: 0 };
      isIn = true;
      return place;
    } finally {
      // A consumer that sees the wait may stop.
      if (!isIn) entering.then((place) => place[Symbol.dispose](), noMatter);
    }
  }

  /** A retry would not free memory; another model may answer. */
  #noRoom(error: unknown): never {
    if (!(error instanceof NanobotError) || error.code !== 'memory_refused') throw error;
    const { vendor, name } = this.#candidate;
    const failure: ProviderFailure = { kind: 'rejected' };
    const said = { failure, provider: vendor.name, model: name, userText: error.message };
    throw new ProviderError(error.message, said);
  }

  #reasonFor(failure: ProviderFailure): string {
    return retryReason(failure, this.#candidate.vendor.label);
  }
}

const noMatter = () => undefined;
const codeOf = (error: unknown) => (error instanceof NanobotError ? error.code : undefined);
