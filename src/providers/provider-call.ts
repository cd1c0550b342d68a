// One request to a vendor: JSON in, a stream of events out, with deadlines, translation of the
// vendor's errors, and the address shown in messages.

import {
  ProviderError,
  type ProviderFailure,
  ShortageError,
  shortageOf,
} from '../kernel/message/errors.ts';
import { rememberedFor } from '../lib/async.ts';
import { defined, type Fields } from '../lib/json/json.ts';
import { proxyErrorIn } from '../lib/net/proxies.ts';
import { type Clock, type Following, following } from '../lib/time/clock.ts';
import {
  type Answer,
  type Asked,
  type BodyParts,
  type Posted,
  piecesOf,
  postThrough,
  refuse,
  VendorError,
} from './http-request.ts';
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
  /** Empty if the server needs none. */
  readonly apiKey: string;
  /** The setting; default: none. */
  readonly proxy?: string;
  readonly timeouts: CallTimeouts;
  readonly clock: Clock;
  readonly images: ImageSource;
  /** How the server is reached; default: as any address. */
  readonly fetch?: (url: string, asked: Asked) => Promise<Answer>;
};

// Three deadlines of one model call: until its first token, between two pieces of its stream, and
// in total. The first that passes aborts the HTTP request.

type CallTimeouts = {
  readonly firstTokenMs: number;
  readonly idleMs: number;
  readonly wholeCallMs: number;
};

type DeadlineStage = 'first_token' | 'idle' | 'whole_call';

class CallDeadline implements Disposable {
  readonly #timeouts: CallTimeouts;
  readonly #clock: Clock;
  readonly #ending: Following;
  readonly #whole: Disposable;
  readonly #first: Disposable;
  #idle: Disposable | undefined;
  #expired: DeadlineStage | undefined;
  #lastProgress: number | undefined;

  constructor(timeouts: CallTimeouts, clock: Clock, outer: AbortSignal) {
    this.#timeouts = timeouts;
    this.#clock = clock;
    this.#ending = following(outer);
    this.#whole = clock.timer(timeouts.wholeCallMs, () => this.#expire('whole_call'));
    this.#first = clock.timer(timeouts.firstTokenMs, () => this.#expire('first_token'));
  }

  /** Aborts with the caller's signal or when a deadline passes. */
  get signal(): AbortSignal {
    return this.#ending.signal;
  }

  get expired(): DeadlineStage | undefined {
    return this.#expired;
  }

  /** A piece of the answer arrived. Keep-alives do not count. */
  progress(): void {
    const isFirst = this.#lastProgress === undefined;
    this.#lastProgress = this.#clock.monotonic();
    if (!isFirst) return;
    this.#first[Symbol.dispose]();
    this.#watchIdle(this.#timeouts.idleMs);
  }

  /** Ends the request when nothing more is needed. */
  stop(): void {
    this.#ending.abort();
  }

  [Symbol.dispose](): void {
    this.#ending[Symbol.dispose]();
    this.#whole[Symbol.dispose]();
    this.#first[Symbol.dispose]();
    this.#idle?.[Symbol.dispose]();
  }

  #expire(stage: DeadlineStage) {
    this.#expired ??= stage;
    this.stop();
  }

  /** One timer per idle period, not one per piece: it checks when the last piece came. */
  #watchIdle(waitMs: number) {
    this.#idle = this.#clock.timer(waitMs, () => {
      const since = this.#clock.monotonic() - (this.#lastProgress ?? 0);
      const leftMs = this.#timeouts.idleMs - since;
      if (leftMs <= 0) this.#expire('idle');
      else this.#watchIdle(leftMs);
    });
  }
}

// Turns any error of a call into a ProviderError: class of failure, hint, text without secrets. The
// vendor's error itself is dropped, because its text and headers may contain keys and prompts.

export type FailedCall = {
  readonly provider: string;
  readonly model: string;
  readonly secrets: readonly string[];
  readonly nowMs: number;
  readonly deadline: CallDeadline;
  /** The caller's own signal. */
  readonly signal: AbortSignal;
};

