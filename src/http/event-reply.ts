// Answers a request with server-sent events until they end, the reader leaves, what let it in is
// revoked or the server closes.

import { Readable } from 'node:stream';
import type { FastifyReply } from 'fastify';
import type { Clock } from '../lib/clock.ts';
import { serverSentEvents } from './event-stream.ts';

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
