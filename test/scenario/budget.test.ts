// Budgets through the whole program: many chats at once, a budget running out, a process that dies in
// the middle of a call.

import { afterEach, describe, expect, it } from 'vitest';
import { usageReport } from '../../src/features/spending/rules/usage.ts';
import type { ConfigInput } from '../../src/kernel/config/config.ts';
import { awayFromMidnight } from '../support/away-from-midnight.ts';
import { echo, type LlmRequest } from '../support/llm-server.ts';
import { startTelegramWorld, type TelegramWorld } from '../support/telegram-world.ts';

const OWNER = 700;
const FIRST_CHAT = 10_000;
/** More tokens than the worst case of one call. */
const UNIT = 12_500;
const WAIT_MS = 45_000;
const REFUSED = /(?:is used up|too little for an answer) .*I can answer again after midnight/;

let world: TelegramWorld;

/** What a tokenizer makes of English and JSON, and an answer as long as it may be. */
const usageOf = ({ body }: LlmRequest) => ({
  input: Math.ceil(JSON.stringify(body).length / 5),
  output: 500,
});
const answer = (request: LlmRequest) => ({ ...echo(request), usage: usageOf(request) });
const tokensOf = (requests: readonly LlmRequest[]) =>
  requests.map(usageOf).reduce((sum, { input, output }) => sum + input + output, 0);

async function start(limits: ConfigInput['limits'], models: ConfigInput['models'] = {}) {
  await awayFromMidnight();
  world = await startTelegramWorld({
    respond: answer,
    config: {
      agents: { defaults: { model: 'openai/sim-1', maxTokens: 500 } },
      limits,
      models,
    },
    channel: { allowFrom: ['*'] },
    pair: { [OWNER]: 'owner' },
  });
  world.telegram.say(OWNER, '/whoami');
  await hears(OWNER, /Role: owner/);
  return world;
}

const heardBy = (chat: number) => world.texts(chat);
const hears = (chat: number, pattern: RegExp) =>
  world.telegram.waitFor(() => heardBy(chat).find((text) => pattern.test(text)), WAIT_MS);

afterEach(() => world[Symbol.asyncDispose]());

it('a hundred chats at once stay below the budget of all; who comes too late is told when', async () => {
  const cap = 100_000;
  const { telegram, model } = await start({ budget: { totalTokensPerDay: cap } });
  const chats = Array.from({ length: 100 }, (_, index) => FIRST_CHAT + index);
  for (const chat of chats) telegram.say(chat, `please say nonce-${chat}`);
  await telegram.waitFor(
    () =>
      chats.every((chat) =>
        heardBy(chat).some((text) => /^nonce-/.test(text) || REFUSED.test(text)),
      ),
    60_000,
  );
  const spent = tokensOf(model.requests);
  expect(spent).toBeLessThanOrEqual(cap);
  expect(spent).toBeGreaterThan(cap * 0.9);
  const answered = chats.filter((chat) => heardBy(chat).includes(`nonce-${chat}`));
  expect(answered).toHaveLength(model.requests.length);
  const refused = chats.filter((chat) => heardBy(chat).some((text) => REFUSED.test(text)));
  expect(answered.length + refused.length).toBe(100);
  expect(heardBy(refused[0] ?? 0).join()).toMatch(/100,000 tokens a day.*after midnight, in \d+/);
  await hears(OWNER, /budget of all together is (?:used up|too little)/i);
  expect(
    heardBy(OWNER).filter((text) => /is used up|too little for/.test(text)).length,
  ).toBeLessThanOrEqual(2);
});

