// An entry of a transcript from a line of a session file that was found to have its shape.

import { z } from 'zod';
import { NODE_STYLES, type SummaryNode } from '../../../agent/rules/summary-nodes.ts';
import { ATTACHMENT_KINDS, type AttachedMedia } from '../../message/attachment.ts';
import { TOOL_FAILURE_KINDS } from '../../message/errors.ts';
import { callId, mediaId, messageId, resultId, sessionKey, turnId } from '../../message/ids.ts';
import type {
  AssistantEntry,
  SharedCall,
  SummaryEntry,
  TokenUsage,
  TranscriptEntry,
  UserEntry,
} from '../../message/transcript.ts';

const mediaFromDisk = (media: UserEntry['media']) =>
  media === undefined || media.length === 0 ? {} : { media };

export function fromDisk(disk: DiskEntry): TranscriptEntry {
  const at = disk.timestamp;
  switch (disk.role) {
    case 'user':
      return fromUser(disk);
    case 'assistant':
      return fromAssistant(disk);
    case 'tool':
      return {
        role: disk.role,
        turnId: disk.turn_id,
        callId: disk.tool_call_id,
        name: disk.name,
        status: disk.status,
        text: disk.content,
        ...(disk.failure === undefined ? {} : { failure: disk.failure }),
        ...(disk.blocked === true ? { isBlocked: true } : {}),
        ...(disk.result_id === undefined ? {} : { resultId: disk.result_id }),
        ...(disk.whole === undefined ? {} : { whole: disk.whole }),
        ...mediaFromDisk(disk.media),
        ...(disk.foreign === true ? { isForeign: true } : {}),
        at,
      };
    case 'summary':
      return fromSummary(disk);
    case 'reset':
      return { role: disk.role, at };
    case 'undo':
      return { role: disk.role, undoes: disk.undoes, by: disk.by, at };
    case 'restore':
      return { role: disk.role, brings: disk.brings, by: disk.by, at };
    case 'turn_end':
      return {
        role: disk.role,
        turnId: disk.turn_id,
        outcome: disk.outcome,
        answers: disk.answers,
        throughSeq: disk.through_seq,
        ...(disk.shared === undefined ? {} : { shared: disk.shared.map(fromShared) }),
        at,
      };
  }
}

function fromSummary(disk: Extract<DiskEntry, { role: 'summary' }>): SummaryEntry {
  return {
    role: disk.role,
    text: disk.content,
    ...(disk.keeps_from === undefined ? {} : { keepsFrom: disk.keeps_from }),
    ...(disk.nodes === undefined ? {} : { nodes: disk.nodes }),
    ...(disk.omitted === undefined ? {} : { omitted: disk.omitted }),
    ...mediaFromDisk(disk.media),
    ...(disk.foreign === true ? { isForeign: true } : {}),
    at: disk.timestamp,
  };
}

function fromUser(disk: Extract<DiskEntry, { role: 'user' }>): UserEntry {
  return {
    role: disk.role,
    turnId: disk.turn_id,
    ...(disk.message_id === undefined ? {} : { messageId: disk.message_id }),
    ...(disk.seq === undefined ? {} : { seq: disk.seq }),
    text: disk.content,
    ...mediaFromDisk(disk.media),
    ...(disk.foreign === true ? { isForeign: true } : {}),
    at: disk.timestamp,
  };
}

type DiskUsage = Extract<DiskEntry, { role: 'assistant' }>['usage'];

function usageFromDisk(usage: DiskUsage): { readonly usage?: TokenUsage } {
  if (usage === undefined) return {};
  const { input_tokens, output_tokens, cached_tokens } = usage;
  return {
    usage: { inputTokens: input_tokens, outputTokens: output_tokens, cachedTokens: cached_tokens },
  };
}

const fromShared = ({ role, model, usage }: DiskShared): SharedCall => ({
  role,
  model,
  ...usageFromDisk(usage),
});

type DiskShared = NonNullable<Extract<DiskEntry, { role: 'turn_end' }>['shared']>[number];

function fromAssistant(disk: Extract<DiskEntry, { role: 'assistant' }>): AssistantEntry {
  return {
    role: disk.role,
    turnId: disk.turn_id,
    text: disk.content,
    toolCalls: disk.tool_calls,
    ...(disk.draft === true ? { isDraft: true } : {}),
    ...(disk.unsupported === undefined ? {} : { unsupported: disk.unsupported }),
    thinking: disk.thinking.map(({ text, signature }) =>
      signature === undefined ? { text } : { text, signature },
    ),
    model: disk.model,
    ...usageFromDisk(disk.usage),
    ...(disk.through_seq === undefined ? {} : { throughSeq: disk.through_seq }),
    ...(disk.asked === undefined ? {} : { asked: disk.asked }),
    at: disk.timestamp,
  };
}

// The shapes of lines in session files, as they stand on the disk. What is missing gets a default
// where that is harmless; fields of a newer version are passed over.

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
