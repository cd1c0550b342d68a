// Reads the events of an Anthropic stream: blocks of text, thinking and tool input by their index.

import type { RawMessageStreamEvent } from '@anthropic-ai/sdk/resources/messages';
import { REDACTED } from './anthropic-request.ts';
import { createCallIds } from './call-ids.ts';
import { createCompletion } from './completion.ts';
import type { ModelEvent, ModelRequest, StopReason } from './provider.ts';
import { sealed } from './seal.ts';

const STOPS: Readonly<Record<string, StopReason>> = {
  end_turn: 'end',
  stop_sequence: 'end',
  pause_turn: 'end',
  tool_use: 'tool_calls',
  max_tokens: 'length',
  model_context_window_exceeded: 'length',
  refusal: 'refused',
};

export interface AnthropicReader {
  push(event: RawMessageStreamEvent): ModelEvent | undefined;
  /** `message_stop` came. */
  readonly ended: boolean;
  readonly overlong: boolean;
  finish(): ModelEvent;
}

type StartEvent = Extract<RawMessageStreamEvent, { type: 'content_block_start' }>;
type DeltaEvent = Extract<RawMessageStreamEvent, { type: 'content_block_delta' }>;

export function createAnthropicReader(request: ModelRequest): AnthropicReader {
  const completion = createCompletion();
  const mint = createCallIds(request.messages);
  const toolAt = new Map<number, number>();
  const signatures = new Map<number, string>();
  let usage = { inputTokens: 0, outputTokens: 0, cachedTokens: 0 };
  let stop: StopReason | undefined;
  let ended = false;

  function begin({ content_block: block, index }: StartEvent): ModelEvent | undefined {
    if (block.type === 'tool_use') {
      const { event, at } = completion.toolCall({ id: mint(block.id), name: block.name });
      toolAt.set(index, at);
      return event;
    }
    if (block.type === 'redacted_thinking') signatures.set(index, `${REDACTED}${block.data}`);
    if (block.type === 'thinking') signatures.set(index, block.signature);
    return block.type === 'text' && block.text !== '' ? completion.text(block.text) : undefined;
  }

  function grow({ delta, index }: DeltaEvent): ModelEvent | undefined {
    if (delta.type === 'text_delta') return completion.text(delta.text);
    if (delta.type === 'thinking_delta') return completion.thinking(delta.thinking);
    if (delta.type === 'signature_delta') {
      signatures.set(index, (signatures.get(index) ?? '') + delta.signature);
    }
    if (delta.type === 'input_json_delta') {
      completion.toolArguments(toolAt.get(index) ?? -1, delta.partial_json);
    }
    return undefined;
  }

  function end(index: number) {
    const signature = signatures.get(index);
    if (signature === undefined) return;
    completion.sealThinking(signature === '' ? undefined : sealed(request.model, signature));
  }

  function account(counted: Extract<RawMessageStreamEvent, { type: 'message_start' }>['message']) {
    const cachedTokens = counted.usage.cache_read_input_tokens ?? 0;
    const written = counted.usage.cache_creation_input_tokens ?? 0;
    const inputTokens = counted.usage.input_tokens + cachedTokens + written;
    usage = { inputTokens, outputTokens: counted.usage.output_tokens, cachedTokens };
  }

  return {
    push(event) {
      if (event.type === 'content_block_start') return begin(event);
      if (event.type === 'content_block_delta') return grow(event);
      if (event.type === 'content_block_stop') end(event.index);
      if (event.type === 'message_start') account(event.message);
      if (event.type === 'message_delta') {
        usage = { ...usage, outputTokens: event.usage.output_tokens };
        stop = STOPS[event.delta.stop_reason ?? ''] ?? 'end';
      }
      if (event.type === 'message_stop') ended = true;
      return undefined;
    },
    get ended() {
      return ended;
    },
    get overlong() {
      return completion.overlong;
    },
    finish() {
      completion.usage(usage);
      return completion.finish(request.model, completion.overlong ? 'length' : (stop ?? 'end'));
    },
  };
}
