import { describe, expect, test } from 'vitest';
import { type ConfigInput, configSchema } from '../../src/kernel/config/config.ts';
import { ProviderError } from '../../src/kernel/message/errors.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { systemClock } from '../../src/lib/time/clock.ts';
import { discoverLocalModels, type LocalServer } from '../../src/providers/local-servers.ts';
import { proveModel } from '../../src/providers/model-setup.ts';
import { createModelRegistry } from '../../src/providers/registry.ts';
import { fail, say, startLlmServer } from '../support/llm-server.ts';
import { ask, finish, NO_RETRIES, simulated } from './provider-setup.ts';

type Env = Readonly<Record<string, string>>;

const OLLAMA: LocalServer = {
  vendor: 'ollama',
  apiBase: 'http://127.0.0.1:11434/v1',
  models: ['qwen3:8b'],
  handedOn: [],
};

function registry(config: ConfigInput, env: Env = {}, discovered: readonly LocalServer[] = []) {
  return createModelRegistry({
    config: configSchema.parse(config),
    env,
    discovered,
    clock: systemClock,
    log: silentLogger,
    random: () => 0.5,
  });
}

const model = (name: string): ConfigInput => ({ agents: { defaults: { model: name } } });

type Selection = readonly [string, ConfigInput, Env, readonly LocalServer[], string | RegExp];

