// What the model server can do wrong (case B6), each in both dialects, without retries: the class of
// the failure, and a sentence for the person.

import { describe, expect, test } from 'vitest';
import { ProviderError } from '../../src/kernel/message/errors.ts';
import { fail, type LlmReply, say, startLlmServer } from '../support/llm-server.ts';
import {
  ask,
  collect,
  finish,
  NO_RETRIES,
  simulated,
  TEST_KEY,
  timeTool,
} from './provider-setup.ts';

const DIALECTS = ['openai', 'anthropic'] as const;

const openaiError = (code: string, message: string) => ({ error: { code, message, type: code } });

type Row = readonly [danger: string, reply: LlmReply, failure: Record<string, unknown>];

const FAULTS: readonly Row[] = [
  [
    '429 with Retry-After in seconds',
    fail(429, { headers: { 'retry-after': '7' } }),
    { kind: 'rate_limited', retryAfterMs: 7000 },
  ],
  ['429 without a hint', fail(429), { kind: 'rate_limited' }],
  [
    '429 with a hint in the body',
    fail(429, { body: openaiError('rate_limit_exceeded', 'Please try again in 1.5s.') }),
    { kind: 'rate_limited', retryAfterMs: 1500 },
  ],
  [
    '429 because the account is empty',
    fail(429, { body: openaiError('insufficient_quota', 'You exceeded your current quota') }),
    { kind: 'auth', reason: 'billing' },
  ],
  ['402', fail(402), { kind: 'auth', reason: 'billing' }],
  ['500', fail(500), { kind: 'server', status: 500 }],
  [
    '503 with Retry-After',
    fail(503, { headers: { 'retry-after': '3' } }),
    { kind: 'server', status: 503, retryAfterMs: 3000 },
  ],
  [
    '503 as HTML',
    fail(503, { body: '<html>Service Unavailable</html>' }),
    { kind: 'server', status: 503 },
  ],
  ['529 overloaded', fail(529), { kind: 'server', status: 529 }],
  ['401', fail(401), { kind: 'auth' }],
  ['403', fail(403), { kind: 'auth' }],
  [
    '404 of an unknown model',
    fail(404, { body: openaiError('model_not_found', 'The model `x` does not exist') }),
    { kind: 'unknown_model' },
  ],
  [
    '400 of an unknown model',
    fail(400, { body: openaiError('invalid_request_error', 'Model Not Exist') }),
    { kind: 'unknown_model' },
  ],
  ['400 of a wrong body', fail(400), { kind: 'rejected', status: 400 }],
  [
    '400 of a full context',
    fail(400, {
      body: openaiError(
        'context_length_exceeded',
        "This model's maximum context length is 8192 tokens",
      ),
    }),
    { kind: 'context_overflow', contextTokens: 8192 },
  ],
  [
    'a prompt that is too long',
    fail(400, {
      body: openaiError(
        'invalid_request_error',
        'prompt is too long: 209000 tokens > 200000 maximum',
      ),
    }),
    { kind: 'context_overflow', contextTokens: 200_000 },
  ],
  [
    'a full context named beside the words',
    fail(400, { body: { error: { message: 'exceeds the available context size', n_ctx: 512 } } }),
    { kind: 'context_overflow', contextTokens: 512 },
  ],
  ['413', fail(413), { kind: 'context_overflow' }],
  [
    'a model that is still loading',
    fail(400, { body: openaiError('bad_request', 'Model is loading, retry later') }),
    { kind: 'server', status: 400, isLoading: true },
  ],
  ['a connection closed before any byte', { fault: { kind: 'refuse' } }, { kind: 'network' }],
  ['a connection broken before the first word', { fault: { kind: 'drop' } }, { kind: 'network' }],
  [
    'a connection broken in the middle',
    { chunks: ['Half an'], fault: { kind: 'drop' } },
    { kind: 'network' },
  ],
  [
    'a stream without its end event',
    { chunks: ['All of it?'], fault: { kind: 'no_end' } },
    { kind: 'network' },
  ],
  [
    'an event that is no JSON',
    { chunks: ['Half an'], fault: { kind: 'malformed' } },
    { kind: 'malformed' },
  ],
  [
    'an overload told inside the stream',
    {
      chunks: ['Half an'],
      fault: { kind: 'error_event', type: 'overloaded_error', message: 'Overloaded' },
    },
    { kind: 'server' },
  ],
  [
    'a rate limit told inside the stream',
    { fault: { kind: 'error_event', type: 'rate_limit_error', message: 'Slow down' } },
    { kind: 'rate_limited' },
  ],
];

