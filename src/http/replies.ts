// What all routes share: the route types, errors as a code and a sentence, validation of requests, and
// server-sent events. Unexpected errors go to the log only.

import { Readable } from 'node:stream';
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify';
import type { z } from 'zod';
import { DoorClosedError, DoorNameError } from '../channels/door.ts';
import { BusFullError, NanobotError } from '../kernel/message/errors.ts';
import type { Logger } from '../lib/logger.ts';
import type { Clock } from '../lib/time/clock.ts';

export type { FastifyInstance as HttpApp, FastifyRequest as HttpRequest } from 'fastify';

// What the client is told when its request did not succeed: a code and a sentence. Unexpected errors
// go to the log; the client learns only that there was one.

const FULL_RETRY_SECS = 5;
const CLOSED_RETRY_SECS = 1;
/** Refused before the body was read: the rest of it is not waited for. */
const CLOSING_STATUSES: readonly number[] = [401, 403, 413, 415, 421, 429];

/** What our own HTTP library refuses, in our words. */
const LIBRARY_REFUSALS: Readonly<Record<string, string>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: 'The message is larger than 1 MB. Send a shorter one.',
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'Send "Content-Type: application/json".',
};

export function failureReply(log: Logger) {
  return (error: FastifyError, request: FastifyRequest, reply: FastifyReply) => {
    const refusal = asRefusal(error);
    if (refusal.status >= 500 && refusal.code === 'internal') {
      log.error('request failed', { route: request.routeOptions.url, error });
    }
    const { status, code, message, retryAfterSecs } = refusal;
    if (retryAfterSecs !== undefined) reply.header('retry-after', String(retryAfterSecs));
    if (CLOSING_STATUSES.includes(status)) reply.header('connection', 'close');
    if (status === 401) reply.header('www-authenticate', 'Bearer');
    return reply.code(status).send({ error: { code, message } });
  };
}

function asRefusal(error: FastifyError): Refusal {
  if (error instanceof Refusal) return error;
  if (error instanceof BusFullError) {
    const message = 'Too many messages are waiting. Try again in a moment.';
    return new Refusal(503, error.code, message, { retryAfterSecs: FULL_RETRY_SECS });
  }
  if (error instanceof DoorClosedError) {
    return new Refusal(503, error.code, error.message, { retryAfterSecs: CLOSED_RETRY_SECS });
  }
  if (error instanceof DoorNameError) return new Refusal(400, error.code, error.message);
  const { statusCode = 500, code } = error;
  if (statusCode < 400 || statusCode >= 500) {
    return new Refusal(500, 'internal', 'Something went wrong here. The gateway’s log says what.');
  }
  const message = LIBRARY_REFUSALS[code] ?? 'The request cannot be read. Send JSON.';
  return new Refusal(statusCode, 'invalid_request', message);
}

// A request that is refused: status, a code for programs and a sentence that says what to do.

export class Refusal extends NanobotError {
  override readonly name = 'Refusal';
  readonly status: number;
  /** Seconds after which trying again makes sense. */
  readonly retryAfterSecs: number | undefined;

  constructor(
    status: number,
    code: string,
    message: string,
    options: { readonly retryAfterSecs?: number } = {},
  ) {
    super(code, message);
    this.status = status;
    this.retryAfterSecs = options.retryAfterSecs;
  }
}

// Checks what a request brought against a schema.

/** @throws Refusal (400) that names what is wrong. */
export function valid<T>(schema: z.ZodType<T>, value: unknown): T {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  const where = issue?.path.join('.') ?? '';
  const what = issue?.message ?? 'is not valid';
  throw new Refusal(400, 'invalid_request', `${where === '' ? 'The request' : where}: ${what}`);
}

// Events as server-sent events (HTML Living Standard, 9.2): a heartbeat shows both ends that the
// other lives. How one event is written is its caller's business.

const HEARTBEAT_MS = 15_000;
const HEARTBEAT = ': still here\n\n';
/** Makes the client see its connection before anything is said. */
const GREETING = ': connected\n\n';

/** Ends when the events end; `signal` has to end them. */
async function* serverSentEvents<Event>(
  events: AsyncIterable<Event>,
  signal: AbortSignal,
  { clock, render }: Pick<EventReply<Event>, 'clock' | 'render'>,
): AsyncGenerator<string, void, void> {
  const iterator = events[Symbol.asyncIterator]();
  yield GREETING;
  let next = iterator.next();
  try {
    while (!signal.aborted) {
      const first = await firstWithin(next, clock, HEARTBEAT_MS);
      if (first === undefined) {
        yield HEARTBEAT;
        continue;
      }
      if (first.done === true) return;
      yield render(first.value);
      next = iterator.next();
    }
  } finally {
    await iterator.return?.();
  }
}

/** `id`: where a reader resumes. */
export function eventText(data: unknown, id?: number): string {
  return `${id === undefined ? '' : `id: ${id}\n`}data: ${JSON.stringify(data)}\n\n`;
}

async function firstWithin<T>(
  promise: Promise<T>,
  clock: Clock,
  ms: number,
): Promise<T | undefined> {
  const { promise: late, resolve } = Promise.withResolvers<undefined>();
  const timer = clock.timer(ms, () => resolve(undefined));
  try {
    return await Promise.race([promise, late]);
  } finally {
    timer[Symbol.dispose]();
  }
}

// Answers a request with server-sent events until they end, the reader leaves, what let it in is
// revoked or the server closes.

type EventReply<Event> = {
  readonly clock: Clock;
  /** Aborts when the server closes. */
  readonly closing: AbortSignal;
  /** An event as it is sent, its blank line included; see `eventText`. */
  readonly render: (event: Event) => string;
  /** Begun when the reader is there; the signal has to end them. */
  events(signal: AbortSignal): AsyncIterable<Event>;
};

export function replyWithEvents<Event>(
  reply: FastifyReply,
  options: EventReply<Event>,
): FastifyReply {
  const { closing, events } = options;
  const gone = new AbortController();
  reply.raw.on('close', () => gone.abort());
  const { credential } = reply.request;
  const revoked = credential === undefined ? [] : [credential.revoked];
  const signal = AbortSignal.any([gone.signal, closing, ...revoked]);
  return reply
    .header('content-type', 'text/event-stream; charset=utf-8')
    .header('cache-control', 'no-store')
    .header('x-accel-buffering', 'no')
    .send(Readable.from(serverSentEvents(events(signal), signal, options)));
}