const SELECTION: readonly Selection[] = [
  [
    'the configured model comes first',
    model('groq/x'),
    { ANTHROPIC_API_KEY: 'k' },
    [OLLAMA],
    'groq/x',
  ],
  [
    'a key in the configuration before one in the environment',
    { providers: { groq: { apiKey: 'k' } } },
    { OPENAI_API_KEY: 'k' },
    [],
    /^groq\//,
  ],
  [
    'the first vendor in order',
    {},
    { OPENAI_API_KEY: 'k', ANTHROPIC_API_KEY: 'k' },
    [],
    /^anthropic\/claude-/,
  ],
  ['OpenAI', {}, { OPENAI_API_KEY: 'k' }, [OLLAMA], /^openai\/gpt-/],
  ['OpenRouter', {}, { OPENROUTER_API_KEY: 'k', GROQ_API_KEY: 'k' }, [], /^openrouter\//],
  ['DeepSeek', {}, { DEEPSEEK_API_KEY: 'k' }, [], /^deepseek\/deepseek-/],
  ['Gemini', {}, { GEMINI_API_KEY: 'k' }, [], /^gemini\/gemini-/],
  ['Groq', {}, { GROQ_API_KEY: 'k' }, [], /^groq\//],
  ['Zhipu', {}, { ZHIPU_API_KEY: 'k' }, [], /^zhipu\/glm-/],
  ['Zhipu Coding', {}, { ZHIPU_CODING_API_KEY: 'k' }, [], /^zhipu-coding\/glm-/],
  ['Hugging Face', {}, { HF_TOKEN: 'k' }, [], /^huggingface\//],
  [
    'a vendor that was switched off is passed over',
    { providers: { openai: { apiKey: 'none' } } },
    { OPENAI_API_KEY: 'k', GROQ_API_KEY: 'k' },
    [],
    /^groq\//,
  ],
  ['an empty variable is no key', {}, { ANTHROPIC_API_KEY: '' }, [OLLAMA], 'ollama/qwen3:8b'],
  ['a local server when there is no key', {}, {}, [OLLAMA], 'ollama/qwen3:8b'],
  ['the demo when there is nothing', {}, {}, [], 'demo/demo'],
];

test.each(SELECTION)('the model in force: %s', (_rule, config, env, discovered, expected) => {
  const built = registry(config, env, discovered);
  if (typeof expected === 'string') expect(built.defaultModel).toBe(expected);
  else expect(built.defaultModel).toMatch(expected);
});

const ALL_KEYS: Env = {
  ANTHROPIC_API_KEY: 'k',
  OPENAI_API_KEY: 'k',
  OPENROUTER_API_KEY: 'k',
  DEEPSEEK_API_KEY: 'k',
  GEMINI_API_KEY: 'k',
  GROQ_API_KEY: 'k',
  ZHIPU_API_KEY: 'k',
};

test.each([
  ['claude-opus-5-5', 'anthropic/claude-opus-5-5'],
  ['gpt-4.1', 'openai/gpt-4.1'],
  ['o3', 'openai/o3'],
  ['o4-mini', 'openai/o4-mini'],
  ['gemini-2.5-pro', 'gemini/gemini-2.5-pro'],
  ['deepseek-flash', 'deepseek/deepseek-flash'],
  ['glm-4.7', 'zhipu/glm-4.7'],
  ['llama-3.3-70b-versatile', 'groq/llama-3.3-70b-versatile'],
  ['qwen/qwen3-max', 'openrouter/qwen/qwen3-max'],
  ['groq/openai/gpt-oss-120b', 'groq/openai/gpt-oss-120b'],
  ['qwen3:8b', 'ollama/qwen3:8b'],
  ['vllm/my-model', 'vllm/my-model'],
  ['demo', 'demo/demo'],
  ['zhipu-coding/glm-4.7', undefined],
  ['opus', undefined],
  ['gpt-oss-120b', undefined],
])('the name %s is served as %s', (name, expected) => {
  const built = registry({}, ALL_KEYS, [OLLAMA]);
  if (expected !== undefined) return expect(built.resolve(name).name).toBe(expected);
  expect(() => built.resolve(name)).toThrow(ProviderError);
});

test('a missing key is told with the way to set it', () => {
  const built = registry({}, {});
  expect(() => built.resolve('groq/x')).toThrow(
    expect.objectContaining({
      failure: { kind: 'unknown_model' },
      userText: expect.stringContaining('providers.groq.apiKey'),
    }),
  );
});

describe('what the agent must know of a model', () => {
  test('the context is the model’s, capped by the setting', () => {
    expect(registry({}, ALL_KEYS).resolve('openai/gpt-3.5-turbo').contextTokens).toBe(16_000);
    expect(registry({}, ALL_KEYS).resolve('claude-opus-5-5').contextTokens).toBe(128_000);
    const wide = { agents: { defaults: { maxContextTokens: 2_000_000 } } };
    expect(registry(wide, ALL_KEYS).resolve('claude-opus-5-5').contextTokens).toBe(1_000_000);
  });

  test('only servers of one’s own are local', () => {
    const built = registry({}, ALL_KEYS);
    expect(built.resolve('ollama/qwen3:8b').local).toBe(true);
    expect(built.resolve('openai/gpt-4.1').local).toBe(false);
  });

  test('side work goes to a cheaper model of the same vendor', () => {
    const built = registry({}, ALL_KEYS, [OLLAMA]);
    expect(built.fast('claude-opus-5-5')).toMatch(/^anthropic\/claude-haiku/);
    expect(built.fast('ollama/qwen3:8b')).toBe('ollama/qwen3:8b');
    expect(built.fast('demo/demo')).toBe('demo/demo');
  });

  test('or to the configured one, but never from a machine of one’s own to a service', () => {
    const fastModel = (name: string) =>
      registry({ agents: { defaults: { fastModel: name } } }, ALL_KEYS, [OLLAMA]);
    expect(fastModel('groq/sums').fast('claude-opus-5-5')).toBe('groq/sums');
    expect(fastModel('groq/sums').fast('ollama/qwen3:8b')).toBe('ollama/qwen3:8b');
    expect(fastModel('ollama/qwen3:8b').fast('claude-opus-5-5')).toBe('ollama/qwen3:8b');
    expect(fastModel('nobody-knows').fast('claude-opus-5-5')).toMatch(/^anthropic\/claude-haiku/);
  });
});

test('a configured base is used, with a key, without one, and for bare names', async () => {
  await using server = await startLlmServer({ respond: () => say('here') });
  const providers = {
    openai: { apiBase: `${server.openaiBase}/` },
    vllm: { apiBase: server.openaiBase },
  };
  const built = registry({ providers });
  for (const name of ['openai/gpt-4.1', 'gpt-4.1', 'vllm/mine', 'mine']) {
    expect((await finish(built.resolve(name), ask('hello'))).text).toBe('here');
  }
  expect(server.requests.map((request) => request.model)).toEqual([
    'gpt-4.1',
    'gpt-4.1',
    'mine',
    'mine',
  ]);
  server.assertDone();
});

describe('servers on this machine', () => {
  test('are found with the models that can chat', async () => {
    const models = ['nomic-embed-text', 'qwen3:8b', 'llama3.2'];
    await using server = await startLlmServer({ models });
    const at = [{ vendor: 'ollama', apiBase: server.openaiBase } as const];
    expect(await discoverLocalModels({ signal: new AbortController().signal, at })).toEqual([
      {
        vendor: 'ollama',
        apiBase: server.openaiBase,
        models: ['qwen3:8b', 'llama3.2'],
        handedOn: [],
      },
    ]);
  });

  test('that answer something else, or not at all, are none', async () => {
    await using server = await startLlmServer();
    const at = [
      { vendor: 'ollama', apiBase: `${server.url}/elsewhere` },
      { vendor: 'lmstudio', apiBase: 'http://127.0.0.1:1/v1' },
    ] as const;
    expect(await discoverLocalModels({ signal: new AbortController().signal, at })).toEqual([]);
    server.takeComplaints();
  });
});

describe('proving a model', () => {
  const signal = new AbortController().signal;

  test('shows what it answered', async () => {
    await using server = await startLlmServer();
    server.script(say('ready'));
    const proof = await proveModel(simulated('openai', server), signal, systemClock);
    expect(proof).toMatchObject({ ok: true, text: 'ready' });
  });

  test('fails with what to do when the key is refused', async () => {
    await using server = await startLlmServer();
    server.script(fail(401));
    const proof = proveModel(
      simulated('anthropic', server, { config: NO_RETRIES }),
      signal,
      systemClock,
    );
    await expect(proof).rejects.toMatchObject({
      failure: { kind: 'auth' },
      userText: expect.stringContaining('nanobot config set providers.anthropic.apiKey'),
    });
  });
});
