// The provider for every vendor that speaks OpenAI's chat completions, by the `openai` package with
// its retries off. The package is loaded at the first call: a start must not wait for it.

import type { OpenAI } from 'openai';
import type { ChatCompletionChunk } from 'openai/resources/chat/completions';
import { CallDeadline } from './call-deadline.ts';
import { openaiRequest } from './openai-request.ts';
import { OpenaiReader } from './openai-stream.ts';
import type { LLMProvider, ModelEvent, ModelRequest } from './provider.ts';
import type { ProviderDeps } from './provider-deps.ts';
import { brokenStream, providerError } from './vendor-error.ts';

/** Our own deadlines rule; the package's must never be the shorter one. */
const LIBRARY_TIMEOUT_MS = 2_000_000_000;

export function createOpenaiProvider(deps: ProviderDeps): LLMProvider {
  const { vendor, apiBase, apiKey, clock, timeouts } = deps;
  let client: Promise<OpenAI> | undefined;

  async function connect(): Promise<OpenAI> {
    const { OpenAI } = await import('openai');
    return new OpenAI({
      apiKey: apiKey === '' ? 'none' : apiKey,
      baseURL: apiBase,
      organization: null,
      project: null,
      maxRetries: 0,
      timeout: LIBRARY_TIMEOUT_MS,
      logLevel: 'off',
    });
  }

  async function* read(request: ModelRequest, reader: OpenaiReader, deadline: CallDeadline) {
    client ??= connect();
    const openai = await client;
    deadline.signal.throwIfAborted();
    const stream = await openai.chat.completions.create(openaiRequest(request, vendor.quirks), {
      signal: deadline.signal,
    });
    for await (const chunk of stream) {
      if (carriesContent(chunk)) deadline.progress();
      yield* reader.push(chunk);
      if (reader.overlong) return deadline.stop();
    }
    deadline.signal.throwIfAborted();
  }

  return {
    name: vendor.name,
    async *stream(request, signal): AsyncGenerator<ModelEvent, void, void> {
      const deadline = new CallDeadline(timeouts, clock, signal);
      const reader = new OpenaiReader(request, vendor.quirks);
      const call = { provider: vendor.name, model: request.model };
      try {
        yield* read(request, reader, deadline);
      } catch (error) {
        const complete = reader.ended && !signal.aborted;
        if (!complete) {
          const nowMs = clock.now();
          throw providerError(error, { ...call, secrets: [apiKey], nowMs, deadline, signal });
        }
      } finally {
        deadline[Symbol.dispose]();
      }
      if (!reader.ended && !reader.overlong) throw brokenStream(call);
      yield* reader.finish();
    },
  };
}

/** Empty chunks and the opening `role` keep a connection alive but are no part of an answer. */
function carriesContent(chunk: ChatCompletionChunk): boolean {
  const delta = chunk.choices?.[0]?.delta;
  return Object.entries(delta ?? {}).some(([key, value]) => key !== 'role' && Boolean(value));
}
