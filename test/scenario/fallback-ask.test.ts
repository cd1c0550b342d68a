// `agents.defaults.fallback: ask`: another model answers only after a yes. The whole program, seen
// from Telegram, from the web page and from the models.

import { readFile } from 'node:fs/promises';
import { afterAll, afterEach, beforeEach, expect, it } from 'vitest';
import type { ConfigInput } from '../../src/kernel/config/config.ts';
import { followEvents, type ServerEvent } from '../http/http-rig.ts';
import { fail, type LlmReply, type LlmRequest } from '../support/llm-server.ts';
import { laterBy } from '../support/shifted-clock.ts';
import { startTelegramWorld } from '../support/telegram-world.ts';

const OWNER = { id: 700, first_name: 'Olga' };
const ANNA = { id: 701, first_name: 'Anna' };
const BEN = { id: 702, first_name: 'Ben' };
const GROUP = -1_001_000_000_046;
const MINUTE_MS = 60_000;
const ASKED = /^openai\/sim-1 does not answer: .*\. Answer with openai\/sim-2\?/;
const NO_CREDIT = 'The account at OpenAI has no credit left.';
const LINE = '[openai/sim-1 could not answer; openai/sim-2 answered instead.]';

/** Models that are out of order. */
const down = new Set<string>();

function respond({ model, lastUserText, toolResults }: LlmRequest): LlmReply {
  if (down.has(model)) return fail(402);
  const path = /WRITE (\S+)/.exec(lastUserText)?.[1];
  if (path === undefined || toolResults.length > 0) return { chunks: [`${model} says hello`] };
  // The next call meets the outage.
  down.add('sim-1');
  return { toolCalls: [{ name: 'write_file', arguments: { path, content: 'once' } }] };
}

const config: ConfigInput = {
  agents: {
    defaults: { model: 'openai/sim-1', fallbackModels: ['openai/sim-2'], fallback: 'ask' },
  },
  // Nothing listens there.
  providers: { ollama: { apiBase: 'http://127.0.0.1:9/v1' } },
  retry: { providerAttempts: 0 },
  limits: { messages: { perMinute: 0, perDay: 0 } },
  models: {
    prices: [
      { model: 'openai/sim-1', input: 1, output: 2, cached: 1 },
      { model: 'openai/sim-2', input: 10, output: 30, cached: 10 },
    ],
  },
};
const world = await startTelegramWorld({
  respond,
  config,
  channel: {
    allowFrom: [OWNER, ANNA, BEN].map(({ id }) => String(id)),
    groups: [String(GROUP)],
    streaming: false,
  },
  pair: { [OWNER.id]: 'owner' },
  env: laterBy(0),
});
const { telegram, model, bot, hears, presses } = world;
telegram.group(GROUP);

const calls = (name: string) => model.requests.filter((request) => request.model === name).length;
const questions = (chat: number) => bot(chat).filter(({ text }) => ASKED.test(text));
const open = (chat: number) => questions(chat).filter(({ buttons = [] }) => buttons.length > 0);
const asked = (chat: number) => telegram.waitFor(() => open(chat)[0]);
/** Moves the clock while no request is under way, which would be given up. */
async function skip(minutes: number): Promise<void> {
  await world.hasNo('pending', 'running', 'outbound');
  await world.gateway.skip(minutes * MINUTE_MS);
}

beforeEach(() => {
  down.add('sim-1');
});
afterEach(async () => {
  expect(telegram.violations).toEqual([]);
  down.clear();
  // The model answers again, and with it ends what a refusal left behind.
  for (const { id } of [OWNER, ANNA]) await world.asks(id, 'all well?', /sim-1 says/);
  await telegram.waitFor(() => open(ANNA.id).length === 0);
});
afterAll(() => world[Symbol.asyncDispose]());

it('asks with the reason and the prices, and a yes continues this answer alone', async () => {
  telegram.say(ANNA, 'hello');
  const question = await asked(ANNA.id);
  expect(question.text).toBe(
    'openai/sim-1 does not answer: the account at OpenAI has no credit left. Answer with openai/sim-2? ' +
      'It costs 10 USD for a million tokens in and 30 out, in place of 1 and 2.',
  );
  expect(question.buttons?.flat().map(({ text }) => text)).toEqual([
    ...['Yes, this time', 'Yes, for an hour', 'No'],
  ]);
  expect([calls('sim-1'), calls('sim-2')]).toEqual([1, 0]);
  telegram.press(ANNA, ANNA.id, 'Yes, this time');
  const answer = await hears(ANNA.id, /sim-2 says hello/);
  expect(answer.text).toBe(`sim-2 says hello\n\n${LINE}`);
  await hears(ANNA.id, /openai\/sim-2 answers this time\.$/);
  // The failed model is not asked a second time.
  expect([calls('sim-1'), calls('sim-2')]).toEqual([1, 1]);
  expect(bot(ANNA.id)).toHaveLength(2);
  const spent = await world.asks(ANNA, '/cost', /^The last answer/);
  expect(spent).toMatch(/^The last answer: openai\/sim-2, /);
  telegram.say(ANNA, 'hello again');
  await asked(ANNA.id);
  expect(calls('sim-2')).toBe(1);
});

it('asks once for all messages that come meanwhile, and one yes answers them', async () => {
  const before = { questions: questions(ANNA.id).length, calls: calls('sim-2') };
  telegram.say(ANNA, 'nonce-one');
  await asked(ANNA.id);
  const told = await world.asks(ANNA, 'nonce-two', /still does not answer/);
  expect(told).toContain('a yes counts for this message too');
  await presses(ANNA.id, 'Yes, this time', /sim-2 says hello/, ANNA);
  expect(questions(ANNA.id)).toHaveLength(before.questions + 1);
  expect(calls('sim-2')).toBe(before.calls + 1);
  expect(world.lastBody()).toMatch(/nonce-one.*nonce-two.*openai\/sim-2 is allowed to/s);
});

