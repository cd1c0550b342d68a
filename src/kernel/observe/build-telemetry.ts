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
import { openAuditFile } from './audit.ts';
import { createPrometheus, openMetricsFile } from './metrics.ts';
import { openSpans } from './spans.ts';
import type { EffectLog, MetricsPage, ModelCallRecord, Telemetry } from './telemetry.ts';

/** Closed when the turn is over. */
interface FollowedTurn extends Disposable {
  see(event: AgentEvent): void;
}

interface TurnCalls {
  /** Once the call has ended. */
  called(record: ModelCallRecord): void;
  /** From its beginning on. */
  follow(turnId: TurnId): FollowedTurn;
}

/** A call that failed of it was never run. */
const NOT_RUN: ReadonlySet<ToolFailureKind> = new Set([
  'permission',
  'invalid_arguments',
  'unknown_tool',
  'blocked',
]);

export function createTurnCalls(telemetry: Telemetry): TurnCalls {
  const turns = new Map<TurnId, FollowedCalls>();
  return {
    called(record) {
      const turn = record.turnId === undefined ? undefined : turns.get(record.turnId);
      if (turn === undefined) telemetry.record(record);
      else turn.called(record);
    },
    follow(turnId) {
      const turn = new FollowedCalls(telemetry);
      turns.set(turnId, turn);
      return {
        see: (event) => turn.see(event),
        [Symbol.dispose]() {
          turn.end();
          if (turns.get(turnId) === turn) turns.delete(turnId);
        },
      };
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

class FollowedCalls {
  readonly #telemetry: Telemetry;
  /** The newest; what it asked for is told next, where it is one of the turn's own. */
  #newest: ModelCallRecord | undefined;
  #answered: Answered | undefined;

  constructor(telemetry: Telemetry) {
    this.#telemetry = telemetry;
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

  end(): void {
    this.#passAnswered();
    this.#passNewest();
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
    audit: audit ? resources.use(openAuditFile({ path: home.audit, state, clock, log })) : SILENT,
    ...(page === undefined ? {} : { metrics: page }),
  };
}

const SILENT: EffectLog = { note: () => undefined, enter: async () => undefined };
