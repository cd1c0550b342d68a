// Builds what measures the work and what keeps account of it, as far as the configuration asks for it.

import type { Logger } from '../../lib/logger.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { StateStore } from '../bus/store/store.ts';
import type { Home } from '../config/files/home.ts';
import type { LiveConfig } from '../config/files/live-config.ts';
import { openAuditFile } from './audit-file.ts';
import { openMetricsFile } from './metrics-file.ts';
import { createPrometheus } from './prometheus.ts';
import { openSpans } from './spans.ts';
import type { EffectLog, MetricsPage, Telemetry } from './telemetry.ts';
import { createTurnCalls, type TurnCalls } from './turn-calls.ts';

/** Where the end of the audit file is kept in the store. */
export const AUDIT_SCOPE = 'audit';

export type TelemetryParts = {
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
