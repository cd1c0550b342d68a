// The whole prompt reaches the model: complete bodies, as the services receive them.

import { expect, test } from 'vitest';
import { configSchema } from '../../src/kernel/config/config.ts';
import { callId } from '../../src/kernel/message/ids.ts';
import type { ModelMessage } from '../../src/kernel/message/transcript.ts';
import { systemClock } from '../../src/lib/time/clock.ts';
import { createOpenaiProvider } from '../../src/providers/openai/openai.ts';
import { createImageSource } from '../../src/providers/seen-images.ts';
import { type Vendor, vendorOf } from '../../src/providers/vendors.ts';
import { say, startLlmServer } from '../support/llm-server.ts';
import { ask, collect, finish, simulated, TEST_KEY, timeTool } from './provider-setup.ts';

const CALL = { id: callId('call_1'), name: 'time', arguments: '{"zone":"UTC"}' };
const RESULT = { callId: CALL.id, name: 'time', text: 'noon', failed: false };

const CONVERSATION: readonly ModelMessage[] = [
  { role: 'user', text: 'Hello' },
  { role: 'user', text: '[+350ms] there' },
  { role: 'assistant', text: 'Hi.', toolCalls: [], thinking: [] },
  { role: 'user', text: 'The time?' },
  { role: 'assistant', text: 'Looking.', toolCalls: [CALL], thinking: [] },
  { role: 'tool', ...RESULT },
  { role: 'user', text: 'Quickly, please.' },
];

test('OpenAI: system, history, calls, results and tools are all there', async () => {
  await using server = await startLlmServer();
  server.script(say('Noon.'));
  const request = ask('', { messages: CONVERSATION, tools: [timeTool], temperature: 0.3 });
  await finish(simulated('openai', server, { model: 'openai/gpt-4.1' }), request);
  expect(server.requests[0]?.body).toEqual({
    model: 'gpt-4.1',
    stream: true,
    stream_options: { include_usage: true },
    max_completion_tokens: 256,
    temperature: 0.3,
    messages: [
      { role: 'system', content: 'You are nanobot.\n\nToday is Thursday.' },
      { role: 'user', content: 'Hello\n\n[+350ms] there' },
      { role: 'assistant', content: 'Hi.' },
      { role: 'user', content: 'The time?' },
      {
        role: 'assistant',
        content: 'Looking.',
        tool_calls: [
          {
            id: 'call_1',
            type: 'function',
            function: { name: 'time', arguments: '{"zone":"UTC"}' },
          },
        ],
      },
      { role: 'tool', tool_call_id: 'call_1', content: 'noon' },
      { role: 'user', content: 'Quickly, please.' },
    ],
    tools: [
      {
        type: 'function',
        function: {
          name: 'time',
          description: 'Tells the time.',
          parameters: timeTool.schema,
        },
      },
    ],
  });
  expect(server.requests[0]?.headers['authorization']).toMatch(/^Bearer sk-test/);
  server.assertDone();
});

test('OpenAI: each call has its own tools, also as many as the call before', async () => {
  await using server = await startLlmServer();
  server.script(say('one'), say('two'), say('three'));
  const handle = simulated('openai', server, { model: 'openai/gpt-4.1' });
  const zoneTool = { ...timeTool, name: 'zone' };
  for (const tools of [[timeTool], [zoneTool], [timeTool, zoneTool]]) {
    await finish(handle, ask('The time?', { tools }));
  }
  const sent = server.requests.map(({ body }) => JSON.stringify(body).match(/"name":"\w+"/g));
  const [time, zone] = ['"name":"time"', '"name":"zone"'];
  expect(sent).toEqual([[time], [zone], [time, zone]]);
  server.assertDone();
});

