// The chat API of one door, the same for the web page and for terminals:
//   GET  /api/<door>/chats                    newest first
//   GET  /api/<door>/chats/<chat>/events      server-sent events after ?after= or Last-Event-ID
//   POST /api/<door>/chats/<chat>/messages    {clientId, text, press?, files?} or, for a change of an
//                                             earlier one, {clientId, text, amends}; 202 once durable
//   POST /api/<door>/chats/<chat>/stop        {}

import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { CHOICE_TOKEN, DOOR_NAME, type Door } from '../channels/door.ts';
import { mediaId, messageId } from '../core/ids.ts';
import type { Clock } from '../lib/clock.ts';
import { chatEventWriter } from './chat-events.ts';
import { replyWithEvents } from './event-reply.ts';
import { valid } from './valid.ts';

export type ChatRoutesOptions = {
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
