// Reads the audit from its first line to its last: whether it is what was written, and what was begun
// and never told to have ended.

import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { parseJson } from '../../lib/json/fields.ts';
import type { KeyValueStore } from '../bus/store/store.ts';
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
  for await (const { file, line, text, isWhole } of auditLines(path)) {
    if (unread !== undefined) return { kind: 'broken', ...unread, problem: 'this is no entry' };
    at = { file, line };
    const found = isAsWritten(text) ? readLine(text) : undefined;
    if (found === undefined && isWhole) {
      return { kind: 'broken', ...at, problem: 'this is no entry, or not as it was written' };
    }
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

/** Without blanks and whatever else a parser does not notice. */
function isAsWritten(text: string): boolean {
  return JSON.stringify(parseJson(text)) === text;
}

type FoundLine = {
  readonly file: string;
  readonly line: number;
  readonly text: string;
  /** It ends with a newline. */
  readonly isWhole: boolean;
};

/** Oldest first. */
export async function* auditLines(path: string): AsyncGenerator<FoundLine> {
  for (const file of [...(await olderFiles(path)), path]) {
    if (!(await stat(file).catch(() => undefined))?.isFile()) continue;
    let line = 0;
    let rest = '';
    for await (const part of createReadStream(file, { encoding: 'utf8' })) {
      const texts = `${rest}${part}`.split('\n');
      rest = texts.pop() ?? '';
      for (const text of texts) {
        line += 1;
        yield { file, line, text, isWhole: true };
      }
    }
    if (rest !== '') yield { file, line: line + 1, text: rest, isWhole: false };
  }
}
