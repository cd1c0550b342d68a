// The chat API of one local channel, the same for the web page and for terminals: chats, messages,
// events and files.

import { Readable } from 'node:stream';
import multipart from '@fastify/multipart';
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import {
  ChannelClosedError,
  type LocalChannel,
  type LocalEvent,
  type LocalFiles,
  LocalNameError,
} from '../channels/local-channel.ts';
import { Refusal, type Route, valid } from '../kernel/http-routes.ts';
import { MediaError } from '../kernel/media/media.ts';
import { sizeWords } from '../kernel/message/attachment.ts';
import { BusFullError, NanobotError } from '../kernel/message/errors.ts';
import { mediaId, type TurnId } from '../kernel/message/ids.ts';
import type { LiveUpdate } from '../kernel/message/message.ts';
import { inTime } from '../lib/async.ts';
import type { Logger } from '../lib/logger.ts';
import { t } from '../lib/texts.ts';
import type { Clock } from '../lib/time/clock.ts';
import {
  changeBody,
  chatBody,
  chatParams,
  chatsQuery,
  eventsQuery,
  mediaParams,
  messageBody,
  seq,
} from './chat-schemas.ts';

/** Size of the form around the file. */
const FORM_BYTES = 10_000;

export function addFileRoutes(app: FastifyInstance, path: string, files: LocalFiles) {
  // In a scope of its own: no other route accepts forms.
  app.register(async (scope) => {
    await scope.register(multipart, { throwFileSizeLimit: false });
    scope.post(path, { config: { isUpload: true } }, async (request, reply) => {
      const maxBytes = files.maxBytes();
      // Checked before anything is read; an upload without a length is cut off at the limit.
      if (Number(request.headers['content-length'] ?? 0) > maxBytes + FORM_BYTES) {
        throw tooLarge(maxBytes);
      }
      const limits = { fileSize: maxBytes + 1, files: 1, fields: 0, parts: 1, headerPairs: 20 };
      const part = await request.file({ limits }).catch(broken);
      if (part === undefined) throw new Refusal(400, 'invalid_request', t`The form has no file.`);
      const file = await files
        .keep(part.filename, part.file)
        .catch((error) => refuse(error, maxBytes));
      return reply.code(201).send({ file });
    });
  });

  app.get(`${path}/:media`, async (request, reply) => {
    const { media } = valid(mediaParams, request.params);
    const content = await files.read(mediaId(media));
    if (content === undefined) {
      throw new Refusal(404, 'not_found', t`This file is no longer stored.`);
    }
    reply.header('cache-control', 'private, no-store');
    reply.header('content-disposition', 'attachment');
    return reply.type('application/octet-stream').send(Buffer.from(content));
  });
}

const tooLarge = (maxBytes: number) =>
  new Refusal(413, 'file_too_large', t`The file is larger than ${sizeWords(maxBytes)}.`);

/** Errors of the form parser, before the file begins and inside of it. */
function broken(): never {
  throw new Refusal(400, 'invalid_request', t`The form cannot be read.`);
}

function refuse(error: unknown, maxBytes: number): never {
  if (!(error instanceof NanobotError)) broken();
  if (!(error instanceof MediaError)) throw error;
  if (error.code === 'media_too_large') throw tooLarge(maxBytes);
  if (error.code === 'media_full') {
    throw new Refusal(507, 'media_full', t`There is no storage space left for the file.`);
  }
  throw error;
}

// The chat API of one local channel, the same for the web page and for terminals:
//
// GET  /api/<channel>/chats                    newest first; ?which=archived
// POST /api/<channel>/chats/<chat>             {title?, isArchived?}
// GET  /api/<channel>/chats/<chat>/events      server-sent events after ?after= or Last-Event-ID
// POST /api/<channel>/chats/<chat>/messages    {clientId, text, press?, files?} or, to change an
//                                              earlier one, {clientId, text, amends}; 202
// POST /api/<channel>/chats/<chat>/stop        {}

type ChatRoutesOptions = {
  readonly localChannel: LocalChannel;
  readonly clock: Clock;
  /** Stops what runs in a chat and withdraws what waits. */
  readonly stop: (chat: string) => Promise<void>;
  /** Aborts when the server closes. */
  readonly closing: AbortSignal;
};

