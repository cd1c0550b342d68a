// People change, withdraw and take back what was said, and react to it: the whole program, seen from
// the chat and from the model.

import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { followEvents, type ServerEvent } from '../http/http-rig.ts';
import { echo } from '../support/llm-server.ts';
import { startTelegramWorld, type TelegramWorld } from '../support/telegram-world.ts';

type PageEvent = {
  readonly from?: string;
  readonly text: string;
  readonly choices?: readonly { readonly label: string; readonly token: string }[];
};

const PERSON = 800;
const OTHER = 801;
const UNKNOWN_SENDER = 802;
const GROUP = -900;

let world: TelegramWorld;

async function start(
  extra: Readonly<Record<string, unknown>> = {},
  channel: Readonly<Record<string, unknown>> = {},
): Promise<TelegramWorld> {
  world = await startTelegramWorld({
    respond: echo,
    config: { coalesce: { mode: 'wait', quietMs: 100 }, ...extra },
    channel: {
      allowFrom: [String(PERSON), String(OTHER)],
      groups: [String(GROUP)],
      ...channel,
    },
  });
  return world;
}

const botTexts = (chat: number) => world.texts(chat);
const botSays = async (chat: number, like: RegExp) => (await world.hears(chat, like)).text;
const taken = () => world.telegram.waitFor(() => world.telegram.unconfirmed.length === 0);
/** Until the gateway knows that what it said has arrived: else it cannot take it away. */
const arrived = () => world.hasNo('running', 'outbound');
const lastBody = () => world.lastBody();

function gate() {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { gate: promise, open: resolve };
}

afterEach(() => world[Symbol.asyncDispose]());

