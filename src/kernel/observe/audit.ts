// audit.jsonl, a hash chain of all effects: its lines, the file and its rotation, appending, and
// verification. The end of the chain is also stored in the store, written after the file, so that a
// truncated file is detected and a crash in between is no false alarm.

import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { type FileHandle, open, readdir, rename, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { z } from 'zod';
import { parseJson } from '../../lib/json/json.ts';
import type { Logger } from '../../lib/logger.ts';
import { t } from '../../lib/texts.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { KeyValueStore } from '../bus/store/store.ts';
import { type AuditEvent, BEGUN, type EffectLog } from './telemetry.ts';

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

/** The last line of the chain. */
type AuditHead = { readonly seq: number; readonly hash: string };

const headShape = z.object({ seq: z.int().min(0), hash });

/** Parses the stored head; undefined if it is damaged. */
function readHead(text: string | undefined): AuditHead | undefined {
  if (text === undefined) return AUDIT_START;
  try {
    return headShape.parse(JSON.parse(text));
  } catch {
    return undefined;
  }
}

/** Before the first line. */
const AUDIT_START: AuditHead = { seq: 0, hash: '0'.repeat(64) };

export function nextLine(head: AuditHead, event: AuditEvent, at: Date): AuditLine {
  const bare = { seq: head.seq + 1, at: at.toISOString(), ...event, prev: head.hash };
  return { ...bare, hash: hashOf(bare) };
}

/** Undefined if it is malformed or incomplete. */
export function readLine(text: string): AuditLine | undefined {
  try {
    return line.parse(JSON.parse(text));
  } catch {
    return undefined;
  }
}

/** The problem of a line after `head`; undefined if it follows. */
export function problemOf(head: AuditHead, found: AuditLine): string | undefined {
  const { hash: own, ...bare } = found;
  if (hashOf(bare) !== own) return t`its content is not what was written`;
  if (found.seq !== head.seq + 1) {
    return found.seq > head.seq + 1
      ? t`${found.seq - head.seq - 1} entries before it are missing`
      : t`it stands in the wrong place`;
  }
  return found.prev === head.hash ? undefined : t`the entry before it was replaced`;
}

/** All fields in one fixed form, keys in order. */
function hashOf({ seq, at, kind, fields, prev }: Omit<AuditLine, 'hash'>): string {
  const sorted = Object.entries(fields).sort(([a], [b]) => (a < b ? -1 : 1));
  return createHash('sha256')
    .update(JSON.stringify([seq, at, kind, sorted, prev]))
    .digest('hex');
}

// The files of the audit: appending to the newest, and the store's record of where it ends.

const HEAD_KEY = 'head';
const FILE_MODE = 0o600;
const TAIL_BYTES = 65_536;
const NUMBER_DIGITS = 4;
const NUMBER = /\.(\d{4})\.jsonl$/;
const NEWLINE = 0x0a;

const keepHead = (state: KeyValueStore, head: AuditHead) =>
  state.set(HEAD_KEY, JSON.stringify(head));

/** `isSynced`: it survives a power cut too, not only the end of the process. */
export async function append(path: string, text: string, isSynced: boolean): Promise<void> {
  await using file = await open(path, 'a+', FILE_MODE);
  await cutTornLine(file);
  await file.appendFile(text);
  if (isSynced) await file.sync();
}

/** An incomplete line left by a kill was never counted. */
async function cutTornLine(file: FileHandle): Promise<void> {
  const { buffer, size } = await tailOf(file);
  const { length } = buffer;
  const end = buffer.lastIndexOf(NEWLINE) + 1;
  if (length > 0 && end < length) await file.truncate(size - length + end);
}

async function tailOf(file: FileHandle) {
  const { size } = await file.stat();
  const length = Math.min(size, TAIL_BYTES);
  const { buffer } = await file.read(Buffer.alloc(length), 0, length, size - length);
  return { buffer, size };
}

async function turnOver(path: string, maxBytes: number): Promise<void> {
  const size = await stat(path).then(
    (info) => info.size,
    () => 0,
  );
  if (size < maxBytes) return;
  // A file that was moved away leaves its number unused.
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

/** Undefined if it cannot be read. */
const keptHead = async (state: KeyValueStore) => readHead(await state.get(HEAD_KEY));

async function lastLine(path: string): Promise<AuditLine | undefined> {
  await using file = await open(path, 'r').catch(() => undefined);
  if (file === undefined) return undefined;
  const lines = (await tailOf(file)).buffer.toString('utf8').split('\n').map(readLine);
  return lines.findLast((line) => line !== undefined);
}

// audit.jsonl: every effect, as a chain. Its end is stored in the store too, written after the
// file: so a truncated file is detected, and a kill in between is no false alarm.

type AuditFileDeps = {
  readonly path: string;
  readonly state: KeyValueStore;
  readonly clock: Clock;
  readonly log: Logger;
  readonly maxBytes?: number;
};

const MAX_BYTES = 50_000_000;
/** While nothing can be written, about 10 MB of memory. */
const MAX_WAITING = 10_000;
const TRY_AGAIN_MS = 10_000;

type Waiting = {
  readonly event: AuditEvent;
  readonly at: Date;
  /** The outcome follows later and is synced then. */
  readonly isIntent: boolean;
};

export class AuditFile implements EffectLog, AsyncDisposable {
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
    this.#add(event, false);
  }

  async enter(event: AuditEvent): Promise<void> {
    // An intent is not left to the next try: the file may be available again.
    this.#stopWaiting();
    this.#add(event, true);
    // While nothing can be written this fails at once, and nothing waits for it.
    await this.#writing;
  }

  #add(event: AuditEvent, isIntent: boolean): void {
    const { clock, log } = this.#deps;
    if (this.#waiting.length >= MAX_WAITING) {
      log.error('audit entry lost', { kind: event.kind });
      return;
    }
    this.#waiting.push({ event, at: new Date(clock.now()), isIntent });
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
      log.error('audit entries waiting for a retry', { entries: this.#waiting.length, error });
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
    // A failed write may still have put whole lines into the file.
    this.#waiting.splice(0, Math.max(0, head.seq - (this.#begunAt ?? head).seq));
    this.#begunAt = head;
    this.#head = undefined;
    const batch = this.#waiting.length;
    const isSynced = this.#waiting.some(({ isIntent }) => !isIntent);
    let last = head;
    const lines = this.#waiting.map(({ event, at }) => {
      const line = nextLine(last, event, at);
      last = { seq: line.seq, hash: line.hash };
      return `${JSON.stringify(line)}\n`;
    });
    await turnOver(path, maxBytes);
    await append(path, lines.join(''), isSynced);
    if (isSynced) await keepHead(state, last);
    this.#waiting.splice(0, batch);
    this.#head = last;
    this.#begunAt = undefined;
  }

  /** The store's record counts, unless the file continued from there before a kill. */
  async #findHead(): Promise<AuditHead> {
    const { path, state, log } = this.#deps;
    const kept = await keptHead(state);
    const last = await lastLine(path);
    if (kept === undefined) log.error('position in the audit file not readable');
    if (last === undefined) return kept ?? AUDIT_START;
    if (kept === undefined) return { seq: last.seq, hash: last.hash };
    if (last.seq > kept.seq) return { seq: last.seq, hash: last.hash };
    if (last.hash !== kept.hash)
      log.error('audit file changed by another program', { seq: last.seq });
    return kept;
  }
}

