// `nanobot onboard` by flags alone: what is proved is saved, what is not is not.

import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type BotApi, startBotApi } from '../support/bot-api.ts';
import { fail, type LlmServer, say, startLlmServer } from '../support/llm-server.ts';
import { startSocksProxy } from '../support/proxy-programs.ts';
import { runNanobot, type TemporaryHome, temporaryHome } from './run-nanobot.ts';

let home: TemporaryHome;
let server: LlmServer;
let telegram: BotApi;

const SKIP = ['--yes', '--no-telegram', '--no-email'];
const onDisk = async () => JSON.parse(await readFile(join(home.path, 'config.json'), 'utf8'));
const onboard = (args: readonly string[], env: Readonly<Record<string, string>> = {}) =>
  runNanobot(['onboard', ...args], { home: home.path, env });

beforeEach(async () => {
  home = await temporaryHome();
  server = await startLlmServer({ apiKey: 'the-right-key' });
  telegram = await startBotApi();
});
afterEach(async () => {
  await telegram[Symbol.asyncDispose]();
  await server[Symbol.asyncDispose]();
  await home[Symbol.asyncDispose]();
});

describe('a proxy', () => {
  const flags = (proxy: string) => [
    ...['--yes', '--no-email', '--model', 'openai/sim', '--api-key', 'the-right-key'],
    ...['--api-base', server.openaiBase.replace('127.0.0.1', 'model.test')],
    ...['--telegram', telegram.token, '--proxy', proxy],
  ];
  const save = () =>
    writeFile(
      join(home.path, 'config.json'),
      JSON.stringify({
        version: 1,
        channels: { telegram: { apiRoot: telegram.apiRoot.replace('127.0.0.1', 'telegram.test') } },
      }),
      { mode: 0o600 },
    );

  test('is proved and saved first, and used for the model and Telegram', async () => {
    await using proxy = await startSocksProxy();
    await save();
    server.script(say('ready'));
    const { code, stdout } = await onboard(flags(proxy.url));
    expect(stdout).toMatch(/The proxy works[\s\S]*openai\/sim answered[\s\S]*Telegram accepted it/);
    expect(code).toBe(0);
    expect(await onDisk()).toMatchObject({ network: { proxy: proxy.url } });
    const names = proxy.targets.map((target) => target.split(':')[0]);
    expect(new Set(names)).toEqual(new Set(['telegram.test', 'model.test']));
  });

  test('that is not there is not saved', async () => {
    await save();
    const { code, stderr } = await onboard(flags('socks5h://ada:secret-word@127.0.0.1:1'));
    expect(code).not.toBe(0);
    expect(stderr).toContain('is not reachable (ECONNREFUSED)');
    expect(stderr).not.toContain('secret-word');
    expect(await onDisk()).not.toHaveProperty('network');
  });
});

describe('the model', () => {
  const flags = () => ['--model', 'openai/sim', '--api-base', server.openaiBase];

  test('is saved after it answered', async () => {
    server.script(say('ready'));
    const { code, stdout } = await onboard([...SKIP, ...flags(), '--api-key', 'the-right-key']);
    expect(code).toBe(0);
    expect(stdout).toContain('openai/sim answered');
    expect(await onDisk()).toMatchObject({
      agents: { defaults: { model: 'openai/sim' } },
      providers: { openai: { apiKey: 'the-right-key' } },
    });
    server.assertDone();
  });

  test('is not saved when its key is refused', async () => {
    const { code, stderr } = await onboard([...SKIP, ...flags(), '--api-key', 'wrong']);
    expect(code).toBe(7);
    expect(stderr).not.toContain('wrong');
    expect(await onDisk()).not.toHaveProperty('providers');
    server.takeComplaints();
  });

  test('a server that fails is a failure, not a retry without end', async () => {
    server.script(fail(500));
    expect((await onboard([...SKIP, ...flags(), '--api-key', 'the-right-key'])).code).toBe(7);
    server.takeComplaints();
  });

  test('a key from the environment is noted by its name', async () => {
    server.script(say('ready'));
    const env = { OPENAI_API_KEY: 'the-right-key' };
    const { code } = await onboard([...SKIP, ...flags(), '--api-key', 'the-right-key'], env);
    expect(code).toBe(0);
    const text = await readFile(join(home.path, 'config.json'), 'utf8');
    expect(text).toContain('{OPENAI_API_KEY}');
    expect(text).not.toContain('the-right-key');
  });

  test('without any, the demo answers and nothing is written about a model', async () => {
    const { code } = await onboard(SKIP);
    expect(code).toBe(0);
    expect(await onDisk()).not.toHaveProperty('agents');
  });

  test('a key of nobody knows whom asks for the model', async () => {
    const { code, stderr } = await onboard([...SKIP, '--api-key', 'mystery']);
    expect(code).toBe(2);
    expect(stderr).toContain('--model');
  });
});

