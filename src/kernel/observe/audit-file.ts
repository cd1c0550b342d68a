// audit.jsonl: what was done with effects, as a chain. Where it ends is kept in the store too, written
// after the file: so a file that was cut off is found, and a kill in between is no false alarm.

import type { Logger } from '../../lib/logger.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { KeyValueStore } from '../bus/store/store.ts';
import { AUDIT_START, type AuditHead, nextLine } from './audit-chain.ts';
import { append, keepHead, keptHead, lastLine, turnOver } from './audit-place.ts';
import type { AuditEvent, EffectLog } from './telemetry.ts';

export type AuditFileDeps = {
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

export interface AuditFile extends EffectLog, AsyncDisposable {}

export function openAuditFile(deps: AuditFileDeps): AuditFile {
  return new ChainedFile(deps);
}

type Waiting = {
  readonly event: AuditEvent;
  readonly at: Date;
  /** The outcome comes later, and with it the disk's own word. */
  readonly isIntent: boolean;
};

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
    this.#add(event, false);
  }

  async enter(event: AuditEvent): Promise<void> {
    // What is about to be done is not left to the next try: the file may be there again.
    this.#stopWaiting();
    this.#add(event, true);
    // While nothing can be written this fails at once, and nobody waits for it.
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
