// What the chat API reads, and how it is documented.

import { z } from 'zod';
import { CHOICE_TOKEN, LOCAL_CHAT_NAME } from '../channels/local-channel.ts';
import type { RouteSchemas } from '../kernel/http-routes.ts';
import { mediaId, messageId } from '../kernel/message/ids.ts';
import { t } from '../lib/texts.ts';

const MAX_FILES = 10;
const MAX_FILE_NAME_CHARS = 500;
const MAX_ID_CHARS = 300;
const MAX_TITLE_CHARS = 200;

const name = z.string().regex(LOCAL_CHAT_NAME, 'has 1 to 64 letters, digits, ".", "_" or "-"');
export const seq = z.coerce.number().int().min(0).max(Number.MAX_SAFE_INTEGER);
export const chatParams = z.object({ chat: name });
export const mediaParams = z.object({
  media: z.string().regex(/^[0-9a-f]{64}$/, 'is not a file name'),
});
export const chatsQuery = z.object({ which: z.enum(['open', 'archived']).default('open') });
export const chatBody = z
  .strictObject({
    title: z.string().trim().min(1).max(MAX_TITLE_CHARS).exactOptional(),
    isArchived: z.boolean().exactOptional(),
  })
  .refine((change) => Object.keys(change).length > 0, t`names nothing to change`);
export const eventsQuery = z.object({
  after: seq.optional(),
  live: z.enum(['whole', 'delta']).default('whole'),
});
const file = z.strictObject({
  media: z
    .string()
    .regex(/^[0-9a-f]{64}$/, 'is not a file name')
    .transform(mediaId),
  name: z.string().max(MAX_FILE_NAME_CHARS),
});
const amends = z.strictObject({
  id: z.string().min(1).max(MAX_ID_CHARS).transform(messageId),
  kind: z
    .enum(['edited', 'withdrawn', 'again'])
    .describe('again: the last message gets another answer. What tools did is not undone.'),
});
export const changeBody = z
  .strictObject({ clientId: name, text: z.string(), amends })
  .refine(({ text, amends: { kind } }) => (text.trim() !== '') === (kind === 'edited'), {
    path: ['text'],
    message: t`is the new text of an edited message; a deleted or repeated one has none`,
  });
export const messageBody = z
  .strictObject({
    clientId: name,
    text: z.string(),
    press: z.string().regex(CHOICE_TOKEN, 'is not a token of a choice').exactOptional(),
    files: z.array(file).min(1).max(MAX_FILES).exactOptional(),
  })
  .refine(({ text, files }) => text.trim() !== '' || files !== undefined, {
    path: ['text'],
    message: t`is empty`,
  });

const moment = z.number().describe('Epoch milliseconds.');
const shownFile = z.object({
  media: z.string(),
  name: z.string(),
  kind: z.string(),
  mimeType: z.string().describe('Recognised by content.'),
  sizeBytes: z.number(),
});
const event = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('said'),
    seq: z.number().describe('A reader resumes after it: ?after= or Last-Event-ID.'),
    id: z.string(),
    from: z.enum(['person', 'agent']),
    text: z.string().describe('Plain text of a person, Markdown of the agent.'),
    at: moment,
    files: z.array(shownFile).exactOptional(),
    choices: z.array(z.object({ label: z.string(), token: z.string() })).exactOptional(),
    replyTo: z.string().exactOptional().describe('The newest message that it answers.'),
    amends: z
      .object({ id: z.string(), kind: z.enum(['edited', 'withdrawn', 'again']) })
      .exactOptional(),
    takesAway: z.string().exactOptional(),
    replaced: z.string().exactOptional().describe('That answer has a newer one in its place.'),
    closes: z.string().exactOptional(),
    ended: z.looseObject({ turn: z.string() }).exactOptional().describe('How a turn ended.'),
  }),
  z.looseObject({ type: z.literal('live') }).describe('A running turn; not durable.'),
]);
const chats = z.object({
  chats: z
    .array(
      z.object({ chat: z.string(), title: z.string(), updatedAt: moment, lastSeq: z.number() }),
    )
    .describe('Newest first.'),
});
const result = z.object({ result: z.string() });
const BASE = '/api/v1/chats';
const FILES = '/api/v1/files';

/** The routes of the page's chats and their files, by method and path. */
export const CHAT_ROUTES: Readonly<Record<string, RouteSchemas>> = {
  [`GET ${BASE}`]: {
    summary: t`Chats of the page; ?which=archived for the archived`,
    ...{ query: chatsQuery, answer: chats },
  },
  [`POST ${BASE}/:chat`]: {
    summary: t`Rename a chat, archive it or bring it back`,
    ...{ params: chatParams, body: chatBody, answer: result },
  },
  [`GET ${BASE}/:chat/events`]: {
    summary: t`What was said in a chat, and what is being said`,
    ...{ params: chatParams, query: eventsQuery, answer: event, isStream: true },
  },
  [`POST ${BASE}/:chat/messages`]: {
    summary: t`Send a message, change an earlier one, or have the last one answered again`,
    ...{
      params: chatParams,
      body: z.union([messageBody, changeBody]),
      answer: result,
      status: 202,
    },
  },
  [`POST ${BASE}/:chat/stop`]: {
    summary: t`Stop the answer and drop waiting messages`,
    ...{ params: chatParams, body: z.strictObject({}), answer: result, status: 202 },
  },
  [`POST ${FILES}`]: {
    summary: t`Upload a file, to be named by a message`,
    ...{ body: z.object({ file: z.file() }), bodyType: 'multipart/form-data' },
    ...{ answer: z.object({ file: shownFile }), status: 201 },
  },
  [`GET ${FILES}/:media`]: {
    summary: t`A file of a chat, as it was uploaded or sent`,
    ...{ params: mediaParams, answer: z.file(), answerType: 'application/octet-stream' },
  },
};