describe('how much is asked', () => {
  test('is saved, and refused where there is no such policy', async () => {
    expect((await onboard([...SKIP, '--approvals', 'strict'])).code).toBe(0);
    expect(await onDisk()).toMatchObject({ tools: { approvals: { owner: 'strict' } } });
    expect((await onboard([...SKIP, '--approvals', 'never'])).code).toBe(2);
  });
});

describe('Telegram', () => {
  beforeEach(() =>
    home.writeConfig({ version: 1, channels: { telegram: { apiRoot: telegram.apiRoot } } }),
  );

  test('a token that Telegram does not know is not saved', async () => {
    const { code, stderr } = await onboard(['--yes', '--no-email', '--telegram', '1:wrong']);
    expect(code).toBe(1);
    expect(stderr).toContain('refused this token');
    expect((await onDisk()).channels.telegram).not.toHaveProperty('token');
  });

  test('the first tap on the link makes its sender the owner, and nobody else', async () => {
    const flags = ['--yes', '--no-email', '--telegram', telegram.token, '--pair-wait', '30'];
    const code = Promise.withResolvers<string>();
    const run = runNanobot(['onboard', ...flags], {
      home: home.path,
      onOutput(printed) {
        const link = /https:\/\/t\.me\/nano_sim_bot\?start=([A-Z0-9]{10})\s/.exec(printed);
        if (link?.[1] !== undefined) code.resolve(link[1]);
      },
    });
    const rightCode = await code.promise;
    telegram.say({ id: 7, first_name: 'Eve' }, '/start AAAAAAAAAA');
    telegram.say({ id: 8, first_name: 'Ada' }, `/start ${rightCode}`);
    const done = await run;
    expect(done.stdout).toContain('Paired with Ada.');
    expect(done.code).toBe(0);
    expect((await onDisk()).channels.telegram).toMatchObject({
      enabled: true,
      token: telegram.token,
    });
    const pairs = await runNanobot(['pair', 'list', '--json'], { home: home.path });
    expect(JSON.parse(pairs.stdout).approved).toMatchObject([{ userId: '8', role: 'owner' }]);
    expect(telegram.violations).toEqual([]);
  });
});

test.each([
  ['a model of no known vendor', ['--model', 'nonsense'], 'Write it with its provider'],
  ['a vendor without a key', ['--model', 'anthropic/claude'], 'providers.anthropic.apiKey'],
])('%s is told with what to do about it', async (_name, flags, remedy) => {
  const { code, stderr } = await onboard([...SKIP, ...flags]);
  expect(code).toBe(7);
  expect(stderr).toContain(remedy);
});

test('a script that leaves a question open is told the command that answers it', async () => {
  const { code, stderr } = await runNanobot(['channels', 'login', 'email'], { home: home.path });
  expect(code).toBe(2);
  expect(stderr).toContain('nanobot onboard --email');
});
