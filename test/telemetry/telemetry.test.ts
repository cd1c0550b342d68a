// What is measured, where people and programs read it: the file of model calls, the page for
// Prometheus, the spans a collector gets.

import { readFile, stat } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { accountName, messageId, sessionKey, turnId } from '../../src/kernel/message/ids.ts';
import { openSpans } from '../../src/kernel/observe/build-telemetry.ts';
import { createPrometheus, openMetricsFile } from '../../src/kernel/observe/metrics.ts';
import type { ModelCallRecord, TelemetryRecord } from '../../src/kernel/observe/telemetry.ts';
import { createAfterwork } from '../../src/lib/async.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { systemClock } from '../../src/lib/time/clock.ts';
import { portOf } from '../support/listening.ts';
import { createMovableClock } from '../support/movable-clock.ts';
import { REDIRECTS, startElsewhere, startRedirector } from '../support/redirector.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const SILENT = { clock: systemClock, log: silentLogger };
const AT = Date.UTC(2026, 0, 15, 12);
const TURN = { session: sessionKey('telegram:42'), turnId: turnId('telegram:42#7') };
const CALL: ModelCallRecord = {
  ...{ kind: 'model_call', at: AT, durationMs: 1500, role: 'turn', ...TURN },
  ...{ model: 'anthropic/sim', status: 'ok', estimated: { input: 90, output: 9 } },
  base: 'https://models.test/v1',
  answer: { requested: 3, executed: 2, isDoubted: false },
  usage: { inputTokens: 100, outputTokens: 10, cachedTokens: 60, writtenTokens: 20 },
};
const ACCOUNT = accountName({ channel: 'telegram', account: 'default' } as never);
const RECORDS: readonly TelemetryRecord[] = [
  {
    kind: 'arrival',
    at: AT,
    durationMs: 0,
    account: ACCOUNT,
    messageId: messageId('telegram:1'),
    status: 'queued',
  },
  CALL,
  {
    ...CALL,
    role: 'compaction',
    status: 'rate_limited',
    httpStatus: 429,
    estimated: { input: 90, output: 0 },
  },
  { kind: 'tool_call', at: AT, durationMs: 20, ...TURN, tool: 'read_file', status: 'ok' },
  {
    kind: 'turn',
    at: AT,
    durationMs: 2000,
    ...TURN,
    account: ACCOUNT,
    waitedMs: 7,
    outcome: 'answered',
  },
  {
    kind: 'delivery',
    at: AT,
    durationMs: 90,
    account: ACCOUNT,
    messageId: messageId('telegram:42#7/0'),
    status: 'sent',
  },
];

describe('metrics.jsonl', () => {
  it('has a line for each model call, with its true status and the id of its turn', async () => {
    const path = join(await temporaryFolder(), 'metrics.jsonl');
    using afterwork = createAfterwork(createMovableClock());
    const file = openMetricsFile({ path, log: silentLogger, ...afterwork });
    for (const record of RECORDS) file.record(record);
    afterwork.finish();
    const lines = (await readFile(path, 'utf8'))
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(lines).toEqual([
      {
        ...{ timestamp: '2026-01-15T12:00:00.000Z', request_id: 'telegram:42#7', role: 'turn' },
        ...{ session: 'telegram:42', model: 'anthropic/sim', elapsed_ms: 1500, status: 'ok' },
        ...{ prompt_tokens: 100, cached_tokens: 60, written_tokens: 20, completion_tokens: 10 },
        ...{ tool_calls_requested: 3, tool_calls_executed: 2, validation_result: 'ok' },
        provider_base: 'https://models.test/v1',
      },
      expect.objectContaining({ role: 'compaction', status: 'rate_limited', http_status: 429 }),
    ]);
    expect((await stat(path)).mode & 0o777).toBe(0o600);
  });

  it('starts anew at its limit, and keeps one older file', async () => {
    const path = join(await temporaryFolder(), 'metrics.jsonl');
    using afterwork = createAfterwork(createMovableClock());
    for (let round = 0; round < 30; round += 1) {
      const file = openMetricsFile({ path, log: silentLogger, maxBytes: 1000, ...afterwork });
      file.record(CALL);
      afterwork.finish();
    }
    expect((await stat(path)).size).toBeLessThanOrEqual(1000);
    expect((await stat(`${path}.1`)).size).toBeLessThanOrEqual(1000);
  });
});

