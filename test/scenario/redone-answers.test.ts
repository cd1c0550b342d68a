// People correct a question that was answered, where the configuration has it answered again by itself:
// the whole program, seen from the chat and from the model.

import { access } from 'node:fs/promises';
import { afterEach, describe, expect, it } from 'vitest';
import type { BotApi } from '../support/bot-api.ts';
import { echo, type LlmServer } from '../support/llm-server.ts';
import {
  startTelegramWorld,
  type TelegramWorld,
  type TelegramWorldOptions,
} from '../support/telegram-world.ts';

const PERSON = 810;
const LONG = Array.from({ length: 1200 }, (_, index) => `word${index}`).join(' ');

let world: TelegramWorld;
let telegram: BotApi;
let model: LlmServer;

async function start(channel: TelegramWorldOptions['channel'] = {}, quietMs = 100) {
  world = await startTelegramWorld({
    respond: echo,
    channel: { streaming: true, allowFrom: [`${PERSON}`], ...channel },
    config: {
      coalesce: { quietMs },
      edits: { afterAnswer: 'edit' },
      tools: { people: [{ who: `telegram:${PERSON}`, write: 'free', schedule: 'ask' }] },
    },
  });
  ({ telegram, model } = world);
}

afterEach(() => world[Symbol.asyncDispose]());

const botTexts = () => world.texts(PERSON);
const botSays = async (like: RegExp) => (await world.hears(PERSON, like)).text;
const taken = () => telegram.waitFor(() => telegram.unconfirmed.length === 0);
const lastBody = () => world.lastBody();
const traced = (why: string) => expect.poll(() => world.nanobot('trace', 'last')).toContain(why);

/** Until the gateway knows that what it said has arrived: else it cannot change that. */
const arrived = () => world.hasNo('running', 'outbound');
async function ask(text: string, answer: RegExp) {
  const said = telegram.say(PERSON, text);
  await botSays(answer);
  await arrived();
  return said;
}

const exists = (path: string) =>
  access(world.file(path)).then(
    () => true,
    () => false,
  );

