// The provider for Anthropic's native Messages API, by their SDK with its retries off. The package is
// loaded at the first call: a start must not wait for it.

import type { Anthropic } from '@anthropic-ai/sdk';
import type {
  MessageCreateParamsStreaming,
  RawMessageStreamEvent,
} from '@anthropic-ai/sdk/resources/messages';
import type { CallDeadline } from '../call-deadline.ts';
import { refusingRedirects } from '../local-http.ts';
import type { LLMProvider, ModelRequest } from '../provider.ts';
import type { ProviderDeps } from '../provider-deps.ts';
import { openShowing, type ShownImages } from '../seen-images.ts';
import { basedAt } from '../shown-address.ts';
import { LIBRARY_TIMEOUT_MS, streamCall } from '../stream-call.ts';
import { anthropicRequest, sendsThinking } from './anthropic-request.ts';
import { AnthropicReader } from './anthropic-stream.ts';

type MessageStream = AsyncIterable<RawMessageStreamEvent>;

/** Keys of a subscription login go as a bearer token. */
const SUBSCRIPTION_KEY = /^sk-ant-oat/;

export function createAnthropicProvider(deps: ProviderDeps): LLMProvider {
  const { vendor, apiKey } = deps;
  const apiBase = deps.apiBase.replace(/\/v1\/?$/, '');
  const ask = refusingRedirects(deps.fetch ?? fetch, vendor.name);
  let client: Promise<Anthropic> | undefined;

  async function connect(): Promise<Anthropic> {
    const { Anthropic } = await import('@anthropic-ai/sdk');
    const bearer = SUBSCRIPTION_KEY.test(apiKey);
    return new Anthropic({
      apiKey: bearer ? null : apiKey === '' ? 'none' : apiKey,
      authToken: bearer ? apiKey : null,
      baseURL: apiBase,
      maxRetries: 0,
      timeout: LIBRARY_TIMEOUT_MS,
      logLevel: 'off',
      fetch: (url, init) => ask(String(url), init),
    });
  }

  async function open(body: MessageCreateParamsStreaming, deadline: CallDeadline) {
    client ??= connect();
    const anthropic = await client;
    deadline.signal.throwIfAborted();
    // `messages.create` would also write deprecation notices to the console at every call.
    return anthropic.post<MessageStream>('/v1/messages', {
      body,
      stream: true,
      signal: deadline.signal,
    });
  }

  /** Signed thinking is bound to its conversation; where trimming broke that, go on without it. */
  async function openWithOrWithoutThinking(
    request: ModelRequest,
    shown: ShownImages,
    deadline: CallDeadline,
  ) {
    const body = anthropicRequest(request, { shown });
    try {
      return await open(body, deadline);
    } catch (error) {
      if (!sendsThinking(body) || !isAboutThinking(error)) throw error;
      const plain = { ...request, thinkingBudget: 0 };
      return open(anthropicRequest(plain, { withThinking: false, shown }), deadline);
    }
  }

  async function* read(request: ModelRequest, reader: AnthropicReader, deadline: CallDeadline) {
    const stream = await openShowing(request, deps, (seen, shown) =>
      openWithOrWithoutThinking(seen, shown, deadline),
    );
    for await (const wireEvent of stream) {
      const event = reader.push(wireEvent);
      if (wireEvent.type === 'content_block_delta') deadline.progress();
      if (event !== undefined) yield event;
      if (reader.overlong) return deadline.stop();
    }
    deadline.signal.throwIfAborted();
  }

  return {
    name: vendor.name,
    ...basedAt(apiBase),
    stream(request, signal) {
      const reader = new AnthropicReader(request);
      return streamCall(deps, {
        request,
        reader,
        signal,
        pieces: (deadline) => read(request, reader, deadline),
      });
    },
  };
}

const isAboutThinking = (error: unknown) =>
  error instanceof Error &&
  'status' in error &&
  error.status === 400 &&
  /thinking|signature/i.test(error.message);
