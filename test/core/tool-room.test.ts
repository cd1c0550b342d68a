import { expect, it } from 'vitest';
import { toolsFor } from '../../src/agent/rules/tokens.ts';
import { capabilitiesOf } from '../../src/providers/rules/model-names.ts';

const TOOLS = [{ name: 'read_file' }, { name: 'spawn' }, { name: 'cron' }];
const FEW = ['read_file', 'cron'];

const offered = (name: string, local: boolean, smallTools = FEW) =>
  toolsFor(
    TOOLS,
    { local, capabilities: capabilitiesOf({ name, local, overrides: [] }) },
    smallTools,
  )
    .map((tool) => tool.name)
    .join(' ');

it('offers a small local model few tools, and every other one all', () => {
  expect(offered('ollama/qwen3:1.7b', true)).toBe('read_file cron');
  expect(offered('ollama/qwen3:1.7b', true, [])).toBe('read_file spawn cron');
  expect(offered('ollama/qwen3:8b', true)).toBe('read_file spawn cron');
  expect(offered('ollama/nobody-knows', true)).toBe('read_file spawn cron');
  expect(offered('openrouter/llama-3.2-3b', false)).toBe('read_file spawn cron');
});

it('offers a model none that can call none', () => {
  const capabilities = { sizeClass: 'large', toolCalling: 'none' } as const;
  expect(toolsFor(TOOLS, { local: false, capabilities }, FEW)).toEqual([]);
});
