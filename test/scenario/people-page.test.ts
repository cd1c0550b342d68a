// The web page's decisions about people, over the HTTP API of the whole program: what a stranger on
// Telegram gets of it.

import { expect, it } from 'vitest';
import { echo } from '../support/llm-server.ts';
import { startTelegramWorld } from '../support/telegram-world.ts';

const EVE = 701;

it('a stranger who is let in on the page is answered, and known from then on', async () => {
  await using world = await startTelegramWorld({ respond: echo });
  const { telegram, model, gateway } = world;
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
