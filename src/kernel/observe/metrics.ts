// Metrics of model calls, tools and turns: metrics.jsonl (one line per call, rotated at 10 MB; a full
// disk loses lines, never an answer) and the Prometheus page. Labels are names of our own (channel,
// model, tool, outcome), never of people or chats, so that their number stays small.

import { appendFileSync, renameSync, statSync } from 'node:fs';
import type { Registry } from 'prom-client';
import type { Logger } from '../../lib/logger.ts';
import type {
  GaugeValues,
  MetricsPage,
  ModelCallRecord,
  Telemetry,
  TelemetryRecord,
} from './telemetry.ts';

type MetricsFileDeps = {
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

// What Prometheus scrapes. Labels are names of our own (channel, model, tool, outcome), never of people
// or chats, so that their number stays small. The library that measures the process itself takes 20 MB
// and 60 ms: it is loaded by the first scrape, so that whoever is not scraped does not pay for it.

const CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8';
const SECONDS = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600];
/** A name of a model or a tool beyond these is counted as `other`: models choose them. */
const MAX_NAMES = 100;

export interface Prometheus extends Telemetry, MetricsPage {}

export function createPrometheus(): Prometheus {
  const series = createSeries();
  const models = boundedNames();
  const tools = boundedNames();
  let ofProcess: Promise<Registry> | undefined;
  return {
    contentType: CONTENT_TYPE,
    record: (record) => count(series, record, { models, tools }),
    async render(now) {
      ofProcess ??= measureProcess();
      const own = [...Object.values(series).flatMap((each) => each.lines()), ...shown(now)];
      return `${own.join('\n')}\n${await (await ofProcess).metrics()}`;
    },
  };
}

async function measureProcess(): Promise<Registry> {
  const client = await import('prom-client');
  const registry = new client.Registry();
  client.collectDefaultMetrics({ register: registry });
  return registry;
}

type Bounded = (name: string) => string;

function boundedNames(): Bounded {
  const known = new Set<string>();
  return (name) => {
    if (!known.has(name) && known.size >= MAX_NAMES) return 'other';
    known.add(name);
    return name;
  };
}

function createSeries() {
  const counter = (name: string, help: string) =>
    new CounterSeries({ name: `nanobot_${name}`, help });
  const seconds = (name: string, help: string) =>
    new HistogramSeries({ name: `nanobot_${name}_seconds`, help }, SECONDS);
  return {
    arrivals: counter('messages_received_total', 'Messages taken in.'),
    turns: seconds('turn', 'Turns from their first message to their answer.'),
    modelCalls: seconds('model_call', 'Tries of model calls.'),
    modelWaits: seconds('model_wait', 'Waits for a place at a local model server.'),
    tokens: counter('model_tokens_total', 'Tokens as vendors count them.'),
    toolCalls: seconds('tool_call', 'Tool calls.'),
    deliveries: seconds('delivery', 'Tries to deliver.'),
    votes: counter('votes_total', 'Votes on steps by how they ended.'),
    voteAnswers: counter('vote_answers_total', 'Answers of voters.'),
  };
}

function count(
  made: ReturnType<typeof createSeries>,
  record: TelemetryRecord,
  bounded: { readonly models: Bounded; readonly tools: Bounded },
): void {
  const seconds = record.durationMs / 1000;
  switch (record.kind) {
    case 'arrival':
      made.arrivals.add({ account: record.account, status: record.status });
      return;
    case 'turn':
      made.turns.observe({ account: record.account, outcome: record.outcome }, seconds);
      return;
    case 'tool_call': {
      const tool = bounded.tools(record.tool);
      made.toolCalls.observe({ tool, status: record.status }, seconds);
      return;
    }
    case 'delivery':
      made.deliveries.observe({ account: record.account, status: record.status }, seconds);
      return;
    case 'vote':
      made.votes.add({ outcome: record.outcome });
      made.voteAnswers.add({ kind: 'vote' }, record.votes);
      made.voteAnswers.add({ kind: 'flagged' }, record.flagged);
      return;
    case 'model_call': {
      const model = bounded.models(record.model);
      const { role, status, usage, waitedMs } = record;
      if (waitedMs !== undefined) made.modelWaits.observe({ model, role }, waitedMs / 1000);
      made.modelCalls.observe({ model, role, status }, seconds);
      if (usage === undefined) return;
      made.tokens.add({ model, kind: 'input' }, usage.inputTokens);
      made.tokens.add({ model, kind: 'cached' }, usage.cachedTokens);
      made.tokens.add({ model, kind: 'output' }, usage.outputTokens);
    }
  }
}

