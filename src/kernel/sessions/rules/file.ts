// Writes and reads one line of a session file. Fields keep the names of the original's files;
// unknown fields are ignored, so that an older version reads a newer file.

import { z } from 'zod';
import { fieldsOf, parseJson } from '../../../lib/json/json.ts';
import { ATTACHMENT_KINDS, type AttachedMedia } from '../../message/attachment.ts';
import { TOOL_FAILURE_KINDS } from '../../message/errors.ts';
import {
  callId,
  mediaId,
  messageId,
  resultId,
  type SessionKey,
  sessionKey,
  turnId,
} from '../../message/ids.ts';
import {
  NODE_STYLES,
  type SummaryNode,
  type TokenUsage,
  type TranscriptEntry,
} from '../../message/transcript.ts';

export type SessionHeader = {
  readonly key: SessionKey;
  readonly createdAt: number;
  /** The file that this one continues. */
  readonly continues?: string;
  /** Number of following lines that repeat entries of an older file. */
  readonly carried: number;
};

export type SessionLine =
  | { readonly kind: 'header'; readonly header: SessionHeader }
  | { readonly kind: 'entry'; readonly entry: TranscriptEntry; readonly carried: boolean }
  | { readonly kind: 'damaged' };

/** How the lines of messages start; a carried line starts otherwise, so counting is searching. */
export const MESSAGE_LINE_STARTS = ['{"role":"user"', '{"role":"assistant"'] as const;

export function encodeHeader(value: SessionHeader): string {
  const created = isoTime(value.createdAt);
  return JSON.stringify({
    _type: 'metadata',
    session_key: value.key,
    created_at: created,
    updated_at: created,
    metadata: {
      ...(value.continues === undefined ? {} : { continues: value.continues }),
      carried: value.carried,
    },
  });
}

export function encodeEntry(entry: TranscriptEntry, carried = false): string {
  return JSON.stringify(carried ? { carried: true, ...toDisk(entry) } : toDisk(entry));
}

/** Reads one line without its newline. Never throws. */
export function decodeLine(line: string): SessionLine {
  const value = fieldsOf(parseJson(line));
  if (value === undefined) return { kind: 'damaged' };
  if (value['_type'] === 'metadata') {
    const parsed = diskHeader.safeParse(value);
    return parsed.success ? { kind: 'header', header: toHeader(parsed.data) } : { kind: 'damaged' };
  }
  const parsed = diskEntry.safeParse(value);
  if (!parsed.success) return { kind: 'damaged' };
  return { kind: 'entry', entry: parsed.data, carried: value['carried'] === true };
}

function toHeader(disk: DiskHeader): SessionHeader {
  const { continues, carried } = disk.metadata;
  return {
    key: disk.session_key,
    createdAt: disk.created_at,
    ...(continues === undefined ? {} : { continues }),
    carried,
  };
}

// Names of session files: `{key, unsafe characters percent-encoded}_{YYYY-MM-DD}[_{part}].jsonl`. A
// name identifies session, day and part, and different sessions never share one, even on a
// case-insensitive file system.

export type SessionFileName = {
  readonly stem: string;
  /** `YYYY-MM-DD` in the configured zone. */
  readonly day: string;
  /** 1 for the first file of a day. */
  readonly part: number;
};

const NAME = /^(.+)_(\d{4}-\d{2}-\d{2})(?:_([1-9]\d{0,8}))?\.jsonl$/;
const SAFE = /[a-z0-9@+=,._-]/;
/** Leaves room for day, part and suffixes within the usual 255 bytes of a file name. */
export const MAX_STEM_BYTES = 180;
const DAY_MS = 86_400_000;

/**
 * The key with everything unsafe percent-encoded; capitals too, for case-insensitive file systems.
 */
export function encodeKey(key: SessionKey): string {
  let encoded = '';
  for (const character of key.toWellFormed()) {
    const safe = SAFE.test(character) && !(encoded === '' && character === '.');
    encoded += safe ? character : percent(character);
  }
  return encoded;
}

function percent(character: string): string {
  const encoded = encodeURIComponent(character);
  if (encoded !== character) return encoded;
  return `%${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`;
}

/** The key of a stem; undefined for a shortened one, whose key is only in the file. */
export function decodeStem(stem: string): SessionKey | undefined {
  if (stem.includes('~')) return undefined;
  try {
    return sessionKey(decodeURIComponent(stem));
  } catch {
    return undefined;
  }
}

export function formatName(name: SessionFileName): string {
  const part = name.part === 1 ? '' : `_${name.part}`;
  return `${name.stem}_${name.day}${part}.jsonl`;
}