it('continues after what was done already, which is not done again', async () => {
  down.delete('sim-1');
  telegram.say(OWNER, 'WRITE done.txt');
  await asked(OWNER.id);
  await presses(OWNER.id, 'Yes, this time', /sim-2 says hello/);
  const [request] = model.requests.filter(({ model: name }) => name === 'sim-2').slice(-1);
  expect(request?.toolResults.map(({ text }) => text)).toEqual([
    expect.stringMatching(/done\.txt/),
  ]);
  expect(await readFile(world.file('done.txt'), 'utf8')).toBe('once');
});

it('a no shows the error once, and the outage asks no more', async () => {
  const before = questions(ANNA.id).length;
  telegram.say(ANNA, 'hello');
  await asked(ANNA.id);
  telegram.press(ANNA, ANNA.id, 'No');
  await hears(ANNA.id, /Not answered\. The account at OpenAI has no credit left/);
  expect(await world.asks(ANNA, 'and now?', /./)).toMatch(NO_CREDIT);
  expect(questions(ANNA.id)).toHaveLength(before + 1);
  down.clear();
  await world.asks(ANNA, 'are you back?', /sim-1 says/);
  down.add('sim-1');
  telegram.say(ANNA, 'gone again?');
  await asked(ANNA.id);
  expect(questions(ANNA.id)).toHaveLength(before + 2);
});

it('a question is withdrawn when the model answers again, and by /new', async () => {
  const sums = calls('sim-2');
  telegram.say(ANNA, 'hello');
  await asked(ANNA.id);
  await world.asks(ANNA, '/new', /New conversation/);
  await telegram.waitFor(() => open(ANNA.id).length === 0);
  telegram.say(ANNA, 'hello');
  await asked(ANNA.id);
  down.clear();
  await world.asks(ANNA, 'back?', /sim-1 says/);
  await hears(ANNA.id, /No longer needed/);
  expect(calls('sim-2')).toBe(sums);
});

it('in a group it is the business of who wrote, and of an owner', async () => {
  telegram.say(ANNA, '@nano_sim_bot hello', { chatId: GROUP });
  await asked(GROUP);
  telegram.press(BEN, GROUP, 'Yes, this time');
  await hears(GROUP, /not yours to decide/);
  telegram.press(OWNER, GROUP, 'Yes, this time');
  await hears(GROUP, /sim-2 says hello/);
  await telegram.waitFor(() => open(GROUP).length === 0);
  telegram.say(BEN, '@nano_sim_bot hello', { chatId: GROUP });
  await asked(GROUP);
  telegram.press(BEN, GROUP, 'No');
  await hears(GROUP, /Not answered/);
});

it('a service is not offered to a conversation that stays on own machines', async () => {
  await world.asks(OWNER, '/model ollama/llama3', /From the next message/);
  await world.asks(OWNER, '/local only', /Nothing of this conversation goes/);
  const told = await world.asks(OWNER, 'hello', /No model was asked: openai\/sim-2/);
  expect(told).toContain('stays on your own machines');
  expect(open(OWNER.id)).toEqual([]);
  await world.asks(OWNER, '/local off', /Any model/);
  await world.asks(OWNER, '/model default', /again/);
});

it('asks on the web page as well', async () => {
  const { address, credentials } = world.gateway;
  const path = '/api/web/chats/a';
  const post = async (clientId: string, text: string, also: object = {}) => {
    const headers = { ...credentials, 'content-type': 'application/json' };
    const body = JSON.stringify({ clientId, text, ...also });
    const sent = await fetch(`${address}${path}/messages`, { method: 'POST', headers, body });
    expect(sent.status).toBe(202);
  };
  const says = async (like: RegExp): Promise<PageEvent> => {
    const isLike = ({ data }: ServerEvent) => like.test((data as PageEvent).text ?? '');
    const isThere = (all: readonly ServerEvent[]) => all.some(isLike);
    const events = await followEvents(address, `${path}/events`, isThere, credentials);
    return events.findLast(isLike)?.data as PageEvent;
  };
  await post('c1', 'hello');
  const { choices = [] } = await says(ASKED);
  await post('c2', 'Yes, this time', { press: choices[0]?.token });
  expect((await says(/sim-2 says hello/)).text).toContain(LINE);
});

it('a job is not answered by another model, and asks nobody', async () => {
  const before = calls('sim-2');
  await world.asks(OWNER, '/cron add in 2m: say hello', /^Created/);
  const seen = bot(OWNER.id).length;
  await skip(3);
  await hears(OWNER.id, new RegExp(NO_CREDIT), seen);
  expect([open(OWNER.id), calls('sim-2')]).toEqual([[], before]);
});

it('a yes for an hour holds for an hour, with a line below each answer', async () => {
  telegram.say(ANNA, 'hello');
  await asked(ANNA.id);
  await presses(ANNA.id, 'Yes, for an hour', /sim-2 says hello/, ANNA);
  expect(await world.asks(ANNA, 'second', /sim-2 says/)).toContain(LINE);
  await skip(61);
  telegram.say(ANNA, 'third');
  await asked(ANNA.id);
});

it('expires after an hour with the error', async () => {
  telegram.say(ANNA, 'hello');
  await asked(ANNA.id);
  await skip(61);
  const told = await hears(ANNA.id, /nobody decided in time/);
  expect(told.text).toContain(NO_CREDIT);
  await telegram.waitFor(() => open(ANNA.id).length === 0);
});

type PageEvent = {
  readonly text?: string;
  readonly choices?: readonly { readonly token: string }[];
};
