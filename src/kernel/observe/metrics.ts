// Metrics of model calls, tools and turns: metrics.jsonl (one line per call, rotated at 10 MB; a
// full disk loses lines, never an answer) and the Prometheus page. Labels are names of the program
// (channel, model, tool, outcome), never of people or chats, so that their number stays small.

import { appendFileSync, renameSync, statSync } from 'node:fs';
import type { Registry } from 'prom-client';
import type { Logger } from '../../lib/logger.ts';
import type {
  Gauge,
  MetricsPage,
  ModelCallRecord,
  Telemetry,
  TelemetryRecord,
} from './telemetry.ts';

type MetricsFileDeps = {
  readonly path: string;
  readonly log: Logger;
  readonly maxBytes?: number;
  /** Runs what writes the lines. */
  later(write: () => void): void;
};

const MAX_BYTES = 10_000_000;
const FILE_MODE = 0o600;

export function openMetricsFile(deps: MetricsFileDeps): Telemetry {
  const { path, log, maxBytes = MAX_BYTES, later } = deps;
  let bytes: number | undefined;
  let isFailing = false;
  let waiting: ModelCallRecord[] = [];

  function append(line: string) {
    bytes ??= statSync(path, { throwIfNoEntry: false })?.size ?? 0;
    if (bytes > 0 && bytes + line.length > maxBytes) {
      renameSync(path, `${path}.1`);
      bytes = 0;
    }
    appendFileSync(path, line, { mode: FILE_MODE });
    bytes += Buffer.byteLength(line);
  }

  function write() {
    const lines = waiting.map((record) => `${JSON.stringify(lineOf(record))}\n`);
    waiting = [];
    try {
      append(lines.join(''));
      if (isFailing) log.info('metrics written again', {});
      isFailing = false;
    } catch (error) {
      bytes = undefined;
      if (!isFailing) log.warn('metrics not written', { error });
      isFailing = true;
    }
  }

  return {
    record(record) {
      if (record.kind !== 'model_call') return;
      if (waiting.push(record) === 1) later(write);
    },
  };
}

/** Common field names for such files; unknown values are omitted from the line. */
function lineOf(record: ModelCallRecord) {
  const { usage, estimated, drift, answer } = record;
  return {
    timestamp: new Date(record.at).toISOString(),
    request_id: record.turnId,
    session: record.session,
    role: record.role,
    model: record.model,
    provider_base: record.base,
    elapsed_ms: record.durationMs,
    waited_ms: record.waitedMs,
    status: record.status,
    http_status: record.httpStatus,
    error_detail: record.detail,
    prompt_tokens_estimated: usage === undefined ? estimated.input : undefined,
    completion_tokens_estimated: usage === undefined ? estimated.output : undefined,
    prompt_tokens: usage?.inputTokens,
    cached_tokens: usage?.cachedTokens,
    written_tokens: usage?.writtenTokens,
    completion_tokens: usage?.outputTokens,
    anti_drift_score: drift?.score,
    anti_drift_signals: drift?.signals,
    tool_calls_requested: answer?.requested,
    tool_calls_executed: answer?.executed,
    validation_result: answer && (answer.isDoubted ? 'unsupported_claim' : 'ok'),
  };
}

// The Prometheus page. Labels are names of the program (channel, model, tool, outcome), never of
// people or chats, so that their number stays small. The library that measures the process itself
// takes 20 MB and 60 ms: it is loaded by the first scrape, so that a gateway without scrapes does
// not pay for it.

const CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8';
const SECONDS = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600];
/** Further names of models or tools count as `other`: models choose them. */
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
      const own = [
        ...Object.values(series).flatMap((each) => each.lines()),
        ...now.flatMap(gaugeLines),
      ];
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
  const counter = (name: string, help: string) => counterSeries({ name: `nanobot_${name}`, help });
  const seconds = (name: string, help: string) =>
    histogramSeries({ name: `nanobot_${name}_seconds`, help }, SECONDS);
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

// Counters and histograms in the text format of Prometheus (exposition format 0.0.4). Our own,
// because the client library takes more memory than everything it would count.

export type Labels = Readonly<Record<string, string>>;

type Described = { readonly name: string; readonly help: string };

function counterSeries(described: Described) {
  const values = new Map<string, number>();
  return {
    add(labels: Labels, value = 1): void {
      const key = labelText(labels);
      values.set(key, (values.get(key) ?? 0) + value);
    },
    lines: () => [
      ...headOf(described, 'counter'),
      ...[...values].map(([labels, value]) => `${described.name}{${labels}} ${value}`),
    ],
  };
}

type Distribution = { readonly buckets: number[]; sum: number; count: number };

/** `bounds`: ascending. */
function histogramSeries(described: Described, bounds: readonly number[]) {
  const { name } = described;
  const values = new Map<string, Distribution>();

  function linesOf(labels: string, { buckets, sum, count }: Distribution): readonly string[] {
    let below = 0;
    const bounded = bounds.map((bound, place) => {
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

  return {
    observe(labels: Labels, value: number): void {
      const key = labelText(labels);
      const found = values.get(key) ?? { buckets: bounds.map(() => 0), sum: 0, count: 0 };
      values.set(key, found);
      found.sum += value;
      found.count += 1;
      const place = bounds.findIndex((bound) => value <= bound);
      if (place >= 0) found.buckets[place] = (found.buckets[place] ?? 0) + 1;
    },
    lines: () => [
      ...headOf(described, 'histogram'),
      ...[...values].flatMap(([labels, found]) => linesOf(labels, found)),
    ],
  };
}

// Durations of the parts of an answer outside of the model, in memory.

const KEPT_DURATIONS = 1000;

export interface Durations extends Telemetry {
  /** Milliseconds, in no order; at most the last 1,000 of each since the start. */
  readonly all: Readonly<Record<'queue' | 'tools' | 'delivery', readonly number[]>>;
}

export function createDurations(): Durations {
  const [queue, tools, delivery] = [lastValues(), lastValues(), lastValues()];
  return {
    record(record) {
      if (record.kind === 'turn') queue.add(record.waitedMs);
      else if (record.kind === 'tool_call') tools.add(record.durationMs);
      else if (record.kind === 'delivery') delivery.add(record.durationMs);
    },
    all: { queue: queue.values, tools: tools.values, delivery: delivery.values },
  };
}

function lastValues() {
  const values: number[] = [];
  let next = 0;
  return {
    values,
    add(value: number): void {
      values[next] = value;
      next = (next + 1) % KEPT_DURATIONS;
    },
  };
}

export const gauge = (name: string, help: string, values: Gauge['values']): Gauge => {
  return { name, help, values };
};

function gaugeLines({ name, help, values }: Gauge): readonly string[] {
  const described = { name: `nanobot_${name}`, help };
  const lines = values.map(([labels, value]) => {
    const named = Object.keys(labels).length === 0 ? '' : `{${labelText(labels)}}`;
    return `${described.name}${named} ${value}`;
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