export function parseName(fileName: string): SessionFileName | undefined {
  const match = NAME.exec(fileName);
  if (match === null) return undefined;
  const [, stem = '', day = '', part] = match;
  return { stem, day, part: part === undefined ? 1 : Number(part) };
}

/** Negative if `a` is the older file of the same session. */
export function compareAge(a: SessionFileName, b: SessionFileName): number {
  if (a.day !== b.day) return a.day < b.day ? -1 : 1;
  return a.part - b.part;
}

/** The day and the `count - 1` days before it, newest first. */
export function daysBack(day: string, count: number): readonly string[] {
  const start = Date.parse(`${day}T00:00:00Z`);
  return Array.from({ length: count }, (_, index) =>
    new Date(start - index * DAY_MS).toISOString().slice(0, 10),
  );
}

// An entry of a transcript as a line of a session file, written and read by the same tables.

/** Names of fields on disk that differ from the entry's. */
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
  isTainted: 'tainted',
  isTakenOver: 'taken_over',
  mimeType: 'mime_type',
  inputTokens: 'input_tokens',
  outputTokens: 'output_tokens',
  cachedTokens: 'cached_tokens',
};
const ENTRY_NAMES = Object.fromEntries(
  Object.entries(DISK_NAMES).map(([name, onDisk]) => [onDisk, name]),
);

/** The fields of an entry that are written, in their order on disk. */
const FIELDS: { readonly [Role in TranscriptEntry['role']]: string } = {
  user: 'text at turnId messageId seq media isForeign',
  assistant:
    'text toolCalls isDraft unsupported thinking model usage at turnId throughSeq asked isTainted',
  tool: 'callId name status failure isBlocked resultId text whole at turnId media isForeign',
  summary: 'text untrusted at keepsFrom nodes omitted media isForeign',
  reset: 'at',
  undo: 'undoes by at',
  restore: 'brings by at',
  turn_end: 'turnId outcome answers throughSeq shared isTakenOver at',
};
const USAGE_FIELDS = ['inputTokens', 'outputTokens', 'cachedTokens'];
/** Written unchanged: their content has the same names on disk. */
const VERBATIM = ['toolCalls', 'thinking'];

/** Range of Date, ECMA-262 section 21.4.1.1. */
const MAX_EPOCH_MS = 8.64e15;

/** `atMs` as ISO 8601 in UTC, clamped to the range of Date. */
export function isoTime(atMs: number): string {
  const finite = Number.isFinite(atMs) ? atMs : 0;
  return new Date(Math.max(-MAX_EPOCH_MS, Math.min(MAX_EPOCH_MS, finite))).toISOString();
}

function toDisk(entry: TranscriptEntry): Readonly<Record<string, unknown>> {
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

/** Converts to the names of an entry; drops fields that are absent or not set. */
function fromDisk<T>(disk: object): T {
  const fields = Object.entries(disk).filter(([, value]) => value !== undefined && value !== false);
  return Object.fromEntries(fields.map(([name, value]) => [ENTRY_NAMES[name] ?? name, value])) as T;
}

// The shapes of lines in session files on disk. A missing field gets a default if that is harmless;
// fields of a newer version are ignored.

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
/** An unreadable mark counts as set. */
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
/** An unreadable item only loses the file it names. */
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
  tainted: foreign,
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
/** If it is unreadable, the whole counts as untrusted. */
const untrustedPart = z.string().optional().catch(undefined);
const node = z
  .object({
    from: z.int().min(0),
    before: z.int().min(1),
    level: z.int().min(0),
    style: z.enum(NODE_STYLES),
    messages: z.int().min(0).optional().catch(undefined),
    children: z.array(z.string()).optional().catch(undefined),
    content: z.string(),
    untrusted: untrustedPart,
    foreign,
  })
  .transform(fromDisk<SummaryNode>);
const summary = z.object({
  role: z.literal('summary'),
  content: z.string(),
  untrusted: untrustedPart,
  timestamp: time,
  keeps_from: turn.optional().catch(undefined),
  /** Of damaged nodes the text remains. */
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
  taken_over: z.literal(true).optional().catch(undefined),
  timestamp: time,
});
const diskEntry = z
  .discriminatedUnion('role', [user, assistant, tool, summary, reset, undo, restore, turnEnd])
  .transform(fromDisk<TranscriptEntry>);

const diskHeader = z.object({
  _type: z.literal('metadata'),
  session_key: z.string().transform(sessionKey),
  created_at: time,
  metadata: z
    .object({ continues: z.string().optional(), carried: z.number().catch(0) })
    .catch({ carried: 0 }),
});
type DiskHeader = z.infer<typeof diskHeader>;
