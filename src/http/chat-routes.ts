// The chat API of one built-in channel, the same for the web page and for terminals: chats, messages,
// events and files.

import multipart from '@fastify/multipart';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import {
  CHOICE_TOKEN,
  DOOR_NAME,
  type Door,
  type DoorEvent,
  type DoorFiles,
} from '../channels/door.ts';
import { MediaError } from '../kernel/media/media.ts';
import { sizeWords } from '../kernel/message/attachment.ts';
import { NanobotError } from '../kernel/message/errors.ts';
import type { LiveUpdate } from '../kernel/message/event.ts';
import { mediaId, messageId, type TurnId } from '../kernel/message/ids.ts';
import type { Clock } from '../lib/time/clock.ts';
import { eventText, Refusal, replyWithEvents, valid } from './replies.ts';

/** The form around the file. */
const FORM_BYTES = 10_000;
const mediaParams = z.object({ media: z.string().regex(/^[0-9a-f]{64}$/, 'is no name of a file') });

export function addFileRoutes(app: FastifyInstance, path: string, files: DoorFiles) {
  // Of its own scope: no other route takes forms.
  app.register(async (scope) => {
    await scope.register(multipart, { throwFileSizeLimit: false });
    scope.post(path, { config: { isUpload: true } }, async (request, reply) => {
      const maxBytes = files.maxBytes();
      // Said before anything is read; who says nothing is cut off at the limit.
      if (Number(request.headers['content-length'] ?? 0) > maxBytes + FORM_BYTES) {
        throw tooLarge(maxBytes);
      }
      const limits = { fileSize: maxBytes + 1, files: 1, fields: 0, parts: 1, headerPairs: 20 };
      const part = await request.file({ limits }).catch(broken);
      if (part === undefined) throw new Refusal(400, 'invalid_request', 'The form has no file.');
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
      throw new Refusal(404, 'not_found', 'This file is not kept any more.');
    }
    reply.header('cache-control', 'private, no-store');
    reply.header('content-disposition', 'attachment');
    return reply.type('application/octet-stream').send(Buffer.from(content));
  });
}

const tooLarge = (maxBytes: number) =>
  new Refusal(413, 'file_too_large', `The file is larger than ${sizeWords(maxBytes)}.`);

/** What the reader of forms throws, before the file begins and inside of it. */
function broken(): never {
  throw new Refusal(400, 'invalid_request', 'The form cannot be read.');
}

function refuse(error: unknown, maxBytes: number): never {
  if (!(error instanceof NanobotError)) broken();
  if (!(error instanceof MediaError)) throw error;
  if (error.code === 'media_too_large') throw tooLarge(maxBytes);
  if (error.code === 'media_full') {
    throw new Refusal(507, 'media_full', 'There is no room left to keep the file.');
  }
  throw error;
}

// The chat API of one door, the same for the web page and for terminals:
//   GET  /api/<door>/chats                    newest first
//   GET  /api/<door>/chats/<chat>/events      server-sent events after ?after= or Last-Event-ID
//   POST /api/<door>/chats/<chat>/messages    {clientId, text, press?, files?} or, for a change of an
//                                             earlier one, {clientId, text, amends}; 202 once durable
//   POST /api/<door>/chats/<chat>/stop        {}

type ChatRoutesOptions = {
  readonly door: Door;
  readonly clock: Clock;
  /** Stops what runs in a chat and withdraws what waits. */
  readonly stop: (chat: string) => Promise<void>;
  /** Aborts when the server closes. */
  readonly closing: AbortSignal;
};

const MAX_CHATS = 200;
const MAX_FILES = 10;
const MAX_FILE_NAME_CHARS = 500;
const MAX_ID_CHARS = 300;

const name = z.string().regex(DOOR_NAME, 'has 1 to 64 letters, digits, ".", "_" or "-"');
const seq = z.coerce.number().int().min(0).max(Number.MAX_SAFE_INTEGER);
const chatParams = z.object({ chat: name });
const eventsQuery = z.object({
  after: seq.optional(),
  live: z.enum(['whole', 'delta']).default('whole'),
});
const file = z.strictObject({
  media: z
    .string()
    .regex(/^[0-9a-f]{64}$/, 'is no name of a file')
    .transform(mediaId),
  name: z.string().max(MAX_FILE_NAME_CHARS),
});
const amends = z.strictObject({
  id: z.string().min(1).max(MAX_ID_CHARS).transform(messageId),
  kind: z.enum(['edited', 'withdrawn']),
});
const changeBody = z
  .strictObject({ clientId: name, text: z.string(), amends })
  .refine(({ text, amends: { kind } }) => (text.trim() !== '') === (kind === 'edited'), {
    path: ['text'],
    message: 'is what an edited message says now; a withdrawn one has none',
  });
const messageBody = z
  .strictObject({
    clientId: name,
    text: z.string(),
    press: z.string().regex(CHOICE_TOKEN, 'is no token of a choice').exactOptional(),
    files: z.array(file).min(1).max(MAX_FILES).exactOptional(),
  })
  .refine(({ text, files }) => text.trim() !== '' || files !== undefined, {
    path: ['text'],
    message: 'is empty',
  });

export function addChatRoutes(app: FastifyInstance, path: string, options: ChatRoutesOptions) {
  const { door, stop } = options;

  app.get(path, async (_request, reply) => {
    reply.header('cache-control', 'no-store');
    return { chats: await door.chats(MAX_CHATS) };
  });

  app.get(`${path}/:chat/events`, (request, reply) => follow(request, reply, options));

  app.post(`${path}/:chat/messages`, async (request, reply) => {
    const { chat } = valid(chatParams, request.params);
    const isChange = Object.hasOwn(Object(request.body), 'amends');
    const body = isChange ? valid(changeBody, request.body) : valid(messageBody, request.body);
    const result = await door.submit({ chat, ...body });
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
  const { door, clock, closing } = options;
  const { chat } = valid(chatParams, request.params);
  const { after, live } = valid(eventsQuery, request.query);
  const lastEventId = valid(seq.optional(), request.headers['last-event-id']);
  const from = lastEventId ?? after ?? 0;
  return replyWithEvents(reply, {
    clock,
    closing,
    render: chatEventWriter(live),
    events: (signal) => door.events(chat, from, signal),
  });
}

// How a chat's events are written: messages with their sequence number as id, so that a reader
// resumes behind it; pictures of running turns whole, or as the difference to the one before.

/** For one connection: `delta` tells the difference to what this connection has. */
function chatEventWriter(live: 'whole' | 'delta'): (event: DoorEvent) => string {
  return live === 'delta' ? deltaWriter() : writeWhole;
}

function writeWhole(event: DoorEvent): string {
  return event.type === 'said' ? eventText(event, event.seq) : eventText(event);
}

function deltaWriter(): (event: DoorEvent) => string {
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

// A picture of a running turn as the difference to the one a client has, so that a long answer costs
// its length once and not once per word. Pure; the page folds the differences back.

/**
 * `before`: what the client has of this turn; undefined on a new connection. `keep`: UTF-16 units of
 * the client's text that stay, which `append` follows; `tools` are left out where they are as before.
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

/** Whoever paints the pictures makes a new activity of one that changed. */
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
