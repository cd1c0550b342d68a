// What messages sent during an answer do, in each mode of the queue: the whole program, seen from the
// chat, also where the process is killed meanwhile.

import { readFile } from 'node:fs/promises';
import { afterAll, afterEach, expect, it } from 'vitest';
import { callTools, echo, type LlmReply, say } from '../support/llm-server.ts';
import { startTelegramWorld } from '../support/telegram-world.ts';

const [FOLLOWUP, COLLECT, INTERRUPT, GROUPED] = [811, 812, 813, 814];
const KILLED = { 821: 'steer', 822: 'followup', 823: 'collect', 824: 'interrupt' } as const;

const world = await startTelegramWorld({
  respond: echo,
  config: {
    queue: { mode: 'collect' },
    tools: { approvals: { owner: 'open' } },
    limits: { messages: { perMinute: 0, perDay: 0 } },
  },
  channel: { streaming: true, allowFrom: ['*'] },
  pair: { [INTERRUPT]: 'owner' },
});
const { telegram, model } = world;
afterAll(() => world[Symbol.asyncDispose]());
afterEach(() => model.respond(echo));

const taken = () => telegram.waitFor(() => telegram.unconfirmed.length === 0);
const answers = (chat: number) =>
  world
    .texts(chat)
    .filter((text) => !text.startsWith('Messages sent') && !text.startsWith('A message'));

/** Asks, and sends the rest while the model is at work on it. */
async function asked(chat: number, reply: LlmReply, first: string, ...rest: readonly string[]) {
  const gate = Promise.withResolvers<void>();
  const before = model.requests.length;
  model.script({ ...reply, gate: gate.promise });
  telegram.say(chat, first);
  await model.received(before + 1);
  for (const text of rest) telegram.say(chat, text);
  await taken();
  return { before, release: gate.resolve };
}

it('followup: each gets an answer of its own, in order', async () => {
  await world.asks(FOLLOWUP, '/queue followup', /each gets an answer of its own/);
  const { release } = await asked(FOLLOWUP, say('nonce-f1'), 'nonce-f1', 'nonce-f2', 'nonce-f3');
  release();
  await world.hears(FOLLOWUP, /nonce-f3/);
  expect(answers(FOLLOWUP)).toEqual(['nonce-f1', 'nonce-f2', 'nonce-f3']);
});

it('collect, by the setting: one answer for all of them follows, up to a command', async () => {
  expect(await world.asks(COLLECT, '/queue', /Messages sent during/)).toContain('collect');
  const { release } = await asked(COLLECT, say('nonce-c1'), 'nonce-c1', 'nonce-c2', 'nonce-c3');
  telegram.say(COLLECT, '/think');
  telegram.say(COLLECT, 'nonce-c4');
  await taken();
  release();
  await world.hears(COLLECT, /nonce-c4/);
  expect(answers(COLLECT)).toEqual([
    'nonce-c1',
    'nonce-c2 nonce-c3',
    'Thinking is off.',
    'nonce-c4',
  ]);
});

it('interrupt: stops the answer, keeps what was done, and answers all messages once', async () => {
  await world.asks(INTERRUPT, '/queue interrupt', /stops it/);
  const before = model.requests.length;
  const begun = Promise.withResolvers<void>();
  model.script(
    callTools({ name: 'write_file', arguments: { path: 'once.txt', content: 'one' } }),
    { chunks: ['A long answer to the first. ', begun.promise, 'Never said.'] },
    say('nonce-both'),
  );
  telegram.say(INTERRUPT, 'the first question');
  await world.hears(INTERRUPT, /A long answer/);
  telegram.say(INTERRUPT, 'and the second');
  await world.hears(INTERRUPT, /nonce-both/);
  begun.resolve();
  const requests = model.requests.slice(before);
  await requests[1]?.abandoned;
  expect(requests).toHaveLength(3);
  const body = JSON.stringify(requests[2]?.body);
  for (const part of ['the first question', 'once.txt', 'and the second'])
    expect(body).toContain(part);
  expect(body.match(/the first question/g)).toHaveLength(1);
  expect(await readFile(world.file('once.txt'), 'utf8')).toBe('one');
  expect(answers(INTERRUPT)).toEqual(['nonce-both']);
  // The next question finds nothing left over.
  expect(await world.asks(INTERRUPT, 'nonce-after', /nonce-after/)).toBe('nonce-after');
});

it('interrupt: each of several messages in a row counts', async () => {
  await world.asks(GROUPED, '/queue interrupt', /stops it/);
  const never = new Promise<never>(() => undefined);
  const before = model.requests.length;
  model.script({ chunks: ['x'], gate: never }, { chunks: ['x'], gate: never });
  for (const [at, text] of ['nonce-g1', 'nonce-g2', 'nonce-g3'].entries()) {
    telegram.say(GROUPED, text);
    await model.received(before + at + 1);
  }
  expect(await world.hears(GROUPED, /nonce-g3/)).toBeDefined();
  expect(answers(GROUPED)).toHaveLength(1);
  const body = JSON.stringify(model.requests.at(-1)?.body);
  for (const nonce of ['nonce-g1', 'nonce-g2', 'nonce-g3']) expect(body).toContain(nonce);
});

it('a killed process loses nothing and answers nothing twice, in every mode', async () => {
  const chats = Object.entries(KILLED).map(([chat, mode]) => [Number(chat), mode] as const);
  for (const [chat, mode] of chats)
    await world.asks(chat, `/queue ${mode}`, /sent during an answer/);
  const before = model.requests.length;
  const never = new Promise<never>(() => undefined);
  model.respond((request) => ({ ...echo(request), gate: never }));
  for (const [chat] of chats) telegram.say(chat, `nonce-k${chat}a`);
  await model.received(before + chats.length);
  for (const [chat] of chats) telegram.say(chat, `nonce-k${chat}b`);
  await taken();
  // The interrupted one is asked again before the kill.
  await model.received(before + chats.length + 1);
  await world.gateway.kill();
  // The answer names every message of its turn.
  model.respond(({ lastUserText }) => say((lastUserText.match(/nonce-k\w+/g) ?? ['?']).join(' ')));
  await world.start();
  for (const [chat] of chats) {
    const texts = () => answers(chat).join(' ');
    await telegram.waitFor(() => texts().includes(`nonce-k${chat}b`), 45_000);
    expect(
      model.requests.some(({ body }) => JSON.stringify(body).includes(`nonce-k${chat}a`)),
    ).toBe(true);
    // What would come twice would come before this.
    expect(await world.asks(chat, 'nonce-kend', /nonce-kend/)).toBe('nonce-kend');
    const named =
      answers(chat)
        .join(' ')
        .match(/nonce-k\w+/g) ?? [];
    expect(named.length, named.join(' ')).toBe(new Set(named).size);
    if (KILLED[chat as keyof typeof KILLED] === 'followup') {
      expect(named).toEqual([`nonce-k${chat}a`, `nonce-k${chat}b`, 'nonce-kend']);
    }
  }
});
