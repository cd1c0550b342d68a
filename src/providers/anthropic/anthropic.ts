// The Anthropic provider: one streamed call, with its events as a completion.

import type { RawMessageStreamEvent } from '@anthropic-ai/sdk/resources/messages';
import type { TokenUsage } from '../../kernel/message/transcript.ts';
import { Completion, createCallIds, type MintCallId, sealed } from '../completion.ts';
import type { LLMProvider, ModelEvent, ModelRequest, StopReason } from '../provider.ts';
import {
  type ProviderDeps,
  type Send,
  type StreamReader,
  streamingProvider,
} from '../provider-call.ts';
import { openShowing, type ShownImages } from '../seen-images.ts';
import { anthropicRequest, REDACTED, sendsThinking } from './anthropic-request.ts';

const STOPS: Readonly<Record<string, StopReason>> = {
  end_turn: 'end',
  stop_sequence: 'end',
  pause_turn: 'end',
  tool_use: 'tool_calls',
  max_tokens: 'length',
  model_context_window_exceeded: 'length',
  refusal: 'refused',
};

type Wire<Type extends RawMessageStreamEvent['type']> = Extract<
  RawMessageStreamEvent,
  { type: Type }
>;

class AnthropicReader implements StreamReader<RawMessageStreamEvent> {
  readonly #model: string;
  readonly #mint: MintCallId;
  readonly #completion = new Completion();
  /** Tool calls and signatures of blocks, by the index of the block. */
  readonly #callAt = new Map<number, number>();
  readonly #signatures = new Map<number, string>();
  #usage: TokenUsage = { inputTokens: 0, outputTokens: 0, cachedTokens: 0 };
  #stop: StopReason = 'end';
  #ended = false;

  constructor(request: ModelRequest) {
    this.#model = request.model;
    this.#mint = createCallIds(request.messages);
  }

  /** `message_stop` was received. */
  get ended(): boolean {
    return this.#ended;
  }

  get overlong(): boolean {
    return this.#completion.overlong;
  }

  push(event: RawMessageStreamEvent): readonly ModelEvent[] {
    const read = this.#read(event);
    return read === undefined ? [] : [read];
  }

  #read(event: RawMessageStreamEvent): ModelEvent | undefined {
    switch (event.type) {
      case 'content_block_start':
        return this.#begin(event);
      case 'content_block_delta':
        return this.#grow(event);
      case 'content_block_stop':
        return this.#close(event.index);
      case 'message_start':
        return this.#account(event.message.usage);
      case 'message_delta':
        this.#usage = { ...this.#usage, outputTokens: event.usage.output_tokens };
        this.#stop = STOPS[event.delta.stop_reason ?? ''] ?? 'end';
        return undefined;
      case 'message_stop':
        this.#ended = true;
        return undefined;
    }
  }

  *finish(): Generator<ModelEvent, void, void> {
    this.#completion.usage(this.#usage);
    yield this.#completion.finish(this.#model, this.#stop);
  }

  #begin({ content_block: block, index }: Wire<'content_block_start'>): ModelEvent | undefined {
    if (block.type === 'tool_use') {
      const id = this.#mint(block.id);
      const { event, at } = this.#completion.toolCall({ id, name: block.name });
      this.#callAt.set(index, at);
      return event;
    }
    if (block.type === 'redacted_thinking') {
      this.#signatures.set(index, `${REDACTED}${block.data}`);
    }
    if (block.type === 'thinking') this.#signatures.set(index, block.signature);
    return undefined;
  }

  #grow({ delta, index }: Wire<'content_block_delta'>): ModelEvent | undefined {
    if (delta.type === 'text_delta') return this.#completion.text(delta.text);
    if (delta.type === 'thinking_delta') return this.#completion.thinking(delta.thinking);
    if (delta.type === 'signature_delta') {
      this.#completion.grow(delta.signature.length);
      this.#signatures.set(index, (this.#signatures.get(index) ?? '') + delta.signature);
    }
    if (delta.type === 'input_json_delta') {
      this.#completion.toolArguments(this.#callAt.get(index) ?? -1, delta.partial_json);
    }
    return undefined;
  }

  #close(index: number): undefined {
    const signature = this.#signatures.get(index);
    if (signature === undefined) return;
    this.#signatures.delete(index);
    this.#completion.sealThinking(signature === '' ? undefined : sealed(this.#model, signature));
  }

  /** Tokens read from the cache or written to it count as input too. */
  #account(usage: Wire<'message_start'>['message']['usage']): undefined {
    const cachedTokens = usage.cache_read_input_tokens ?? 0;
    const writtenTokens = usage.cache_creation_input_tokens ?? 0;
    const inputTokens = usage.input_tokens + cachedTokens + writtenTokens;
    const outputTokens = usage.output_tokens;
    const written = writtenTokens > 0 ? { writtenTokens } : {};
    this.#usage = { inputTokens, outputTokens, cachedTokens, ...written };
  }
}

// The provider for Anthropic's native Messages API.

const API_VERSION = '2026-10-21';

/** Keys of a subscription login are sent as a bearer token. */
const SUBSCRIPTION_KEY = /^sk-ant-oat/;

export function createAnthropicProvider(deps: ProviderDeps): LLMProvider {
  const { apiKey } = deps;
  const apiBase = deps.apiBase.replace(/\/(?:v1\/?)?$/, '');
  const key = SUBSCRIPTION_KEY.test(apiKey)
    ? { authorization: `Bearer ${apiKey}` }
    : { 'x-api-key': apiKey === '' ? 'none' : apiKey };
  return streamingProvider<RawMessageStreamEvent>(deps, apiBase, {
    url: `${apiBase}/v1/messages`,
    headers: { ...key, 'anthropic-version': API_VERSION },
    readerFor: (request) => new AnthropicReader(request),
    open: (request, send) => openShowing(request, deps, (seen, shown) => open(seen, shown, send)),
    carriesContent: ({ type }) => type === 'content_block_delta',
  });
}

/**
 * Signed thinking is bound to its conversation; if trimming broke that, repeats the call without
 * thinking.
 */
async function open(request: ModelRequest, shown: ShownImages, send: Send<RawMessageStreamEvent>) {
  const body = anthropicRequest(request, { shown });
  try {
    return await send(body);
  } catch (error) {
    if (!sendsThinking(body) || !isAboutThinking(error)) throw error;
    const plain = { ...request, thinkingBudget: 0 };
    return send(anthropicRequest(plain, { withThinking: false, shown }));
  }
}

const isAboutThinking = (error: unknown) =>
  error instanceof Error &&
  'status' in error &&
  error.status === 400 &&
  /thinking|signature/i.test(error.message);