async function failureOf(dialect: (typeof DIALECTS)[number], reply: LlmReply) {
  await using server = await startLlmServer();
  server.script(reply);
  const handle = simulated(dialect, server, { config: NO_RETRIES });
  const error = await collect(handle.stream(ask('hello'), new AbortController().signal)).then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  server.assertDone();
  if (!(error instanceof ProviderError)) throw new Error('the fault went unnoticed');
  return error;
}

describe.each(DIALECTS)('%s dialect', (dialect) => {
  test.each(FAULTS)('%s is named for what it is', async (_danger, reply, failure) => {
    const error = await failureOf(dialect, reply);
    expect(error.failure).toEqual(failure);
    expect(error.userText).toMatch(/^[A-Z].*[.`]$/);
    expect(`${error.message} ${error.userText}`).not.toContain(TEST_KEY);
  });

  test('arguments that are no JSON are kept as the model wrote them', async () => {
    await using server = await startLlmServer();
    server.script({ toolCalls: [{ name: 'time', arguments: '{"zone": "UT' }] }, say('sorry'));
    const handle = simulated(dialect, server);
    const request = ask('time?', { tools: [timeTool] });
    const asked = await finish(handle, request);
    expect(asked.toolCalls).toMatchObject([{ name: 'time', arguments: '{"zone": "UT' }]);
    const [call] = asked.toolCalls;
    if (call === undefined) throw new Error('no call');
    const result = { callId: call.id, name: 'time', text: 'not valid JSON', failed: true };
    const messages = [
      ...request.messages,
      { role: 'assistant', text: '', toolCalls: [call], thinking: [] } as const,
      { role: 'tool', ...result } as const,
    ];
    expect((await finish(handle, { ...request, messages })).text).toBe('sorry');
    expect(JSON.stringify(server.requests[1]?.body)).toContain('malformed_arguments');
    server.assertDone();
  });

  test('two calls with one id, and ids used before, become ids of their own', async () => {
    await using server = await startLlmServer();
    const call = { id: 'call_0', name: 'time', arguments: {} };
    server.script({ toolCalls: [call, call] });
    const handle = simulated(dialect, server);
    const asked = await finish(handle, ask('both', { tools: [timeTool] }));
    const ids = asked.toolCalls.map((made) => made.id);
    expect(new Set(ids).size).toBe(ids.length);
    const messages = [
      { role: 'user', text: 'both' } as const,
      { role: 'assistant', text: '', toolCalls: asked.toolCalls, thinking: [] } as const,
      ...ids.map(
        (callId) => ({ role: 'tool', callId, name: 'time', text: 'x', failed: false }) as const,
      ),
    ];
    server.script({ toolCalls: [call] });
    const again = await finish(handle, ask('again', { messages, tools: [timeTool] }));
    expect(ids).not.toContain(again.toolCalls[0]?.id);
    server.assertDone();
  });

  test('an empty answer is an answer without text', async () => {
    await using server = await startLlmServer();
    server.script({});
    expect(await finish(simulated(dialect, server), ask('hm'))).toMatchObject({
      text: '',
      toolCalls: [],
      stop: 'end',
    });
  });

  test('an answer of five megabytes arrives whole', async () => {
    await using server = await startLlmServer();
    const chunk = 'x'.repeat(100_000);
    server.script({ chunks: Array.from({ length: 50 }, () => chunk) });
    expect((await finish(simulated(dialect, server), ask('much'))).text).toHaveLength(5_000_000);
  });

  test('an answer that never ends is cut and the request given up', async () => {
    await using server = await startLlmServer();
    server.script({ chunks: ['x'.repeat(500_000)], fault: { kind: 'endless' } });
    const cut = await finish(simulated(dialect, server), ask('forever'));
    expect(cut.stop).toBe('length');
    await server.requests[0]?.abandoned;
  });

  test('thinking is never shown as text', async () => {
    await using server = await startLlmServer();
    server.script({
      thinking: 'secretly',
      chunks: ['openly'],
      usage: { input: 9, output: 3, cached: 4 },
    });
    const finished = await finish(simulated(dialect, server), ask('think'));
    expect(finished.text).toBe('openly');
    expect(finished.thinking[0]?.text).toBe('secretly');
    expect(finished.usage).toEqual({ inputTokens: 9, outputTokens: 3, cachedTokens: 4 });
  });
});
