// An entry of a transcript as a line of a session file holds it, read and written by the same tables.

import { z } from 'zod';
import { ATTACHMENT_KINDS, type AttachedMedia } from '../../message/attachment.ts';
import { TOOL_FAILURE_KINDS } from '../../message/errors.ts';
import { callId, mediaId, messageId, resultId, sessionKey, turnId } from '../../message/ids.ts';
import {
  NODE_STYLES,
  type SummaryNode,
  type TokenUsage,
  type TranscriptEntry,
} from '../../message/transcript.ts';

/** Names of fields on the disk, where an entry calls them otherwise. */
const DISK_NAMES: Readonly<Record<string, string>> = {
  text: 'content',
  at: 'timestamp',
  turnId: 'turn_id',
  messageId: 'message_id',
  callId: 'tool_call_id',
  resultId: 'result_id',
  toolCalls: 'tool_calls',
  throughSeq: 'through_seq',
  keepsFrom: 'keeps_from',
  isDraft: 'draft',
  isBlocked: 'blocked',
  isForeign: 'foreign',
  mimeType: 'mime_type',
  inputTokens: 'input_tokens',
  outputTokens: 'output_tokens',
  cachedTokens: 'cached_tokens',
};
const ENTRY_NAMES = Object.fromEntries(
  Object.entries(DISK_NAMES).map(([name, onDisk]) => [onDisk, name]),
);

/** The fields that are written of an entry, in their order on the disk. */
const FIELDS: { readonly [Role in TranscriptEntry['role']]: string } = {
  user: 'text at turnId messageId seq media isForeign',
  assistant: 'text toolCalls isDraft unsupported thinking model usage at turnId throughSeq asked',
  tool: 'callId name status failure isBlocked resultId text whole at turnId media isForeign',
  summary: 'text at keepsFrom nodes omitted media isForeign',
  reset: 'at',
  undo: 'undoes by at',
  restore: 'brings by at',
  turn_end: 'turnId outcome answers throughSeq shared at',
};
const USAGE_FIELDS = ['inputTokens', 'outputTokens', 'cachedTokens'];
/** Written as they are: what stands in them has the same names on the disk. */
const VERBATIM = ['toolCalls', 'thinking'];

/** Range of Date, ECMA-262 section 21.4.1.1. */
const MAX_EPOCH_MS = 8.64e15;

/** `atMs` as ISO 8601 in UTC, kept within what a Date can hold. */
export function isoTime(atMs: number): string {
  const finite = Number.isFinite(atMs) ? atMs : 0;
  return new Date(Math.max(-MAX_EPOCH_MS, Math.min(MAX_EPOCH_MS, finite))).toISOString();
}

export function toDisk(entry: TranscriptEntry): Readonly<Record<string, unknown>> {
  return { role: entry.role, ...diskFields(entry, FIELDS[entry.role].split(' ')) };
}

function diskFields(value: object, names = Object.keys(value)): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    names.map((name) => [DISK_NAMES[name] ?? name, diskValue(name, Reflect.get(value, name))]),
  );
}

function diskValue(name: string, value: unknown): unknown {
  if (name === 'at') return isoTime(Number(value));
  if (VERBATIM.includes(name)) return Array.isArray(value) && value.length > 0 ? value : undefined;
  if (Array.isArray(value)) return value.map((one) => diskValue('', one));
  if (typeof value !== 'object' || value === null) return value;
  return diskFields(value, name === 'usage' ? USAGE_FIELDS : undefined);
}

/** With the names of an entry; what is not there, or not set, is left out. */
function fromDisk<T>(disk: object): T {
  const fields = Object.entries(disk).filter(([, value]) => value !== undefined && value !== false);
  return Object.fromEntries(fields.map(([name, value]) => [ENTRY_NAMES[name] ?? name, value])) as T;
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
  .transform(fromDisk<AttachedMedia>);
/** What cannot be read of it costs no more than the file it names. */
const media = z
  .array(attached.optional().catch(undefined))
  .transform((all) => all.filter((one) => one !== undefined))
  .transform((all) => (all.length === 0 ? undefined : all))
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
const usage = z
  .object({ input_tokens: count, output_tokens: count, cached_tokens: count })
  .transform(fromDisk<TokenUsage>);
const assistant = z.object({
  role: z.literal('assistant'),
  content: z.string().default(''),
  tool_calls: z.array(z.object({ id: call, name: z.string(), arguments: z.string() })).default([]),
  draft: z.boolean().optional().catch(undefined),
  unsupported: z.array(z.string()).min(1).optional().catch(undefined),
  thinking: z
    .array(z.object({ text: z.string(), signature: z.string().exactOptional() }))
    .default([]),
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
  .transform(fromDisk<SummaryNode>);
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
    .array(z.object({ role: z.string(), model: z.string(), usage: usage.exactOptional() }))
    .optional()
    .catch(undefined),
  timestamp: time,
});
export const diskEntry = z
  .discriminatedUnion('role', [user, assistant, tool, summary, reset, undo, restore, turnEnd])
  .transform(fromDisk<TranscriptEntry>);

export const diskHeader = z.object({
  _type: z.literal('metadata'),
  session_key: z.string().transform(sessionKey),
  created_at: time,
  metadata: z
    .object({ continues: z.string().optional(), carried: z.number().catch(0) })
    .catch({ carried: 0 }),
});
export type DiskHeader = z.infer<typeof diskHeader>;
