// Somebody floods the gateway: the whole program between a simulated Telegram and a simulated model.

import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type BotApi, startBotApi } from '../support/bot-api.ts';
import { type GatewayProcess, makeTestHome, type TestHome } from '../support/gateway-process.ts';
import { echo, type LlmServer, startLlmServer } from '../support/llm-server.ts';

const ROOT = join(import.meta.dirname, '../..');
const FLOODER = 700;
const OTHER = 701;
const LIMIT = 20;

let telegram: BotApi;
let model: LlmServer;
let home: TestHome;
let gateway: GatewayProcess;

beforeEach(async () => {
  telegram = await startBotApi();
  model = await startLlmServer({ respond: echo });
  home = await makeTestHome({
    agents: { defaults: { model: 'openai/sim-1' } },
    providers: { openai: { apiKey: 'flood-test-key', apiBase: model.openaiBase } },
    channels: {
      telegram: {
        enabled: true,
        token: telegram.token,
        apiRoot: telegram.apiRoot,
        allowFrom: [`${FLOODER}`, `${OTHER}`],
      },
    },
    gateway: { port: 0 },
    coalesce: { quietMs: 0 },
  });
  gateway = await home.start();
}, 30_000);

afterEach(async () => {
  await home[Symbol.asyncDispose]();
  expect(telegram.violations).toEqual([]);
  await telegram[Symbol.asyncDispose]();
  await model[Symbol.asyncDispose]();
});

const heardBy = (chat: number) =>
  telegram.chat(chat).messages.flatMap(({ from, text }) => (from === 'bot' ? [text] : []));
const notices = () => heardBy(FLOODER).filter((text) => text.includes('messages a minute'));
const taken = () => telegram.waitFor(() => telegram.unconfirmed.length === 0, 20_000);
const answered = () =>
  new Set(heardBy(FLOODER).flatMap((text) => text.match(/nonce-\d+/g) ?? [])).size;
/** Each as its own message, answered by its own turn. */
async function flood(from: number, count: number) {
  for (let index = from; index < from + count; index += 1) {
    telegram.say(FLOODER, `please say nonce-${index}`);
  }
  await taken();
}

it('a flood of 100 costs what 20 messages cost, is told once, and outlasts a killed gateway', async () => {
  await flood(0, 15);
  await telegram.waitFor(() => answered() === 15, 20_000);
  await gateway.kill();
  gateway = await home.start();
  await flood(15, 85);
  await telegram.waitFor(() => answered() === LIMIT, 20_000);
  telegram.say(OTHER, 'please say nonce-other');
  await telegram.waitFor(() => heardBy(OTHER).includes('nonce-other'));
  expect(answered()).toBe(LIMIT);
  expect(notices()).toHaveLength(1);
  expect(JSON.stringify(model.requests.at(-1)?.body)).not.toContain('nonce-99');
  const asked = model.requests.map(({ lastUserText }) => lastUserText).join('\n');
  expect(new Set(asked.match(/nonce-\d+/g)).size).toBe(LIMIT);
  expect(model.requests.length).toBeLessThanOrEqual(LIMIT + 1);

  const before = model.requests.length;
  telegram.say(FLOODER, '/status');
  await telegram.waitFor(() => heardBy(FLOODER).find((text) => text.includes('Conversation:')));
  telegram.say(FLOODER, 'one more nonce-late');
  await taken();
  const env = { PATH: process.env['PATH'] ?? '', HOME: home.path, NANOBOT_HOME: home.path };
  const trace = spawnSync(process.execPath, ['bin/nanobot.js', 'trace', 'last'], {
    ...{ cwd: ROOT, env, encoding: 'utf8' },
  });
  expect(trace.stdout).toContain('too many messages of one person in a minute');
  expect(model.requests).toHaveLength(before);
}, 90_000);