// Reads the audit from its first line to its last: whether it is unchanged, and which effects began
// without a recorded end.

export type AuditVerdict =
  | {
      readonly kind: 'intact';
      readonly entries: number;
      /** Begun without a recorded outcome: running, or interrupted with the process. */
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
    if (unread !== undefined) return { kind: 'broken', ...unread, problem: t`this is no entry` };
    at = { file, line };
    const found = isAsWritten(text) ? readLine(text) : undefined;
    if (found === undefined && isWhole) {
      return { kind: 'broken', ...at, problem: t`this is no entry, or not as it was written` };
    }
    // At the very end it may be a remainder of an entry that was never counted.
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
    return { kind: 'broken', ...at, problem: t`where it ends cannot be read from the store` };
  }
  if (!wasKept) {
    const missing = Math.max(1, kept.seq - head.seq);
    return { kind: 'broken', ...at, problem: t`at least ${missing} entries after it are missing` };
  }
  return { kind: 'intact', entries: head.seq, unfinished: [...begun.values()] };
}

function follow(begun: Map<AuditLine['fields'][string], AuditLine>, line: AuditLine): void {
  const { call, status } = line.fields;
  if (call === undefined) return;
  if (status === BEGUN) begun.set(call, line);
  else begun.delete(call);
}

/** Byte for byte as written, without blanks and anything else that a parser ignores. */
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
async function* auditLines(path: string): AsyncGenerator<FoundLine> {
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

/** The newest entries as they are written, oldest first. */
export async function newestAuditLines(path: string, limit: number): Promise<readonly string[]> {
  const newest: string[] = [];
  for await (const { text } of auditLines(path)) {
    if (text === '') continue;
    newest.push(text);
    if (newest.length > limit) newest.shift();
  }
  return newest;
}
