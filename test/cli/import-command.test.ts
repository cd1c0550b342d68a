// `nanobot import`: whoever comes from another program keeps model, keys, channels and memory, lets
// nobody in whom they did not name, and sees everything before it happens.

import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { runCli } from '../../src/cli/cli.ts';
import { createTerminal } from '../../src/cli/terminal.ts';
import { loadConfig } from '../../src/kernel/config/files/config-file.ts';
import { homeOf } from '../../src/kernel/config/files/home.ts';
import { withUnreadable } from '../support/unreadable.ts';

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'nanobot-import-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

async function write(files: Readonly<Record<string, unknown>>): Promise<void> {
  for (const [path, content] of Object.entries(files)) {
    const target = join(folder, path);
    await mkdir(dirname(target), { recursive: true });
    await writeFile(target, typeof content === 'string' ? content : JSON.stringify(content));
  }
}

const home = () => homeOf({ NANOBOT_HOME: join(folder, 'home') });
const ours = (path: string) => readFile(join(home().workspace, path), 'utf8');
const config = async () => (await loadConfig(home(), {})).config;

async function nanobot(...argv: string[]) {
  const lines: string[] = [];
  const say = (line: string) => void lines.push(line);
  const terminal = { ...createTerminal(process), env: {}, home: home(), interactive: false };
  const code = await runCli(argv, { ...terminal, print: say, note: say, tell: say });
  return { code, said: lines.join('\n') };
}

/** As `nanobot onboard` of the Python program writes it, with what its owner added. */
const PYTHON_CONFIG = {
  agents: {
    defaults: {
      workspace: '~/.nanobot/workspace',
      model: 'anthropic/claude-opus-4-5',
      provider: 'auto',
      maxTokens: 8192,
      temperature: 0.1,
      maxToolIterations: 40,
      memoryWindow: 100,
      reasoningEffort: null,
    },
  },
  channels: {
    sendProgress: true,
    sendToolHints: false,
    whatsapp: {
      enabled: true,
      bridgeUrl: 'ws://localhost:3001',
      bridgeToken: '',
      allowFrom: ['491511234567'],
    },
    telegram: {
      enabled: true,
      token: '42:the-secret-bot-token',
      allowFrom: ['123456789|ann', '@bob', '*'],
      proxy: null,
      replyToMessage: false,
    },
    discord: { enabled: true, token: 'discord-secret', allowFrom: [], intents: 37377 },
    email: {
      enabled: true,
      consentGranted: true,
      imapHost: 'imap.example.org',
      imapPort: 993,
      imapUsername: 'bot@example.org',
      imapPassword: 'mail-secret',
      imapMailbox: 'INBOX',
      imapUseSsl: true,
      smtpHost: 'smtp.example.org',
      smtpPort: 587,
      smtpUsername: 'bot@example.org',
      smtpPassword: 'mail-secret',
      smtpUseTls: true,
      smtpUseSsl: false,
      fromAddress: '',
      pollIntervalSeconds: 30,
      allowFrom: ['Me@Example.org'],
    },
  },
  providers: {
    custom: { apiKey: '', apiBase: null, extraHeaders: null },
    anthropic: { apiKey: '', apiBase: null },
    openrouter: { apiKey: 'sk-or-secret', apiBase: null },
    dashscope: { apiKey: 'dash-secret', apiBase: null },
  },
  gateway: { host: '0.0.0.0', port: 18790, heartbeat: { enabled: true, intervalS: 1800 } },
  tools: {
    web: { proxy: null, search: { apiKey: 'brave-secret', maxResults: 5 } },
    exec: { timeout: 60, pathAppend: '' },
    restrictToWorkspace: false,
    mcpServers: {
      files: {
        command: 'npx',
        args: ['-y', 'server'],
        env: { KEY: 'mcp-secret' },
        url: '',
        headers: {},
      },
    },
  },
};

