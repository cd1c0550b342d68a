// What the HTTP API answers about conversations; the page has its types from here.

import { z } from 'zod';

const moment = z.number().describe('Epoch milliseconds.');

const shownSession = z.object({
  key: z.string().describe('E.g. telegram:123456789.'),
  channel: z.string(),
  name: z
    .string()
    .exactOptional()
    .describe('The person of a private chat, the title of a chat of the page.'),
  messages: z.number(),
  updatedAt: moment,
  problem: z.string().exactOptional().describe('Why it cannot be read as a whole.'),
  isTakenOver: z.boolean().describe("Whether an owner answers in the agent's place."),
});
export const sessionList = z.object({
  sessions: z.array(shownSession).describe('Newest first.'),
  total: z.number().describe('Of all conversations.'),
});

const step = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('said'),
    by: z.enum(['person', 'agent', 'owner']),
    at: moment,
    text: z.string(),
    files: z.number(),
    message: z.string().exactOptional().describe('Id of the message of a person, for its trace.'),
    isUntrusted: z.boolean(),
  }),
  z.object({
    kind: z.literal('tool'),
    at: moment,
    call: z.string().describe('Id of the call.'),
    name: z.string(),
    arguments: z.string(),
    result: z.string().exactOptional().describe('Absent while it runs.'),
    tookMs: z
      .number()
      .exactOptional()
      .describe('From the request of the model to the result, with the calls before it.'),
    status: z.enum(['running', 'ok', 'failed', 'unknown']),
    isUntrusted: z.boolean(),
  }),
]);
const shownTurn = z.object({
  turn: z.number().describe('Its number in the conversation; numbers grow, with gaps.'),
  steps: z.array(step),
  outcome: z
    .enum(['answered', 'stopped', 'failed', 'recorded'])
    .exactOptional()
    .describe('Absent while it runs. recorded: an owner answers instead.'),
  isUndone: z
    .literal(true)
    .exactOptional()
    .describe('It was taken back (/undo) or answered again: the model sees nothing of it.'),
  models: z.array(z.string()),
  calls: z.number(),
  tokens: z.number(),
  micros: z.number().describe('Cost in millionths of the currency; 0 if no price is known.'),
});
export const sessionTurns = z.object({
  key: z.string(),
  name: z.string().exactOptional(),
  currency: z.string(),
  turns: z.array(shownTurn).describe('Oldest first.'),
  hasOlder: z.boolean(),
  beganAt: moment.exactOptional().describe('The reset (/new) before the oldest of the turns.'),
  answeredBy: z
    .enum(['agent', 'owner'])
    .exactOptional()
    .describe('Absent where it cannot be taken over.'),
});
export const answeredBy = sessionTurns.pick({ answeredBy: true }).required();

export const exportedSession = z.object({
  name: z.string().describe('For a file.'),
  text: z.string().describe('Markdown.'),
});

export const searchHits = z.object({
  hits: z.array(
    z.object({ session: z.string(), at: moment, role: z.string(), snippet: z.string() }),
  ),
  unreadable: z.number().describe('Files that could not be searched.'),
});

const traceStep = z.object({
  at: moment,
  what: z.string(),
  text: z.string().describe('For people.'),
  detail: z.string().exactOptional(),
});
const life = z.object({ state: z.string(), steps: z.array(traceStep) });
export const messageTrace = life.extend({
  message: z.string(),
  session: z.string(),
  turn: z.string().exactOptional(),
  answers: z.array(life),
  timeline: z
    .array(
      z.object({
        kind: z.enum(['admitted', 'waited', 'model', 'tool', 'closed', 'queued', 'sent']),
        from: moment,
        to: moment,
        name: z.string().exactOptional().describe('Of the model or tool.'),
      }),
    )
    .describe('How long each part took.'),
});

export type SessionList = z.infer<typeof sessionList>;
export type ShownSession = z.infer<typeof shownSession>;
export type SessionTurns = z.infer<typeof sessionTurns>;
export type ShownTurn = z.infer<typeof shownTurn>;
export type ShownStep = z.infer<typeof step>;
export type SearchHits = z.infer<typeof searchHits>;
export type MessageTrace = z.infer<typeof messageTrace>;
export type ExportedSession = z.output<typeof exportedSession>;
