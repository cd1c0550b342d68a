// The OpenAI chat completions dialect of the model simulator: writes chunks as the services do, with
// tool arguments in fragments. llm-server-openai-request.ts checks what comes in.

import { readOpenaiRequest } from './llm-server-openai-request.ts';
import {
  argumentsText,
  type Chunk,
  type Dialect,
  type LlmReply,
  type LlmRequest,
  Refusal,
  type WireReply,
} from './llm-server-reply.ts';
import type { Json } from './llm-server-strict.ts';

const FINISH = {
  end: 'stop',
  tool_calls: 'tool_calls',
  length: 'length',
  refused: 'content_filter',
};

/** Splits in two, so that the reader must put fragments together. */
const halves = (value: string) => {
  const middle = Math.ceil(value.length / 2);
  return [value.slice(0, middle), value.slice(middle)];
};

function frames(reply: LlmReply, request: LlmRequest, callIds: () => string): WireReply {
  const base = {
    id: 'chatcmpl-1',
    object: 'chat.completion.chunk',
    created: 1,
    model: request.model,
  };
  const frame = (value: Json) => `data: ${JSON.stringify({ ...base, ...value })}\n\n`;
  const delta = (value: Json) =>
    frame({ choices: [{ index: 0, delta: value, finish_reason: null }] });
  const calls = (reply.toolCalls ?? []).map((call) => ({ ...call, id: call.id ?? callIds() }));
  const finish = FINISH[reply.stop ?? (calls.length > 0 ? 'tool_calls' : 'end')];
  const usage = reply.usage ?? { input: 10, output: 5 };
  const wireUsage = {
    prompt_tokens: usage.input,
    completion_tokens: usage.output,
    total_tokens: usage.input + usage.output,
    prompt_tokens_details: { cached_tokens: usage.cached ?? 0 },
  };
  const content: Chunk[] = [];
  if (reply.thinking !== undefined) content.push(delta({ reasoning_content: reply.thinking }));
  for (const chunk of reply.chunks ?? []) {
    content.push(typeof chunk === 'string' ? delta({ content: chunk }) : chunk);
  }
  calls.forEach((call, index) => {
    const signature = call.signature;
    const signed = signature && { extra_content: { google: { thought_signature: signature } } };
    const head = { index, id: call.id, type: 'function', ...signed };
    content.push(
      delta({ tool_calls: [{ ...head, function: { name: call.name, arguments: '' } }] }),
    );
    for (const piece of halves(argumentsText(call))) {
      content.push(delta({ tool_calls: [{ index, function: { arguments: piece } }] }));
    }
  });
  const options = request.body['stream_options'] as Json | undefined;
  const spoken = (reply.chunks ?? []).filter((chunk) => typeof chunk === 'string').join('');
  return {
    head: [delta({ role: 'assistant', content: '' })],
    content,
    end: [
      frame({ choices: [{ index: 0, delta: {}, finish_reason: finish }] }),
      ...(options?.['include_usage'] === true ? [frame({ choices: [], usage: wireUsage })] : []),
      'data: [DONE]\n\n',
    ],
    whole: () => ({
      ...base,
      object: 'chat.completion',
      choices: [
        {
          index: 0,
          finish_reason: finish,
          message: {
            role: 'assistant',
            content: spoken,
            ...(calls.length === 0
              ? {}
              : {
                  tool_calls: calls.map((call) => ({
                    id: call.id,
                    type: 'function',
                    function: { name: call.name, arguments: argumentsText(call) },
                  })),
                }),
          },
        },
      ],
      usage: wireUsage,
    }),
  };
}

export const openaiDialect: Dialect = {
  name: 'openai',
  authenticate(headers, apiKey) {
    if (apiKey === undefined || headers['authorization'] === `Bearer ${apiKey}`) return;
    throw new Refusal('Incorrect API key provided', { status: 401, code: 'invalid_api_key' });
  },
  read: readOpenaiRequest,
  frames,
  errorFrame: (type, message) =>
    `data: ${JSON.stringify({ error: { message, type, code: type } })}\n\n`,
  errorBody: (_status, code, message) => ({
    error: { message, type: 'invalid_request_error', param: null, code },
  }),
};