/** @throws ShortageError if the process could not make the call: the vendor was not asked */
function providerError(error: unknown, call: FailedCall): ProviderError {
  if (error instanceof ProviderError) return error;
  const failed = (message: string, failure: ProviderFailure) =>
    new ProviderError(message, { failure, provider: call.provider, model: call.model });
  if (call.signal.aborted) return failed('the call was cancelled', { kind: 'cancelled' });
  const stage = call.deadline.expired;
  if (stage !== undefined) return failed(`no answer in time: ${stage}`, { kind: 'timeout', stage });
  const shortage = shortageOf(error);
  if (shortage !== undefined) throw new ShortageError(shortage);
  const proxy = proxyErrorIn(error)?.message;
  if (proxy !== undefined) return failed(proxy, { kind: 'network', proxy });
  const problem = readVendorError(error, call.nowMs);
  return failed(safeDetail(problem.message, call.secrets), classifyFailure(problem));
}

const fieldsOf = (value: unknown): Fields =>
  typeof value === 'object' && value !== null ? (value as Fields) : {};

const textOf = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined;

/**
 * OpenRouter puts the status of the upstream vendor into the `code` of an error inside the stream.
 */
const httpStatus = (value: unknown) =>
  typeof value === 'number' && value >= 400 && value < 600 ? value : undefined;

