// A whole gateway that measures itself: one turn is found by one id in the metrics, the page for
// Prometheus, the log, the spans and the audit file.

import { readdir, readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { boot } from '../../src/boot.ts';
import { checkAccounts } from '../../src/cli/doctor/checks.ts';
import { openHome } from '../../src/kernel/config/files/first-run.ts';
import { homeOf } from '../../src/kernel/config/files/home.ts';
import { withOpenState } from '../../src/kernel/home-state.ts';
import { verifyAudit } from '../../src/kernel/observe/audit.ts';
import { AUDIT_SCOPE } from '../../src/kernel/observe/build-telemetry.ts';
import { systemClock } from '../../src/lib/time/clock.ts';
import { portOf } from '../support/listening.ts';
import { callTools, fail, say, startLlmServer } from '../support/llm-server.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const TOKEN = 'the-token-of-this-test';
const SAID = 'the-words-of-the-person';

it('an answer of another model than the chosen one says so, and its receipt names that model', async () => {
  await using model = await startLlmServer();
  const { home, env, loaded } = await makeHome({
    agents: { defaults: { model: 'openai/sim-1', fallbackModels: ['openai/sim-2'] } },
    telemetry: { metricsFile: false },
    providers: { openai: { apiKey: 'a-key', apiBase: model.openaiBase } },
  });
  model.script(fail(404), say('Here I am.'));
  const options = { channels: [], http: false, foreground: () => undefined };
  const gateway = await boot(loaded, { home, env, ...options });
  const stopping = new AbortController();
  const running = gateway.run(stopping.signal);
  const { terminal } = gateway;
  const said: string[] = [];
  for (const text of ['hello', '/cost']) {
    await terminal.submit({ chat: 'list', clientId: `c${said.length}`, text });
    for await (const event of terminal.events('list', 0, stopping.signal)) {
      const isNew = event.type === 'said' && event.from === 'agent' && event.ended === undefined;
      if (!isNew || said.includes(event.text)) continue;
      said.push(event.text);
      break;
    }
  }
  stopping.abort();
  await running;
  await gateway[Symbol.asyncDispose]();
  expect(said[0]).toBe(
    'Here I am.\n\n[openai/sim-1 could not answer; openai/sim-2 answered instead.]',
  );
  expect(said[1]).toMatch(/^The last answer: openai\/sim-2, .*1 model call/);
  // Without metrics the time of the model is unknown.
  expect(said[1]).toMatch(
    /\nTime [\d.]+ s: waiting [\d.]+ s, answering [\d.]+ s, tools [\d.]+ s, delivery [\d.]+ s\.\n/,
  );
});

async function startCollector() {
  const bodies: string[] = [];
  const server = createServer(async (request, response) => {
    bodies.push(Buffer.concat(await request.toArray()).toString('utf8'));
    response.end('{}');
  });
  const port = await portOf(server);
  onTestFinished(() => void server.close());
  return { endpoint: `http://127.0.0.1:${port}/v1/traces`, sent: () => bodies.join('') };
}

async function makeHome(config: object) {
  const env = { NANOBOT_HOME: join(await temporaryFolder(), 'home') };
  const home = homeOf(env);
  await openHome(home, env);
  await writeFile(home.config, JSON.stringify({ version: 1, ...config }), { mode: 0o600 });
  return { home, env, loaded: (await openHome(home, env)).loaded };
}

const jsonLines = async (path: string) =>
  (await readFile(path, 'utf8'))
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));

