// The model behind nanobot when no real one is connected. It pretends nothing: it says what it is, and
// shows streaming and tools by fixed rules.

import { ProviderError } from '../kernel/message/errors.ts';
import type { Clock } from '../lib/time/clock.ts';
import { createCallIds } from './call-ids.ts';
import { Completion } from './completion.ts';
import { type DemoReply, demoReply } from './demo-script.ts';
import type { LLMProvider, ModelEvent, ModelRequest } from './provider.ts';

export const DEMO_CONTEXT_TOKENS = 32_768;
/** Slow enough to be seen, fast enough not to bore. */
const WORD_MS = 12;
const CHARS_PER_TOKEN = 4;

export type DemoDeps = {
  readonly clock: Clock;
  /** Pause after each word, milliseconds; 0 = none. */
  readonly wordMs?: number;
};

export function createDemoProvider({ clock, wordMs = WORD_MS }: DemoDeps): LLMProvider {
  return {
    name: 'demo',
    async *stream(request, signal): AsyncGenerator<ModelEvent, void, void> {
      const completion = new Completion();
      const reply = demoReply(request);
      if (reply.kind === 'tool') {
        const id = createCallIds(request.messages)('');
        const { event, at } = completion.toolCall({ id, name: reply.tool });
        yield event;
        completion.toolArguments(at, reply.arguments);
      } else {
        for (const word of reply.text.match(/\s*\S+\s*/g) ?? []) {
          if (wordMs > 0) await pause(wordMs, clock, signal);
          if (signal.aborted) throw cancelled();
          yield completion.text(word);
        }
      }
      completion.usage(roughUsage(request, reply));
      yield completion.finish(request.model, 'end');
    },
  };
}

async function pause(ms: number, clock: Clock, signal: AbortSignal): Promise<void> {
  try {
    await clock.sleep(ms, signal);
  } catch {
    throw cancelled();
  }
}

const cancelled = () =>
  new ProviderError('the call was cancelled', {
    failure: { kind: 'cancelled' },
    provider: 'demo',
    model: 'demo',
  });

function roughUsage(request: ModelRequest, reply: DemoReply) {
  const read = JSON.stringify([request.system, request.messages, request.tools]).length;
  const written = reply.kind === 'tool' ? reply.arguments.length : reply.text.length;
  return {
    inputTokens: Math.ceil(read / CHARS_PER_TOKEN),
    outputTokens: Math.ceil(written / CHARS_PER_TOKEN),
    cachedTokens: 0,
  };
}