function readVendorError(error: unknown, nowMs: number): VendorProblem {
  if (!(error instanceof VendorError)) {
    const source = error instanceof SyntaxError ? 'parser' : 'connection';
    return { source, message: withCause(error) };
  }
  const { message, headers, said } = error;
  const body = unwrapped(said);
  const code = textOf(body['code']) ?? textOf(body['type']);
  const hints = {
    retryAfterMs: headers.get('retry-after-ms'),
    retryAfter: headers.get('retry-after'),
    body: message,
  };
  return {
    source: 'response',
    message: textOf(body['message']) ?? message,
    windowSize: body['n_ctx'],
    ...defined({
      status: error.status ?? httpStatus(body['code']),
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

/** An error may have no text; its cause has. */
function withCause(error: unknown): string {
  const texts: string[] = [];
  for (let at: unknown = error; at instanceof Error && texts.length < 4; at = at.cause) {
    texts.push(at.message.replace(/\.$/, ''));
  }
  return texts.join(': ');
}

// One streamed call from its first byte to its last, the same for every vendor: the deadlines,
// translated errors, and the rule that a stream without its end event is no answer.

/** Reads the pieces of one vendor's stream. */
export interface StreamReader<Piece> {
  /** The vendor marked the answer as complete. */
  readonly ended: boolean;
  /** The answer exceeded the length limit; the rest is dropped. */
  readonly overlong: boolean;
  push(piece: Piece): Iterable<ModelEvent>;
  finish(): Iterable<ModelEvent>;
}

/**
 * A stream of pieces that begins with the answer's first byte. @throws VendorError, ProviderError
 */
export type Send<Piece> = (body: RequestBody) => Promise<AsyncIterable<readonly Piece[]>>;

type RequestBody = { readonly tools?: readonly object[] };

/** The differences between the vendors' dialects. */
type Wire<Piece> = {
  readonly url: string;
  /** In addition to those of every request. */
  readonly headers: Readonly<Record<string, string>>;
  readerFor(request: ModelRequest): StreamReader<Piece>;
  open(request: ModelRequest, send: Send<Piece>): ReturnType<Send<Piece>>;
  /** Some pieces only keep the connection alive. */
  carriesContent(piece: Piece): boolean;
};

/**
 * JSON of bodies, as bytes: as text it would be copied twice on its way. A tool takes as long as a
 * prompt to write, and is the same in every call: their bytes are those of the calls before.
 */
function createBodyWriter() {
  const textOf = rememberedFor((tool: object) => JSON.stringify(tool));
  let last: { readonly tools: readonly object[]; readonly end: Buffer } | undefined;

  /** Turn after turn the list is of the same tools, mostly. */
  function endWith(tools: readonly object[]): Buffer {
    const isSame =
      last?.tools.length === tools.length && last.tools.every((tool, nth) => tool === tools[nth]);
    if (last === undefined || !isSame) {
      last = { tools, end: Buffer.from(`,"tools":[${tools.map(textOf).join(',')}]}`) };
    }
    return last.end;
  }

  return ({ tools, ...others }: RequestBody): BodyParts => {
    const bytes = Buffer.from(JSON.stringify(others));
    return tools === undefined ? [bytes] : [bytes.subarray(0, -1), endWith(tools)];
  };
}

export function streamingProvider<Piece>(
  { vendor, apiKey, proxy = '', clock, timeouts, fetch }: ProviderDeps,
  apiBase: string,
  wire: Wire<Piece>,
): LLMProvider {
  const { url } = wire;
  const ask =
    fetch === undefined
      ? postThrough(proxy, url)
      : (to: string, { body, ...asked }: Posted) =>
          fetch(to, { ...asked, body: Buffer.concat(body) });
  const headers = {
    accept: 'application/json',
    'content-type': 'application/json',
    'user-agent': 'nanobot',
    ...wire.headers,
  };

  const bytesOf = createBodyWriter();

  async function send(
    body: RequestBody,
    signal: AbortSignal,
  ): Promise<AsyncIterable<readonly Piece[]>> {
    signal.throwIfAborted();
    const asked = { method: 'POST', redirect: 'manual', headers, signal } as const;
    const answer: Answer = await ask(url, { ...asked, body: bytesOf(body) });
    const isOk = answer.status >= 200 && answer.status < 300;
    return isOk ? piecesOf(answer) : refuse(answer, url, vendor.name);
  }

  return {
    name: vendor.name,
    ...basedAt(apiBase),
    async *stream(request, signal) {
      const reader = wire.readerFor(request);
      using deadline = new CallDeadline(timeouts, clock, signal);
      const call = { provider: vendor.name, model: request.model };
      try {
        const pieces = await wire.open(request, (body) => send(body, deadline.signal));
        for await (const together of pieces) {
          if (together.some(wire.carriesContent)) deadline.progress();
          yield* joined(eventsOf(together, reader));
          if (!reader.overlong) continue;
          deadline.stop();
          break;
        }
        if (!reader.overlong) deadline.signal.throwIfAborted();
      } catch (error) {
        deadline.stop();
        const isComplete = reader.ended && !signal.aborted;
        if (!isComplete) {
          const nowMs = clock.now();
          throw providerError(error, { ...call, secrets: [apiKey], nowMs, deadline, signal });
        }
      }
      if (!reader.ended && !reader.overlong) {
        // The response is no answer.
        const failure = { kind: 'network' } as const;
        throw new ProviderError('the stream ended without its end event', { failure, ...call });
      }
      yield* reader.finish();
    },
  };
}

function* eventsOf<Piece>(pieces: readonly Piece[], reader: StreamReader<Piece>) {
  for (const piece of pieces) {
    if (reader.overlong) return;
    yield* reader.push(piece);
  }
}

/** Each event causes work on its whole way to the chat: deltas that came together are joined. */
function* joined(events: Iterable<ModelEvent>): Iterable<ModelEvent> {
  let last: ModelEvent | undefined;
  for (const event of events) {
    const isDelta = event.type === 'text' || event.type === 'thinking';
    if (isDelta && last?.type === event.type) {
      last = { ...last, delta: last.delta + event.delta };
      continue;
    }
    if (last !== undefined) yield last;
    last = event;
  }
  if (last !== undefined) yield last;
}

// A server's address for display: without user name, password and query.

/** For metrics; empty if the text is no address. */
export function basedAt(address: string): { readonly base?: string } {
  if (!URL.canParse(address)) return {};
  const { origin, pathname } = new URL(address);
  return { base: `${origin}${pathname}`.replace(/\/$/, '') };
}
