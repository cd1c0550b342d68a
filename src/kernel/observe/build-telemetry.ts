// Builds metrics, spans and the audit log as configured, and completes the records of model calls with
// the outcome of the tools they requested.

import type { Logger } from '../../lib/logger.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { StateStore } from '../bus/store/store.ts';
import type { Home } from '../config/files/home.ts';
import type { LiveConfig } from '../config/files/live-config.ts';
import type { ToolFailureKind } from '../message/errors.ts';
import type { AgentEvent } from '../message/event.ts';
import type { TurnId } from '../message/ids.ts';
import { AuditFile } from './audit.ts';
import { createPrometheus, openMetricsFile } from './metrics.ts';
import { openSpans } from './spans.ts';
import type { EffectLog, MetricsPage, ModelCallRecord, Telemetry } from './telemetry.ts';

/** A call that failed of it was never run. */
const NOT_RUN: ReadonlySet<ToolFailureKind> = new Set([
  'permission',
  'invalid_arguments',
  'unknown_tool',
  'blocked',
]);

type TurnCalls = ReturnType<typeof createTurnCalls>;

export function createTurnCalls(telemetry: Telemetry) {
  const turns = new Map<TurnId, FollowedCalls>();
  return {
    /** Once the call has ended. */
    called(record: ModelCallRecord): void {
      const turn = record.turnId === undefined ? undefined : turns.get(record.turnId);
      if (turn === undefined) telemetry.record(record);
      else turn.called(record);
    },
    /** From the turn's beginning on; closed when it is over. */
    follow(turnId: TurnId): FollowedCalls {
      const turn = new FollowedCalls(telemetry, () => {
        if (turns.get(turnId) === turn) turns.delete(turnId);
      });
      turns.set(turnId, turn);
      return turn;
    },
  };
}

type Answered = {
  readonly record: ModelCallRecord;
  readonly requested: number;
  readonly isDoubted: boolean;
  ended: number;
  executed: number;
};

class FollowedCalls implements Disposable {
  readonly #telemetry: Telemetry;
  readonly #forget: () => void;
  /** The newest; what it asked for is told next, where it is one of the turn's own. */
  #newest: ModelCallRecord | undefined;
  #answered: Answered | undefined;

  constructor(telemetry: Telemetry, forget: () => void) {
    this.#telemetry = telemetry;
    this.#forget = forget;
  }

  called(record: ModelCallRecord): void {
    this.#passNewest();
    if (record.status === 'ok') this.#newest = record;
    else this.#telemetry.record(record);
  }

  see(event: AgentEvent): void {
    if (event.type === 'model_called') this.#asked(event);
    else if (event.type === 'tool_finished') this.#ran(event);
  }

  [Symbol.dispose](): void {
    this.#passAnswered();
    this.#passNewest();
    this.#forget();
  }

  #asked({ model, calls, isDoubted }: Extract<AgentEvent, { type: 'model_called' }>): void {
    this.#passAnswered();
    const record = this.#newest;
    if (record?.model !== model) return;
    this.#newest = undefined;
    const tools = { requested: calls, ended: 0, executed: 0 };
    this.#answered = { record, isDoubted: isDoubted === true, ...tools };
    if (calls === 0) this.#passAnswered();
  }

  #ran({ failure }: Extract<AgentEvent, { type: 'tool_finished' }>): void {
    const answered = this.#answered;
    if (answered === undefined) return;
    answered.ended += 1;
    if (failure === undefined || !NOT_RUN.has(failure)) answered.executed += 1;
    if (answered.ended === answered.requested) this.#passAnswered();
  }

  #passAnswered(): void {
    if (this.#answered === undefined) return;
    const { record, requested, executed, isDoubted } = this.#answered;
    this.#answered = undefined;
    this.#telemetry.record({ ...record, answer: { requested, executed, isDoubted } });
  }

  #passNewest(): void {
    if (this.#newest !== undefined) this.#telemetry.record(this.#newest);
    this.#newest = undefined;
  }
}

/** Where the end of the audit file is kept in the store. */
export const AUDIT_SCOPE = 'audit';

type TelemetryParts = {
  readonly live: LiveConfig;
  readonly clock: Clock;
  readonly log: Logger;
  readonly store: StateStore;
};

export type Measuring = {
  readonly telemetry: Telemetry;
  /** Where model calls are told of. */
  readonly calls: TurnCalls;
  readonly audit: EffectLog;
  /** Left out where it is switched off. */
  readonly metrics?: MetricsPage;
};

export async function buildTelemetry(
  { live, clock, log, store }: TelemetryParts,
  home: Home,
  resources: AsyncDisposableStack,
): Promise<Measuring> {
  const { metricsFile, prometheus, audit, otel } = live.config.telemetry;
  const page = prometheus ? createPrometheus() : undefined;
  const sinks: Telemetry[] = page === undefined ? [] : [page];
  if (metricsFile) sinks.push(openMetricsFile({ path: home.metrics, log }));
  if (otel.endpoint !== '') sinks.push(resources.use(await openSpans(otel, { clock, log })));
  const state = store.scope(AUDIT_SCOPE);
  const telemetry: Telemetry = {
    record(record) {
      for (const sink of sinks) sink.record(record);
    },
  };
  return {
    telemetry,
    calls: createTurnCalls(telemetry),
    audit: audit ? resources.use(new AuditFile({ path: home.audit, state, clock, log })) : SILENT,
    ...(page === undefined ? {} : { metrics: page }),
  };
}

const SILENT: EffectLog = { note: () => undefined, enter: async () => undefined };
