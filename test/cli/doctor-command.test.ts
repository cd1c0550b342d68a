// `nanobot doctor` finds what is wrong, says what to do, and mends only what it may.

import { chmod, mkdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Finding } from '../../src/cli/doctor/machine-checks.ts';
import { openEmbeddedStore } from '../../src/kernel/bus/store/embedded.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { systemClock } from '../../src/lib/time/clock.ts';
import { startBotApi } from '../support/bot-api.ts';
import { say, startLlmServer } from '../support/llm-server.ts';
import { S3_BUCKET, S3_KEY, S3_REGION, S3_SECRET, startS3 } from '../support/s3-server.ts';
import { runNanobot, type TemporaryHome, temporaryHome } from './run-nanobot.ts';

let home: TemporaryHome;

beforeEach(async () => {
  home = await temporaryHome();
});
afterEach(() => home[Symbol.asyncDispose]());

async function findings(...flags: string[]) {
  const { code, stdout } = await runNanobot(['doctor', '--json', ...flags], { home: home.path });
  const found: readonly Finding[] = JSON.parse(stdout);
  const levelOf = (check: string) => found.find((finding) => finding.check === check)?.level;
  return { code, found, levelOf };
}

test('a fresh home has warnings with remedies, but nothing broken', async () => {
  await home.writeConfig({ version: 1 });
  const { code, found, levelOf } = await findings();
  expect(code).toBe(8);
  expect(levelOf('config')).toBe('ok');
  expect(levelOf('model')).toBe('warn');
  expect(levelOf('programs')).toBe('ok');
  expect(found.find(({ check }) => check === 'secrets')?.text).toBe('No secrets in config.json');
  expect(found.filter(({ level }) => level !== 'ok').every(({ remedy }) => remedy)).toBe(true);
});

test('what other users can reach is found, and mended only on request', async () => {
  await home.writeConfig({ version: 1 });
  const config = join(home.path, 'config.json');
  await chmod(config, 0o644);
  const before = await findings();
  expect([before.code, before.levelOf('permissions')]).toEqual([1, 'fail']);
  expect((await stat(config)).mode & 0o777).toBe(0o644);
  const after = await findings('--fix', '--yes');
  expect(after.levelOf('permissions')).toBe('ok');
  expect((await stat(config)).mode & 0o777).toBe(0o600);
});

test('a bucket for files is written, read and emptied again; what fails is said without the key', async () => {
  await using s3 = await startS3();
  const keys = { region: S3_REGION, accessKeyId: S3_KEY };
  const media = { kind: 's3', bucket: S3_BUCKET, endpoint: s3.endpoint, ...keys };
  const examined = async (secretAccessKey: string) => {
    await home.writeConfig({ version: 1, storage: { media: { ...media, secretAccessKey } } });
    const { found } = await findings();
    return found.find(({ check }) => check === 'media');
  };
  expect(await examined(S3_SECRET)).toMatchObject({ level: 'ok' });
  expect(s3.statuses).toEqual([200, 200, 200, 204]);
  const refused = await examined('a-wrong-secret');
  expect(refused).toMatchObject({
    level: 'fail',
    text: expect.stringMatching(
      /s3:\/\/backups cannot be used\. write .*403 SignatureDoesNotMatch/,
    ),
    remedy: expect.stringContaining('storage.media'),
  });
  expect(JSON.stringify(refused)).not.toContain('a-wrong-secret');
});

test('a memory that has grown too large to be read is pointed out', async () => {
  await home.writeConfig({ version: 1 });
  const memories = join(home.path, 'workspace', 'people', 'ada', 'memory');
  await mkdir(memories, { recursive: true });
  await writeFile(join(memories, 'MEMORY.md'), 'She likes tea.\n'.repeat(70_000));
  const { found } = await findings();
  expect(found.filter(({ check }) => check === 'memory')).toEqual([
    expect.objectContaining({
      text: expect.stringContaining('people/ada/memory/MEMORY.md is too large'),
    }),
  ]);
});

