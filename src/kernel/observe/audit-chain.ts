// The chain of the audit file: every line carries the hash of the one before and of all its own fields,
// so that a line that was changed, taken out or put in is found.

import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { AuditEvent } from './telemetry.ts';

const hash = z.string().regex(/^[0-9a-f]{64}$/);
const line = z.strictObject({
  seq: z.int().min(1),
  at: z.iso.datetime(),
  kind: z.string(),
  fields: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])),
  prev: hash,
  hash,
});
export type AuditLine = Readonly<z.infer<typeof line>>;

/** The last line there was. */
export type AuditHead = { readonly seq: number; readonly hash: string };

const headShape = z.object({ seq: z.int().min(0), hash });

/** What is kept of it; undefined where that is damaged. */
export function readHead(text: string | undefined): AuditHead | undefined {
  if (text === undefined) return AUDIT_START;
  try {
    return headShape.parse(JSON.parse(text));
  } catch {
    return undefined;
  }
}

/** Before the first line. */
export const AUDIT_START: AuditHead = { seq: 0, hash: '0'.repeat(64) };

export function nextLine(head: AuditHead, event: AuditEvent, at: Date): AuditLine {
  const bare = { seq: head.seq + 1, at: at.toISOString(), ...event, prev: head.hash };
  return { ...bare, hash: hashOf(bare) };
}

/** Undefined where it is none, or not the whole of one. */
export function readLine(text: string): AuditLine | undefined {
  try {
    return line.parse(JSON.parse(text));
  } catch {
    return undefined;
  }
}

/** What is wrong with a line behind `head`; undefined where it follows. */
export function problemOf(head: AuditHead, found: AuditLine): string | undefined {
  const { hash: own, ...bare } = found;
  if (hashOf(bare) !== own) return 'its content is not what was written';
  if (found.seq !== head.seq + 1) {
    return found.seq > head.seq + 1
      ? `${found.seq - head.seq - 1} entries before it are missing`
      : 'it stands in the wrong place';
  }
  return found.prev === head.hash ? undefined : 'the entry before it was replaced';
}

/** All fields in one fixed form, keys in order. */
function hashOf({ seq, at, kind, fields, prev }: Omit<AuditLine, 'hash'>): string {
  const sorted = Object.entries(fields).sort(([a], [b]) => (a < b ? -1 : 1));
  return createHash('sha256')
    .update(JSON.stringify([seq, at, kind, sorted, prev]))
    .digest('hex');
}