describe('from nanobot for Python', () => {
  beforeEach(() =>
    write({
      'old/config.json': PYTHON_CONFIG,
      'old/workspace/SOUL.md': '# Soul\n\nI am kind.\n',
      'old/workspace/USER.md': '# User\n\n- Name: Ann\n',
      'old/workspace/AGENTS.md': 'Use the spawn tool.\n',
      'old/workspace/HEARTBEAT.md': '- [ ] tidy up\n',
      'old/workspace/memory/MEMORY.md': '# Memory\n\n- Ann likes tea.\n',
      'old/workspace/memory/HISTORY.md': '[2026-10-01 10:00] talked of tea\n',
      'old/workspace/skills/weather/SKILL.md': '---\nname: weather\ndescription: x\n---\n',
      'old/cron/jobs.json': { version: 1, jobs: [{ id: 'a1', name: 'x' }] },
      'old/sessions/telegram_1.jsonl': '{}\n',
    }),
  );

  test('keeps model, keys, channels, people and memory', async () => {
    const { code, said } = await nanobot('import', join(folder, 'old'), '--yes');
    expect(code).toBe(0);
    const { agents, providers, channels, tools, mcpServers } = await config();
    // Its own rule: the one provider with a key serves what nobody else can.
    expect(agents.defaults.model).toBe('openrouter/anthropic/claude-opus-4-5');
    expect(providers.openrouter.apiKey).toBe('sk-or-secret');
    expect(channels.telegram).toMatchObject({ enabled: true, token: '42:the-secret-bot-token' });
    expect(channels.telegram.allowFrom).toEqual(['123456789']);
    expect(channels.whatsapp).toMatchObject({ enabled: false, allowFrom: ['+491511234567'] });
    expect(channels.email).toMatchObject({
      enabled: true,
      username: 'bot@example.org',
      password: 'mail-secret',
      smtpPort: 587,
      smtpSecurity: 'starttls',
      imapSecurity: 'tls',
      allowFrom: ['me@example.org'],
    });
    expect(tools.web.search.braveApiKey).toBe('brave-secret');
    expect(mcpServers['files']).toMatchObject({ enabled: false, command: 'npx' });
    expect(await ours('SOUL.md')).toContain('I am kind.');
    expect(await ours('memory/MEMORY.md')).toBe('# Memory\n\n- Ann likes tea.\n');
    for (const left of [
      '@bob',
      'anyone could write',
      'discord',
      'dashscope',
      'skills add',
      'cron add',
      'Read them',
    ]) {
      expect(said).toContain(left);
    }
    expect(said).not.toMatch(/-secret/);
  });

  test('lays aside what would steer or start something', async () => {
    const before = await nanobot('import', join(folder, 'old'), '--dry-run');
    expect(before.said).toContain('workspace/imported/HEARTBEAT.md  (for you to check)');
    await expect(config()).resolves.toMatchObject({ agents: { defaults: { model: '' } } });
    await nanobot('import', join(folder, 'old'), '--yes');
    expect(await ours('imported/AGENTS.md')).toContain('spawn');
    expect(await ours('AGENTS.md')).not.toContain('spawn');
    expect(await ours('HEARTBEAT.md')).not.toContain('tidy up');
  });

  test('asks first, and done twice changes nothing', async () => {
    expect((await nanobot('import', join(folder, 'old'))).code).toBe(2);
    expect((await config()).agents.defaults.model).toBe('');
    await nanobot('import', join(folder, 'old'), '--yes');
    const again = await nanobot('import', join(folder, 'old'), '--yes');
    expect(again.said).toContain('nothing to import');
    expect(await ours('memory/MEMORY.md')).toBe('# Memory\n\n- Ann likes tea.\n');
  });

  test('overwrites nothing of ours', async () => {
    await write({
      'home/config.json': { version: 1, agents: { defaults: { model: 'ollama/mine' } } },
      'home/workspace/SOUL.md': 'My own soul.\n',
      'home/workspace/memory/MEMORY.md': '# Memory\n\n- Mine.\n',
    });
    const { said } = await nanobot('import', join(folder, 'old'), '--yes');
    expect(said).toContain('agents.defaults.model: already set here');
    expect((await config()).agents.defaults.model).toBe('ollama/mine');
    expect(await ours('SOUL.md')).toBe('My own soul.\n');
    expect(await ours('imported/SOUL.md')).toContain('I am kind.');
    const memory = await ours('memory/MEMORY.md');
    expect(memory).toContain('- Mine.');
    expect(memory).toContain('## From nanobot for Python');
    expect(memory).toContain('- Ann likes tea.');
  });

  test('whose home is where ours should be is told how to go on', async () => {
    await write({ 'home/config.json': PYTHON_CONFIG });
    const started = await nanobot('status');
    expect(started.code).toBe(3);
    expect(started.said).toMatch(/nanobot for Python.*nanobot import/);
    expect(started.said.split('\n')).toHaveLength(2);
    const { code, said } = await nanobot('import', home().root);
    expect(code).toBe(2);
    expect(said).toContain('mv ');
  });
});

