// Reads the chunks of an OpenAI stream: text, reasoning, and tool calls in fragments, with the
// liberties vendors take (no index, no id, the name repeated).

import type { ChatCompletionChunk } from 'openai/resources/chat/completions';
import type { CallId } from '../core/ids.ts';
import { createCallIds } from './call-ids.ts';
import { type Completion, createCompletion } from './completion.ts';
import type { ModelEvent, ModelRequest, StopReason } from './provider.ts';
import { sealed } from './seal.ts';
import { createThinkSplitter } from './think-tags.ts';
import type { Quirks } from './vendors.ts';

type Delta = ChatCompletionChunk['choices'][number]['delta'] & {
  readonly reasoning_content?: string | null;
  readonly reasoning?: string | null;
};
type Fragment = NonNullable<Delta['tool_calls']>[number] & {
  readonly extra_content?: { readonly google?: { readonly thought_signature?: string } };
};
type Slot = { readonly index: number | undefined; readonly wireId: string; readonly at: number };

const STOPS: Readonly<Record<string, StopReason>> = {
  stop: 'end',
  tool_calls: 'tool_calls',
  function_call: 'tool_calls',
  length: 'length',
  content_filter: 'refused',
};

export interface OpenaiReader {
  push(chunk: ChatCompletionChunk): Generator<ModelEvent, void, void>;
  /** The end event came. */
  readonly ended: boolean;
  readonly overlong: boolean;
  finish(): Generator<ModelEvent, void, void>;
}

export function createOpenaiReader(request: ModelRequest, quirks: Quirks): OpenaiReader {
  const completion = createCompletion();
  const toolCalls = createFragments(request, completion);
  const splitter = quirks.thinkTags === true ? createThinkSplitter() : undefined;
  let stop: StopReason | undefined;

  function* content(piece: string): Generator<ModelEvent, void, void> {
    const parts = splitter?.push(piece) ?? { text: piece, thinking: '' };
    yield* split(parts);
  }

  function* split(parts: { readonly text: string; readonly thinking: string }) {
    if (parts.thinking !== '') yield completion.thinking(parts.thinking);
    if (parts.text !== '') yield completion.text(parts.text);
  }

  return {
    *push(chunk) {
      if (chunk.usage) completion.usage(usageOf(chunk.usage));
      const choice = chunk.choices?.[0];
      if (choice === undefined) return;
      const delta: Delta = choice.delta ?? {};
      const reasoning = delta.reasoning_content ?? delta.reasoning;
      if (reasoning) yield completion.thinking(reasoning);
      if (delta.content) yield* content(delta.content);
      for (const fragment of delta.tool_calls ?? []) yield* toolCalls(fragment);
      if (choice.finish_reason) stop = STOPS[choice.finish_reason] ?? 'end';
    },
    get ended() {
      return stop !== undefined;
    },
    get overlong() {
      return completion.overlong;
    },
    *finish() {
      if (splitter !== undefined) yield* split(splitter.flush());
      yield completion.finish(request.model, completion.overlong ? 'length' : (stop ?? 'length'));
    },
  };
}

function createFragments(request: ModelRequest, completion: Completion) {
  const mint = createCallIds(request.messages);
  const slots: Slot[] = [];

  function slotOf(fragment: Fragment): Slot | undefined {
    const id = fragment.id ?? '';
    const index = fragment.index as number | undefined;
    if (index === undefined && id === '') return slots.at(-1);
    const found = slots.findLast((slot) =>
      index === undefined ? slot.wireId === id : slot.index === index,
    );
    const another = found !== undefined && id !== '' && found.wireId !== '' && found.wireId !== id;
    return another ? undefined : found;
  }

  return function* (fragment: Fragment): Generator<ModelEvent, void, void> {
    let slot = slotOf(fragment);
    if (slot === undefined) {
      const wireId = fragment.id ?? '';
      const id: CallId = mint(wireId);
      const { event, at } = completion.toolCall({ id, name: fragment.function?.name ?? '' });
      slot = { index: fragment.index as number | undefined, wireId, at };
      slots.push(slot);
      yield event;
      const signature = fragment.extra_content?.google?.thought_signature;
      if (signature) completion.sealThinking(sealed(`${request.model}#${id}`, signature));
    }
    completion.toolArguments(slot.at, fragment.function?.arguments ?? '');
  };
}

function usageOf(usage: NonNullable<ChatCompletionChunk['usage']>) {
  const deepseekHits = (usage as { readonly prompt_cache_hit_tokens?: number })
    .prompt_cache_hit_tokens;
  return {
    inputTokens: usage.prompt_tokens ?? 0,
    outputTokens: usage.completion_tokens ?? 0,
    cachedTokens: usage.prompt_tokens_details?.cached_tokens ?? deepseekHits ?? 0,
  };
}
