// What comes late, between a simulated platform and the whole program: answers name their question, and
// messages that piled up are answered together, with their times.

import { afterAll, expect, it } from 'vitest';
import { echo } from '../support/llm-server.ts';
import { startTelegramWorld } from '../support/telegram-world.ts';

const ANNA = { id: 701, first_name: 'Anna' };
const HOUR_S = 3600;

const world = await startTelegramWorld({
  respond: echo,
  config: { coalesce: { quietMs: 200 }, sessions: { timeZone: 'UTC' } },
  channel: { allowFrom: [`${ANNA.id}`] },
});
const { telegram, model } = world;
afterAll(() => world[Symbol.asyncDispose]());

const hears = (pattern: RegExp) => world.hears(ANNA.id, pattern);

it('an answer in time says nothing of its time', async () => {
  telegram.say(ANNA, 'please say nonce-now');
  expect((await hears(/nonce-now/)).text).toBe('nonce-now');
  expect(JSON.stringify(model.requests.at(-1))).not.toContain('[sent ');
});

it('messages that piled up while it was down are one question with their times', async () => {
  await world.hasNo('outbound');
  await world.gateway.kill();
  const asked = model.requests.length;
  const date = Math.floor(Date.now() / 1000) - HOUR_S;
  for (const word of ['one', 'two', 'three']) {
    telegram.say(ANNA, `please say nonce-${word}`, { date });
  }
  await world.start();
  await hears(/^You asked (at|on) .*:\n[\s\S]*nonce-one[\s\S]*nonce-three/);
  expect(model.requests).toHaveLength(asked + 1);
  const shown = model.requests.at(-1)?.lastUserText ?? '';
  expect(shown.match(/\[sent (at|on) [^\]]*\]/g)).toHaveLength(3);
});