describe('a message that is changed', () => {
  it('while it waits is answered as it is now', async () => {
    const { telegram, model } = await start({ queue: { mode: 'followup' } });
    const first = gate();
    model.script({ chunks: ['nonce-busy'], gate: first.gate }, echo);
    telegram.say(PERSON, 'busy nonce-busy');
    await model.received(1);
    const waiting = telegram.say(PERSON, 'say nonce-old');
    telegram.edit(waiting, 'say nonce-new');
    await taken();
    first.open();
    await botSays(PERSON, /nonce-new/);
    expect(lastBody()).not.toContain('nonce-old');
    expect(botTexts(PERSON)).toEqual(['nonce-busy', 'nonce-new']);
  });

  it('before the model was asked is asked as it is now, and only so', async () => {
    const { telegram, model } = await start({ coalesce: { mode: 'wait', quietMs: 3000 } });
    const said = telegram.say(PERSON, 'say nonce-old');
    await taken();
    telegram.edit(said, 'say nonce-new');
    await botSays(PERSON, /nonce-new/);
    expect(model.requests).toHaveLength(1);
    expect(lastBody()).not.toContain('nonce-old');
  });

  it('during its turn steers it and says what it replaces', async () => {
    const { telegram, model } = await start();
    const held = gate();
    model.script({ toolCalls: [{ name: 'time', arguments: {} }], gate: held.gate }, echo);
    const said = telegram.say(PERSON, 'say nonce-old');
    await model.received(1);
    telegram.edit(said, 'rather nonce-new');
    await taken();
    held.open();
    await botSays(PERSON, /nonce-new/);
    expect(model.requests).toHaveLength(2);
    expect(lastBody()).toContain('I have changed my message');
    expect(botTexts(PERSON)).toHaveLength(1);
  });

  it('after its answer asks first, and is answered once, also when pressed twice', async () => {
    const { telegram, model } = await start();
    const said = telegram.say(PERSON, 'say nonce-old');
    await botSays(PERSON, /nonce-old/);
    telegram.edit(said, 'say nonce-new');
    const offer = await botSays(PERSON, /Shall I answer the new version/);
    expect(offer).toContain('after I had answered it');
    expect(model.requests).toHaveLength(1);
    telegram.press(PERSON, PERSON, 'Answer again');
    telegram.press(PERSON, PERSON, 'Answer again');
    await botSays(PERSON, /^nonce-new/);
    await telegram.waitFor(() => telegram.pressed.size === 0);
    const { messages } = telegram.chat(PERSON);
    await telegram.waitFor(() => messages.every(({ buttons }) => buttons === undefined));
    expect(model.requests).toHaveLength(2);
  });

  it.each(['offer', 'ignore'] as const)(
    'during its last step is told that the answer is to the earlier version (%s)',
    async (afterAnswer) => {
      const { telegram, model } = await start({ edits: { afterAnswer } });
      const held = gate();
      model.script({ chunks: ['nonce-old'], gate: held.gate }, echo);
      const said = telegram.say(PERSON, 'say nonce-old');
      await model.received(1);
      telegram.edit(said, 'say nonce-new');
      await taken();
      held.open();
      const offer = await botSays(PERSON, /Shall I answer the new version/);
      expect(offer).toContain('while I was answering it: the answer is to the earlier version');
      telegram.press(PERSON, PERSON, 'Answer again');
      await botSays(PERSON, /^nonce-new/);
      expect(botTexts(PERSON)[0]).toBe('nonce-old');
    },
  );

  it('is answered again only for who changed it, and others leave the button as it is', async () => {
    const { telegram, model } = await start();
    telegram.group(GROUP);
    const said = telegram.say(PERSON, '@nano_sim_bot say nonce-old', { chatId: GROUP });
    await botSays(GROUP, /nonce-old/);
    telegram.edit(said, '@nano_sim_bot say nonce-new');
    await botSays(GROUP, /Shall I answer the new version/);
    telegram.press(UNKNOWN_SENDER, GROUP, 'Answer again');
    telegram.press(OTHER, GROUP, 'Answer again');
    await botSays(GROUP, /not yours to decide/);
    const buttons = () => telegram.chat(GROUP).messages.flatMap((one) => one.buttons ?? []);
    expect(model.requests).toHaveLength(1);
    expect(buttons()).toHaveLength(1);
    telegram.press(PERSON, GROUP, 'Answer again', { isOld: true });
    await botSays(GROUP, /^nonce-new/);
    await telegram.waitFor(() => buttons().length === 0);
  });

  it('so that it mentions the agent is answered like a new one, and changed again once more', async () => {
    const { telegram } = await start();
    telegram.group(GROUP);
    telegram.say(OTHER, 'we meet at nine', { chatId: GROUP });
    const said = telegram.say(PERSON, 'say nonce-talk', { chatId: GROUP });
    telegram.edit(said, '@nano_sim_bot say nonce-asked');
    await botSays(GROUP, /^nonce-asked/);
    expect(lastBody()).toContain('we meet at nine');
    telegram.edit(said, '@nano_sim_bot say nonce-new');
    await botSays(GROUP, /Shall I answer the new version/);
    const other = telegram.say(PERSON, 'new', { chatId: GROUP });
    telegram.edit(other, '/new@nano_sim_bot');
    await taken();
    expect(botTexts(GROUP)).toHaveLength(2);
  });

  it('after its answer is left alone where the configuration says so', async () => {
    const { telegram } = await start({ edits: { afterAnswer: 'ignore' } });
    const said = telegram.say(PERSON, 'say nonce-old');
    await botSays(PERSON, /nonce-old/);
    telegram.edit(said, 'say nonce-new');
    telegram.say(PERSON, 'and nonce-next');
    await botSays(PERSON, /nonce-next/);
    expect(botTexts(PERSON)).toEqual(['nonce-old', 'nonce-old nonce-next'.split(' ').at(-1)]);
  });

  it('into a command commands nothing', async () => {
    const { telegram } = await start();
    const said = telegram.say(PERSON, 'say nonce-old');
    await botSays(PERSON, /nonce-old/);
    telegram.edit(said, '/new');
    await botSays(PERSON, /Shall I answer/);
    expect(botTexts(PERSON).join()).not.toContain('New conversation');
  });

  it('by somebody who may not speak here changes nothing', async () => {
    const { telegram, model } = await start();
    const said = telegram.say(UNKNOWN_SENDER, 'let me in nonce-a');
    telegram.edit(said, 'let me in nonce-b');
    await taken();
    telegram.say(PERSON, 'hello nonce-c');
    await botSays(PERSON, /nonce-c/);
    expect(botTexts(UNKNOWN_SENDER)).toEqual([]);
    expect(model.requests).toHaveLength(1);
  });

  it('on the web page is swapped, withdrawn or asked about as at any other door', async () => {
    const { model } = await start({ queue: { mode: 'followup' } });
    const chat = '/api/web/chats/a';
    const { address, credentials } = world.gateway;
    const post = async (clientId: string, text: string, also: object = {}) => {
      const headers = { ...credentials, 'content-type': 'application/json' };
      const body = JSON.stringify({ clientId, text, ...also });
      const sent = await fetch(`${address}${chat}/messages`, { method: 'POST', headers, body });
      expect(sent.status).toBe(202);
    };
    const change = (of: string, text?: string) => {
      const kind = text === undefined ? 'withdrawn' : 'edited';
      return post(`${of}-${text?.length ?? 0}`, text ?? '', {
        amends: { id: `web:default:a:${of}`, kind },
      });
    };
    const pageSays = async (pattern: RegExp) => {
      const found = (events: readonly ServerEvent[]) =>
        events.map(({ data }) => data as PageEvent).filter(({ from }) => from === 'agent');
      const isThere = (events: readonly ServerEvent[]) =>
        found(events).some(({ text }) => pattern.test(text));
      return found(await followEvents(address, `${chat}/events`, isThere, credentials)).at(-1);
    };
    const held = gate();
    model.script({ chunks: ['nonce-busy'], gate: held.gate });
    await post('c1', 'busy nonce-busy');
    await model.received(1);
    await post('c2', 'say nonce-old');
    await post('c3', 'say nonce-never');
    await change('c2', 'say nonce-new');
    await change('c3');
    held.open();
    await pageSays(/^nonce-new/);
    expect(JSON.stringify(model.requests)).not.toMatch(/nonce-old|nonce-never/);
    await change('c2', 'say nonce-later');
    const offer = await pageSays(/Shall I answer the new version/);
    const [{ label, token } = { label: '', token: '' }] = offer?.choices ?? [];
    expect(model.requests).toHaveLength(2);
    await post('press', label, { press: token });
    await pageSays(/^nonce-later/);
    expect(model.requests).toHaveLength(3);
    await change('c2', 'say nonce-gone');
    await expect
      .poll(async () => (await pageSays(/Shall I answer the new/))?.choices?.[0]?.token ?? token)
      .not.toBe(token);
    const gone = (await pageSays(/Shall I answer the new/))?.choices?.[0]?.token;
    await change('c2');
    await post('c4', 'say nonce-after');
    await pageSays(/^nonce-after/);
    await post('press-gone', label, { press: gone });
    await pageSays(/can no longer be answered/);
    expect(model.requests).toHaveLength(4);
  });

  it('is still asked about after the program was killed', async () => {
    const { telegram, model } = await start();
    const said = telegram.say(PERSON, 'say nonce-old');
    await botSays(PERSON, /nonce-old/);
    await arrived();
    await world.gateway.kill();
    telegram.edit(said, 'say nonce-new');
    await world.start();
    await botSays(PERSON, /Shall I answer the new version/);
    await arrived();
    await world.restart();
    telegram.press(PERSON, PERSON, 'Answer again');
    await botSays(PERSON, /^nonce-new/);
    expect(model.requests).toHaveLength(2);
  });
});

