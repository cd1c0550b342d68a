// Somebody floods the gateway: the whole program between a simulated Telegram and a simulated model.

import { afterAll, expect, it } from 'vitest';
import { echo } from '../support/llm-server.ts';
import { startTelegramWorld } from '../support/telegram-world.ts';

const FLOODER = 700;
const OTHER = 701;
const LIMIT = 20;

const world = await startTelegramWorld({
  respond: echo,
  channel: { allowFrom: [`${FLOODER}`, `${OTHER}`] },
});
const { telegram, model, texts: heardBy } = world;
afterAll(() => world[Symbol.asyncDispose]());

const notices = () => heardBy(FLOODER).filter((text) => text.includes('messages a minute'));
const taken = () => telegram.waitFor(() => telegram.unconfirmed.length === 0);
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
  await telegram.waitFor(() => answered() === 15);
  await world.restart();
  await flood(15, 85);
  await telegram.waitFor(() => answered() === LIMIT);
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
  expect(await world.nanobot('trace', 'last')).toContain(
    'too many messages of one person in a minute',
  );
  expect(model.requests).toHaveLength(before);
});
