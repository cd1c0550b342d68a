// Turns that go differently: set aside, asked ahead of time, queued. The whole program, seen from
// the chat.

import { spawnSync } from 'node:child_process';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type BotApi, startBotApi } from '../support/bot-api.ts';
import { type GatewayProcess, makeTestHome, type TestHome } from '../support/gateway-process.ts';
import { echo, type LlmServer, startLlmServer } from '../support/llm-server.ts';

const ROOT = join(import.meta.dirname, '../..');
const PERSON = 800;
const OTHER = 801;

let telegram: BotApi;
let model: LlmServer;
let home: TestHome;
let gateway: GatewayProcess;

async function start(extra: Readonly<Record<string, unknown>> = {}) {
  home = await makeTestHome({
    agents: { defaults: { model: 'openai/sim-1' } },
    providers: { openai: { apiKey: 'scenario-key', apiBase: model.openaiBase } },
    channels: {
      telegram: {
        enabled: true,
        token: telegram.token,
        apiRoot: telegram.apiRoot,
        allowFrom: ['*'],
      },
    },
    gateway: { port: 0 },
    coalesce: { quietMs: 100 },
    ...extra,
  });
  gateway = await home.start();
}

function nanobot(...args: readonly string[]) {
  return spawnSync(process.execPath, ['bin/nanobot.js', ...args], {
    cwd: ROOT,
    env: { PATH: process.env['PATH'] ?? '', HOME: home.path, NANOBOT_HOME: home.path, TZ: 'UTC' },
    encoding: 'utf8',
  }).stdout;
}

const botTexts = (chat: number) =>
  telegram
    .chat(chat)
    .messages.filter(({ from }) => from === 'bot')
    .map(({ text }) => text);
const botSays = (chat: number, pattern: RegExp) =>
  telegram.waitFor(() => botTexts(chat).find((text) => pattern.test(text)), 20_000);

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

describe('a message that fails every time', () => {
  it('is set aside, the chat is told, and it can be tried again', async () => {
    await start();
    const day = new Date().toISOString().slice(0, 10);
    const blocked = join(home.path, 'sessions', `telegram%3A${PERSON}_${day}.jsonl`);
    await mkdir(blocked, { recursive: true });
    telegram.say(PERSON, 'hello nonce-poison');
    telegram.say(OTHER, 'hello nonce-fine');
    expect(await botSays(OTHER, /nonce-fine/)).toBe('nonce-fine');
    await botSays(PERSON, /set aside/);
    const listed = nanobot('dead', 'list', '--json');
    const [letter] = JSON.parse(listed) as { id: string; state: string }[];
    expect(letter?.state).toBe('dead');
    await rm(blocked, { recursive: true });
    nanobot('dead', 'retry', letter?.id ?? '');
    expect(await botSays(PERSON, /nonce-poison/)).toBe('nonce-poison');
    expect(botTexts(PERSON)).toHaveLength(2);
  });
});

describe('a speculative answer', () => {
  it('is begun at once and begun again with what follows', async () => {
    await start({ coalesce: { mode: 'speculative', quietMs: 400 } });
    const held = new Promise(() => undefined);
    model.script({ gate: held }, echo);
    telegram.say(PERSON, 'one nonce-s1');
    await model.received(1);
    telegram.say(PERSON, 'two nonce-s2');
    expect(await botSays(PERSON, /nonce-s2/)).toBe('nonce-s1 nonce-s2');
    expect(botTexts(PERSON)).toHaveLength(1);
    expect(model.requests).toHaveLength(2);
  });
});

describe('messages during an answer', () => {
  it('wait for the next one after /queue followup', async () => {
    await start();
    telegram.say(PERSON, '/queue followup');
    await botSays(PERSON, /wait for the next/);
    let release: () => void = () => undefined;
    const gate = new Promise<void>((resolve) => {
      release = resolve;
    });
    model.script(
      { toolCalls: [{ name: 'time', arguments: {} }], gate },
      { chunks: ['nonce-f1'] },
      echo,
    );
    telegram.say(PERSON, 'first nonce-f1');
    await model.received(1);
    telegram.say(PERSON, 'second nonce-f2');
    await telegram.waitFor(() => telegram.unconfirmed.length === 0);
    release();
    await botSays(PERSON, /nonce-f2/);
    expect(botTexts(PERSON).slice(1)).toEqual(['nonce-f1', 'nonce-f2']);
  });
});

describe('a graceful stop', () => {
  it('lets the answer under way arrive', async () => {
    await start();
    let release: () => void = () => undefined;
    const gate = new Promise<void>((resolve) => {
      release = resolve;
    });
    model.script({ chunks: ['the rest nonce-last'], gate });
    telegram.say(PERSON, 'a question');
    await model.received(1);
    const stopped = gateway.stop();
    await gateway.printed(/Stopping/);
    release();
    expect(await stopped).toBe(0);
    expect(botTexts(PERSON)).toEqual(['the rest nonce-last']);
  });
});
