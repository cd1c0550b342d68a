// Builds metrics, spans and the audit log as configured, and completes the records of model calls
// with
// the outcome of the tools they requested.

import { hash } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { Context, SpanContext } from '@opentelemetry/api';
import type { SpanExporter } from '@opentelemetry/sdk-trace-base';
import { type Afterwork, inTime } from '../../lib/async.ts';
import type { Logger } from '../../lib/logger.ts';
import { readProxy } from '../../lib/net/address-rules.ts';
import { routed } from '../../lib/net/proxies.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { EmbeddedStore, StateStore } from '../bus/store/store.ts';
import { type Home, isShared } from '../config/files/home.ts';
import type { LiveConfig } from '../config/files/live-config.ts';
import type { ToolFailureKind } from '../message/errors.ts';
import type { TurnId } from '../message/ids.ts';
import type { AgentEvent } from '../message/message.ts';
import {
  AuditFile,
  type AuditLine,
  type AuditVerdict,
  newestAuditLines,
  readLine,
  verifyAudit,
} from './audit.ts';
import { createDurations, createPrometheus, type Durations, openMetricsFile } from './metrics.ts';
import type {
  EffectLog,
  MetricsPage,
  ModelCallRecord,
  Telemetry,
  TelemetryRecord,
} from './telemetry.ts';

/** A call with such a failure was never run. */
const NOT_RUN: ReadonlySet<ToolFailureKind> = new Set([
  'permission',
  'waiting',
  'invalid_arguments',
  'unknown_tool',
  'blocked',
]);

type TurnCalls = ReturnType<typeof createTurnCalls>;

