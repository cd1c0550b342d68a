// What Prometheus scrapes. Labels are names of our own (channel, model, tool, outcome), never of people
// or chats, so that their number stays small. The library that measures the process itself takes 20 MB
// and 60 ms: it is loaded by the first scrape, so that whoever is not scraped does not pay for it.

import type { Registry } from 'prom-client';
import { CounterSeries, gaugeLines, HistogramSeries } from './series.ts';
import type { GaugeValues, MetricsPage, Telemetry, TelemetryRecord } from './telemetry.ts';

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