describe('from OpenClaw', () => {
  beforeEach(() =>
    write({
      'claw/openclaw.json': `{
        // written by hand
        agents: { defaults: { workspace: "~/.openclaw/workspace",
          model: { primary: "anthropic/claude-sonnet-4-6", fallbacks: ["google/gemini-3", "xai/grok",], }, } },
        'env': { vars: { GROQ_API_KEY: 'groq-secret' } },
        channels: {
          telegram: { botToken: "42:the-secret-bot-token", dmPolicy: "pairing", allowFrom: ["tg:111222"] },
          whatsapp: { allowFrom: ["+15555550123"], groups: { "*": { requireMention: true } } },
          signal: { enabled: true }, slack: { enabled: false },
        },
        models: { providers: { ollama: { baseUrl: "http://127.0.0.1:11434/v1", apiKey: { source: "env", id: "OLLAMA_KEY" } } } },
        __proto__: { polluted: true },
      }`,
      'claw/.env': '# keys\nexport OPENAI_API_KEY="env-secret"\nOTHER=1\n',
      'claw/agents/main/agent/auth-profiles.json': {
        version: 1,
        profiles: {
          'anthropic:default': { type: 'api_key', provider: 'anthropic', key: 'sk-ant-secret' },
          'openai-codex:me': { type: 'oauth', provider: 'openai-codex', access: 'oauth-secret' },
        },
      },
      'claw/credentials/telegram-allowFrom.json': { version: 1, allowFrom: ['333444'] },
      'claw/workspace/IDENTITY.md': '- Name: Clawd\n',
      'claw/workspace/MEMORY.md': '- The door code is in the safe.\n',
      'claw/workspace/memory/2026-11-01.md': 'Bought milk.\n',
    }),
  );

  test('keeps model, fallbacks, keys, paired people and notes', async () => {
    const { code, said } = await nanobot('import', join(folder, 'claw'), '--yes');
    expect(code).toBe(0);
    const { agents, providers, channels } = (await loadConfig(home(), { OLLAMA_KEY: 'x' })).config;
    expect(agents.defaults.model).toBe('anthropic/claude-sonnet-4-6');
    expect(agents.defaults.fallbackModels).toEqual(['gemini/gemini-3']);
    expect(providers.anthropic.apiKey).toBe('sk-ant-secret');
    expect(providers.openai.apiKey).toBe('env-secret');
    expect(providers.groq.apiKey).toBe('groq-secret');
    expect(channels.telegram.allowFrom).toEqual(['111222', '333444']);
    expect(channels.whatsapp.allowFrom).toEqual(['+15555550123']);
    expect(await ours('IDENTITY.md')).toContain('Clawd');
    expect(await ours('memory/MEMORY.md')).toContain('door code');
    expect(await ours('memory/2026-11-01.md')).toBe('Bought milk.\n');
    expect(said).toMatch(/openai-codex/);
    expect(said).toContain('signal');
    expect(said).not.toContain('slack');
    expect(said).not.toMatch(/-secret/);
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
  });

  test('follows no link out of its folder', async () => {
    await write({ 'private.txt': 'not yours\n' });
    await rm(join(folder, 'claw/workspace/MEMORY.md'));
    await symlink(join(folder, 'private.txt'), join(folder, 'claw/workspace/MEMORY.md'));
    await nanobot('import', join(folder, 'claw'), '--yes');
    expect(await ours('memory/MEMORY.md')).not.toContain('not yours');
  });
});

test('a model by its bare name stays, and one of an unknown vendor is named', async () => {
  const withModel = (model: string) => ({ agents: { defaults: { model } }, providers: {} });
  await write({ 'bare/config.json': withModel('claude-opus-4-5') });
  await write({ 'odd/config.json': withModel('moonshot/kimi') });
  expect((await nanobot('import', join(folder, 'odd'), '-y')).said).toContain(
    'Model moonshot/kimi',
  );
  expect((await config()).agents.defaults.model).toBe('');
  await nanobot('import', join(folder, 'bare'), '--yes');
  expect((await config()).agents.defaults.model).toBe('claude-opus-4-5');
});

test('a folder of neither, and a file that is no JSON, are named', async () => {
  await write({ 'empty/readme.txt': '', 'bad/openclaw.json': '{ agents: ' });
  const nothing = await nanobot('import', join(folder, 'empty'));
  expect(nothing.code).toBe(6);
  expect(nothing.said).toMatch(/openclaw\.json.*config\.json/);
  const bad = await nanobot('import', join(folder, 'bad'));
  expect(bad.code).toBe(1);
  expect(bad.said).toContain(join(folder, 'bad', 'openclaw.json'));
});

test('what cannot be read stays behind by name, and the rest is taken over', async () => {
  await write({
    'old/config.json': PYTHON_CONFIG,
    'old/workspace/SOUL.md': 'I am Bert.',
    'old/workspace/memory/MEMORY.md': 'Anna likes tea.',
    'old/workspace/memory/2026-01-15.md': 'x'.repeat(1_000_001),
  });
  const unreadable = join(folder, 'old/workspace/SOUL.md');
  const { code, said } = await withUnreadable([folder], unreadable, () =>
    nanobot('import', join(folder, 'old'), '--yes'),
  );
  expect(code).toBe(0);
  expect(said).toContain('SOUL.md is not readable');
  expect(said).toContain('2026-01-15.md is larger than 1 MB');
  expect(await ours('memory/MEMORY.md')).toContain('Anna likes tea.');
});
