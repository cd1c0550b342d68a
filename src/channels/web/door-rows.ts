// The stored rows of the log of a built-in channel. A row that cannot be read counts as absent.

import { z } from 'zod';
import type { KeyValueStore } from '../../kernel/bus/store/store.ts';
import { ATTACHMENT_KINDS } from '../../kernel/message/attachment.ts';
import { callId, mediaId, messageId, turnId } from '../../kernel/message/ids.ts';
import type { Holds } from '../../kernel/sessions/rules/forgetting.ts';
import { parseJson } from '../../lib/json/json.ts';
import type { DoorEvent } from '../door.ts';

/** What was said, as its reader gets it but for its place. */
export type Said = Omit<Extract<DoorEvent, { readonly type: 'said' }>, 'type' | 'seq'>;

const idSchema = z.string().transform(messageId);
const doorFileSchema = z.object({
  media: z.string().transform(mediaId),
  name: z.string(),
  kind: z.enum(ATTACHMENT_KINDS),
  mimeType: z.string(),
  sizeBytes: z.number(),
});
const amendsSchema = z.object({ id: idSchema, kind: z.enum(['edited', 'withdrawn']) });
const endedSchema = z.object({
  turn: z.string().transform(turnId),
  kind: z.enum(['answered', 'stopped', 'failed']),
  answers: z.number(),
  tools: z.array(
    z.object({
      callId: z.string().transform(callId),
      name: z.string(),
      detail: z.string(),
      status: z.enum(['running', 'ok', 'failed', 'waiting']),
      preview: z.string().exactOptional(),
    }),
  ),
});
export const saidSchema = z.object({
  id: idSchema,
  from: z.enum(['person', 'agent']),
  replyTo: idSchema.exactOptional(),
  text: z.string(),
  choices: z.array(z.object({ label: z.string(), token: z.string() })).exactOptional(),
  press: z.string().exactOptional(),
  files: z.array(doorFileSchema).exactOptional(),
  takesAway: idSchema.exactOptional(),
  amends: amendsSchema.exactOptional(),
  closes: idSchema.exactOptional(),
  ended: endedSchema.exactOptional(),
  at: z.number(),
});
export const intentSchema = z.object({
  id: idSchema,
  chat: z.string(),
  text: z.string(),
  press: z.string().exactOptional(),
  files: z.array(doorFileSchema).readonly().exactOptional(),
  amends: amendsSchema.exactOptional(),
  at: z.number(),
});
/** A person's message that the bus may or may not have. */
export type Intent = Readonly<z.infer<typeof intentSchema>>;
export const headSchema = z.object({
  title: z.string(),
  updatedAt: z.number(),
  lastSeq: z.number(),
});
export type Head = z.infer<typeof headSchema>;

/** One value or none, for flatMap. */
export function parsed<T>(schema: z.ZodType<T>, text: string): readonly T[] {
  const result = schema.safeParse(parseJson(text));
  return result.success ? [result.data] : [];
}

// Takes what was said out of the log of a door of our own, where it holds certain words.

/** Of one chat; how many messages went. Its title goes too where it holds them. */
export async function forgetSaid(
  state: KeyValueStore,
  chat: string,
  holds: Holds,
): Promise<number> {
  const rows = await state.list(`said/${chat}/`);
  const gone = rows.filter(({ value }) => holds(value)).map(({ key }) => key);
  const head = await state.get(`chat/${chat}`);
  const isTold = head !== undefined && holds(head);
  await state.setMany([
    ...gone.map((key) => ({ key, value: undefined })),
    ...(isTold
      ? [{ key: `chat/${chat}`, value: JSON.stringify({ ...JSON.parse(head), title: '…' }) }]
      : []),
  ]);
  return gone.length;
}
