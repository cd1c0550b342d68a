// The Anthropic Messages dialect of the model simulator: writes the named events of the service, with
// tool input in fragments and pings between. llm-server-anthropic-request.ts checks what comes in.

import { readAnthropicRequest } from './llm-server-anthropic-request.ts';
import {
  argumentsText,
  type Chunk,
  type Dialect,
  type LlmReply,
  type LlmRequest,
  Refusal,
  type ScriptedCall,
  type WireReply,
} from './llm-server-reply.ts';
import type { Json } from './llm-server-strict.ts';

const STOP = { end: 'end_turn', tool_calls: 'tool_use', length: 'max_tokens', refused: 'refusal' };

const frame = (type: string, fields: Json = {}) =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`;
const start = (index: number, content_block: Json) =>
  frame('content_block_start', { index, content_block });
const delta = (index: number, value: Json) => frame('content_block_delta', { index, delta: value });
const stop = (index: number) => frame('content_block_stop', { index });

function textBlock(index: number, chunks: readonly Chunk[]): readonly Chunk[] {
  if (chunks.length === 0) return [];
  return [
    start(index, { type: 'text', text: '' }),
    ...chunks.map((chunk) =>
      typeof chunk === 'string' ? delta(index, { type: 'text_delta', text: chunk }) : chunk,
    ),
    stop(index),
  ];
}

function thinkingBlock(index: number, reply: LlmReply): readonly Chunk[] {
  if (reply.thinking === undefined) return [];
  const signature = reply.signature ?? 'signed';
  return [
    start(index, { type: 'thinking', thinking: '', signature: '' }),
    delta(index, { type: 'thinking_delta', thinking: reply.thinking }),
    delta(index, { type: 'signature_delta', signature }),
    stop(index),
  ];
}

function toolBlock(index: number, id: string, name: string, raw: string): readonly Chunk[] {
  const middle = Math.ceil(raw.length / 2);
  return [
    start(index, { type: 'tool_use', id, name, input: {} }),
    delta(index, { type: 'input_json_delta', partial_json: raw.slice(0, middle) }),
    delta(index, { type: 'input_json_delta', partial_json: raw.slice(middle) }),
    stop(index),
  ];
}

type MadeCall = ScriptedCall & { readonly id: string };

function frames(reply: LlmReply, request: LlmRequest, callIds: () => string): WireReply {
  const chunks = reply.chunks ?? [];
  const calls = (reply.toolCalls ?? []).map((call) => ({ ...call, id: call.id ?? callIds() }));
  const stop_reason = STOP[reply.stop ?? (calls.length > 0 ? 'tool_calls' : 'end')];
  const textIndex = reply.thinking === undefined ? 0 : 1;
  const toolIndex = textIndex + (chunks.length === 0 ? 0 : 1);
  const { output_tokens, ...inputUsage } = wireUsage(reply);
  const opening = { content: [], stop_reason: null, usage: { ...inputUsage, output_tokens: 1 } };
  const message = messageOf(request);
  return {
    head: [frame('message_start', { message: { ...message, ...opening } }), frame('ping')],
    content: [
      ...thinkingBlock(0, reply),
      ...textBlock(textIndex, chunks),
      ...calls.flatMap((call, n) =>
        toolBlock(toolIndex + n, call.id, call.name, argumentsText(call)),
      ),
    ],
    end: [
      frame('message_delta', {
        delta: { stop_reason, stop_sequence: null },
        usage: { output_tokens },
      }),
      frame('message_stop'),
    ],
    whole: () => ({
      ...message,
      content: wholeContent(chunks, calls),
      stop_reason,
      usage: wireUsage(reply),
    }),
  };
}

const messageOf = ({ model }: LlmRequest) => ({
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model,
  stop_sequence: null,
});

function wireUsage({ usage = { input: 10, output: 5 } }: LlmReply) {
  const { cached = 0, written = 0 } = usage;
  return {
    input_tokens: usage.input - cached - written,
    cache_read_input_tokens: cached,
    cache_creation_input_tokens: written,
    output_tokens: usage.output,
  };
}

function wholeContent(chunks: readonly Chunk[], calls: readonly MadeCall[]): readonly Json[] {
  const text = chunks.filter((chunk) => typeof chunk === 'string').join('');
  const made = calls.map(({ id, name, ...call }) => ({
    type: 'tool_use',
    id,
    name,
    input: JSON.parse(argumentsText({ name, ...call })),
  }));
  return text === '' ? made : [{ type: 'text', text }, ...made];
}

export const anthropicDialect: Dialect = {
  name: 'anthropic',
  authenticate(headers, apiKey) {
    if (headers['anthropic-version'] === undefined) {
      throw new Refusal('anthropic-version: header is required');
    }
    if (apiKey === undefined || headers['x-api-key'] === apiKey) return;
    throw new Refusal('invalid x-api-key', { status: 401, code: 'authentication_error' });
  },
  read: readAnthropicRequest,
  frames,
  errorFrame: (type, message) => frame('error', { error: { type, message } }),
  errorBody: (status, code, message) => ({
    type: 'error',
    error: { type: status === 404 ? 'not_found_error' : code, message },
    request_id: 'req_1',
  }),
};
