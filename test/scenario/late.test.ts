// What comes late, between a simulated platform and the whole program: answers name their question, and
// messages that piled up are answered together, with their times.

import { afterAll, beforeAll, expect, it } from 'vitest';
import { type BotApi, startBotApi } from '../support/bot-api.ts';
import { type GatewayProcess, makeTestHome, type TestHome } from '../support/gateway-process.ts';
import { echo, type LlmServer, startLlmServer } from '../support/llm-server.ts';

const ANNA = { id: 701, first_name: 'Anna' };
const HOUR_S = 3600;

let telegram: BotApi;
let model: LlmServer;
let home: TestHome;
let gateway: GatewayProcess;

const heard = () => telegram.chat(ANNA.id).messages.filter(({ from }) => from === 'bot');
const hears = (pattern: RegExp) =>
  telegram.waitFor(() => heard().find(({ text }) => pattern.test(text)), 20_000);

beforeAll(async () => {
  telegram = await startBotApi();
  model = await startLlmServer({ respond: echo });
  home = await makeTestHome({
    agents: { defaults: { model: 'openai/sim-1' } },
    providers: { openai: { apiKey: 'sk-late', apiBase: model.openaiBase } },
    channels: {
      telegram: {
        enabled: true,
        token: telegram.token,
        apiRoot: telegram.apiRoot,
        allowFrom: [`${ANNA.id}`],
      },
    },
    gateway: { port: 0 },
    coalesce: { quietMs: 200 },
    sessions: { timeZone: 'UTC' },
  });
  gateway = await home.start();
}, 60_000);

afterAll(async () => {
  await gateway.kill();
  await home[Symbol.asyncDispose]();
  await telegram[Symbol.asyncDispose]();
  await model[Symbol.asyncDispose]();
});

it('an answer in time says nothing of its time', async () => {
  telegram.say(ANNA, 'please say nonce-now');
  expect((await hears(/nonce-now/)).text).toBe('nonce-now');
  expect(JSON.stringify(model.requests.at(-1))).not.toContain('[sent ');
});

it('messages that piled up while it was down are one question with their times', async () => {
  await gateway.kill();
  const asked = model.requests.length;
  const date = Math.floor(Date.now() / 1000) - HOUR_S;
  for (const word of ['one', 'two', 'three']) {
    telegram.say(ANNA, `please say nonce-${word}`, { date });
  }
  gateway = await home.start();
  const answer = await hears(/nonce-one[\s\S]*nonce-three/);
  expect(answer.text).toMatch(/^You asked (at|on) .*:\n/);
  expect(model.requests).toHaveLength(asked + 1);
  const shown = model.requests.at(-1)?.lastUserText ?? '';
  expect(shown.match(/\[sent (at|on) [^\]]*\]/g)).toHaveLength(3);
}, 60_000);
