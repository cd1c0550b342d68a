// People correct a question that was answered, where the configuration has it answered again by itself:
// the whole program, seen from the chat and from the model.

import { spawnSync } from 'node:child_process';
import { access } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type BotApi, startBotApi } from '../support/bot-api.ts';
import { type GatewayProcess, makeTestHome, type TestHome } from '../support/gateway-process.ts';
import { echo, type LlmServer, startLlmServer } from '../support/llm-server.ts';

const PERSON = 810;
const LONG = Array.from({ length: 1200 }, (_, index) => `word${index}`).join(' ');

let telegram: BotApi;
let model: LlmServer;
let home: TestHome;
let gateway: GatewayProcess;

async function start(channel: Readonly<Record<string, unknown>> = {}, quietMs = 100) {
  home = await makeTestHome({
    agents: { defaults: { model: 'openai/sim-1' } },
    providers: { openai: { apiKey: 'scenario-key', apiBase: model.openaiBase } },
    channels: {
      telegram: {
        enabled: true,
        token: telegram.token,
        apiRoot: telegram.apiRoot,
        allowFrom: [String(PERSON)],
        ...channel,
      },
    },
    gateway: { port: 0 },
    coalesce: { quietMs },
    edits: { afterAnswer: 'edit' },
    tools: { people: [{ who: `telegram:${PERSON}`, write: 'free', schedule: 'ask' }] },
  });
  gateway = await home.start();
}

const botTexts = () =>
  telegram
    .chat(PERSON)
    .messages.filter(({ from }) => from === 'bot')
    .map(({ text }) => text);
const botSays = (pattern: RegExp) =>
  telegram.waitFor(() => botTexts().find((text) => pattern.test(text)));
const taken = () => telegram.waitFor(() => telegram.unconfirmed.length === 0);
const lastBody = () => JSON.stringify(model.requests.at(-1)?.body);

async function ask(text: string, answer: RegExp) {
  const said = telegram.say(PERSON, text);
  await botSays(answer);
  return said;
}

function trace(id: string): string {
  const { stdout } = spawnSync(process.execPath, ['bin/nanobot.js', 'trace', id], {
    env: { PATH: process.env['PATH'] ?? '', HOME: home.path, NANOBOT_HOME: home.path, TZ: 'UTC' },
    encoding: 'utf8',
  });
  return stdout;
}

const exists = (path: string) =>
  access(join(home.path, 'workspace', path)).then(
    () => true,
    () => false,
  );

beforeEach(async () => {
  telegram = await startBotApi();
  model = await startLlmServer({ respond: echo });
});

afterEach(async () => {
  await home[Symbol.asyncDispose]();
  expect(telegram.violations).toEqual([]);
  await telegram[Symbol.asyncDispose]();
  await model[Symbol.asyncDispose]();
});

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
    telegram.edit(said, 'say nonce-old');
    await botSays(/nonce-old/);
    expect(botTexts()).toEqual(['nonce-old']);
    telegram.say(PERSON, '/undo');
    await botSays(/gone from this chat/);
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
    await gateway.kill();
    held.resolve();
    gateway = await home.start();
    await botSays(/^nonce-new/);
    expect(botTexts()).toEqual(['nonce-new']);
    expect(lastBody()).not.toContain('nonce-old');
    await gateway.kill();
    gateway = await home.start();
    await ask('say nonce-next', /nonce-next/);
    expect(botTexts()).toEqual(['nonce-new', 'nonce-next']);
  });

  it('is let be where something else was asked since, and its trace says so', async () => {
    await start();
    const said = await ask('say nonce-old', /nonce-old/);
    await ask('say nonce-next', /nonce-next/);
    telegram.edit(said, 'say nonce-new');
    await taken();
    await telegram.waitFor(() => trace('last').includes('only the newest exchange is'));
    expect(model.requests).toHaveLength(2);
    expect(botTexts()).toEqual(['nonce-old', 'nonce-next']);
  });

  it('commands nothing', async () => {
    await start();
    const said = await ask('say nonce-old', /nonce-old/);
    telegram.edit(said, '/new');
    await taken();
    await telegram.waitFor(() => trace('last').includes('it would be a command'));
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