test('secrets in arguments, hosts inside and programs without a sandbox are pointed out, without their values', async () => {
  const telegram = { token: '1:the-token-itself' };
  const web = { allowPrivateHosts: ['wiki.lan:8080'] };
  const exec = { sandbox: 'off' as const };
  const mcpServers = { wiki: { command: 'wiki', args: ['--token', 'sk-the-token-itself'] } };
  await home.writeConfig({ version: 1, channels: { telegram }, tools: { web, exec }, mcpServers });
  const { found, levelOf } = await findings();
  const levels = ['secrets', 'web', 'programs'].map(levelOf);
  expect(levels).toEqual(['warn', 'warn', 'warn']);
  const said = JSON.stringify(found);
  expect(said).toContain('mcpServers.wiki.args');
  expect(said).toContain('wiki.lan:8080');
  expect(said).not.toContain('the-token-itself');
});

test('a sandbox that cannot be had is named with what is missing', async () => {
  const exec = { sandbox: 'container', container: { image: 'no-such-image:of-ours' } };
  await home.writeConfig({ version: 1, tools: { exec } });
  const { found } = await findings();
  const finding = found.find(({ check }) => check === 'programs');
  expect(finding?.level).toBe('warn');
  expect(finding?.text).toMatch(/podman (?:is not installed|does not answer|has no image)/);
  expect(finding?.text).toMatch(/docker (?:is not installed|does not answer|has no image)/);
  expect(finding?.remedy).toContain('pull no-such-image:of-ours');
});

test('a configuration that does not load is a failure for each of its problems', async () => {
  await home.writeConfig({ version: 1, gatway: {}, memory: { enabled: 1 } });
  const { code, found } = await findings();
  expect(code).toBe(1);
  expect(found.filter(({ check, level }) => check === 'config' && level === 'fail')).toHaveLength(
    2,
  );
});

test('a budget in money is of no use where no price of the model is known', async () => {
  const written = {
    version: 1,
    agents: { defaults: { model: 'openai/sim-1' } },
    limits: { budget: { totalMoneyPerDay: 5 } },
  };
  await home.writeConfig(written);
  expect((await findings()).levelOf('prices')).toBe('warn');
  const prices = [{ model: 'openai/sim-1', input: 1, output: 2, cached: 1 }];
  await home.writeConfig({ ...written, models: { prices } });
  expect((await findings()).levelOf('prices')).toBe('ok');
});

test('Telegram is asked about the token, and an open door is pointed out', async () => {
  const telegram = await startBotApi();
  const settings = { enabled: true, apiRoot: telegram.apiRoot, allowFrom: ['*'] };
  await home.writeConfig({
    version: 1,
    channels: { telegram: { ...settings, token: telegram.token } },
  });
  const good = await findings();
  expect([good.levelOf('telegram'), good.levelOf('telegram-access')]).toEqual(['ok', 'warn']);
  await home.writeConfig({ version: 1, channels: { telegram: { ...settings, token: '1:wrong' } } });
  const bad = await findings();
  expect([bad.code, bad.levelOf('telegram')]).toEqual([1, 'fail']);
  await telegram[Symbol.asyncDispose]();
});

test('a fallback and a background model that nobody serves are named before they are needed', async () => {
  const defaults = { model: 'demo/demo', fallbackModels: ['opnai/gpt-5'], fastModel: 'groq/x' };
  await home.writeConfig({ version: 1, agents: { defaults } });
  const { found } = await findings();
  expect(found.filter(({ check }) => check === 'model')).toMatchObject([
    { text: expect.stringContaining('demo') },
    {
      text: expect.stringContaining('agents.defaults.fallbackModels: "opnai/gpt-5"'),
      remedy: expect.stringContaining('Did you mean openai/gpt-5?'),
    },
    { level: 'warn', remedy: expect.stringContaining('GROQ_API_KEY') },
  ]);
});

