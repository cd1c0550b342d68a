// `nanobot config` from outside: what scripts and people get to see, and what lands on disk.

import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { runNanobot, type TemporaryHome, temporaryHome } from './run-nanobot.ts';

const TOKEN = '271828:a-token-that-nobody-may-see';

let home: TemporaryHome;
const run = (...args: string[]) => runNanobot(['config', ...args], { home: home.path });
const onDisk = async () => JSON.parse(await readFile(join(home.path, 'config.json'), 'utf8'));

beforeAll(async () => {
  home = await temporaryHome();
});
afterAll(() => home[Symbol.asyncDispose]());
beforeEach(() =>
  home.writeConfig({ version: 1, channels: { telegram: { token: TOKEN, allowFrom: ['5'] } } }),
);

describe('showing', () => {
  test('never prints a secret, nor does asking for it by name', async () => {
    const shown = await run('show');
    const got = await run('get', 'channels.telegram.token');
    expect(shown.stdout + got.stdout).not.toContain(TOKEN);
    expect(got.stdout.trim()).toBe('[redacted]');
    expect(JSON.parse(shown.stdout).channels.telegram.allowFrom).toEqual(['5']);
  });

  test('knows the defaults that are not written', async () => {
    expect((await run('get', 'gateway.port')).stdout.trim()).toBe('18790');
  });

  test('names the nearest key for a misspelt one', async () => {
    const { code, stderr } = await run('get', 'gatway.port');
    expect(code).toBe(6);
    expect(stderr).toContain('Did you mean gateway.port?');
  });
});

describe('setting', () => {
  test('writes the value in its type, privately, and keeps the rest', async () => {
    expect((await run('set', 'channels.telegram.allowFrom', '7, 8')).code).toBe(0);
    expect((await run('set', 'gateway.port', '8080')).code).toBe(0);
    expect(await onDisk()).toMatchObject({
      gateway: { port: 8080 },
      channels: { telegram: { token: TOKEN, allowFrom: ['7', '8'] } },
    });
    expect((await stat(join(home.path, 'config.json'))).mode & 0o777).toBe(0o600);
  });

  test('names the variable of the environment that takes precedence', async () => {
    const env = { NANOBOT__gateway__port: '9090' };
    const set = ['config', 'set', 'gateway.port', '8080'];
    const { code, stderr } = await runNanobot(set, { home: home.path, env });
    expect([code, stderr]).toEqual([0, expect.stringContaining('NANOBOT__gateway__port')]);
    expect((await run('set', 'gateway.port', '8080')).stderr).not.toContain('NANOBOT__');
    const unset = await runNanobot(['config', 'unset', 'gateway.port'], { home: home.path, env });
    expect(unset.stderr).toContain('NANOBOT__gateway__port');
  });

  test('of several types, the value has that in which it is written', async () => {
    expect((await run('set', 'agents.workflows.enabled', 'false')).code).toBe(0);
    expect((await run('set', 'limits.budget.unpriced', '{"input":1,"output":2}')).code).toBe(0);
    expect(await onDisk()).toMatchObject({
      agents: { workflows: { enabled: false } },
      limits: { budget: { unpriced: { input: 1, output: 2 } } },
    });
    const env = { NANOBOT__agents__workflows__enabled: 'true' };
    const get = ['config', 'get', 'agents.workflows.enabled'];
    expect((await runNanobot(get, { home: home.path, env })).stdout.trim()).toBe('true');
  });

  test.each([
    ['a wrong type', 'gateway.port', 'many', 3],
    ['an open gateway', 'gateway.host', '0.0.0.0', 3],
    ['a mask', 'channels.telegram.token', '[redacted]', 3],
    ['stars', 'channels.telegram.token', '********', 3],
    ['a section', 'channels.telegram', 'x', 2],
    ['a prototype', '__proto__.polluted', 'x', 6],
  ])('%s changes nothing', async (_name, key, value, code) => {
    const before = await onDisk();
    expect((await run('set', key, value)).code).toBe(code);
    expect(await onDisk()).toEqual(before);
  });

  test('what show printed can be neither pasted back nor lost', async () => {
    const shown = JSON.parse((await run('show')).stdout);
    await home.writeConfig(shown);
    const { code, stderr } = await run('validate');
    expect(code).toBe(3);
    expect(stderr).toContain('channels.telegram.token');
  });

  test('one of several problems can be mended alone', async () => {
    await home.writeConfig({ version: 1, gateway: { port: 'x' }, memory: { enabled: 'x' } });
    expect((await run('set', 'gateway.port', '1')).code).toBe(0);
    expect((await run('validate')).stderr).toContain('memory.enabled');
  });

  test('a key that is unknown can be removed, as its problem says', async () => {
    await home.writeConfig({ version: 1, gatway: { port: 1 } });
    expect((await run('unset', 'gatway')).code).toBe(0);
    expect(await onDisk()).toEqual({ version: 1 });
    expect((await run('unset', 'gatway')).stderr).toContain('Did you mean gateway?');
  });
});

test('every problem of an invalid file is named with its line, as text and as JSON', async () => {
  await home.writeConfig({ version: 1, gatway: {}, gateway: { port: 0.5 } });
  const asText = await run('validate');
  const asJson = await run('validate', '--json');
  expect([asText.code, asJson.code]).toEqual([3, 3]);
  expect(asText.stderr).toContain('gatway (line 1, column 14): unknown key. Did you mean gateway?');
  expect(JSON.parse(asJson.stdout)).toMatchObject({
    valid: false,
    problems: [{ path: 'gateway.port' }, { path: 'gatway' }],
  });
});

test('a file that is not there is said to be missing, with what makes one', async () => {
  const { code, stderr } = await run('validate', join(home.path, 'none.json'));
  expect([code, stderr]).toEqual([6, expect.stringMatching(/there is no .*none\.json/)]);
});

test('the schema on stdout is the one that is checked in', async () => {
  const file = join(import.meta.dirname, '../../config/config.schema.json');
  expect(JSON.parse((await run('schema')).stdout)).toEqual(
    JSON.parse(await readFile(file, 'utf8')),
  );
});