describe('/undo', () => {
  it('takes the answer with all its parts out of the chat and the exchange out of sight', async () => {
    const { telegram, model } = await start();
    telegram.say(PERSON, 'first nonce-kept');
    await botSays(PERSON, /nonce-kept/);
    const long = Array.from({ length: 1200 }, (_, index) => `word${index}`).join(' ');
    model.script({ chunks: [`nonce-gone ${long}`] });
    telegram.say(PERSON, 'second nonce-gone');
    await botSays(PERSON, /word1199/);
    await arrived();
    telegram.say(PERSON, '/undo');
    const words = await botSays(PERSON, /last exchange/);
    expect(words).toContain('deleted from this chat');
    expect(botTexts(PERSON)).toEqual(['nonce-kept', words]);
    telegram.say(PERSON, 'third nonce-third');
    await botSays(PERSON, /nonce-third/);
    expect(lastBody()).toContain('nonce-kept');
    expect(lastBody()).not.toContain('nonce-gone');
    const folder = join(world.home.path, 'sessions');
    const file = async () => (await readdir(folder)).find((name) => name.endsWith('.jsonl')) ?? '';
    await expect.poll(file).not.toBe('');
    expect(await readFile(join(folder, await file()), 'utf8')).toContain('nonce-gone');
  });

  it('again takes the one before, also over a restart, until there is none', async () => {
    const { telegram } = await start();
    for (const nonce of ['nonce-1', 'nonce-2']) {
      telegram.say(PERSON, `say ${nonce}`);
      await botSays(PERSON, new RegExp(nonce));
    }
    await arrived();
    telegram.say(PERSON, '/undo');
    await telegram.waitFor(() => !botTexts(PERSON).includes('nonce-2'));
    await world.restart();
    telegram.say(PERSON, '/undo');
    await telegram.waitFor(() => !botTexts(PERSON).includes('nonce-1'));
    telegram.say(PERSON, '/undo');
    await botSays(PERSON, /no answer to take back/);
  });

  it('says what it could not take away', async () => {
    const { telegram } = await start();
    telegram.say(PERSON, 'say nonce-old');
    await botSays(PERSON, /nonce-old/);
    await arrived();
    telegram.age(telegram.chat(PERSON).messages.at(-1)?.id ?? 0);
    telegram.say(PERSON, '/undo');
    await botSays(PERSON, /still in this chat/);
    expect(botTexts(PERSON)).toContain('nonce-old');
  });

  it('in a group takes back only what one asked for oneself', async () => {
    const { telegram } = await start({}, { groupNames: ['nano'] });
    telegram.group(GROUP);
    telegram.say(PERSON, '@nano_sim_bot say nonce-mine', { chatId: GROUP });
    await botSays(GROUP, /nonce-mine/);
    await arrived();
    telegram.say(OTHER, '/undo@nano_sim_bot', { chatId: GROUP });
    await botSays(GROUP, /Only my owner or the person who asked/);
    expect(botTexts(GROUP)).toContain('nonce-mine');
    telegram.say(PERSON, '/undo@nano_sim_bot', { chatId: GROUP });
    await telegram.waitFor(() => !botTexts(GROUP).includes('nonce-mine'));
  });
});

