// One request to a vendor: deadlines, translation of the vendor's errors, and the address shown in
// messages.

import {
  ProviderError,
  type ProviderFailure,
  ShortageError,
  shortageOf,
} from '../kernel/message/errors.ts';
import { defined, type Fields } from '../lib/json/json.ts';
import type { Clock } from '../lib/time/clock.ts';
import type { LocalFetch } from './local-servers.ts';
import type { LLMProvider, ModelEvent, ModelRequest } from './provider.ts';
import {
  classifyFailure,
  retryHintMs,
  safeDetail,
  type VendorProblem,
} from './rules/provider-failure.ts';
import type { ImageSource } from './seen-images.ts';
import type { Vendor } from './vendors.ts';

export type ProviderDeps = {
  readonly vendor: Vendor;
  readonly apiBase: string;
  /** Empty where the server asks for none. */
  readonly apiKey: string;
  readonly timeouts: CallTimeouts;
  readonly clock: Clock;
  readonly images: ImageSource;
  /** How the server is reached; left out: as any address. */
  readonly fetch?: LocalFetch;
};

// Three deadlines of one model call: until its first token, between two pieces of its stream, and as a
// whole. Whichever passes first aborts the HTTP request.

type CallTimeouts = {
  readonly firstTokenMs: number;
  readonly idleMs: number;
  readonly wholeCallMs: number;
};

type DeadlineStage = 'first_token' | 'idle' | 'whole_call';

export class CallDeadline implements Disposable {
  readonly #timeouts: CallTimeouts;
  readonly #clock: Clock;
  readonly #outer: AbortSignal;
  readonly #controller = new AbortController();
  readonly #whole: Disposable;
  readonly #first: Disposable;
  #idle: Disposable | undefined;
  #expired: DeadlineStage | undefined;
  #lastProgress: number | undefined;

  constructor(timeouts: CallTimeouts, clock: Clock, outer: AbortSignal) {
    this.#timeouts = timeouts;
    this.#clock = clock;
    this.#outer = outer;
    this.#whole = clock.timer(timeouts.wholeCallMs, () => this.#expire('whole_call'));
    this.#first = clock.timer(timeouts.firstTokenMs, () => this.#expire('first_token'));
    if (outer.aborted) this.stop();
    outer.addEventListener('abort', this.stop, { once: true });
  }

  /** Aborts with the caller's signal or when a deadline passes. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get expired(): DeadlineStage | undefined {
    return this.#expired;
  }

  /** A piece of the answer came. Keep-alives are none. */
  progress(): void {
    const isFirst = this.#lastProgress === undefined;
    this.#lastProgress = this.#clock.monotonic();
    if (!isFirst) return;
    this.#first[Symbol.dispose]();
    this.#watchIdle(this.#timeouts.idleMs);
  }

  /** Ends the request: nothing more of it is wanted. */
  readonly stop = (): void => this.#controller.abort();

  [Symbol.dispose](): void {
    this.#outer.removeEventListener('abort', this.stop);
    this.#whole[Symbol.dispose]();
    this.#first[Symbol.dispose]();
    this.#idle?.[Symbol.dispose]();
  }

  #expire(stage: DeadlineStage) {
    this.#expired ??= stage;
    this.stop();
  }

  /** One timer per idle period, not one per piece: it looks when the last piece came. */
  #watchIdle(waitMs: number) {
    this.#idle = this.#clock.timer(waitMs, () => {
      const since = this.#clock.monotonic() - (this.#lastProgress ?? 0);
      const leftMs = this.#timeouts.idleMs - since;
      if (leftMs <= 0) this.#expire('idle');
      else this.#watchIdle(leftMs);
    });
  }
}

// Turns whatever an SDK threw into our ProviderError: class of failure, hint, words without secrets.
// The vendor's error itself is not kept, since its text and headers may hold keys and prompts.

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
function providerError(error: unknown, call: FailedCall): ProviderError {
  if (error instanceof ProviderError) return error;
  const failed = (message: string, failure: ProviderFailure) =>
    new ProviderError(message, { failure, provider: call.provider, model: call.model });
  if (call.signal.aborted) return failed('the call was cancelled', { kind: 'cancelled' });
  const stage = call.deadline.expired;
  if (stage !== undefined) return failed(`no answer in time: ${stage}`, { kind: 'timeout', stage });
  const shortage = shortageOf(error);
  if (shortage !== undefined) throw new ShortageError(shortage);
  const own = ownError(error);
  if (own !== undefined) return failed(own.message, own.failure);
  const problem = readVendorError(error, call.nowMs);
  return failed(safeDetail(problem.message, call.secrets), classifyFailure(problem));
}

