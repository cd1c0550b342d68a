// Turns that go differently: set aside, asked ahead of time, queued. The whole program, seen from
// the chat.

import { afterEach, describe, expect, it } from 'vitest';
import type { ConfigInput } from '../../src/kernel/config/config.ts';
import type { Update } from '../support/bot-api-ledger.ts';
import { echo } from '../support/llm-server.ts';
import { laterBy } from '../support/shifted-clock.ts';
import { startTelegramWorld, type TelegramWorld } from '../support/telegram-world.ts';

const PERSON = 800;
/** Tries of a message that ended with the process, before it is set aside. */
const MAX_DEATHS = 9;
const OTHER = 801;

let world: TelegramWorld;

async function start(
  extra: ConfigInput = {},
  env: Readonly<Record<string, string>> = {},
): Promise<TelegramWorld> {
  world = await startTelegramWorld({
    respond: echo,
    env,
    config: { coalesce: { quietMs: 100 }, ...extra },
    channel: { allowFrom: ['*'] },
  });
  return world;
}

const botTexts = (chat: number) => world.texts(chat);
const botSays = async (chat: number, like: RegExp) => (await world.hears(chat, like)).text;

afterEach(() => world[Symbol.asyncDispose]());

describe('a message that fails every time', () => {
  it('is set aside, the chat is told, and it can be tried again', async () => {
    const { telegram, model } = await start({}, laterBy(0));
    let isBroken = true;
    const never = new Promise<never>(() => undefined);
    model.respond((request) =>
      isBroken && request.lastUserText.includes('nonce-poison')
        ? { ...echo(request), gate: never }
        : echo(request),
    );
    telegram.say(PERSON, 'hello nonce-poison');
    // Each try ends with the process.
    for (let tries = 1; tries <= MAX_DEATHS; tries += 1) {
      await world.gateway.skipUntil(() => model.requests.length >= tries);
      await world.restart();
    }
    telegram.say(OTHER, 'hello nonce-fine');
    expect(await botSays(OTHER, /nonce-fine/)).toBe('nonce-fine');
    await world.gateway.skipUntil(() => botTexts(PERSON).length === 1);
    expect(await botSays(PERSON, /set it aside/)).toContain('“hello nonce-poison”');
    const listed = await world.nanobot('dead', 'list', '--json');
    const [letter] = JSON.parse(listed) as { id: string; state: string }[];
    expect(letter?.state).toBe('dead');
    isBroken = false;
    await world.nanobot('dead', 'retry', letter?.id ?? '');
    expect(await botSays(PERSON, /^nonce-poison/)).toBe('nonce-poison');
    expect(botTexts(PERSON)).toHaveLength(2);
  });
});

describe('what the program says to a model', () => {
  // One other character doubles the memory of the whole request.
  it('has characters of one byte only', async () => {
    const { telegram, model } = await start();
    telegram.say(PERSON, 'hello nonce-b1');
    await botSays(PERSON, /nonce-b1/);
    expect(JSON.stringify(model.requests[0]?.body)).toMatch(/^[\0-\xff]{20000,}$/);
  });
});

describe('rapid messages', () => {
  it('are one question that says when each part came', async () => {
    const { telegram, model } = await start({ coalesce: { mode: 'wait', quietMs: 3000 } });
    for (const text of ['first nonce-a', 'second nonce-b', 'third nonce-c']) {
      telegram.say(PERSON, text);
    }
    expect(await botSays(PERSON, /nonce-c/)).toBe('nonce-a nonce-b nonce-c');
    expect(model.requests).toHaveLength(1);
    expect(model.requests[0]?.lastUserText).toMatch(/first nonce-a\s+\[\+\d+ms\] second nonce-b/);
  });
});

describe('a single message in a private chat', () => {
  it('is answered at once, and once more with what follows before anything was shown', async () => {
    const { telegram, model } = await start({ coalesce: { quietMs: 3000 } });
    const held = new Promise(() => undefined);
    model.script({ gate: held }, echo);
    telegram.say(PERSON, 'one nonce-s1');
    await model.received(1);
    telegram.say(PERSON, 'two nonce-s2');
    telegram.say(PERSON, 'three nonce-s3');
    expect(await botSays(PERSON, /nonce-s3/)).toBe('nonce-s1 nonce-s2 nonce-s3');
    expect(botTexts(PERSON)).toHaveLength(1);
    expect(model.requests).toHaveLength(2);
    telegram.say(PERSON, '/cost');
    expect(await botSays(PERSON, /model calls/)).toMatch(
      /in 2 model calls\s+• restarted for a follower: .+ in 1 model call$/m,
    );
  });

  it.each([
    [
      'a reaction',
      () =>
        world.telegram.react(
          PERSON,
          PERSON,
          world.telegram.chat(PERSON).messages.at(-2)?.id ?? 0,
          '👎',
        ),
    ],
    ['a change of an answered message', (said: Update) => world.telegram.edit(said, 'nonce-r0')],
    ['a command', () => world.telegram.say(PERSON, '/new')],
  ])('is asked once where %s comes while it is answered', async (_what, happens) => {
    const { telegram, model } = await start({ coalesce: { quietMs: 3000 } });
    const before = telegram.say(PERSON, 'before nonce-r1');
    await botSays(PERSON, /nonce-r1/);
    await world.hasNo('outbound');
    // When the last message came is known no more.
    await world.restart();
    const { promise: gate, resolve: release } = Promise.withResolvers<void>();
    model.script({ chunks: ['nonce-r2'], gate });
    telegram.say(PERSON, 'the question');
    await model.received(2);
    happens(before);
    // What came before it has reached its turn when this one is answered.
    telegram.say(OTHER, 'hello nonce-o1');
    await botSays(OTHER, /nonce-o1/);
    release();
    await botSays(PERSON, /nonce-r2/);
    expect(model.requests.map(({ lastUserText }) => lastUserText)).toEqual([
      expect.stringContaining('nonce-r1'),
      expect.stringContaining('the question'),
      expect.stringContaining('nonce-o1'),
    ]);
  });

  it('waits for its followers where it comes soon after another one', async () => {
    const { telegram, model } = await start({ coalesce: { quietMs: 3000 } });
    // The first answer of a process takes longer, and what comes after it would not come soon.
    telegram.say(OTHER, 'hello nonce-o1');
    await botSays(OTHER, /nonce-o1/);
    telegram.say(PERSON, 'before nonce-b1');
    await botSays(PERSON, /nonce-b1/);
    telegram.say(PERSON, 'one nonce-b2');
    telegram.say(PERSON, 'two nonce-b3');
    expect(await botSays(PERSON, /nonce-b3/)).toBe('nonce-b2 nonce-b3');
    expect(model.requests).toHaveLength(3);
  });
});

describe('a graceful stop', () => {
  it('lets the answer under way arrive', async () => {
    const { telegram, model } = await start();
    let release: () => void = () => undefined;
    const gate = new Promise<void>((resolve) => {
      release = resolve;
    });
    model.script({ chunks: ['the rest nonce-last'], gate });
    telegram.say(PERSON, 'a question');
    await model.received(1);
    const stopped = world.gateway.stop();
    await world.gateway.printed(/Stopping/);
    release();
    expect(await stopped).toBe(0);
    expect(botTexts(PERSON)).toEqual(['the rest nonce-last']);
  });
});
