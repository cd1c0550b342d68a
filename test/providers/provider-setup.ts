// What the provider tests share: requests, handles on the simulator, and draining a stream.

import { type ConfigInput, configSchema } from '../../src/kernel/config/config.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { type Clock, systemClock } from '../../src/lib/time/clock.ts';
import type { ModelEvent, ModelHandle, ModelRequest } from '../../src/providers/provider.ts';
import { createModelRegistry } from '../../src/providers/registry.ts';
import type { LlmServer } from '../support/llm-server.ts';

export type Request = Omit<ModelRequest, 'model'>;
export type Finished = Extract<ModelEvent, { type: 'finished' }>;

export const TEST_KEY = 'sk-test-0123456789abcdef';

export const timeTool = {
  name: 'time',
  description: 'Tells the time.',
  schema: { type: 'object', properties: { zone: { type: 'string' } } },
} as const;

export function ask(text: string, more: Partial<Request> = {}): Request {
  return {
    system: [
      { text: 'You are nanobot.', stable: true },
      { text: 'Today is Thursday.', stable: false },
    ],
    messages: [{ role: 'user', text }],
    tools: [],
    maxTokens: 256,
    ...more,
  };
}

/** A model of each dialect on the simulator, through the registry as the program builds it. */
export function simulated(
  dialect: 'openai' | 'anthropic',
  server: LlmServer,
  options: {
    readonly config?: ConfigInput;
    readonly clock?: Clock;
    readonly model?: string;
    readonly log?: typeof silentLogger;
  } = {},
): ModelHandle {
  const config = configSchema.parse({
    ...options.config,
    providers: {
      openai: { apiKey: TEST_KEY, apiBase: server.openaiBase },
      anthropic: { apiKey: TEST_KEY, apiBase: server.url },
      ...options.config?.providers,
    },
  });
  const registry = createModelRegistry({
    config,
    env: {},
    clock: options.clock ?? systemClock,
    log: options.log ?? silentLogger,
    random: () => 0.5,
  });
  const model = dialect === 'openai' ? 'openai/sim-1' : 'anthropic/claude-sonnet-4-5';
  return registry.resolve(options.model ?? model);
}

export const NO_RETRIES: ConfigInput = { retry: { providerAttempts: 0 } };

export async function collect(events: AsyncIterable<ModelEvent>): Promise<readonly ModelEvent[]> {
  const all: ModelEvent[] = [];
  for await (const event of events) all.push(event);
  return all;
}

/** The one `finished` a stream must end with. */
export async function finish(
  handle: ModelHandle,
  request: Request,
  signal: AbortSignal = new AbortController().signal,
): Promise<Finished> {
  const events = await collect(handle.stream(request, signal));
  const last = events.at(-1);
  if (last?.type !== 'finished') throw new Error('the stream did not end with finished');
  return last;
}