const MAX_CHATS = 200;
export function addChatRoutes(app: FastifyInstance, path: string, options: ChatRoutesOptions) {
  const { localChannel, stop } = options;

  app.get(path, async (request, reply) => {
    const { which } = valid(chatsQuery, request.query);
    reply.header('cache-control', 'no-store');
    return { chats: await localChannel.chats(MAX_CHATS, which) };
  });

  app.post(`${path}/:chat`, async (request, reply) => {
    const { chat } = valid(chatParams, request.params);
    if (!(await localChannel.changeChat(chat, valid(chatBody, request.body))))
      throw new Refusal(404, 'not_found', t`There is no such chat.`);
    return reply.code(200).send({ result: 'changed' });
  });

  app.get(`${path}/:chat/events`, (request, reply) => follow(request, reply, options));

  app.post(`${path}/:chat/messages`, async (request, reply) => {
    const { chat } = valid(chatParams, request.params);
    const isChange = Object.hasOwn(Object(request.body), 'amends');
    const body = isChange ? valid(changeBody, request.body) : valid(messageBody, request.body);
    const result = await localChannel.submit({ chat, ...body });
    return reply.code(202).send({ result });
  });

  app.post(`${path}/:chat/stop`, async (request, reply) => {
    const { chat } = valid(chatParams, request.params);
    valid(z.strictObject({}), request.body);
    await stop(chat);
    return reply.code(202).send({ result: 'stopped' });
  });
}

function follow(request: FastifyRequest, reply: FastifyReply, options: ChatRoutesOptions) {
  const { localChannel, clock, closing } = options;
  const { chat } = valid(chatParams, request.params);
  const { after, live } = valid(eventsQuery, request.query);
  const lastEventId = valid(seq.optional(), request.headers['last-event-id']);
  const from = lastEventId ?? after ?? 0;
  return replyWithEvents(reply, {
    clock,
    closing,
    render: chatEventWriter(live),
    events: (signal) => localChannel.events(chat, from, signal),
  });
}

// How a chat's events are written: messages with their sequence number as id, so that a reader
// resumes after it; updates of running turns whole, or as the difference to the previous one.

/** For one connection: `delta` writes the difference to what this connection has. */
function chatEventWriter(live: 'whole' | 'delta'): (event: LocalEvent) => string {
  return live === 'delta' ? deltaWriter() : writeWhole;
}

function writeWhole(event: LocalEvent): string {
  return event.type === 'said' ? eventText(event, event.seq) : eventText(event);
}

function deltaWriter(): (event: LocalEvent) => string {
  const sent = new Map<TurnId, LiveUpdate>();
  return (event) => {
    if (event.type === 'said') return writeWhole(event);
    const { update } = event;
    const delta = deltaOf(sent.get(update.turnId), update);
    if (update.phase === 'ended') sent.delete(update.turnId);
    else sent.set(update.turnId, update);
    return eventText({ type: 'live', ...delta });
  };
}

// An update of a running turn as the difference to the client's state, so that a long answer costs
// its length once and not once per word. Pure; the page applies the differences.

/**
 * `before`: the client's state of this turn; undefined on a new connection. `keep`: UTF-16 units of
 * the client's text that stay, followed by `append`; `tools` are absent if they are unchanged.
 */
export function deltaOf(before: LiveUpdate | undefined, now: LiveUpdate) {
  const keep = commonLength(before?.markdown ?? '', now.markdown);
  const { turnId, phase, tools, notice, result } = now;
  return {
    turnId,
    phase,
    keep,
    append: now.markdown.slice(keep),
    ...(before !== undefined && isSame(before.tools, tools) ? {} : { tools }),
    ...(notice === undefined ? {} : { notice }),
    ...(result === undefined ? {} : { result }),
  };
}

/** The producer creates a new object for an activity that changed. */
function isSame(before: LiveUpdate['tools'], now: LiveUpdate['tools']): boolean {
  return before.length === now.length && now.every((tool, index) => tool === before[index]);
}

function commonLength(before: string, now: string): number {
  if (now.startsWith(before)) return before.length;
  let length = 0;
  while (length < now.length && before.charCodeAt(length) === now.charCodeAt(length)) length += 1;
  // JSON cannot carry half a surrogate pair.
  return isHighSurrogate(now.charCodeAt(length - 1)) ? length - 1 : length;
}

const isHighSurrogate = (unit: number) => unit >= 0xd800 && unit <= 0xdbff;

// The response to a failed request: a code and a sentence. Unexpected errors go to the log; the
// client only learns that there was one.

