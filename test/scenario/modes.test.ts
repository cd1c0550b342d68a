// Several models share the work of a turn: a router, a specialist, a runner of results and the main model,
// each on a server of its own, through the whole program and a real chat.

import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type BotApi, startBotApi } from '../support/bot-api.ts';
import { COMPILE_CACHE } from '../support/compile-cache.ts';
import { makeTestHome, type TestHome } from '../support/gateway-process.ts';
import {
  callTools,
  fail,
  type LlmReply,
  type LlmRequest,
  type LlmServer,
  say,
  startLlmServer,
} from '../support/llm-server.ts';

const OWNER = 900;
const SECRET = 'router-key-5f1c77';
const LONG = Array.from({ length: 200 }, (_, row) => `row ${row}: https://a.example/${row}`).join(
  '\n',
);

let telegram: BotApi;
let home: TestHome;
let main: LlmServer;
let router: LlmServer;
let specialist: LlmServer;
let runner: LlmServer;
let isRouterDown = false;

const decision = (action: string, target = '', args = {}): LlmReply =>
  callTools({ name: 'route_decision', arguments: { action, target, args, confidence: 0.9 } });

/** Decides by the words of the person, once; then the main model is to answer. */
function route({ lastUserText }: LlmRequest): LlmReply {
  if (isRouterDown) return fail(503);
  const text = lastUserText.slice(lastUserText.indexOf('The person says now:'));
  if (text.includes('Done in this turn:')) return decision('respond');
  if (text.includes('note')) return decision('tool', 'read_file', { path: 'note.md' });
  if (text.includes('sum')) return decision('specialist', 'sums', { task: `Add: ${SECRET}` });
  if (text.includes('start a helper')) return decision('subagent', '', { task: 'HELP quietly' });
  if (text.includes('which')) return decision('ask_user', '', { question: 'Red or blue?' });
  return decision('respond');
}

function answer({ lastUserText: text, toolResults, tools }: LlmRequest): LlmReply {
  if (text.includes('HELP quietly')) return say('HELPED');
  if (text.includes('delegate') && toolResults.length === 0) {
    return callTools({ name: 'read_file', arguments: { path: 'long.txt' } });
  }
  const seen = toolResults.map((result) => result.text.slice(0, 400)).join(' ');
  return say(`main(${tools.includes('list_dir') ? 'tools' : 'writes'}): ${seen || text}`);
}

const texts = () =>
  telegram.chat(OWNER).messages.flatMap(({ from, text }) => (from === 'bot' ? [text] : []));

async function says(words: string, like: RegExp): Promise<string> {
  const before = texts().length;
  telegram.say(OWNER, words);
  const found = () =>
    texts()
      .slice(before)
      .find((text) => like.test(text));
  return telegram.waitFor(found, 20_000);
}

const server = (base: LlmServer, apiKey: string) => ({ apiKey, apiBase: base.openaiBase });

async function approveOwner(): Promise<void> {
  const env = { PATH: process.env['PATH'] ?? '', HOME: home.path, NANOBOT_HOME: home.path };
  const args = ['src/main.ts', 'pair', 'approve', 'telegram', `${OWNER}`, '--role', 'owner'];
  const run = promisify(execFile)(process.execPath, args, {
    cwd: join(import.meta.dirname, '../..'),
    env: { ...COMPILE_CACHE, ...env },
  });
  run.child.stdin?.end();
  await run;
}

beforeAll(async () => {
  telegram = await startBotApi();
  main = await startLlmServer({ respond: answer });
  router = await startLlmServer({ respond: route });
  specialist = await startLlmServer({ respond: () => say('The sum is 42.') });
  runner = await startLlmServer({ respond: () => say('200 rows, each with an address.') });
  const { token, apiRoot } = telegram;
  home = await makeTestHome({
    agents: {
      defaults: { model: 'openai/sim-main' },
      mode: 'trio',
      trio: {
        router: { model: 'deepseek/sim-router' },
        specialist: { model: 'groq/sim-specialist' },
        trace: true,
      },
      delegation: { model: 'openrouter/sim-runner' },
      circuit: { probeSecs: 1 },
    },
    providers: {
      openai: server(main, 'main-key'),
      deepseek: server(router, SECRET),
      groq: server(specialist, 'specialist-key'),
      openrouter: server(runner, 'runner-key'),
    },
    channels: {
      telegram: { enabled: true, token, apiRoot, streaming: false },
    },
    gateway: { port: 0 },
    coalesce: { quietMs: 0 },
  });
  await home.start();
  await approveOwner();
  await writeFile(join(home.path, 'workspace/note.md'), 'NOTE-7');
  await writeFile(join(home.path, 'workspace/long.txt'), LONG);
});

