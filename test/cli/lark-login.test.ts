// Connecting Lark by `nanobot channels login lark`, and what the doctor says of it.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { LarkServer } from '../support/lark-server/contract.ts';
import { startLarkServer } from '../support/lark-server/server.ts';
import { runNanobot, temporaryHome } from './run-nanobot.ts';

async function login(server: LarkServer, home: string, secret: string, env = {}) {
  const flags = ['--app-id', server.appId, '--domain', server.url];
  const given = secret === '' ? [] : ['--app-secret', secret];
  return runNanobot(['channels', 'login', 'lark', ...flags, ...given], { home, env });
}

test('id and secret are proved before they are saved, and a code makes an owner', async () => {
  await using home = await temporaryHome();
  await using server = await startLarkServer();
  const { code, stdout } = await login(server, home.path, server.appSecret);
  expect(code).toBe(0);
  expect(stdout).toContain('bot Nano');
  expect(stdout).toMatch(/\/start [A-Z0-9]+/);
  const written = JSON.parse(await readFile(join(home.path, 'config.json'), 'utf8'));
  expect(written.channels.lark).toEqual({
    enabled: true,
    appId: server.appId,
    appSecret: server.appSecret,
    domain: server.url,
  });
  const doctor = await runNanobot(['doctor', '--json'], { home: home.path });
  expect(doctor.stdout).toContain('app accepted, bot Nano');
  expect(doctor.stdout).not.toContain(server.appSecret);
});

test('a wrong secret is neither saved nor shown', async () => {
  await using home = await temporaryHome();
  await using server = await startLarkServer();
  const { code, stdout, stderr } = await login(server, home.path, 'not-the-secret');
  expect(code).not.toBe(0);
  expect(stderr).toContain('refused this app id and secret');
  expect(stdout + stderr).not.toContain('not-the-secret');
  const written = await readFile(join(home.path, 'config.json'), 'utf8');
  expect(written).not.toContain('not-the-secret');
});

test('a secret from the environment is noted by its name', async () => {
  await using home = await temporaryHome();
  await using server = await startLarkServer();
  await login(server, home.path, '', { LARK_APP_SECRET: server.appSecret });
  const written = JSON.parse(await readFile(join(home.path, 'config.json'), 'utf8'));
  expect(written.channels.lark.appSecret).toBe(`\${LARK_APP_SECRET}`);
});
