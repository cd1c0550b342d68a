// Collects one answer while it streams and turns it into our events. The dialects' readers feed it;
// it knows nothing of their wire.

import type { ThinkingBlock, TokenUsage, ToolCall } from '../core/transcript.ts';
import type { ModelEvent, StopReason } from './provider.ts';

/** More than any model writes: a stream beyond it is running away and is cut. */
export const MAX_ANSWER_CHARS = 8_000_000;

export interface Completion {
  text(delta: string): ModelEvent;
  thinking(delta: string): ModelEvent;
  toolCall(call: Pick<ToolCall, 'id' | 'name'>): {
    readonly event: ModelEvent;
    readonly at: number;
  };
  toolArguments(at: number, delta: string): void;
  /** Closes the thinking block being written; `signature` goes back to its vendor. */
  sealThinking(signature: string | undefined): void;
  usage(usage: TokenUsage): void;
  /** True once the answer is longer than any honest one. */
  readonly overlong: boolean;
  finish(model: string, stop: StopReason): Extract<ModelEvent, { type: 'finished' }>;
}

type Growing = { readonly id: ToolCall['id']; readonly name: string; arguments: string };

export function createCompletion(): Completion {
  let text = '';
  let openThinking = '';
  let chars = 0;
  let usage: TokenUsage | undefined;
  const thinking: ThinkingBlock[] = [];
  const calls: Growing[] = [];

  function sealThinking(signature: string | undefined) {
    if (openThinking !== '' || signature !== undefined) {
      thinking.push({ text: openThinking, ...(signature === undefined ? {} : { signature }) });
    }
    openThinking = '';
  }

  return {
    text(delta) {
      text += delta;
      chars += delta.length;
      return { type: 'text', delta };
    },
    thinking(delta) {
      openThinking += delta;
      chars += delta.length;
      return { type: 'thinking', delta };
    },
    toolCall({ id, name }) {
      const at = calls.push({ id, name, arguments: '' }) - 1;
      return { event: { type: 'tool_call', id, name }, at };
    },
    toolArguments(at, delta) {
      const call = calls[at];
      if (call !== undefined) call.arguments += delta;
      chars += delta.length;
    },
    sealThinking,
    usage(value) {
      usage = value;
    },
    get overlong() {
      return chars > MAX_ANSWER_CHARS;
    },
    finish(model, stop) {
      sealThinking(undefined);
      return {
        type: 'finished',
        model,
        text,
        thinking,
        toolCalls: calls.map((call) => ({ ...call })),
        stop: stop === 'end' && calls.length > 0 ? 'tool_calls' : stop,
        ...(usage === undefined ? {} : { usage }),
      };
    },
  };
}
