// Models over the real providers at a strict model server, and tools that note what ran.

import { onTestFinished } from 'vitest';
import { configSchema } from '../../src/kernel/config/config.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { createModelRegistry } from '../../src/providers/registry.ts';
import { startLlmServer } from '../support/llm-server.ts';
import { createMovableClock } from '../support/movable-clock.ts';

export const MODELS = { openai: 'openai/sim-1', anthropic: 'anthropic/claude-sonnet-4-5' } as const;
export const DIALECTS = ['openai', 'anthropic'] as const;
export type WireDialect = (typeof DIALECTS)[number];

export async function wireModels(
  dialect: WireDialect,
  options: Parameters<typeof startLlmServer>[0] = {},
) {
  const server = await startLlmServer(options);
  onTestFinished(() => server[Symbol.asyncDispose]());
  const config = configSchema.parse({
    agents: { defaults: { model: MODELS[dialect] } },
    providers: {
      openai: { apiKey: 'k', apiBase: server.openaiBase },
      anthropic: { apiKey: 'k', apiBase: server.url },
    },
    retry: { providerAttempts: 0 },
  });
  const clock = createMovableClock();
  const common = { config, env: {}, log: silentLogger, random: () => 0.5 };
  return { server, models: createModelRegistry({ ...common, clock }) };
}

export function notingTools() {
  const ran: string[] = [];
  const tool = (name: string, access: 'read' | 'write') => ({
    ...{ name, access },
    async run() {
      ran.push(name);
      return `${name} done`;
    },
  });
  return { ran, tools: [tool('look', 'read'), tool('pay', 'write'), tool('post', 'write')] };
}