afterAll(async () => {
  await home[Symbol.asyncDispose]();
  await telegram[Symbol.asyncDispose]();
  for (const each of [main, router, specialist, runner]) await each[Symbol.asyncDispose]();
});

it('shares turns of a chat among the models, and says what it does', async () => {
  expect(await says('/mode', /The mode is/)).toMatch(/trio[\s\S]*router deepseek\/sim-router/);
  expect(await says('sum it up', /main/)).toBe('main(writes): The sum is 42.');
  expect(await says('what is in my note?', /main/)).toBe('main(writes): NOTE-7');
  expect(await says('start a helper', /main/)).toMatch(/^main\(writes\): /);
  await says('which colour?', /Red or blue\?/);

  const [first] = router.requests;
  expect(first?.tools).toEqual(['route_decision']);
  expect(first?.system).toContain('- read_file');
  expect(JSON.stringify(specialist.requests[0]?.body)).toContain('Add: ');
  expect(main.requests[0]?.tools).toEqual(['called_by_another_model']);
  await telegram.waitFor(() => texts().find((text) => text.includes('HELPED')), 20_000);
}, 30_000);

it('goes on with the main model and its tools while the router is down, and tells so', async () => {
  isRouterDown = true;
  for (const turn of [1, 2, 3]) await says(`hello ${turn}`, /^main\(tools\)/);
  await telegram.waitFor(
    () => texts().find((text) => /router deepseek\/sim-router does not answer since/.test(text)),
    20_000,
  );
  expect(await says('/status', /Mode: trio/)).toMatch(/sim-router does not answer since .* UTC/);
  isRouterDown = false;
  await telegram.waitFor(
    () => texts().find((text) => /sim-router answers again/.test(text)),
    20_000,
  );
  expect(await says('and my note?', /^main/)).toBe('main(writes): NOTE-7');
}, 30_000);

it('digests long results for the main model, by choice of the conversation', async () => {
  expect(await says('/mode delegated', /From the next message on/)).toMatch(
    /sim-runner was not asked yet/,
  );
  const told = await says('delegate: what is in the long file?', /^main/);
  expect(told).toMatch(/^main\(tools\): \[digest by another model of result r\d+\.1 of read_file/);
  expect(told).toContain('200 rows, each with an address.');
  expect(JSON.stringify(runner.requests[0]?.body)).toContain('row 199');
  expect(await says('/mode supervisor', /cannot work yet/)).toContain('inline');
  expect(await says('hello', /^main/)).toMatch(/^main\(tools\)/);
  expect(await says('/mode none', /There are these modes/)).toContain('trio');
  expect(await says('/mode default', /Again as configured/)).toContain('trio');
}, 30_000);

it('counts every call by its role, and traces without secrets', async () => {
  const metrics = await readFile(join(home.path, 'metrics.jsonl'), 'utf8');
  for (const role of ['router', 'specialist', 'tool_runner', 'probe', 'turn']) {
    expect(metrics).toContain(`"role":"${role}"`);
  }
  const day = new Date().toISOString().slice(0, 10);
  const traces = await readFile(join(home.path, 'traces', `${day}.jsonl`), 'utf8');
  const lines = traces
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(lines).toContainEqual(
    expect.objectContaining({ kind: 'route', by: 'call', model: 'deepseek/sim-router' }),
  );
  expect(lines).toContainEqual(
    expect.objectContaining({ kind: 'specialist', outcome: 'The sum is 42.' }),
  );
  expect(traces + (await home.logs())).not.toContain(SECRET);
});