export function createTurnCalls(telemetry: Telemetry) {
  const turns = new Map<TurnId, FollowedCalls>();
  return {
    /** Called when the call has ended. */
    called(record: ModelCallRecord): void {
      const turn = record.turnId === undefined ? undefined : turns.get(record.turnId);
      if (turn === undefined) telemetry.record(record);
      else turn.called(record);
    },
    /** From the turn's start on; closed when it is over. */
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
  /** The newest; its tool calls are reported next, if it is one of the turn's own. */
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

/** The scope of the end of the audit file in the store. */
export const AUDIT_SCOPE = 'audit';

type Chain = { readonly path: string; readonly scope: string };

/** Several processes write one chain each. */
const auditScope = (home: Home): string =>
  isShared(home) ? `${AUDIT_SCOPE}:${basename(dirname(home.audit))}` : AUDIT_SCOPE;

/** All chains together. */
export async function verifyChains(
  home: Home,
  store: Pick<EmbeddedStore, 'scope'>,
): Promise<AuditVerdict> {
  let entries = 0;
  const unfinished: AuditLine[] = [];
  for (const { path, scope } of await auditChains(home)) {
    const verdict = await verifyAudit(path, store.scope(scope));
    if (verdict.kind === 'broken') return verdict;
    entries += verdict.entries;
    unfinished.push(...verdict.unfinished);
  }
  return { kind: 'intact', entries, unfinished };
}

/** The newest entries of all chains as they are written, oldest first. */
export async function newestEntries(home: Home, limit: number): Promise<readonly string[]> {
  const chains = await auditChains(home);
  const ofEach = await Promise.all(chains.map(({ path }) => newestAuditLines(path, limit)));
  const [only, ...others] = ofEach;
  if (others.length === 0) return only ?? [];
  const timeOf = (text: string) => readLine(text)?.at ?? '';
  return ofEach
    .flat()
    .toSorted((one, other) => (timeOf(one) < timeOf(other) ? -1 : 1))
    .slice(-limit);
}

/** The chain of this home, or those of all processes that share their files. */
async function auditChains(home: Home): Promise<readonly Chain[]> {
  const own = { path: home.audit, scope: auditScope(home) };
  if (!isShared(home)) return [own];
  const folder = dirname(dirname(home.audit));
  const names = (await readdir(folder).catch((): string[] => [])).toSorted();
  return names.map((name) => ({
    path: join(folder, name, basename(home.audit)),
    scope: `${AUDIT_SCOPE}:${name}`,
  }));
}

type TelemetryParts = {
  readonly live: LiveConfig;
  readonly clock: Clock;
  readonly log: Logger;
  readonly store: StateStore;
  readonly afterwork: Pick<Afterwork, 'later'>;
};

export type Measuring = {
  readonly telemetry: Telemetry;
  /** Gets model calls. */
  readonly calls: TurnCalls;
  readonly audit: EffectLog;
  readonly durations: Durations;
  /** Left out where it is switched off. */
  readonly metrics?: MetricsPage;
};

export async function buildTelemetry(
  { live, clock, log, store, afterwork: { later } }: TelemetryParts,
  home: Home,
  resources: AsyncDisposableStack,
): Promise<Measuring> {
  const { metricsFile, prometheus, audit, otel } = live.config.telemetry;
  const page = prometheus ? createPrometheus() : undefined;
  const durations = createDurations();
  const sinks: Telemetry[] = page === undefined ? [durations] : [durations, page];
  if (metricsFile) sinks.push(openMetricsFile({ path: home.metrics, log, later }));
  if (otel.endpoint !== '') {
    const { proxy } = live.config.network;
    sinks.push(resources.use(await openSpans({ ...otel, proxy }, { clock, log })));
  }
  const state = store.scope(auditScope(home));
  const telemetry: Telemetry = {
    record(record) {
      for (const sink of sinks) sink.record(record);
    },
  };
  return {
    ...{ telemetry, durations },
    calls: createTurnCalls(telemetry),
    audit: audit ? resources.use(new AuditFile({ path: home.audit, state, clock, log })) : SILENT,
    ...(page === undefined ? {} : { metrics: page }),
  };
}

const SILENT: EffectLog = { note: () => undefined, enter: async () => undefined };

// Spans for OpenTelemetry: a turn is a trace, its model calls, tool calls and deliveries are spans
// in it. Ids derive from the turn's, so that every record of it finds its trace, also after a
// restart.

type SpanSettings = {
  /** Of a collector for OTLP over HTTP, with its path, e.g. http://localhost:4318/v1/traces. */
  readonly endpoint: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly serviceName: string;
  /** The setting; default: none. */
  readonly proxy?: string;
};

/** Of one export to the collector, including its retries. */
const EXPORT_TIMEOUT_MS = 3000;
/** At the end of the process. */
const LAST_EXPORT_MS = 1000;
const SUCCESS = 0;
/** Of reported failures. */
const MAX_KINDS = 10;

interface Spans extends Telemetry, AsyncDisposable {}

type SpanDeps = { readonly clock: Clock; readonly log: Logger };

type Named = {
  readonly name: string;
  readonly turnId: string | undefined;
  readonly isError: boolean;
  readonly attributes: Readonly<Record<string, string | number>>;
};

export async function openSpans(settings: SpanSettings, { clock, log }: SpanDeps): Promise<Spans> {
  const api = await import('@opentelemetry/api');
  const { BasicTracerProvider, BatchSpanProcessor } = await import('@opentelemetry/sdk-trace-base');
  const { OTLPTraceExporter } = await import('@opentelemetry/exporter-trace-otlp-http');
  const { resourceFromAttributes } = await import('@opentelemetry/resources');
  const exporter = telling(
    new OTLPTraceExporter({
      url: settings.endpoint,
      headers: settings.headers,
      timeoutMillis: EXPORT_TIMEOUT_MS,
      ...agentThrough(settings.proxy ?? ''),
    }),
    log,
  );
  const ids = new TurnIds();
  const provider = new BasicTracerProvider({
    idGenerator: ids,
    resource: resourceFromAttributes({ 'service.name': settings.serviceName }),
    spanProcessors: [new BatchSpanProcessor(exporter)],
  });
  const tracer = provider.getTracer('nanobot');

  function parentOf(turnId: string | undefined): Context {
    if (turnId === undefined) return api.ROOT_CONTEXT;
    return api.trace.setSpanContext(api.ROOT_CONTEXT, contextOf(turnId, api.TraceFlags.SAMPLED));
  }

  return {
    record(record) {
      const { name, turnId, isError, attributes } = described(record);
      const isRoot = record.kind === 'turn';
      ids.next = isRoot && turnId !== undefined ? turnId : undefined;
      const options = { startTime: record.at, attributes, kind: api.SpanKind.INTERNAL };
      const parent = isRoot ? api.ROOT_CONTEXT : parentOf(turnId);
      const span = tracer.startSpan(name, options, parent);
      if (isError) span.setStatus({ code: api.SpanStatusCode.ERROR });
      span.end(record.at + record.durationMs);
    },
    async [Symbol.asyncDispose]() {
      // What is not exported by then is lost, and nothing waits for it.
      const shutDown = provider.shutdown().catch(() => undefined);
      await inTime(clock, LAST_EXPORT_MS, shutDown);
    },
  };
}

/** A collector that refuses spans is reported once for each kind of failure. */
/** The exporter's own agent where no proxy is set. */
function agentThrough(proxy: string) {
  if (readProxy(proxy) === undefined) return {};
  const agentFor = (protocol: string) => {
    const { Agent } = process.getBuiltinModule(protocol === 'https:' ? 'node:https' : 'node:http');
    return routed(new Agent({ keepAlive: true }), proxy);
  };
  return { httpAgentOptions: agentFor };
}

function telling(exporter: SpanExporter, log: Logger): SpanExporter {
  const told = new Set<string>();
  return {
    export(spans, done) {
      exporter.export(spans, (result) => {
        const kind = failureKind(result.error);
        if (result.code !== SUCCESS && !told.has(kind) && told.size < MAX_KINDS) {
          told.add(kind);
          log.warn('spans refused by the collector', { failure: kind, spans: spans.length });
        }
        done(result);
      });
    },
    shutdown: () => exporter.shutdown(),
    forceFlush: async () => exporter.forceFlush?.(),
  };
}

/** Its code, or that of its cause: an HTTP status, or a name such as ECONNREFUSED. */
function failureKind(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown';
  const { code } = error as { readonly code?: unknown };
  return code === undefined ? error.name : String(code);
}

const hex = (text: string, chars: number) => hash('sha256', text).slice(0, chars);

const TRACE_CHARS = 32;
const SPAN_CHARS = 16;

const contextOf = (turnId: string, traceFlags: number): SpanContext => ({
  traceId: hex(turnId, TRACE_CHARS),
  spanId: hex(`${turnId} root`, SPAN_CHARS),
  traceFlags,
  isRemote: true,
});

/** The root span of a turn has the ids to which its children refer. */
class TurnIds {
  next: string | undefined;

  generateTraceId = (): string =>
    this.next === undefined ? randomHex(TRACE_CHARS) : hex(this.next, TRACE_CHARS);

  generateSpanId = (): string =>
    this.next === undefined ? randomHex(SPAN_CHARS) : hex(`${this.next} root`, SPAN_CHARS);
}

function randomHex(chars: number): string {
  return Buffer.from(crypto.getRandomValues(new Uint8Array(chars / 2))).toString('hex');
}

/** Attributes follow the conventions for generative AI if there are any. */
function described(record: TelemetryRecord): Named {
  switch (record.kind) {
    case 'turn': {
      const { turnId, session, account, outcome } = record;
      const attributes = { 'nanobot.session': session, 'nanobot.account': account, outcome };
      return { name: 'turn', turnId, isError: outcome === 'failed', attributes };
    }
    case 'model_call': {
      const { model, role, status, turnId, usage } = record;
      const attributes = {
        ...{ 'gen_ai.operation.name': 'chat', 'gen_ai.request.model': model },
        ...{ 'nanobot.role': role, 'nanobot.status': status, 'nanobot.session': record.session },
        ...(usage === undefined
          ? {}
          : {
              'gen_ai.usage.input_tokens': usage.inputTokens,
              'gen_ai.usage.output_tokens': usage.outputTokens,
            }),
      };
      return { name: `chat ${model}`, turnId, isError: status !== 'ok', attributes };
    }
    case 'tool_call': {
      const { tool, status, turnId, failure } = record;
      const attributes = {
        'gen_ai.tool.name': tool,
        ...(failure === undefined ? {} : { 'nanobot.failure': failure }),
      };
      return { name: `execute_tool ${tool}`, turnId, isError: status === 'failed', attributes };
    }
    case 'delivery': {
      const { account, messageId, status } = record;
      const attributes = { 'nanobot.account': account, 'nanobot.message': messageId };
      const turnId = turnOf(messageId);
      return { name: `deliver ${account}`, turnId, isError: status !== 'sent', attributes };
    }
    case 'vote': {
      const { outcome, votes, flagged } = record;
      return {
        name: 'vote',
        turnId: undefined,
        isError: false,
        attributes: { outcome, votes, flagged },
      };
    }
    case 'arrival': {
      const { account, messageId, status } = record;
      const attributes = { 'nanobot.account': account, 'nanobot.message': messageId, status };
      return { name: `receive ${account}`, turnId: undefined, isError: false, attributes };
    }
  }
}

/** Answers are named after their turn, `<turn>/<n>`. */
function turnOf(messageId: string): string | undefined {
  return /^(.+)\/\d+$/.exec(messageId)?.[1];
}