describe('a reaction', () => {
  it('reaches the model with the next message, once, and asks nothing by itself', async () => {
    const { telegram, model } = await start();
    telegram.say(PERSON, 'say nonce-one');
    await botSays(PERSON, /nonce-one/);
    await arrived();
    const answer = telegram.chat(PERSON).messages.at(-1)?.id ?? 0;
    telegram.react(PERSON, PERSON, answer, '👎');
    await taken();
    telegram.react(UNKNOWN_SENDER, PERSON, answer, '🔥');
    telegram.react(PERSON, PERSON, answer + 999, '🎉');
    await taken();
    await world.restart();
    expect(model.requests).toHaveLength(1);
    telegram.say(PERSON, 'say nonce-two');
    await botSays(PERSON, /nonce-two/);
    const body = lastBody();
    expect(body.split('reacted with 👎 to your answer').length - 1).toBe(1);
    expect(body).not.toContain('🔥');
    expect(body).not.toContain('🎉');
  });

  it('is set on the question while it is worked on, and taken away with the answer', async () => {
    const { telegram, model } = await start({}, { ackReaction: '👀' });
    const held = gate();
    model.script({ chunks: ['nonce-done'], gate: held.gate });
    telegram.say(PERSON, 'hello');
    const sign = () => telegram.chat(PERSON).messages[0]?.reaction;
    await telegram.waitFor(() => sign() === '👀');
    held.open();
    await botSays(PERSON, /nonce-done/);
    await telegram.waitFor(() => sign() === undefined);
  });
});
