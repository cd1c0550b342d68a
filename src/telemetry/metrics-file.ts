// metrics.jsonl: a line for every try of a model call. At 10 MB it becomes metrics.jsonl.1, in place of
// an older one. Lines are written in the background, in order; a full disk costs lines, never an answer.

import { appendFile, rename, stat } from 'node:fs/promises';
import type { Logger } from '../lib/logger.ts';
import type { ModelCallRecord, Telemetry, TelemetryRecord } from './telemetry.ts';

export type MetricsFileDeps = {
  readonly path: string;
  readonly log: Logger;
  readonly maxBytes?: number;
};

const MAX_BYTES = 10_000_000;
/** Beyond it the disk is too slow, and lines are dropped. */
const MAX_WAITING = 10_000;
const FILE_MODE = 0o600;

export interface MetricsFile extends Telemetry, AsyncDisposable {}

export function openMetricsFile(deps: MetricsFileDeps): MetricsFile {
  return new BackgroundFile(deps);
}

class BackgroundFile implements MetricsFile {
  readonly #path: string;
  readonly #log: Logger;
  readonly #maxBytes: number;
  #waiting: string[] = [];
  #bytes: number | undefined;
  #writing: Promise<void> | undefined;
  #isFailing = false;

  constructor({ path, log, maxBytes = MAX_BYTES }: MetricsFileDeps) {
    this.#path = path;
    this.#log = log;
    this.#maxBytes = maxBytes;
  }

  record(record: TelemetryRecord): void {
    if (record.kind !== 'model_call' || this.#waiting.length >= MAX_WAITING) return;
    this.#waiting.push(`${JSON.stringify(lineOf(record))}\n`);
    this.#writing ??= this.#writeAll();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#writing;
  }

  async #writeAll(): Promise<void> {
    while (this.#waiting.length > 0) {
      const text = this.#waiting.join('');
      this.#waiting = [];
      await this.#write(text).then(
        () => this.#succeeded(),
        (error: unknown) => this.#failed(error),
      );
    }
    this.#writing = undefined;
  }

  async #write(text: string): Promise<void> {
    this.#bytes ??= await stat(this.#path).then(
      ({ size }) => size,
      () => 0,
    );
    if (this.#bytes > 0 && this.#bytes + text.length > this.#maxBytes) {
      await rename(this.#path, `${this.#path}.1`);
      this.#bytes = 0;
    }
    await appendFile(this.#path, text, { mode: FILE_MODE });
    this.#bytes += Buffer.byteLength(text);
  }

  #succeeded(): void {
    if (this.#isFailing) this.#log.info('metrics are written again', {});
    this.#isFailing = false;
  }

  #failed(error: unknown): void {
    this.#bytes = undefined;
    if (!this.#isFailing) this.#log.warn('metrics cannot be written', { error });
    this.#isFailing = true;
  }
}

/** Names as others have them in such files. */
function lineOf(record: ModelCallRecord) {
  const { at, durationMs, role, session, turnId, model, status, httpStatus, usage } = record;
  return {
    timestamp: new Date(at).toISOString(),
    ...(turnId === undefined ? {} : { request_id: turnId }),
    session,
    role,
    model,
    elapsed_ms: durationMs,
    status,
    ...(httpStatus === undefined ? {} : { http_status: httpStatus }),
    ...(usage === undefined
      ? { completion_tokens_estimated: record.answerTokens }
      : {
          prompt_tokens: usage.inputTokens,
          cached_tokens: usage.cachedTokens,
          completion_tokens: usage.outputTokens,
        }),
  };
}
