// The provider for every vendor that speaks OpenAI's chat completions, by the `openai` package with
// its retries off. The package is loaded at the first call: a start must not wait for it.

import type { OpenAI } from 'openai';
import type { ChatCompletionChunk } from 'openai/resources/chat/completions';
import type { CallDeadline } from '../call-deadline.ts';
import { type LocalFetch, refusingRedirects } from '../local-http.ts';
import type { LLMProvider, ModelRequest } from '../provider.ts';
import type { ProviderDeps } from '../provider-deps.ts';
import { openShowing } from '../seen-images.ts';
import { basedAt } from '../shown-address.ts';
import { LIBRARY_TIMEOUT_MS, streamCall } from '../stream-call.ts';
import { cacheKeyField, openaiRequest } from './openai-request.ts';
import { OpenaiReader } from './openai-stream.ts';

export function createOpenaiProvider(deps: ProviderDeps): LLMProvider {
  const { vendor, apiBase, apiKey } = deps;
  // Another service behind the same name may refuse what it does not know.
  const takesCacheKey = vendor.quirks.takesCacheKey === true && apiBase === vendor.apiBase;
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
      fetch: asFetch(refusingRedirects(deps.fetch ?? fetch, vendor.name)),
    });
  }

  async function* read(request: ModelRequest, reader: OpenaiReader, deadline: CallDeadline) {
    client ??= connect();
    const openai = await client;
    deadline.signal.throwIfAborted();
    const stream = await openShowing(request, deps, (seen, shown) => {
      deadline.signal.throwIfAborted();
      const body = {
        ...openaiRequest(seen, vendor.quirks, shown),
        ...(takesCacheKey ? cacheKeyField(request) : {}),
      };
      return openai.chat.completions.create(body, { signal: deadline.signal });
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
    ...basedAt(apiBase),
    stream(request, signal) {
      const reader = new OpenaiReader(request, vendor.quirks);
      return streamCall(deps, {
        request,
        reader,
        signal,
        pieces: (deadline) => read(request, reader, deadline),
      });
    },
  };
}

/** The library gives addresses as text. */
const asFetch =
  (own: LocalFetch): typeof fetch =>
  (url, init) =>
    own(String(url), init);

/** Empty chunks and the opening `role` keep a connection alive but are no part of an answer. */
function carriesContent(chunk: ChatCompletionChunk): boolean {
  const delta = chunk.choices?.[0]?.delta;
  return Object.entries(delta ?? {}).some(([key, value]) => key !== 'role' && Boolean(value));
}
