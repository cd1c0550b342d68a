import { describe, expect, it } from 'vitest';
import { type CapabilityQuestion, capabilitiesOf } from '../../src/providers/rules/model-names.ts';

const local = (name: string, more: Partial<CapabilityQuestion> = {}) =>
  capabilitiesOf({ name: `ollama/${name}`, local: true, overrides: [], ...more });

describe('the capability table', () => {
  it.each([
    ['qwen3:0.6b', 'small'],
    ['qwen3-1.7b', 'small'],
    ['llama3.2:3b', 'small'],
    ['gemma3:270m', 'small'],
    ['gemma-3n-e4b', 'small'],
    ['ministral-3b-instruct', 'small'],
    ['functiongemma', 'small'],
    ['nanbeige4', 'small'],
    ['mistral:7b', 'medium'],
    ['llama3.1:8b-instruct-q4_K_M', 'medium'],
    ['phi4-14b', 'medium'],
    ['glm4-9b-chat-1m', 'medium'],
    ['minimax-text-1m', 'medium'],
    ['orchestrator', 'medium'],
    ['my-own-model', 'medium'],
    ['qwen3-30b-a3b', 'large'],
    ['mixtral-8x7b', 'large'],
    ['nemotron-70b', 'large'],
    ['gpt-oss:120b', 'large'],
  ] as const)('takes the size of %s from its number, else from its family: %s', (name, size) => {
    expect(local(name).sizeClass).toBe(size);
  });

  it.each(['gpt-5', 'deepseek-flash', 'glm-5', 'kimi-k2', 'new/nobody-knows-7b', 'gemma-2-9b'])(
    'cuts nothing from %s of a service',
    (name) => {
      expect(capabilitiesOf({ name: `openrouter/${name}`, local: false, overrides: [] })).toEqual({
        sizeClass: 'large',
        toolCalling: 'native',
        textDialect: 'json',
        thinking: false,
        strictAlternation: false,
      });
    },
  );

  it.each([
    ['llama3.1:8b', 'native', 'llama'],
    ['llama3:8b', 'text', 'llama'],
    ['meta-llama-3-8b-instruct', 'text', 'llama'],
    ['gemma3:12b', 'text', 'json'],
    ['gemma4:12b', 'native', 'json'],
    ['functiongemma', 'native', 'json'],
    ['phi3:mini', 'text', 'json'],
    ['phi4-mini', 'native', 'json'],
    ['hermes-3-llama-3-8b', 'native', 'hermes'],
    ['qwen2.5-7b', 'native', 'qwen'],
    ['deepseek-r1:8b', 'text', 'deepseek'],
    ['mistral-7b-instruct-v0.2', 'text', 'json'],
    ['mistral-7b-instruct-v0.3', 'native', 'json'],
  ] as const)('knows how %s calls tools: %s, %s', (name, toolCalling, textDialect) => {
    expect(local(name)).toMatchObject({ toolCalling, textDialect });
  });

  it('knows who thinks and who insists on turns', () => {
    const thinking = ['qwen3:8b', 'qwen3-4b-thinking-2507', 'gpt-oss:20b', 'qwen3-vl-8b-thinking'];
    const plain = ['qwen3-coder:30b', 'qwen3-4b-instruct-2507', 'llama3.1:8b', 'qwen2.5:7b'];
    expect(thinking.filter((name) => !local(name).thinking)).toEqual([]);
    expect(plain.filter((name) => local(name).thinking)).toEqual([]);
    expect(local('gemma2:9b').strictAlternation).toBe(true);
    expect(local('qwen2.5:7b').strictAlternation).toBe(false);
  });

  it('asks no small model for more than it writes well', () => {
    expect(local('functiongemma').maxReliableOutput).toBe(512);
    expect(local('ministral-3:3b').maxReliableOutput).toBe(1024);
    expect(local('llama3.2:3b').maxReliableOutput).toBe(2048);
    expect(local('mistral:7b').maxReliableOutput).toBe(4096);
  });

  it('believes the server before the name, and the configuration before the server', () => {
    const said = { tools: true, thinking: false };
    expect(local('gemma3:12b', { said })).toMatchObject({ toolCalling: 'native' });
    expect(local('qwen3:8b', { said })).toMatchObject({ thinking: false });
    const overrides = [
      { models: 'ollama/Qwen3*b', thinking: true },
      { models: 'qwen', thinking: false, sizeClass: 'small' as const },
      { models: 'lmstudio/*', sizeClass: 'large' as const },
    ];
    expect(local('qwen3:8b', { said, overrides })).toMatchObject({
      thinking: true,
      sizeClass: 'small',
    });
    expect(local('qwen3:8b-q4', { said, overrides })).toMatchObject({ thinking: false });
  });

  it('takes a * for anything in between, and no letter twice', () => {
    const sized = (models: string, name: string) =>
      local(name, { overrides: [{ models, sizeClass: 'large' }] }).sizeClass === 'large';
    expect(sized('*:8b', 'a:8b')).toBe(true);
    expect(sized('ollama/a*b*c', 'axbxc')).toBe(true);
    expect(sized('ollama/ab*bc', 'abc')).toBe(false);
    expect(sized('*b*bc', 'abc')).toBe(false);
    expect(sized('a*', 'b')).toBe(false);
  });
});