test('Anthropic: system with its cache mark, results before text, tools with theirs', async () => {
  await using server = await startLlmServer();
  server.script(say('Noon.'));
  const request = ask('', { messages: CONVERSATION, tools: [timeTool], temperature: 1.5 });
  await finish(simulated('anthropic', server), request);
  const mark = { cache_control: { type: 'ephemeral' } };
  expect(server.requests[0]?.body).toEqual({
    model: 'claude-sonnet-4-5',
    stream: true,
    max_tokens: 256,
    temperature: 1,
    system: [
      { type: 'text', text: 'You are nanobot.', ...mark },
      { type: 'text', text: 'Today is Thursday.' },
    ],
    messages: [
      { role: 'user', content: [{ type: 'text', text: 'Hello\n\n[+350ms] there' }] },
      { role: 'assistant', content: [{ type: 'text', text: 'Hi.' }] },
      { role: 'user', content: [{ type: 'text', text: 'The time?' }] },
      {
        role: 'assistant',
        content: [
          { type: 'text', text: 'Looking.' },
          { type: 'tool_use', id: 'call_1', name: 'time', input: { zone: 'UTC' } },
        ],
      },
      {
        role: 'user',
        content: [
          { type: 'tool_result', tool_use_id: 'call_1', content: 'noon' },
          { type: 'text', text: 'Quickly, please.' },
        ],
      },
    ],
    tools: [
      { name: 'time', description: 'Tells the time.', input_schema: timeTool.schema, ...mark },
    ],
  });
  server.assertDone();
});

test('thinking goes back signed to the model that thought, within its round of tools', async () => {
  await using server = await startLlmServer();
  const call = { id: 'toolu_1', name: 'time', arguments: {} };
  server.script({ thinking: 'hm', signature: 'SIG', toolCalls: [call] }, say('one'), say('two'));
  const handle = simulated('anthropic', server);
  const request = ask('The time?', { tools: [timeTool], thinkingBudget: 2000, temperature: 0.7 });
  const { toolCalls, thinking } = await finish(handle, request);
  expect(server.requests[0]?.body).toMatchObject({
    thinking: { type: 'enabled', budget_tokens: 2000 },
    max_tokens: 2256,
  });
  expect(server.requests[0]?.body).not.toHaveProperty('temperature');
  const messages: ModelMessage[] = [
    ...request.messages,
    { role: 'assistant', text: '', toolCalls, thinking },
    { role: 'tool', ...RESULT, callId: callId('toolu_1') },
  ];
  await finish(handle, { ...request, messages });
  expect(JSON.stringify(server.requests[1]?.body)).toContain('"signature":"SIG"');

  const other = simulated('anthropic', server, { model: 'anthropic/claude-haiku-4-5' });
  await finish(other, { ...request, messages });
  expect(JSON.stringify(server.requests[2]?.body)).not.toContain('SIG');
  expect(server.requests[2]?.body).not.toHaveProperty('thinking');
  server.assertDone();
});

test('when the service refuses earlier thinking the call goes on without it', async () => {
  await using server = await startLlmServer();
  const call = { id: 'toolu_1', name: 'time', arguments: {} };
  const refusal = {
    type: 'error',
    error: { type: 'invalid_request_error', message: 'Invalid `signature` in `thinking` block' },
  };
  const handle = simulated('anthropic', server, { model: 'anthropic/claude-opus-5-5' });
  const request = ask('The time?', { tools: [timeTool], thinkingBudget: 2000 });
  server.script(
    { thinking: 'hm', toolCalls: [call] },
    { fault: { kind: 'status', status: 400, body: refusal } },
    say('noon'),
  );
  const { toolCalls, thinking } = await finish(handle, request);
  expect(server.requests[0]?.body).toMatchObject({ thinking: { type: 'adaptive' } });
  const messages: ModelMessage[] = [
    ...request.messages,
    { role: 'assistant', text: '', toolCalls, thinking },
    { role: 'tool', ...RESULT, callId: callId('toolu_1') },
  ];
  expect((await finish(handle, { ...request, messages })).text).toBe('noon');
  expect(JSON.stringify(server.requests[2]?.body)).not.toContain('"signature"');
  server.assertDone();
});

