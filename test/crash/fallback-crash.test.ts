// The process dies while a person is asked whether a fallback model may answer: whatever the moment,
// the question stands once, its answer counts once, and the fallback model answers once.

import { afterAll, afterEach, expect, it } from 'vitest';
import { campaign } from '../support/campaign.ts';
import { fail, type LlmReply, type LlmRequest } from '../support/llm-server.ts';
import { startTelegramWorld } from '../support/telegram-world.ts';

const RANDOM_KILLS = campaign({ short: 2, full: 30 });
const LONGEST_WAIT_MS = 300;
const ASKED = /^openai\/sim-1 does not answer/;

/** Each person asks once. */
let person = 800;
let held: Promise<void> | undefined;

function respond({ model, body }: LlmRequest): LlmReply {
  if (model === 'sim-1') return fail(402);
  const nonce = /nonce-\d+/.exec(JSON.stringify(body))?.[0] ?? '';
  return { chunks: [...(held === undefined ? [] : [held]), `sim-2 answers ${nonce}`] };
}

const world = await startTelegramWorld({
  respond,
  config: {
    agents: {
      defaults: { model: 'openai/sim-1', fallbackModels: ['openai/sim-2'], fallback: 'ask' },
    },
  },
  channel: { allowFrom: ['*'] },
});
const { telegram, model, bot, hears } = world;

const questions = () => bot(person).filter(({ text }) => ASKED.test(text));
/** Without a copy that is marked: if the kill came before the first reached Telegram, only that is there. */
const answers = () =>
  bot(person).filter(
    ({ text }) => text.includes(`sim-2 answers nonce-${person}`) && !text.includes('sent again'),
  );

async function asks() {
  person += 1;
  held = undefined;
  telegram.say(person, `please say nonce-${person}`);
  await telegram.waitFor(() => questions().some(({ buttons = [] }) => buttons.length > 0));
  // Sent after it, so that its delivery is recorded: Telegram tells nobody what has arrived.
  await world.asks(person, '/status', /Model: /);
}

const says = (label: string) => telegram.press(person, person, label);
const kept = () => telegram.waitFor(() => telegram.unconfirmed.length === 0);

afterEach(async () => {
  held = undefined;
  await hears(person, /sim-2 answers nonce/);
  await telegram.waitFor(() => questions().every(({ buttons = [] }) => buttons.length === 0));
  // What was left over would come before the next answer.
  const before = bot(person).length;
  telegram.say(person, '/status');
  await hears(person, /Model: /, before);
  expect(questions()).toHaveLength(1);
  expect(answers().length).toBeLessThanOrEqual(1);
  expect(telegram.violations).toEqual([]);
});
afterAll(() => world[Symbol.asyncDispose]());

it('after the question', async () => {
  await asks();
  await world.restart();
  says('Yes, this time');
});

it('after the decision', async () => {
  await asks();
  says('Yes, for an hour');
  await kept();
  await world.restart();
});

it('during the answer', async () => {
  await asks();
  const { promise, resolve } = Promise.withResolvers<void>();
  held = promise;
  const seen = model.requests.length;
  says('Yes, this time');
  await model.received(seen + 1);
  await world.restart();
  resolve();
});

it(`at ${RANDOM_KILLS} random moments`, async () => {
  await asks();
  says('Yes, this time');
  for (let kills = 0; kills < RANDOM_KILLS; kills += 1) {
    await new Promise((resolve) => setTimeout(resolve, Math.random() * LONGEST_WAIT_MS));
    await world.restart();
  }
});
