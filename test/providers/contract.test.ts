import { describe } from 'vitest';
import { configSchema } from '../../src/kernel/config/config.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { systemClock } from '../../src/lib/time/clock.ts';
import { createModelRegistry } from '../../src/providers/registry.ts';
import { type ProviderUnderTest, providerContract } from '../contract/provider.ts';
import { callTools, say, startLlmServer } from '../support/llm-server.ts';
import { ask, simulated, timeTool } from './provider-setup.ts';

async function onSimulator(dialect: 'openai' | 'anthropic'): Promise<ProviderUnderTest> {
  const server = await startLlmServer();
  const handle = simulated(dialect, server);
  return {
    async answers() {
      server.script(say('one two three'));
      return { handle, request: ask('count') };
    },
    async callsTool() {
      server.script(callTools({ name: 'time', arguments: { zone: 'UTC' } }), say('It is noon.'));
      return { handle, request: ask('the time?', { tools: [timeTool] }) };
    },
    async neverEnds() {
      server.script({ chunks: ['on and '], fault: { kind: 'endless' } });
      return { handle, request: ask('go on') };
    },
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}

/** A model that knows no tools, on a server that refuses them. */
async function inText(): Promise<ProviderUnderTest> {
  const server = await startLlmServer({ template: 'no tools' });
  const config = {
    modelCapabilities: [{ models: 'sim-1', toolCalling: 'text' as const }],
    providers: { ollama: { apiBase: server.openaiBase } },
  };
  const handle = simulated('openai', server, { config, model: 'ollama/sim-1' });
  return {
    async answers() {
      server.script(say('{"done": true, "response": "one two three"}'));
      return { handle, request: ask('count', { tools: [timeTool] }) };
    },
    async callsTool() {
      server.script(
        say('{"tool": "time", "args": {"zone": "UTC"}}'),
        say('{"done": true, "response": "It is noon."}'),
      );
      return { handle, request: ask('the time?', { tools: [timeTool] }) };
    },
    async neverEnds() {
      const chunks = ['{"done": true, "response": "on and ', 'on'];
      server.script({ chunks, fault: { kind: 'endless' } });
      return { handle, request: ask('go on', { tools: [timeTool] }) };
    },
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}

async function demo(): Promise<ProviderUnderTest> {
  const handle = createModelRegistry({
    config: configSchema.parse({}),
    env: {},
    clock: systemClock,
    log: silentLogger,
    random: () => 0.5,
  }).resolve('demo/demo');
  return {
    answers: async () => ({ handle, request: ask('hello') }),
    callsTool: async () => ({ handle, request: ask('what time is it?', { tools: [timeTool] }) }),
    neverEnds: async () => ({ handle, request: ask('a long answer please') }),
    async [Symbol.asyncDispose]() {},
  };
}

describe('the provider contract', () => {
  providerContract('OpenAI dialect', () => onSimulator('openai'));
  providerContract('Anthropic dialect', () => onSimulator('anthropic'));
  providerContract('tools in text', inText);
  providerContract('demo', demo);
});