test('ids and answers of another vendor are fit for this one', async () => {
  await using server = await startLlmServer({ respond: () => say('ok') });
  const strange = callId(`functions.time:0/${'x'.repeat(60)}`);
  const messages: readonly ModelMessage[] = [
    { role: 'user', text: 'The time?' },
    {
      role: 'assistant',
      text: '',
      toolCalls: [{ ...CALL, id: strange }],
      thinking: [{ text: 'hm' }],
    },
    { role: 'tool', ...RESULT, callId: strange },
    { role: 'assistant', text: '', toolCalls: [], thinking: [] },
    { role: 'user', text: 'Well?' },
  ];
  for (const dialect of ['openai', 'anthropic'] as const) {
    await finish(simulated(dialect, server), ask('', { messages, tools: [timeTool] }));
  }
  server.assertDone();
});

type Block = Readonly<Record<string, unknown>>;

test('a conversation: Anthropic is sent marks at the newest message and where the last call ended', async () => {
  await using server = await startLlmServer({ countsInput: true });
  server.script(say('Noon.'), say('Yes.'), say('Alone.'));
  const handle = simulated('anthropic', server);
  const request = ask('', { conversation: 's', messages: CONVERSATION, tools: [timeTool] });
  await finish(handle, request);
  const noted = { role: 'user', text: 'Sure?', note: 'One round is left.' } as const;
  const answer = { role: 'assistant', text: 'Noon.', toolCalls: [], thinking: [] } as const;
  const next = await finish(handle, { ...request, messages: [...CONVERSATION, answer, noted] });
  await finish(handle, ask('', { messages: CONVERSATION, tools: [timeTool] }));
  const markedOf = (index: number) => {
    const sent = server.requests[index]?.body['messages'] as readonly { content: Block[] }[];
    const blocks = sent.flatMap(({ content }) => content);
    return blocks
      .filter((block) => block['cache_control'] !== undefined)
      .map((block) => block['text']);
  };
  expect(markedOf(0)).toEqual(['The time?', 'Quickly, please.']);
  expect(markedOf(1)).toEqual(['Quickly, please.', 'Sure?']);
  expect(markedOf(2)).toEqual([]);
  expect(next.usage).toMatchObject({
    cachedTokens: expect.toSatisfy((tokens: number) => tokens > 0),
    writtenTokens: expect.toSatisfy((tokens: number) => tokens > 0),
  });
  server.assertDone();
});

test('OpenAI is sent a key per conversation at its own address, and no other service is', async () => {
  await using server = await startLlmServer();
  server.script(say('1'), say('2'), say('3'), say('4'));
  const vendor = { ...vendorOf('openai'), apiBase: server.openaiBase };
  const timeouts = { firstTokenMs: 5000, idleMs: 5000, wholeCallMs: 5000 };
  const common = { apiBase: server.openaiBase, apiKey: TEST_KEY, clock: systemClock, timeouts };
  const images = createImageSource(configSchema.parse({}));
  const send = async (which: { readonly vendor: Vendor }, conversation: string) => {
    const provider = createOpenaiProvider({ ...common, images, ...which });
    const request = { ...ask('hi'), model: 'gpt-5', conversation };
    await collect(provider.stream(request, new AbortController().signal));
  };
  await send({ vendor }, 'telegram:1');
  await send({ vendor }, 'telegram:1');
  await send({ vendor }, 'telegram:2');
  await send({ vendor: vendorOf('openai') }, 'telegram:1');
  const [one, same, other, elsewhere] = server.requests.map(({ body }) => body['prompt_cache_key']);
  expect(one).toMatch(/^[0-9a-f]{32}$/);
  expect(same).toBe(one);
  expect(other).not.toBe(one);
  expect(elsewhere).toBeUndefined();
});