describe('the budget of a person', () => {
  it('is told at 80 %, saved with the cheaper model at 95 %, refused at 100 %, raised by an owner', async () => {
    const { telegram, model } = await start({ budget: { perPersonTokensPerDay: 20 * UNIT } });
    const takes = (tokens: number) =>
      model.script((request) => ({ ...echo(request), usage: { input: tokens, output: 10 } }));
    takes(15 * UNIT);
    telegram.say(FIRST_CHAT, 'please say nonce-a');
    await hears(FIRST_CHAT, /^nonce-a$/);
    expect(heardBy(FIRST_CHAT)).toHaveLength(1);
    takes(1.5 * UNIT);
    telegram.say(FIRST_CHAT, 'please say nonce-b');
    await hears(FIRST_CHAT, /82 % of today/);
    telegram.say(OWNER, '/budget more 1');
    await hears(OWNER, /^1 % more for today: person telegram:10000\.$/);
    takes(2.8 * UNIT);
    telegram.say(FIRST_CHAT, 'please say nonce-c');
    await hears(FIRST_CHAT, /nonce-c/);
    expect(model.requests.map((request) => request.model)).toEqual(['sim-1', 'sim-1', 'sim-1']);
    takes(0.8 * UNIT);
    telegram.say(FIRST_CHAT, 'please say nonce-d');
    await hears(FIRST_CHAT, /nonce-d/);
    await hears(FIRST_CHAT, /I answer with openai\/gpt/);
    expect(model.requests.at(-1)?.model).not.toBe('sim-1');
    const asked = model.requests.length;
    telegram.say(FIRST_CHAT, 'please say nonce-e');
    await hears(FIRST_CHAT, REFUSED);
    telegram.say(FIRST_CHAT, 'please say nonce-f');
    await telegram.waitFor(
      () => heardBy(FIRST_CHAT).filter((text) => REFUSED.test(text)).length === 2,
    );
    expect(model.requests).toHaveLength(asked);
    await hears(OWNER, /budget of person telegram:10000 is (?:used up|too little)/);

    telegram.press(OWNER, OWNER, 'Allow 25 % more today');
    await hears(OWNER, /25 % more for today: person telegram:10000/);
    telegram.say(FIRST_CHAT, '/budget more 1000');
    await hears(FIRST_CHAT, /Only my owner/);
    telegram.say(OWNER, '/budget');
    await hears(OWNER, /of 315,000 tokens a day \(26 % more today\)/);
    telegram.say(FIRST_CHAT, 'please say nonce-g');
    await hears(FIRST_CHAT, /nonce-g/);
    telegram.say(FIRST_CHAT, '/usage');
    expect(
      await hears(FIRST_CHAT, /\S+ \(person telegram:10000\): [\d,]+ tokens in 5 calls/),
    ).not.toContain('total');
    telegram.say(OWNER, '/usage');
    await hears(OWNER, /total: [\d,]+ tokens/);
  });
});

it('a call that was stopped counts by model as much as by day', async () => {
  const { telegram, model, gateway } = await start({});
  model.script({ chunks: ['it begins ', new Promise(() => undefined)] });
  telegram.say(FIRST_CHAT, 'please say nonce-stopped');
  await model.received(1);
  telegram.say(FIRST_CHAT, '/stop');
  await hears(FIRST_CHAT, /Stopped/);
  telegram.say(FIRST_CHAT, 'please say nonce-next');
  await hears(FIRST_CHAT, /nonce-next/);
  const usage = await fetch(`${gateway.address}/api/v1/usage`, { headers: gateway.credentials });
  const { days, calls } = usageReport.parse(await usage.json());
  expect(days.at(-1)).toMatchObject({ calls: 2, tokens: calls?.models[0]?.tokens });
});

it('a call that was cut off by kill -9 counts at its worst, also in money', async () => {
  const prices = [{ model: 'openai/sim-1', input: 1, output: 10, cached: 1 }];
  const { telegram, model } = await start({ budget: { totalMoneyPerDay: 10 } }, { prices });
  model.script({ chunks: ['it begins ', new Promise(() => undefined)] });
  telegram.say(FIRST_CHAT, 'please say nonce-lost');
  await model.received(1);
  await world.gateway.kill();
  const lost = JSON.parse(await world.nanobot('usage', '--json'))[0].rows.find(
    ({ key }: { key: string }) => key === 'total',
  );
  expect(lost.ledger.spent.tokens).toBeGreaterThan(500);
  expect(lost.ledger.spent.micros).toBeGreaterThan(5000);
  await world.start();
  await hears(FIRST_CHAT, /nonce-lost/);
  await world.gateway.stop();
  const out = await world.nanobot('usage');
  expect(out).toMatch(
    /total: [\d,]+ tokens, about 0\.\d+ USD in 1 call — \d+ % of 10\.00 USD a day/,
  );
  const after = JSON.parse(await world.nanobot('usage', '--json', '--days', '3'))[0].rows.find(
    ({ key }: { key: string }) => key === 'total',
  );
  expect(after.ledger.spent.tokens).toBe(
    lost.ledger.spent.tokens + tokensOf(model.requests.slice(1)),
  );
});