describe('the page for Prometheus', () => {
  it('counts what happened and names nobody', async () => {
    const page = createPrometheus();
    for (const record of RECORDS) page.record(record);
    page.record({ ...CALL, model: 'ollama/sim', waitedMs: 4000 });
    const vote = { at: 0, durationMs: 0, outcome: 'undecided', votes: 4, flagged: 1 } as const;
    page.record({ kind: 'vote', ...vote });
    for (let n = 0; n < 300; n += 1) page.record({ ...CALL, model: `made-up-${n}` });
    const text = await page.render([
      { name: 'channel_up', help: 'Runs.', values: [[{ account: 'telegram' }, 1]] },
      { name: 'queue_oldest_seconds', help: 'Waited.', values: [[{}, 3]] },
    ]);
    expect(text).toMatch(/nanobot_model_call_seconds_bucket\{[^}]*role="turn"[^}]*le="1"\} 0\n/);
    expect(text).toMatch(/nanobot_model_call_seconds_bucket\{[^}]*role="turn"[^}]*le="2.5"\} 1\n/);
    expect(text).toContain('nanobot_messages_received_total{account="telegram",status="queued"} 1');
    expect(text).toContain('nanobot_model_tokens_total{model="anthropic/sim",kind="cached"} 120');
    expect(text).toContain('nanobot_model_wait_seconds_count{model="ollama/sim",role="turn"} 1');
    expect(text).toContain('nanobot_turn_seconds_count{account="telegram",outcome="answered"} 1');
    expect(text).toContain(
      '# TYPE nanobot_queue_oldest_seconds gauge\nnanobot_queue_oldest_seconds 3\n',
    );
    expect(text).toContain('nanobot_votes_total{outcome="undecided"} 1');
    expect(text).toContain('nanobot_vote_answers_total{kind="flagged"} 1');
    expect(text).toContain('nanobot_channel_up{account="telegram"} 1');
    expect(text).toContain('process_resident_memory_bytes');
    expect(text).not.toContain('made-up-250');
    expect(text).not.toContain('telegram:42');
  });
});

describe('spans', () => {
  it('stand in one trace for each turn, under its root', async () => {
    const bodies: string[] = [];
    const server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk) => chunks.push(chunk));
      request.on('end', () => {
        bodies.push(Buffer.concat(chunks).toString('utf8'));
        response.end('{}');
      });
    }).listen(0, '127.0.0.1');
    onTestFinished(() => void server.close());
    await new Promise((resolve) => server.once('listening', resolve));
    const address = server.address();
    const port = typeof address === 'object' ? address?.port : 0;
    const endpoint = `http://127.0.0.1:${port}/v1/traces`;
    const spans = await openSpans({ endpoint, headers: {}, serviceName: 'nanobot' }, SILENT);
    for (const record of RECORDS) spans.record(record);
    await spans[Symbol.asyncDispose]();
    const sent = bodies
      .flatMap((body) => JSON.parse(body).resourceSpans)
      .flatMap((one) => one.scopeSpans)
      .flatMap((one) => one.spans);
    const named = (name: string) => sent.find((span) => span.name === name);
    const root = named('turn');
    expect(root.parentSpanId ?? '').toBe('');
    for (const name of ['chat anthropic/sim', 'execute_tool read_file', 'deliver telegram']) {
      expect(named(name)).toMatchObject({ traceId: root.traceId, parentSpanId: root.spanId });
    }
    expect(sent.filter((span) => span.status?.code === 2)).toHaveLength(1);
    expect(Number(BigInt(root.endTimeUnixNano) - BigInt(root.startTimeUnixNano))).toBe(2e9);
  });

  it('that a collector refuses are told of in the log, once for each kind of failure', async () => {
    const server = createServer((_request, response) => response.writeHead(403).end('no'));
    const port = await portOf(server);
    onTestFinished(() => void server.close());
    const endpoint = `http://127.0.0.1:${port}/v1/traces`;
    const told: unknown[] = [];
    const warn = (message: string, fields?: object) => void told.push({ message, ...fields });
    const deps = { clock: systemClock, log: { ...silentLogger, warn } };
    const spans = await openSpans({ endpoint, headers: {}, serviceName: 'nanobot' }, deps);
    for (let count = 0; count < 1100; count += 1) spans.record(CALL);
    await spans[Symbol.asyncDispose]();
    expect(told).toEqual([
      { message: 'spans refused by the collector', failure: '403', spans: expect.any(Number) },
    ]);
  });

  it('go to no other host where the collector redirects', async () => {
    await using elsewhere = await startElsewhere();
    await using redirector = await startRedirector(`http://${elsewhere.host}`);
    for (const [before, status] of REDIRECTS.entries()) {
      redirector.status = status;
      const endpoint = `${redirector.url}/v1/traces`;
      const spans = await openSpans({ endpoint, headers: {}, serviceName: 'nanobot' }, SILENT);
      for (const record of RECORDS) spans.record(record);
      await spans[Symbol.asyncDispose]();
      expect(redirector.requests).toBe(before + 1);
    }
    expect(elsewhere.connections).toBe(0);
  });

  it('that no collector takes hold nothing up', async () => {
    const endpoint = 'http://127.0.0.1:9/v1/traces';
    const spans = await openSpans({ endpoint, headers: {}, serviceName: 'nanobot' }, SILENT);
    for (const record of RECORDS) spans.record(record);
    await spans[Symbol.asyncDispose]();
  });
});
