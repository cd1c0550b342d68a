// The configuration on disk: loading, the copies that are kept, the first start, the shipped files.

import { chmod, mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { checkConfig } from '../../src/kernel/config/check.ts';
import { TOOL_NAMES } from '../../src/kernel/config/config.ts';
import { loadConfig, saveConfig } from '../../src/kernel/config/files/config-file.ts';
import { configJsonSchema } from '../../src/kernel/config/files/config-schema.ts';
import { openHome } from '../../src/kernel/config/files/first-run.ts';
import { type Home, homeOf } from '../../src/kernel/config/files/home.ts';
import { ConfigError } from '../../src/kernel/message/errors.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const ROOT = join(import.meta.dirname, '../..');
let home: Home;

beforeEach(async () => {
  home = homeOf({ NANOBOT_HOME: await temporaryFolder() });
});
const write = (config: unknown) => writeFile(home.config, JSON.stringify(config));
const modeOf = async (path: string) => (await stat(path)).mode & 0o777;

describe('loading', () => {
  test('keeps a private copy of the last file that loaded, and no worse one', async () => {
    await write({ version: 1, gateway: { port: 1234 } });
    await loadConfig(home, {});
    await write({ version: 1, gateway: { port: 'broken' } });
    await expect(loadConfig(home, {})).rejects.toThrow('1 problem');
    expect(JSON.parse(await readFile(home.lastGoodConfig, 'utf8')).gateway.port).toBe(1234);
    expect(await modeOf(home.lastGoodConfig)).toBe(0o600);
  });

  test('an original file is migrated once and kept as it was', async () => {
    const original = { channels: { email: { pollIntervalSecs: 45 } }, trio: { enabled: true } };
    await write(original);
    const first = await loadConfig(home, {});
    const second = await loadConfig(home, {});
    expect(first.config.channels.email.pollSecs).toBe(45);
    expect(first.notes.join('\n')).toContain('removed trio');
    expect(second.notes).toEqual([]);
    expect(JSON.parse(await readFile(`${home.config}.v0`, 'utf8'))).toEqual(original);
  });

  test('an original file with a problem is not touched', async () => {
    await write({ agents: { defaults: { maxTokens: 'many' } } });
    await expect(loadConfig(home, {})).rejects.toThrow('1 problem');
    expect(await readdir(home.root)).toEqual(['config.json']);
  });

  test('the token of a container comes by its environment', async () => {
    const { config } = await loadConfig(
      home,
      { NANOBOT_GATEWAY_TOKEN: 'a-token-from-compose' },
      { 'gateway.host': '0.0.0.0' },
    );
    expect(config.gateway).toMatchObject({ host: '0.0.0.0', token: 'a-token-from-compose' });
  });

  test.each([
    ['', 'workspace'],
    ['files', 'files'],
    ['/srv/agent', '/srv/agent'],
  ])('the workspace "%s" becomes an absolute path', async (written, expected) => {
    await write({ version: 1, agents: { defaults: { workspace: written } } });
    const { workspace } = (await loadConfig(home, {})).config.agents.defaults;
    expect(workspace).toBe(expected.startsWith('/') ? expected : join(home.root, expected));
  });

  test('saving never resolves a reference to the environment', async () => {
    const env = { KEY: 'the-secret-itself' };
    await write({ version: 1, providers: { openai: { apiKey: '$'.concat('{KEY}') } } });
    const { raw } = await loadConfig(home, env);
    await saveConfig(home, { ...raw, memory: { enabled: false } }, env);
    const text = await readFile(home.config, 'utf8');
    expect(text).toContain('{KEY}');
    expect(text).not.toContain('the-secret-itself');
  });
});

describe('a first start', () => {
  test('makes a private home with a minimal configuration, its schema and a workspace', async () => {
    await rm(home.root, { recursive: true });
    const { created, notes } = await openHome(home, {});
    expect(created).toBe(true);
    expect(notes).toHaveLength(3);
    expect(JSON.parse(await readFile(home.config, 'utf8'))).toEqual({
      $schema: './config.schema.json',
      version: 1,
    });
    expect([await modeOf(home.root), await modeOf(home.config)]).toEqual([0o700, 0o600]);
    expect(await modeOf(home.token)).toBe(0o600);
    expect(await readdir(home.workspace)).toContain('AGENTS.md');
    expect((await openHome(home, {})).notes).toEqual([]);
  });

  test('a file of the workspace that a person changed or deleted stays so', async () => {
    await openHome(home, {});
    // The gateway has started once.
    await writeFile(home.state, '');
    await writeFile(join(home.workspace, 'SOUL.md'), 'mine');
    await rm(join(home.workspace, 'USER.md'));
    await openHome(home, {});
    expect(await readFile(join(home.workspace, 'SOUL.md'), 'utf8')).toBe('mine');
    expect(await readdir(home.workspace)).not.toContain('USER.md');
  });

  test('makes a token that nobody can guess, once, for a gateway that has none configured', async () => {
    const first = await openHome(home, {});
    const { token } = first.loaded.config.gateway;
    expect([token.length, first.loaded.hasMadeToken]).toEqual([43, true]);
    expect((await openHome(home, {})).loaded.config.gateway.token).toBe(token);
    expect(await readFile(home.config, 'utf8')).not.toContain(token);
    expect(
      (await openHome(home, { NANOBOT_GATEWAY_TOKEN: 'given' })).loaded.config.gateway.token,
    ).toBe('given');
    await write({ version: 1, gateway: { token: 'written' } });
    const written = (await openHome(home, {})).loaded;
    expect([written.config.gateway.token, written.hasMadeToken]).toEqual(['written', false]);
  });

  test('a made token does not open the gateway to other machines', async () => {
    await openHome(home, {});
    await write({ version: 1, gateway: { host: '0.0.0.0' } });
    await expect(openHome(home, {})).rejects.toThrow(ConfigError);
  });

  test('a home that others can read is made private, and that is said', async () => {
    await write({ version: 1 });
    await mkdir(home.sessions);
    await chmod(home.root, 0o755);
    await chmod(home.config, 0o644);
    const { notes } = await openHome(home, {});
    expect(notes.filter((note) => note.includes('other users could read it'))).toHaveLength(2);
    expect([await modeOf(home.root), await modeOf(home.config)]).toEqual([0o700, 0o600]);
  });
});

describe('what ships with the program', () => {
  test('config.schema.json is what "nanobot config schema" prints now', async () => {
    expect(await readFile(join(ROOT, 'config/config.schema.json'), 'utf8')).toBe(
      `${JSON.stringify(configJsonSchema(), undefined, 2)}\n`,
    );
  });

  test('config.example.json loads', async () => {
    const mail = ['EMAIL_PASSWORD', 'EMAIL_WORK_PASSWORD'];
    const names = ['ANTHROPIC_API_KEY', 'OPENAI_API_KEY', ...mail, 'LARK_APP_SECRET'];
    const env = Object.fromEntries(names.map((name) => [name, 'x'.repeat(20)]));
    const text = await readFile(join(ROOT, 'config/config.example.json'), 'utf8');
    const { config } = checkConfig(text, { ...env, TELEGRAM_BOT_TOKEN: '1:abc' });
    expect(config.channels.telegram.enabled).toBe(true);
    expect(config.channels.email.accounts).toHaveProperty('work');
  });

  test('.env.example names what config.example.json and the search tools read', async () => {
    const example = await readFile(join(ROOT, 'config/config.example.json'), 'utf8');
    const named = [...example.matchAll(/\$\{(\w+)\}/g)].map(([, name]) => name);
    const env = await readFile(join(ROOT, 'config/.env.example'), 'utf8');
    const lines = env.split('\n');
    for (const name of [...named, 'BRAVE_API_KEY', 'FINANCIAL_DATASETS_API_KEY']) {
      expect(lines).toContain(`${name}=`);
    }
  });

  test('tools.disabled knows every built-in tool', async () => {
    const files = await readdir(join(ROOT, 'src/tools/descriptions'));
    expect(files.map((file) => file.replace(/\.md$/, '')).sort()).toEqual([...TOOL_NAMES].sort());
  });
});
