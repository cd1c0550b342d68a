// `nanobot doctor` finds what is wrong, says what to do, and mends only what it may.

import { chmod, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Finding } from '../../src/cli/doctor/finding.ts';
import { startBotApi } from '../support/bot-api.ts';
import { say, startLlmServer } from '../support/llm-server.ts';
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
  expect(found.filter(({ level }) => level !== 'ok').every(({ remedy }) => remedy)).toBe(true);
});

test('what other users can reach is found, and mended only on request', async () => {
  await home.writeConfig({ version: 1 });
  const config = join(home.path, 'config.json');
  await chmod(config, 0o644);
  const before = await findings();
  expect([before.code, before.levelOf('permissions')]).toEqual([1, 'fail']);
  expect((await stat(config)).mode & 0o777).toBe(0o644);
  const after = await findings('--fix');
  expect(after.levelOf('permissions')).toBe('ok');
  expect((await stat(config)).mode & 0o777).toBe(0o600);
});

test('a configuration that does not load is a failure for each of its problems', async () => {
  await home.writeConfig({ version: 1, gatway: {}, memory: { enabled: 1 } });
  const { code, found } = await findings();
  expect(code).toBe(1);
  expect(found.filter(({ check, level }) => check === 'config' && level === 'fail')).toHaveLength(
    2,
  );
});

test('Telegram is asked about the token, and an open door is pointed out', async () => {
  const telegram = await startBotApi();
  const settings = { enabled: true, apiRoot: telegram.apiRoot, allowFrom: ['*'] };
  await home.writeConfig({
    version: 1,
    channels: { telegram: { ...settings, token: telegram.token } },
  });
  const good = await findings();
  expect([good.levelOf('telegram'), good.levelOf('telegram access')]).toEqual(['ok', 'warn']);
  await home.writeConfig({ version: 1, channels: { telegram: { ...settings, token: '1:wrong' } } });
  const bad = await findings();
  expect([bad.code, bad.levelOf('telegram')]).toEqual([1, 'fail']);
  await telegram[Symbol.asyncDispose]();
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
