// The web page's decisions about people, over the HTTP API of the whole program: what a stranger on
// Telegram gets of it.

import { expect, it } from 'vitest';
import { startBotApi } from '../support/bot-api.ts';
import { makeTestHome } from '../support/gateway-process.ts';
import { echo, startLlmServer } from '../support/llm-server.ts';

const EVE = 701;

it('a stranger who is let in on the page is answered, and known from then on', async () => {
  await using telegram = await startBotApi();
  await using model = await startLlmServer({ respond: echo });
  await using home = await makeTestHome({
    agents: { defaults: { model: 'openai/sim-1' } },
    providers: { openai: { apiKey: 'sk-scenario-secret-key', apiBase: model.openaiBase } },
    channels: { telegram: { enabled: true, token: telegram.token, apiRoot: telegram.apiRoot } },
    gateway: { port: 0 },
    coalesce: { quietMs: 50 },
  });
  await using gateway = await home.start();
  const headers = { ...gateway.credentials, 'content-type': 'application/json' };
  const view = async () => (await fetch(`${gateway.address}/api/people`, { headers })).json();
  telegram.say(EVE, 'please say nonce-in');
  await expect
    .poll(async () => (await view()).strangers, { timeout: 45_000 })
    .toMatchObject([{ channel: 'telegram', userId: '701', excerpt: 'please say nonce-in' }]);
  expect(model.requests).toEqual([]);

  const body = JSON.stringify({ channel: 'telegram', userId: '701', action: 'allow' });
  const path = `${gateway.address}/api/people/strangers`;
  const answer = await fetch(path, { method: 'POST', headers, body });
  expect([answer.status, (await answer.json()).result]).toEqual([
    200,
    'I answer them from now on (1 message).',
  ]);
  expect((await telegram.nextMessage(EVE)).text).toBe('nonce-in');
  telegram.say(EVE, 'please say nonce-again');
  expect((await telegram.nextMessage(EVE)).text).toBe('nonce-again');
  expect((await view()).strangers).toEqual([]);
  expect(JSON.stringify((await view()).persons)).toContain('"701"');
});