function shown(now: GaugeValues): readonly string[] {
  const depth = [
    [{ state: 'pending' }, now.pendingMessages],
    [{ state: 'running' }, now.runningTurns],
    [{ state: 'outbound' }, now.queuedDeliveries],
    [{ state: 'dead' }, now.deadMessages],
  ] as const;
  const channels = now.channels.map(({ account, isRunning }) => {
    return [{ account }, isRunning ? 1 : 0] as const;
  });
  return [
    ...gaugeLines({ name: 'nanobot_queue_messages', help: 'Messages by where they wait.' }, depth),
    ...gaugeLines({ name: 'nanobot_channel_up', help: 'Whether a channel runs.' }, channels),
  ];
}

// Counters and histograms in the text format of Prometheus (exposition format 0.0.4). Our own, because
// the client library takes more memory than everything it would count.

export type Labels = Readonly<Record<string, string>>;

type Described = { readonly name: string; readonly help: string };

class CounterSeries {
  readonly #described: Described;
  readonly #values = new Map<string, number>();

  constructor(described: Described) {
    this.#described = described;
  }

  add(labels: Labels, value = 1): void {
    const key = labelText(labels);
    this.#values.set(key, (this.#values.get(key) ?? 0) + value);
  }

  lines(): readonly string[] {
    const { name } = this.#described;
    const values = [...this.#values].map(([labels, value]) => `${name}{${labels}} ${value}`);
    return [...headOf(this.#described, 'counter'), ...values];
  }
}

type Distribution = { readonly buckets: number[]; sum: number; count: number };

class HistogramSeries {
  readonly #described: Described;
  readonly #bounds: readonly number[];
  readonly #values = new Map<string, Distribution>();

  /** `bounds`: ascending. */
  constructor(described: Described, bounds: readonly number[]) {
    this.#described = described;
    this.#bounds = bounds;
  }

  observe(labels: Labels, value: number): void {
    const key = labelText(labels);
    const found = this.#values.get(key) ?? { buckets: this.#bounds.map(() => 0), sum: 0, count: 0 };
    this.#values.set(key, found);
    found.sum += value;
    found.count += 1;
    const place = this.#bounds.findIndex((bound) => value <= bound);
    if (place >= 0) found.buckets[place] = (found.buckets[place] ?? 0) + 1;
  }

  lines(): readonly string[] {
    const values = [...this.#values].flatMap(([labels, found]) => this.#linesOf(labels, found));
    return [...headOf(this.#described, 'histogram'), ...values];
  }

  #linesOf(labels: string, { buckets, sum, count }: Distribution): readonly string[] {
    const { name } = this.#described;
    let below = 0;
    const bounded = this.#bounds.map((bound, place) => {
      below += buckets[place] ?? 0;
      return `${name}_bucket{${labels},le="${bound}"} ${below}`;
    });
    return [
      ...bounded,
      `${name}_bucket{${labels},le="+Inf"} ${count}`,
      `${name}_sum{${labels}} ${sum}`,
      `${name}_count{${labels}} ${count}`,
    ];
  }
}

function gaugeLines(
  described: Described,
  values: readonly (readonly [Labels, number])[],
): readonly string[] {
  const lines = values.map(([labels, value]) => {
    return `${described.name}{${labelText(labels)}} ${value}`;
  });
  return [...headOf(described, 'gauge'), ...lines];
}

const headOf = ({ name, help }: Described, type: string) => [
  `# HELP ${name} ${help}`,
  `# TYPE ${name} ${type}`,
];

const ESCAPES: Readonly<Record<string, string>> = { '\\': '\\\\', '"': '\\"', '\n': '\\n' };

function labelText(labels: Labels): string {
  return Object.entries(labels)
    .map(([name, value]) => `${name}="${value.replace(/[\\"\n]/g, (char) => ESCAPES[char] ?? '')}"`)
    .join(',');
}
