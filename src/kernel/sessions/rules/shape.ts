// The shapes of lines in session files, as they stand on the disk. What is missing gets a default
// where that is harmless; fields of a newer version are passed over.

import { z } from 'zod';
import { NODE_STYLES, type SummaryNode } from '../../../agent/rules/summary-nodes.ts';
import type { AttachedMedia } from '../../message/attachment.ts';
import { ATTACHMENT_KINDS } from '../../message/attachment.ts';
import { TOOL_FAILURE_KINDS } from '../../message/errors.ts';
import { callId, mediaId, messageId, resultId, sessionKey, turnId } from '../../message/ids.ts';

const time = z.union([z.string(), z.number()]).transform((value, context) => {
  const at = typeof value === 'number' ? value : Date.parse(value);
  if (Number.isFinite(at)) return at;
  context.addIssue('not a time');
  return z.NEVER;
});
const turn = z.string().transform(turnId);
const call = z.string().transform(callId);
const count = z.number().catch(0);
const place = z.number().optional().catch(undefined);
/** A mark that cannot be read counts as set. */
const foreign = z
  .unknown()
  .transform((mark) => mark !== undefined && mark !== false)
  .optional();

const attached = z
  .object({
    media: z
      .string()
      .regex(/^[0-9a-f]{64}$/)
      .transform(mediaId),
    kind: z.enum(ATTACHMENT_KINDS),
    mime_type: z.string(),
    name: z.string().optional(),
  })
  .transform(
    ({ media, kind, mime_type: mimeType, name }): AttachedMedia => ({
      ...{ media, kind, mimeType },
      ...(name === undefined ? {} : { name }),
    }),
  );
/** What cannot be read of it costs no more than the file it names. */
const media = z
  .array(attached.optional().catch(undefined))
  .transform((all) => all.filter((one) => one !== undefined))
  .optional()
  .catch(undefined);

const user = z.object({
  role: z.literal('user'),
  content: z.string(),
  timestamp: time,
  turn_id: turn,
  message_id: z.string().transform(messageId).optional(),
  seq: place,
  media,
  foreign,
});
const usage = z.object({ input_tokens: count, output_tokens: count, cached_tokens: count });
const assistant = z.object({
  role: z.literal('assistant'),
  content: z.string().default(''),
  tool_calls: z.array(z.object({ id: call, name: z.string(), arguments: z.string() })).default([]),
  draft: z.boolean().optional().catch(undefined),
  unsupported: z.array(z.string()).min(1).optional().catch(undefined),
  thinking: z.array(z.object({ text: z.string(), signature: z.string().optional() })).default([]),
  model: z.string().default(''),
  usage: usage.optional(),
  timestamp: time,
  turn_id: turn,
  through_seq: place,
  asked: z.string().optional().catch(undefined),
});
const tool = z.object({
  role: z.literal('tool'),
  tool_call_id: call,
  name: z.string(),
  status: z.enum(['ok', 'failed', 'unknown']).default('ok'),
  content: z.string(),
  failure: z.enum(TOOL_FAILURE_KINDS).optional().catch(undefined),
  blocked: z.boolean().optional().catch(undefined),
  result_id: z.string().transform(resultId).optional().catch(undefined),
  whole: z.string().optional().catch(undefined),
  timestamp: time,
  turn_id: turn,
  media,
  foreign,
});
const node = z
  .object({
    from: z.int().min(0),
    before: z.int().min(1),
    level: z.int().min(0),
    style: z.enum(NODE_STYLES),
    messages: z.int().min(0).optional().catch(undefined),
    children: z.array(z.string()).optional().catch(undefined),
    content: z.string(),
    foreign,
  })
  .transform(
    ({ content: text, messages, children, foreign: mark, ...rest }): SummaryNode => ({
      ...rest,
      text,
      ...(messages === undefined ? {} : { messages }),
      ...(children === undefined ? {} : { children }),
      ...(mark === true ? { isForeign: true } : {}),
    }),
  );
const summary = z.object({
  role: z.literal('summary'),
  content: z.string(),
  timestamp: time,
  keeps_from: turn.optional().catch(undefined),
  /** Of damaged ones the text is left. */
  nodes: z.array(node).min(1).optional().catch(undefined),
  omitted: place,
  media,
  foreign,
});
const reset = z.object({ role: z.literal('reset'), timestamp: time });
const undo = z.object({
  role: z.literal('undo'),
  undoes: turn,
  by: z.string().transform(messageId),
  timestamp: time,
});
const restore = z.object({
  role: z.literal('restore'),
  brings: z.string(),
  by: z.string().transform(messageId),
  timestamp: time,
});
const turnEnd = z.object({
  role: z.literal('turn_end'),
  turn_id: turn,
  outcome: z.enum(['answered', 'stopped', 'failed']),
  answers: z.array(z.string()),
  through_seq: z.number(),
  shared: z
    .array(z.object({ role: z.string(), model: z.string(), usage: usage.optional() }))
    .optional()
    .catch(undefined),
  timestamp: time,
});
export const diskEntry = z.discriminatedUnion('role', [
  user,
  assistant,
  tool,
  summary,
  reset,
  undo,
  restore,
  turnEnd,
]);
export type DiskEntry = z.infer<typeof diskEntry>;

export const diskHeader = z.object({
  _type: z.literal('metadata'),
  session_key: z.string().transform(sessionKey),
  created_at: time,
  metadata: z
    .object({ continues: z.string().optional(), carried: z.number().catch(0) })
    .catch({ carried: 0 }),
});
export type DiskHeader = z.infer<typeof diskHeader>;