/** Of our own fetch, which the libraries wrap into errors of theirs. */
function ownError(error: unknown): ProviderError | undefined {
  for (let at: unknown = error; at instanceof Error; at = at.cause) {
    if (at instanceof ProviderError) return at;
  }
  return undefined;
}

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
    return {
      source: error instanceof SyntaxError ? 'parser' : 'connection',
      message: withCause(error),
    };
  }
  const code = textOf(body['code']) ?? textOf(body['type']) ?? textOf(outer['code']);
  const headers = outer['headers'] instanceof Headers ? outer['headers'] : new Headers();
  const hints = {
    retryAfterMs: headers.get('retry-after-ms'),
    retryAfter: headers.get('retry-after'),
    body: JSON.stringify(outer['error'] ?? '') + message,
  };
  return {
    source: 'response',
    message: textOf(body['message']) ?? message,
    windowSize: body['n_ctx'],
    ...defined({
      status,
      code: code && [code, textOf(body['status'])].join(' ').trim(),
      retryAfterMs: retryHintMs(hints, nowMs),
    }),
  };
}

/** Google wraps its error in a list, Anthropic in a second `error`. */
function unwrapped(value: unknown): Fields {
  const fields = fieldsOf(Array.isArray(value) ? value[0] : value);
  return typeof fields['error'] === 'object' ? fieldsOf(fields['error']) : fields;
}

/** `fetch failed` alone says nothing; what lies beneath it does. */
function withCause(error: unknown): string {
  const texts: string[] = [];
  for (let at: unknown = error; at instanceof Error && texts.length < 4; at = at.cause) {
    texts.push(at.message.replace(/\.$/, ''));
  }
  return texts.join(': ');
}

// One streamed call from its first byte to its last, the same for every vendor: the deadlines, the
// vendor's errors as ours, and that a stream without its end event is no answer.

/** For the vendors' packages: our own deadlines rule, theirs must never be the shorter one. */
export const LIBRARY_TIMEOUT_MS = 2_000_000_000;

/** What reads the pieces of one vendor's stream. */
export interface StreamReader<Piece> {
  /** The vendor said that the answer is complete. */
  readonly ended: boolean;
  /** The answer passed our limit of length; the rest is not wanted. */
  readonly overlong: boolean;
  push(piece: Piece): Iterable<ModelEvent>;
  finish(): Iterable<ModelEvent>;
}

/** Where the vendors' packages and streams differ. */
type Wire<Piece> = {
  readerFor(request: ModelRequest): StreamReader<Piece>;
  /** Sends the request. */
  open(request: ModelRequest, deadline: CallDeadline): Promise<AsyncIterable<Piece>>;
  /** Some pieces only keep the connection alive. */
  carriesContent(piece: Piece): boolean;
};

export function streamingProvider<Piece>(
  { vendor, apiKey, clock, timeouts }: ProviderDeps,
  apiBase: string,
  wire: Wire<Piece>,
): LLMProvider {
  return {
    name: vendor.name,
    ...basedAt(apiBase),
    async *stream(request, signal) {
      const reader = wire.readerFor(request);
      const deadline = new CallDeadline(timeouts, clock, signal);
      const call = { provider: vendor.name, model: request.model };
      try {
        for await (const piece of await wire.open(request, deadline)) {
          if (wire.carriesContent(piece)) deadline.progress();
          yield* reader.push(piece);
          if (!reader.overlong) continue;
          deadline.stop();
          break;
        }
        if (!reader.overlong) deadline.signal.throwIfAborted();
      } catch (error) {
        const isComplete = reader.ended && !signal.aborted;
        if (!isComplete) {
          const nowMs = clock.now();
          throw providerError(error, { ...call, secrets: [apiKey], nowMs, deadline, signal });
        }
      } finally {
        deadline[Symbol.dispose]();
      }
      if (!reader.ended && !reader.overlong) {
        // What came is no answer.
        const failure = { kind: 'network' } as const;
        throw new ProviderError('the stream ended without its end event', { failure, ...call });
      }
      yield* reader.finish();
    },
  };
}

// A server's address as others may read it: without user name, password and query.

/** For what is measured; empty where the text is no address. */
export function basedAt(address: string): { readonly base?: string } {
  if (!URL.canParse(address)) return {};
  const { origin, pathname } = new URL(address);
  return { base: `${origin}${pathname}`.replace(/\/$/, '') };
}
