// The whole program behind proxies: Telegram, the model and the voice engine have names that only the
// proxy programs know, so that what arrives there came through them.

import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { runNanobot } from '../cli/run-nanobot.ts';
import { startBotApi } from '../support/bot-api.ts';
import { freePorts } from '../support/free-ports.ts';
import { makeTestHome } from '../support/gateway-process.ts';
import { callTools, echo, say, startLlmServer } from '../support/llm-server.ts';
import { startHttpProxy, startSocksProxy } from '../support/proxy-programs.ts';
import { startVoiceServer, VOICE_KEY, voiceNote } from '../support/voice-server.ts';

const ADA = 1001;
const LOGIN = { username: 'ada-behind-walls', password: 'Correct/Horse@Battery9' };
const named = (address: string, name: string) => address.replace('127.0.0.1', name);
const portOf = (address: string) => new URL(address).port;

const opened = new AsyncDisposableStack();
afterAll(() => opened.disposeAsync());
const telegram = opened.use(await startBotApi());
const model = opened.use(await startLlmServer({ respond: echo }));
const voice = opened.use(await startVoiceServer());
const http = opened.use(await startHttpProxy(LOGIN));
const socks = opened.use(await startSocksProxy(LOGIN));
const env = {
  GENERAL_PROXY: socks.url,
  PROXY_PASSWORD: LOGIN.password,
  HTTPS_PROXY: 'http://127.0.0.1:9',
  NO_PROXY: 'excepted.test,127.0.0.1',
};
const [closed] = await freePorts(1);

const configOf = (openai: object, network: object) => ({
  version: 1 as const,
  agents: { defaults: { model: 'openai/sim-1' } },
  gateway: { port: 0 },
  coalesce: { quietMs: 0, continuationMs: 0 },
  retry: { providerAttempts: 0 },
  network: { proxy: { env: 'GENERAL_PROXY' }, ...network },
  providers: { openai: { apiKey: 'sk-proxy', ...openai } },
  voice: {
    transcription: {
      engine: 'openai' as const,
      apiBase: named(voice.base, 'voice.test'),
      apiKey: VOICE_KEY,
    },
  },
  tools: { approvals: { owner: 'open' as const } },
  limits: { messages: { perMinute: 0, perDay: 0 } },
  channels: {
    telegram: {
      ...{ enabled: true, token: telegram.token, allowFrom: [String(ADA)] },
      apiRoot: named(telegram.apiRoot, 'telegram.test'),
      streaming: false,
      proxy: `http://${LOGIN.username}:\${PROXY_PASSWORD}@127.0.0.1:${http.port}`,
    },
  },
});
const apiBase = named(model.openaiBase, 'model.test');
const home = opened.use(await makeTestHome(configOf({ apiBase }, {}) as never));
const gateway = await home.start(env);

const answered = async (words: string) => {
  telegram.say(ADA, words);
  return (await telegram.nextMessage(ADA)).text;
};
async function logs(): Promise<string> {
  const files = await readdir(join(home.path, 'logs'));
  const texts = files.map((file) => readFile(join(home.path, 'logs', file), 'utf8'));
  return (await Promise.all(texts)).join('\n');
}

it('reaches Telegram, the model and the voice engine through their proxies only', async () => {
  expect(await answered('please say nonce-first')).toBe('nonce-first');
  telegram.sendFile(ADA, {
    field: 'voice',
    content: voiceNote('please say nonce-spoken'),
    extra: { duration: 12, mime_type: 'audio/ogg' },
  });
  expect((await telegram.nextMessage(ADA)).text).toContain('nonce-spoken');
  // The calls and the file of the voice message.
  expect(new Set(http.targets)).toEqual(new Set([`telegram.test:${portOf(telegram.apiRoot)}`]));
  expect(new Set(socks.targets)).toEqual(
    new Set([`model.test:${portOf(apiBase)}`, `voice.test:${portOf(voice.base)}`]),
  );
});

it('reads pages through it by their address', async () => {
  model.script(
    callTools({ name: 'web_fetch', arguments: { url: 'http://93.184.216.34/' } }),
    say('nonce-read'),
  );
  expect(await answered('read that page')).toBe('nonce-read');
  expect(socks.targets).toContain('93.184.216.34:80');
});

it('nanobot doctor connects through each', async () => {
  const { stdout } = await runNanobot(['doctor'], { home: home.path, env });
  expect(stdout).toMatch(
    new RegExp(
      `✓ proxy +127\\.0\\.0\\.1:${http.port} \\(channels\\.telegram\\.proxy\\) connects to telegram\\.test`,
    ),
  );
  expect(stdout).toMatch(
    new RegExp(
      `✓ proxy +127\\.0\\.0\\.1:${socks.port} \\(network\\.proxy\\) connects to model\\.test`,
    ),
  );
  expect(stdout).not.toContain('Horse');
});

it('applies a change while it runs: a server on the list is reached directly', async () => {
  // Nobody listens at that proxy; NO_PROXY names the server.
  await home.writeConfig(
    configOf({ apiBase: model.openaiBase, proxy: `http://127.0.0.1:${closed}` }, {}) as never,
  );
  const { host } = new URL(model.openaiBase);
  const askedAt = async () => {
    await answered('please say nonce-direct');
    return model.requests.at(-1)?.headers['host'];
  };
  await expect.poll(askedAt, { interval: 50 }).toBe(host);
  const after = socks.targets.length;
  expect(await askedAt()).toBe(host);
  expect(socks.targets.length).toBe(after);
});

it('a refused login names the setting in the chat and in the doctor, and no login anywhere', async () => {
  const wrong = { proxy: `socks5h://ada-behind-walls:Wrong-Horse-77@127.0.0.1:${socks.port}` };
  await home.writeConfig(configOf({ apiBase }, wrong) as never);
  const refusal = `I cannot reach OpenAI: the proxy 127.0.0.1:${socks.port} (network.proxy) refuses the user name or password. Correct them in network.proxy.`;
  await expect.poll(() => answered('and now'), { interval: 50 }).toContain(refusal);
  const { stdout } = await runNanobot(['doctor'], { home: home.path, env });
  expect(stdout).toMatch(
    /✗ proxy +the proxy .* refuses the user name or password\n +Correct them in network\.proxy/,
  );
  const { stdout: shown } = await runNanobot(['config', 'get', 'network'], {
    home: home.path,
    env,
  });
  for (const text of [stdout, shown, await logs(), gateway.output()]) {
    expect(text).not.toMatch(/Horse|ada-behind-walls/);
    expect(text).not.toContain(
      Buffer.from(`${LOGIN.username}:${LOGIN.password}`).toString('base64'),
    );
  }
});