it('one turn is found by one id wherever the gateway keeps account of it', async () => {
  await using model = await startLlmServer();
  const collector = await startCollector();
  const { home, env, loaded } = await makeHome({
    agents: { defaults: { model: 'openai/sim-1' } },
    providers: { openai: { apiKey: 'a-key', apiBase: model.openaiBase } },
    gateway: { port: 0, token: TOKEN },
    telemetry: { otel: { endpoint: collector.endpoint } },
  });
  model.script(
    fail(503),
    callTools(
      { name: 'write_file', arguments: { path: 'list.txt', content: 'milk' } },
      { name: 'read_file', arguments: { path: 'nothing.txt' } },
      { name: 'no_such_tool', arguments: {} },
    ),
    say('It is in list.txt.'),
  );
  const gateway = await boot(loaded, {
    ...{ home, env, channels: [], http: true, foreground: () => undefined },
  });
  const stopping = new AbortController();
  const running = gateway.run(stopping.signal);
  const { terminal } = gateway;
  let seen = 0;
  async function told(text: string) {
    await terminal.submit({ chat: 'list', clientId: `c${seen}`, text });
    for await (const event of terminal.events('list', seen, stopping.signal)) {
      if (event.type !== 'said') continue;
      seen = event.seq;
      if (event.from === 'agent' && event.ended === undefined) return event.text;
    }
    return '';
  }
  expect(await told(SAID)).toBe('It is in list.txt.');
  const why = await told('/why');
  expect(why).toContain('it was answered.');
  expect(why).toContain('the work was done');
  expect(why).toContain('terminal:list#');
  const cost = await told('/cost');
  expect(cost).toMatch(
    /^The last answer: openai\/sim-1, [\d,]+ tokens in \(\d+ cached\), [\d,]+ out.*, 2 model calls\.\nTime [\d.]+ s: waiting [\d.]+ s, preparing [\d.]+ s, model [\d.]+ s, tools [\d.]+ s, delivery [\d.]+ s\./,
  );
  expect(cost).toMatch(/This conversation.*: \d+ tokens in 2 model calls/);
  await told('/allow once telegram 4711');
  await told('/forget the secret diagnosis');
  expect(cost).toMatch(/Today:\n- .* tokens.* in 3 calls/);

  const page = (headers: Record<string, string>) =>
    fetch(`${gateway.address}/metrics`, { headers });
  expect((await page({})).status).toBe(401);
  const post = async (path: string, body: object) =>
    fetch(`${gateway.address}${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    }).then((answer) => answer.json());
  const { session } = await post('/api/login', { code: (await post('/api/links', {})).code });
  const refused = await page({ authorization: `Bearer ${session}` });
  expect([refused.status, await refused.text()]).toEqual([
    403,
    expect.stringContaining('gateway token'),
  ]);
  const scraped = await page({ authorization: `Bearer ${TOKEN}` });
  expect(scraped.headers.get('content-type')).toContain('text/plain');
  const text = await scraped.text();
  expect(text).toContain('nanobot_turn_seconds_count{account="terminal",outcome="answered"} 1');
  expect(text).toContain('nanobot_tool_call_seconds_count{tool="write_file",status="ok"} 1');
  expect(text).toContain('nanobot_queue_messages{state="pending"} 0');
  expect(text).toMatch(/nanobot_model_call_seconds_count\{[^}]*status="ok"\} 2/);
  expect(text).toMatch(/nanobot_messages_received_total\{account="terminal",status="queued"\} 2/);
  expect(text).toContain('process_cpu_seconds_total');
  expect(text).not.toContain(SAID);

  stopping.abort();
  await running;
  await gateway[Symbol.asyncDispose]();

  const calls = await jsonLines(home.metrics);
  expect(calls.map(({ status }) => status)).toEqual(['server', 'ok', 'ok']);
  const turn = calls[0].request_id;
  expect(turn).toMatch(/^terminal:list#\d+$/);
  expect(calls.every((call) => call.request_id === turn && call.role === 'turn')).toBe(true);
  expect(calls[0].http_status).toBe(503);
  expect(calls.every(({ provider_base: base }) => base === model.openaiBase)).toBe(true);
  expect(calls[1]).toMatchObject({ tool_calls_requested: 3, tool_calls_executed: 2 });
  expect(calls[2]).toMatchObject({ tool_calls_requested: 0, validation_result: 'ok' });

  const audit = await jsonLines(home.audit);
  expect(
    audit.map(({ kind, fields }) => fields.what ?? fields.command ?? `${kind} ${fields.tool}`),
  ).toEqual([
    ...['started', 'tool_call write_file', 'tool_call write_file'],
    ...['/allow once telegram 4711', '/forget', 'link made', 'page let in', 'stopped'],
  ]);
  const { call } = audit[1].fields;
  expect(audit[1].fields).toMatchObject({ turn, access: 'write', status: 'begun' });
  expect(audit[2].fields).toMatchObject({ turn, access: 'write', status: 'ok', call });
  expect(JSON.stringify(audit)).not.toContain(SAID);

  const [log = ''] = await readdir(home.logs);
  const logged = await readFile(join(home.logs, log), 'utf8');
  expect(logged).not.toContain(SAID);
  const ofTurn = logged.split('\n').filter((line) => line.includes(turn));
  for (const what of ['model call retried', 'model called', 'model call failed', 'turn ended']) {
    expect(ofTurn.some((line) => line.includes(`"${what}"`))).toBe(true);
  }
  expect(collector.sent()).toContain('"execute_tool write_file"');
  expect(collector.sent()).toContain('"deliver terminal"');
  expect(collector.sent()).toMatch(/"nanobot\.failure","value":\{"stringValue":"not_found"/);

  await withOpenState(home, systemClock, async (state) => {
    const kept = state.store.scope(AUDIT_SCOPE);
    expect(why).toContain(turn);
    expect(await verifyAudit(home.audit, kept)).toEqual({
      ...{ kind: 'intact', entries: 8, unfinished: [] },
    });
    const levels = async () =>
      (await checkAccounts(home, loaded.config, state)).map(({ level }) => level);
    expect(await levels()).toEqual(['ok']);
    const whole = await readFile(home.audit, 'utf8');
    await writeFile(home.audit, whole.replace('write_file', 'read_file'));
    expect(await levels()).toEqual(['fail']);
  });
});

it('what is switched off is not there', async () => {
  const { home, env, loaded } = await makeHome({
    gateway: { port: 0, token: TOKEN },
    telemetry: { metricsFile: false, prometheus: false, audit: false },
  });
  await using gateway = await boot(loaded, {
    ...{ home, env, channels: [], http: true, foreground: () => undefined },
  });
  const stopping = new AbortController();
  const running = gateway.run(stopping.signal);
  const headers = { authorization: `Bearer ${TOKEN}` };
  expect((await fetch(`${gateway.address}/metrics`, { headers })).status).toBe(404);
  stopping.abort();
  await running;
  expect((await readdir(home.root)).filter((name) => /audit|metrics/.test(name))).toEqual([]);
});
