// metrics.jsonl: a line for every try of a model call. At 10 MB it becomes metrics.jsonl.1, in place of
// an older one. A line goes into the kernel's memory at once, which takes microseconds; a full disk costs
// lines, never an answer.

import { appendFileSync, renameSync, statSync } from 'node:fs';
import type { Logger } from '../../lib/logger.ts';
import type { ModelCallRecord, Telemetry, TelemetryRecord } from './telemetry.ts';

export type MetricsFileDeps = {
  readonly path: string;
  readonly log: Logger;
  readonly maxBytes?: number;
};

const MAX_BYTES = 10_000_000;
const FILE_MODE = 0o600;

export function openMetricsFile(deps: MetricsFileDeps): Telemetry {
  return new MetricsFile(deps);
}

class MetricsFile implements Telemetry {
  readonly #path: string;
  readonly #log: Logger;
  readonly #maxBytes: number;
  #bytes: number | undefined;
  #isFailing = false;

  constructor({ path, log, maxBytes = MAX_BYTES }: MetricsFileDeps) {
    this.#path = path;
    this.#log = log;
    this.#maxBytes = maxBytes;
  }

  record(record: TelemetryRecord): void {
    if (record.kind !== 'model_call') return;
    try {
      this.#write(`${JSON.stringify(lineOf(record))}\n`);
      this.#succeeded();
    } catch (error) {
      this.#failed(error);
    }
  }

  #write(line: string): void {
    this.#bytes ??= statSync(this.#path, { throwIfNoEntry: false })?.size ?? 0;
    if (this.#bytes > 0 && this.#bytes + line.length > this.#maxBytes) {
      renameSync(this.#path, `${this.#path}.1`);
      this.#bytes = 0;
    }
    appendFileSync(this.#path, line, { mode: FILE_MODE });
    this.#bytes += Buffer.byteLength(line);
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
  const { base, detail, answer } = record;
  return {
    timestamp: new Date(at).toISOString(),
    ...(turnId === undefined ? {} : { request_id: turnId }),
    session,
    role,
    model,
    ...(base === undefined ? {} : { provider_base: base }),
    elapsed_ms: durationMs,
    ...(record.waitedMs === undefined ? {} : { waited_ms: record.waitedMs }),
    status,
    ...(httpStatus === undefined ? {} : { http_status: httpStatus }),
    ...(detail === undefined ? {} : { error_detail: detail }),
    ...(usage === undefined
      ? { completion_tokens_estimated: record.answerTokens }
      : {
          prompt_tokens: usage.inputTokens,
          cached_tokens: usage.cachedTokens,
          completion_tokens: usage.outputTokens,
        }),
    ...(record.drift === undefined
      ? {}
      : {
          anti_drift_score: record.drift.score,
          anti_drift_signals: record.drift.signals,
        }),
    ...(answer === undefined
      ? {}
      : {
          tool_calls_requested: answer.requested,
          tool_calls_executed: answer.executed,
          validation_result: answer.isDoubted ? 'unsupported_claim' : 'ok',
        }),
  };
}
