// The web page's decisions about people, over the HTTP API of the whole program: what a stranger on
// Telegram gets of it.

import { expect, it } from 'vitest';
import { issueOwnerCode } from '../../src/features/people/owner-pairing.ts';
import { homeOf } from '../../src/kernel/config/files/home.ts';
import { systemClock } from '../../src/lib/time/clock.ts';
import { echo } from '../support/llm-server.ts';
import { startTelegramWorld } from '../support/telegram-world.ts';

const EVE = 701;

it('a stranger who is let in on the page is answered, and known from then on', async () => {
  await using world = await startTelegramWorld({ respond: echo });
  const { telegram, model, gateway } = world;
  const headers = { ...gateway.credentials, 'content-type': 'application/json' };
  const view = async () => (await fetch(`${gateway.address}/api/v1/people`, { headers })).json();
  telegram.say(EVE, 'please say nonce-in');
  await expect
    .poll(async () => (await view()).unknownSenders, { timeout: 45_000 })
    .toMatchObject([{ channel: 'telegram', userId: '701', excerpt: 'please say nonce-in' }]);
  expect(model.requests).toEqual([]);

  const body = JSON.stringify({ channel: 'telegram', userId: '701', action: 'allow' });
  const path = `${gateway.address}/api/v1/people/unknown-senders`;
  const answer = await fetch(path, { method: 'POST', headers, body });
  expect([answer.status, (await answer.json()).result]).toEqual([
    200,
    'I answer them from now on (1 message).',
  ]);
  expect((await telegram.nextMessage(EVE)).text).toBe('nonce-in');
  telegram.say(EVE, 'please say nonce-again');
  expect((await telegram.nextMessage(EVE)).text).toBe('nonce-again');
  expect((await view()).unknownSenders).toEqual([]);
  expect(JSON.stringify((await view()).persons)).toContain('"701"');
});

it('the owner of the page is one person with the account that is paired first, greeted with what can be done', async () => {
  await using world = await startTelegramWorld({ respond: echo });
  const { telegram, gateway } = world;
  const headers = { ...gateway.credentials, 'content-type': 'application/json' };
  const body = JSON.stringify({ clientId: 'c1', text: 'please say nonce-page' });
  await fetch(`${gateway.address}/api/web/chats/a/messages`, { method: 'POST', headers, body });
  const home = homeOf({ NANOBOT_HOME: world.home.path });
  const paired = { home, env: {}, clock: systemClock, channel: 'telegram' };
  const code = await issueOwnerCode(paired);
  telegram.say({ id: 700, first_name: 'Olga' }, `/start ${code}`);
  const { text } = await telegram.nextMessage(700);
  expect(text).toMatch(/^You are paired as my owner\.\s+Hello! .*documents.*remind.*\/help/s);
  telegram.say({ id: 700, first_name: 'Olga' }, '/help');
  expect((await telegram.nextMessage(700)).text.split('\n').length).toBeLessThan(12);
  const people = JSON.parse(await world.nanobot('people', 'list', '--json'));
  expect(people).toMatchObject([{ name: 'Olga' }]);
  expect(JSON.stringify(people)).toMatch(/web.*telegram|telegram.*web/);
  // A second owner does not take the page over.
  telegram.say({ id: 701, first_name: 'Otto' }, `/start ${await issueOwnerCode(paired)}`);
  await telegram.nextMessage(701);
  const both = JSON.parse(await world.nanobot('people', 'list', '--json'));
  expect(both).toMatchObject([{ name: 'Olga' }]);
  expect(JSON.stringify(both)).not.toContain('701');
});
