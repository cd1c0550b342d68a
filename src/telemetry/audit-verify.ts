// Reads the audit from its first line to its last: whether it is what was written, and what was begun
// and never told to have ended.

import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import type { KeyValueStore } from '../store/store.ts';
import { AUDIT_START, type AuditLine, problemOf, readLine } from './audit-chain.ts';
import { keptHead, olderFiles } from './audit-place.ts';
import { BEGUN } from './telemetry.ts';

export type AuditVerdict =
  | {
      readonly kind: 'intact';
      readonly entries: number;
      /** Begun, of which no outcome is told: under way, or cut off with the process. */
      readonly unfinished: readonly AuditLine[];
    }
  | {
      readonly kind: 'broken';
      readonly file: string;
      readonly line: number;
      readonly problem: string;
    };

/** Reads every file from the first line on. */
export async function verifyAudit(path: string, state: KeyValueStore): Promise<AuditVerdict> {
  const kept = await keptHead(state);
  let head = AUDIT_START;
  let wasKept = kept?.seq === 0;
  let at = { file: path, line: 0 };
  let unread: typeof at | undefined;
  const begun = new Map<AuditLine['fields'][string], AuditLine>();
  for await (const { file, line, text } of auditLines(path)) {
    if (unread !== undefined) return { kind: 'broken', ...unread, problem: 'this is no entry' };
    at = { file, line };
    const found = readLine(text);
    // At the very end it may be what a kill left of an entry that was never counted.
    if (found === undefined) {
      unread = at;
      continue;
    }
    const problem = problemOf(head, found);
    if (problem !== undefined) return { kind: 'broken', ...at, problem };
    head = { seq: found.seq, hash: found.hash };
    follow(begun, found);
    if (head.seq === kept?.seq && head.hash === kept.hash) wasKept = true;
  }
  if (kept === undefined) {
    return { kind: 'broken', ...at, problem: 'where it ends cannot be read from the store' };
  }
  if (!wasKept) {
    const missing = Math.max(1, kept.seq - head.seq);
    return { kind: 'broken', ...at, problem: `at least ${missing} entries after it are missing` };
  }
  return { kind: 'intact', entries: head.seq, unfinished: [...begun.values()] };
}

function follow(begun: Map<AuditLine['fields'][string], AuditLine>, line: AuditLine): void {
  const { call, status } = line.fields;
  if (call === undefined) return;
  if (status === BEGUN) begun.set(call, line);
  else begun.delete(call);
}

/** Oldest first; empty lines are left out. */
export async function* auditLines(
  path: string,
): AsyncGenerator<{ readonly file: string; readonly line: number; readonly text: string }> {
  for (const file of [...(await olderFiles(path)), path]) {
    if (!(await stat(file).catch(() => undefined))?.isFile()) continue;
    let line = 0;
    for await (const text of createInterface({ input: createReadStream(file) })) {
      line += 1;
      if (text !== '') yield { file, line, text };
    }
  }
}
