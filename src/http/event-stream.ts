// Events as server-sent events (HTML Living Standard, 9.2): a heartbeat shows both ends that the
// other lives. How one event is written is its caller's business.

import { Readable } from 'node:stream';
import type { FastifyReply } from 'fastify';
import type { Clock } from '../lib/time/clock.ts';

const HEARTBEAT_MS = 15_000;
const HEARTBEAT = ': still here\n\n';
/** Makes the client see its connection before anything is said. */
const GREETING = ': connected\n\n';

export type StreamOptions<Event> = {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** An event as it is sent, its blank line included; see `eventText`. */
  readonly render: (event: Event) => string;
};

/** Ends when the events end; `signal` has to end them. */
export async function* serverSentEvents<Event>(
  events: AsyncIterable<Event>,
  { clock, signal, render }: StreamOptions<Event>,
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

export type EventReply<Event> = {
  readonly clock: Clock;
  /** Aborts when the server closes. */
  readonly closing: AbortSignal;
  readonly render: (event: Event) => string;
  /** Begun when the reader is there; the signal has to end them. */
  events(signal: AbortSignal): AsyncIterable<Event>;
};

export function replyWithEvents<Event>(
  reply: FastifyReply,
  { clock, closing, render, events }: EventReply<Event>,
): FastifyReply {
  const gone = new AbortController();
  reply.raw.on('close', () => gone.abort());
  const { credential } = reply.request;
  const revoked = credential === undefined ? [] : [credential.revoked];
  const signal = AbortSignal.any([gone.signal, closing, ...revoked]);
  return reply
    .header('content-type', 'text/event-stream; charset=utf-8')
    .header('cache-control', 'no-store')
    .header('x-accel-buffering', 'no')
    .send(Readable.from(serverSentEvents(events(signal), { clock, signal, render })));
}
