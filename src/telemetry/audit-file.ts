// audit.jsonl: what was done with effects, as a chain. Where it ends is kept in the store too, written
// after the file: so a file that was cut off is found, and a kill in between is no false alarm.

import { createReadStream } from 'node:fs';
import { type FileHandle, open, readdir, rename, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../lib/logger.ts';
import type { KeyValueStore } from '../store/store.ts';
import {
  AUDIT_START,
  type AuditHead,
  type AuditLine,
  nextLine,
  problemOf,
  readHead,
  readLine,
} from './audit-chain.ts';
import type { AuditEvent, AuditLog } from './telemetry.ts';

export type AuditFileDeps = {
  readonly path: string;
  readonly state: KeyValueStore;
  readonly clock: Clock;
  readonly log: Logger;
  readonly maxBytes?: number;
};

const HEAD_KEY = 'head';
const MAX_BYTES = 50_000_000;
/** While nothing can be written, about 10 MB of memory. */
const MAX_WAITING = 10_000;
const TRY_AGAIN_MS = 10_000;
const FILE_MODE = 0o600;
const TAIL_BYTES = 65_536;
const NUMBER_DIGITS = 4;
const NUMBER = /\.(\d{4})\.jsonl$/;
const NEWLINE = 0x0a;

export interface AuditFile extends AuditLog, AsyncDisposable {}

export function openAuditFile(deps: AuditFileDeps): AuditFile {
  return new ChainedFile(deps);
}

type Waiting = { readonly event: AuditEvent; readonly at: Date };

class ChainedFile implements AuditFile {
  readonly #deps: AuditFileDeps;
  readonly #waiting: Waiting[] = [];
  #head: AuditHead | undefined;
  /** Where the write began that may have failed half-way. */
  #begunAt: AuditHead | undefined;
  #writing: Promise<void> | undefined;
  #nextTry: Disposable | undefined;

  constructor(deps: AuditFileDeps) {
    this.#deps = deps;
  }

  note(event: AuditEvent): void {
    const { clock, log } = this.#deps;
    if (this.#waiting.length >= MAX_WAITING) {
      log.error('audit entry lost', { kind: event.kind });
      return;
    }
    this.#waiting.push({ event, at: new Date(clock.now()) });
    if (this.#nextTry === undefined) this.#writing ??= this.#writeAll();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#writing;
    this.#stopWaiting();
    if (this.#waiting.length > 0) this.#writing ??= this.#writeAll();
    await this.#writing;
    this.#stopWaiting();
    const entries = this.#waiting.length;
    if (entries > 0) this.#deps.log.error('audit entries lost', { entries });
  }

  #stopWaiting(): void {
    this.#nextTry?.[Symbol.dispose]();
    this.#nextTry = undefined;
  }

  async #writeAll(): Promise<void> {
    const { clock, log } = this.#deps;
    try {
      while (this.#waiting.length > 0) await this.#write();
    } catch (error) {
      log.error('audit entries wait for another try', { entries: this.#waiting.length, error });
      this.#nextTry = clock.timer(TRY_AGAIN_MS, () => {
        this.#nextTry = undefined;
        this.#writing ??= this.#writeAll();
      });
    }
    this.#writing = undefined;
  }

  async #write(): Promise<void> {
    const { path, state, maxBytes = MAX_BYTES } = this.#deps;
    const head = this.#head ?? (await this.#findHead());
    // Of a write that failed, whole lines may stand in the file all the same.
    this.#waiting.splice(0, Math.max(0, head.seq - (this.#begunAt ?? head).seq));
    this.#begunAt = head;
    this.#head = undefined;
    const batch = this.#waiting.length;
    let last = head;
    const lines = this.#waiting.map(({ event, at }) => {
      const line = nextLine(last, event, at);
      last = { seq: line.seq, hash: line.hash };
      return `${JSON.stringify(line)}\n`;
    });
    await turnOver(path, maxBytes);
    await appendSynced(path, lines.join(''));
    await state.set(HEAD_KEY, JSON.stringify(last));
    this.#waiting.splice(0, batch);
    this.#head = last;
    this.#begunAt = undefined;
  }

  /** The store's word counts, unless the file went on from there before a kill. */
  async #findHead(): Promise<AuditHead> {
    const { path, state, log } = this.#deps;
    const kept = await keptHead(state);
    const last = await lastLine(path);
    if (kept === undefined) log.error('where the audit file ends cannot be read from the store');
    if (last === undefined) return kept ?? AUDIT_START;
    if (kept === undefined) return { seq: last.seq, hash: last.hash };
    if (last.seq > kept.seq) return { seq: last.seq, hash: last.hash };
    if (last.hash !== kept.hash) log.error('audit file was changed', { seq: last.seq });
    return kept;
  }
}

async function appendSynced(path: string, text: string): Promise<void> {
  const file = await open(path, 'a+', FILE_MODE);
  try {
    await cutTornLine(file);
    await file.appendFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
}

/** What a kill left of a line was never counted. */
async function cutTornLine(file: FileHandle): Promise<void> {
  const { size } = await file.stat();
  const length = Math.min(size, TAIL_BYTES);
  const { buffer } = await file.read(Buffer.alloc(length), 0, length, size - length);
  const end = buffer.lastIndexOf(NEWLINE) + 1;
  if (length > 0 && end < length) await file.truncate(size - length + end);
}

async function turnOver(path: string, maxBytes: number): Promise<void> {
  const size = await stat(path).then(
    (info) => info.size,
    () => 0,
  );
  if (size < maxBytes) return;
  // One that was moved away leaves its number empty.
  const newest = NUMBER.exec((await olderFiles(path)).at(-1) ?? '')?.[1] ?? 0;
  const number = String(Number(newest) + 1).padStart(NUMBER_DIGITS, '0');
  await rename(path, path.replace(/\.jsonl$/, `.${number}.jsonl`));
}

/** Oldest first. */
async function olderFiles(path: string): Promise<readonly string[]> {
  const stem = basename(path, '.jsonl');
  const names = await readdir(dirname(path)).catch((): string[] => []);
  const isOlder = (name: string) => name.startsWith(`${stem}.`) && NUMBER.test(name);
  return names
    .filter(isOlder)
    .sort()
    .map((name) => join(dirname(path), name));
}

/** Undefined where it cannot be read. */
const keptHead = async (state: KeyValueStore) => readHead(await state.get(HEAD_KEY));

async function lastLine(path: string): Promise<AuditLine | undefined> {
  const file = await open(path, 'r').catch(() => undefined);
  if (file === undefined) return undefined;
  try {
    const { size } = await file.stat();
    const length = Math.min(size, TAIL_BYTES);
    const { buffer } = await file.read(Buffer.alloc(length), 0, length, size - length);
    const lines = buffer.toString('utf8').split('\n').map(readLine);
    return lines.findLast((line) => line !== undefined);
  } finally {
    await file.close();
  }
}

export type AuditVerdict =
  | { readonly kind: 'intact'; readonly entries: number }
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
    if (head.seq === kept?.seq && head.hash === kept.hash) wasKept = true;
  }
  if (kept === undefined) {
    return { kind: 'broken', ...at, problem: 'where it ends cannot be read from the store' };
  }
  if (!wasKept) {
    const missing = Math.max(1, kept.seq - head.seq);
    return { kind: 'broken', ...at, problem: `at least ${missing} entries after it are missing` };
  }
  return { kind: 'intact', entries: head.seq };
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