test('the model is asked only with --live', async () => {
  const server = await startLlmServer();
  await home.writeConfig({
    version: 1,
    agents: { defaults: { model: 'local/sim' } },
    providers: { local: { apiBase: server.openaiBase } },
  });
  expect((await findings()).levelOf('model')).toBe('ok');
  expect(server.requests).toHaveLength(0);
  server.script(say('ready'));
  expect((await findings('--live')).levelOf('model')).toBe('ok');
  expect(server.requests).toHaveLength(1);
  await server[Symbol.asyncDispose]();
});

test('a mailbox that cannot be reached is named with the step that failed', async () => {
  const dead = { imapHost: '127.0.0.1', imapPort: 9, imapSecurity: 'none' };
  await home.writeConfig({
    version: 1,
    channels: {
      email: {
        ...dead,
        enabled: true,
        smtpHost: '127.0.0.1',
        smtpPort: 9,
        smtpSecurity: 'none',
        username: 'bot@example.org',
        password: 'secret-of-the-mailbox',
      },
    },
  });
  const { code, found, levelOf } = await findings();
  expect([code, levelOf('email')]).toEqual([1, 'fail']);
  expect(JSON.stringify(found)).toContain('imap');
  expect(JSON.stringify(found)).not.toContain('secret-of-the-mailbox');
});

describe('the WhatsApp link', () => {
  const CHECK = 'whatsapp-link';
  const linked = { linkedNumber: '491511234567', endings: [], undecryptable: 0, status: 'running' };

  async function afterNoting(health: object | undefined, settings: object = {}) {
    await home.writeConfig({
      version: 1,
      channels: { whatsapp: { enabled: true, ...settings } },
    });
    const path = join(home.path, 'state.db');
    const store = await openEmbeddedStore({ path, clock: systemClock, log: silentLogger });
    const scope = store.scope('channel:whatsapp:default');
    if (health !== undefined) await scope.set('link/health', JSON.stringify(health));
    await store[Symbol.asyncDispose]();
    const { found, levelOf } = await findings();
    const finding = found.find(({ check }) => check === CHECK);
    return { level: finding?.level, text: finding?.text, remedy: finding?.remedy, levelOf };
  }

  test('that stands is told with its number and how it held', async () => {
    const openedAt = Date.now() - 3 * 3_600_000;
    const hour = Math.floor(Date.now() / 3_600_000);
    const health = { ...linked, openedAt, endings: [[hour, 2]], undecryptable: 3 };
    const { level, text } = await afterNoting(health);
    expect(level).toBe('ok');
    for (const part of [
      '+491511234567',
      '3h ago',
      '2 reconnects',
      '3 messages could not be decrypted',
    ]) {
      expect(text).toContain(part);
    }
  });

  test.each([
    ['was never made', undefined, 'no account is linked', 'nanobot channels login whatsapp'],
    ['was logged out', ended(401), 'logged this device out', 'nanobot channels login whatsapp'],
    ['was taken over', ended(440), 'another program', 'Stop the other program'],
  ])('that %s is a warning with its remedy', async (_name, health, text, remedy) => {
    const finding = await afterNoting(health);
    expect(finding.level).toBe('warn');
    expect(finding.text).toContain(text);
    expect(finding.remedy).toContain(remedy);
  });

  test('that came back after its end is fine again', async () => {
    const lastEnding = { code: 440, reason: 'taken over', at: Date.now() - 1000 };
    const { level } = await afterNoting({ ...linked, openedAt: Date.now(), lastEnding });
    expect(level).toBe('ok');
  });

  test('open to everybody, or to nobody, is pointed out', async () => {
    expect((await afterNoting(linked)).levelOf('whatsapp-access')).toBe('warn');
    const open = await afterNoting(linked, { allowFrom: ['*'] });
    expect(open.levelOf('whatsapp-access')).toBe('warn');
    const own = await afterNoting(linked, { selfChat: true });
    expect(own.levelOf('whatsapp-access')).toBe('ok');
  });
});

function ended(code: number) {
  const lastEnding = { code, reason: 'it ended', at: Date.now() };
  return {
    openedAt: Date.now() - 1000,
    endings: [],
    undecryptable: 0,
    status: 'stopped',
    lastEnding,
  };
}