describe('a question that is changed after its answer', () => {
  it('gets its new answer in place of the old one, and the model does not see the old one', async () => {
    await start();
    await ask('say nonce-first', /nonce-first/);
    const said = await ask('say nonce-old', /nonce-old/);
    const { id } = telegram.chat(PERSON).messages.at(-1) ?? {};
    telegram.edit(said, 'say nonce-new');
    await botSays(/nonce-new/);
    expect(botTexts()).toEqual(['nonce-first', 'nonce-new']);
    expect(telegram.chat(PERSON).messages.at(-1)?.id).toBe(id);
    expect(model.requests).toHaveLength(3);
    expect(lastBody()).toContain('nonce-first');
    expect(lastBody()).not.toContain('nonce-old');
    await ask('say nonce-next', /nonce-next/);
    expect(lastBody()).not.toContain('nonce-old');
    expect(lastBody().split('say nonce-new').length - 1).toBe(1);
  });

  it('may be changed again, also back to the first words, and be taken back', async () => {
    await start();
    const said = await ask('say nonce-old', /nonce-old/);
    telegram.edit(said, 'say nonce-new');
    await botSays(/nonce-new/);
    await arrived();
    telegram.edit(said, 'say nonce-old');
    await botSays(/nonce-old/);
    await arrived();
    expect(botTexts()).toEqual(['nonce-old']);
    telegram.say(PERSON, '/undo');
    await botSays(/deleted from this chat/);
    expect(botTexts()).toHaveLength(1);
    telegram.say(PERSON, '/undo');
    await botSays(/no answer to take back/);
  });

  it('keeps one answer where the old or the new one is long', async () => {
    await start();
    model.script({ chunks: [`nonce-long ${LONG}`] }, { chunks: ['nonce-short'] });
    const said = await ask('tell me', /word1199/);
    expect(botTexts().length).toBeGreaterThan(1);
    telegram.edit(said, 'tell me shortly');
    await telegram.waitFor(() => botTexts().join() === 'nonce-short');
    await arrived();
    model.script({ chunks: [`nonce-again ${LONG}`] });
    telegram.edit(said, 'tell me all');
    await botSays(/word1199/);
    expect(botTexts().join(' ')).not.toContain('nonce-short');
    expect(botTexts()[0]).toContain('nonce-again');
  });

  it('is asked together with what was asked with it', async () => {
    await start({}, 2000);
    const said = telegram.say(PERSON, 'one nonce-old');
    telegram.say(PERSON, 'two nonce-other');
    await botSays(/nonce-/);
    await arrived();
    expect(model.requests).toHaveLength(1);
    telegram.edit(said, 'one nonce-new');
    await model.received(2);
    expect(lastBody()).toContain('one nonce-new');
    expect(lastBody()).toContain('two nonce-other');
    expect(lastBody()).not.toContain('nonce-old');
    await telegram.waitFor(() => botTexts().length === 1);
  });

  it('has nothing done for it, whatever the model wants', async () => {
    await start();
    const write = (path: string) => ({
      toolCalls: [{ name: 'write_file', arguments: { path, content: 'x' } }],
    });
    model.script(write('first.txt'), { chunks: ['nonce-old'] });
    const said = await ask('write it', /nonce-old/);
    expect(await exists('first.txt')).toBe(true);
    model.script(write('second.txt'), { chunks: ['nonce-new'] });
    telegram.edit(said, 'write it elsewhere');
    await botSays(/nonce-new/);
    expect(await exists('second.txt')).toBe(false);
    expect(JSON.stringify(model.requests[2]?.body)).not.toContain('"write_file"');
    expect(botTexts()).toEqual(['nonce-new']);
  });

  it('has one answer in the end, also where the program is killed while it is answered again', async () => {
    await start();
    const said = await ask('say nonce-old', /nonce-old/);
    const held = Promise.withResolvers<void>();
    model.script({ chunks: ['nonce-never'], gate: held.promise });
    telegram.edit(said, 'say nonce-new');
    await model.received(2);
    await world.gateway.kill();
    held.resolve();
    await world.start();
    await botSays(/^nonce-new/);
    expect(botTexts()).toEqual(['nonce-new']);
    expect(lastBody()).not.toContain('nonce-old');
    await world.restart();
    await ask('say nonce-next', /nonce-next/);
    expect(botTexts()).toEqual(['nonce-new', 'nonce-next']);
  });

  it('is let be where something else was asked since, and its trace says so', async () => {
    await start();
    const said = await ask('say nonce-old', /nonce-old/);
    await ask('say nonce-next', /nonce-next/);
    telegram.edit(said, 'say nonce-new');
    await taken();
    await traced('only the newest exchange is');
    expect(model.requests).toHaveLength(2);
    expect(botTexts()).toEqual(['nonce-old', 'nonce-next']);
  });

  it('is let be while a question of its answer is open', async () => {
    await start();
    const choices = { question: 'Which size?', choices: ['Small', 'Large'] };
    model.script(
      { toolCalls: [{ name: 'ask_user', arguments: choices }] },
      { chunks: ['nonce-asked'] },
    );
    const said = await ask('order the nonce-old one', /nonce-asked/);
    await botSays(/Which size/);
    telegram.edit(said, 'order the nonce-new one');
    await taken();
    await traced('waits for a decision first');
    expect(JSON.stringify(model.requests)).not.toContain('nonce-new');
  });

  it('commands nothing', async () => {
    await start();
    const said = await ask('say nonce-old', /nonce-old/);
    telegram.edit(said, '/new');
    await taken();
    await traced('it would be a command');
    expect(botTexts()).toEqual(['nonce-old']);
    await ask('say nonce-next', /nonce-next/);
    expect(lastBody()).toContain('nonce-old');
  });

  it('gets a message of its own, marked, where answers are not edited', async () => {
    await start({ streaming: false });
    const said = await ask('say nonce-old', /nonce-old/);
    telegram.edit(said, 'say nonce-new');
    const words = await botSays(/nonce-new/);
    expect(words).toContain('Changed answer:');
    expect(botTexts()).toEqual(['nonce-old', words]);
  });
});