const FULL_RETRY_SECS = 5;
const CLOSED_RETRY_SECS = 1;
/** Refused before the body was read: the rest of it is not read. */
const CLOSING_STATUSES: readonly number[] = [401, 403, 413, 415, 421, 429];

/** Refusals of the HTTP library in our own text. */
const LIBRARY_REFUSALS: Readonly<Record<string, string>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: t`The message is larger than 1 MB. Send a shorter one.`,
  FST_ERR_CTP_INVALID_MEDIA_TYPE: t`Send "Content-Type: application/json".`,
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
    const message = t`Too many messages are waiting. Try again in a moment.`;
    return new Refusal(503, error.code, message, { retryAfterSecs: FULL_RETRY_SECS });
  }
  if (error instanceof ChannelClosedError) {
    return new Refusal(503, error.code, error.message, { retryAfterSecs: CLOSED_RETRY_SECS });
  }
  if (error instanceof MediaError && error.code === 'media_unavailable') {
    const message = t`The storage of files cannot be reached. Try again in a moment.`;
    return new Refusal(503, error.code, message, { retryAfterSecs: CLOSED_RETRY_SECS });
  }
  if (error instanceof LocalNameError) return new Refusal(400, error.code, error.message);
  const { statusCode = 500, code } = error;
  if (statusCode < 400 || statusCode >= 500) {
    return new Refusal(500, 'internal', t`Something went wrong. See the gateway’s log.`);
  }
  const message = LIBRARY_REFUSALS[code] ?? t`The request is not valid JSON.`;
  return new Refusal(statusCode, 'invalid_request', message);
}

// Server-sent events (HTML Living Standard, 9.2): a heartbeat shows both ends that the other is
// alive. The caller decides how one event is written.

const HEARTBEAT_MS = 15_000;
const HEARTBEAT = t`: still here\n\n`;
/** Lets the client see its connection before the first event. */
const GREETING = ': connected\n\n';

/** Ends when the events end; `signal` must end them. */
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
      const first = await inTime(clock, HEARTBEAT_MS, next);
      if (first === 'late') {
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
function eventText(data: unknown, id?: number): string {
  return t`${id === undefined ? '' : `id: ${id}\n`}data: ${JSON.stringify(data)}\n\n`;
}

// Answers a request with server-sent events until they end, the reader leaves, its credential is
// revoked or the server closes.

type EventReply<Event> = {
  readonly clock: Clock;
  /** Aborts when the server closes. */
  readonly closing: AbortSignal;
  /** The text of an event, including its blank line; see `eventText`. */
  readonly render: (event: Event) => string;
  /** Started when the reader is connected; the signal must end them. */
  events(signal: AbortSignal): AsyncIterable<Event> | Promise<AsyncIterable<Event>>;
};

async function replyWithEvents<Event>(
  reply: FastifyReply,
  options: EventReply<Event>,
): Promise<FastifyReply> {
  const { closing, events } = options;
  const gone = new AbortController();
  reply.raw.on('close', () => gone.abort());
  const { credential } = reply.request;
  const revoked = credential === undefined ? [] : [credential.revoked];
  const signal = AbortSignal.any([gone.signal, closing, ...revoked]);
  const started = await events(signal);
  return reply
    .header('content-type', 'text/event-stream; charset=utf-8')
    .header('cache-control', 'no-store')
    .header('x-accel-buffering', 'no')
    .send(Readable.from(serverSentEvents(started, signal, options)));
}

// The routes that features contribute. Their responses are never cached: they show the state of the
// gateway.

export function addContributedRoutes(
  app: FastifyInstance,
  routes: readonly Route[],
  { clock, closing }: Pick<EventReply<object>, 'clock' | 'closing'>,
) {
  for (const { name, isOpen, load } of routes) {
    const [method = '', url = ''] = name.split(' ');
    app.route({
      ...{ method, url },
      ...(isOpen ? { config: { isOpen: true } } : {}),
      async handler({ params, body, url: address, credential }, reply) {
        const handle = await load();
        const hasToken = credential?.kind === 'token';
        const answer = await handle({ params, body, address, hasToken });
        if ('events' in answer) {
          return replyWithEvents(reply, {
            ...{ clock, closing, render: eventText },
            events: (signal) => answer.events(signal),
          });
        }
        reply.code(answer.status ?? 200).header('cache-control', 'no-store');
        if ('page' in answer) return reply.type('text/html; charset=utf-8').send(answer.page);
        return reply.send(answer.body);
      },
    });
  }
}
