// Where vendors of the OpenAI dialect differ: what each is sent, checked on the wire.

import { expect, test } from 'vitest';
import type { ProviderName } from '../../src/kernel/config/config.ts';
import { callId } from '../../src/kernel/message/ids.ts';
import type { ModelMessage } from '../../src/kernel/message/transcript.ts';
import { claudeTraits } from '../../src/providers/vendors.ts';
import { type callTools, say, startLlmServer } from '../support/llm-server.ts';
import { ask, finish, type Request, simulated, timeTool } from './provider-setup.ts';

const TOOLS: Partial<Request> = { tools: [timeTool] };
const THINK: Partial<Request> = { thinkingBudget: 4000 };

async function bodySentTo(vendor: ProviderName, model: string, more: Partial<Request>) {
  await using server = await startLlmServer();
  server.script(say('ok'));
  const config = { providers: { [vendor]: { apiKey: 'k', apiBase: server.openaiBase } } };
  await finish(simulated('openai', server, { config, model }), ask('hello', more));
  server.assertDone();
  return server.requests[0]?.body ?? {};
}

type Row = readonly [ProviderName, string, Partial<Request>, Record<string, unknown>];

const SENT: readonly Row[] = [
  [
    'openai',
    'openai/gpt-6-sol',
    TOOLS,
    { reasoning_effort: 'none', temperature: undefined, max_completion_tokens: 256 },
  ],
  [
    'openai',
    'openai/gpt-5.1',
    { ...TOOLS, ...THINK },
    { reasoning_effort: 'medium', max_completion_tokens: 4256 },
  ],
  [
    'openai',
    'openai/gpt-4.1',
    { temperature: 0.2, ...THINK },
    { reasoning_effort: undefined, temperature: 0.2 },
  ],
  ['openrouter', 'openrouter/x/y', THINK, { reasoning: { max_tokens: 4000 }, max_tokens: 4256 }],
  ['deepseek', 'deepseek/deepseek-flash', {}, { thinking: { type: 'disabled' } }],
  ['deepseek', 'deepseek/deepseek-flash', THINK, { thinking: { type: 'enabled' } }],
  ['zhipu', 'zhipu/glm-4.7', {}, { thinking: { type: 'disabled' }, stream_options: undefined }],
  ['zhipu', 'zhipu/glm-5.3', {}, { thinking: undefined }],
  ['gemini', 'gemini/gemini-3-pro', THINK, { reasoning_effort: 'medium' }],
  ['groq', 'groq/openai/gpt-oss-120b', THINK, { reasoning_effort: 'medium' }],
  ['groq', 'groq/llama-3.3-70b-versatile', THINK, { reasoning_effort: undefined }],
  [
    'ollama',
    'ollama/qwen3:8b',
    { temperature: 0.2 },
    { max_tokens: 256, temperature: 0.2, thinking: undefined },
  ],
];

test.each(SENT)('%s is asked for %s as it wants', async (vendor, model, more, expected) => {
  const body = await bodySentTo(vendor, model, more);
  for (const [key, value] of Object.entries(expected)) expect(body[key]).toEqual(value);
});

test('OpenRouter gets cache marks for Claude and for no other model', async () => {
  const claude = await bodySentTo('openrouter', 'openrouter/anthropic/claude-sonnet-5', {});
  expect(JSON.stringify(claude)).toContain('cache_control');
  const other = await bodySentTo('openrouter', 'openrouter/qwen/qwen3', {});
  expect(JSON.stringify(other)).not.toContain('cache_control');
});

/** One round of tools, then the request that carries it back. */
async function secondRequest(
  vendor: ProviderName,
  models: readonly [string, string],
  first: Parameters<typeof callTools>[0] & { readonly thinking?: string },
) {
  await using server = await startLlmServer();
  const { thinking, ...made } = first;
  server.script(
    { toolCalls: [made], ...(thinking === undefined ? {} : { thinking }) },
    say('noon'),
  );
  const config = { providers: { [vendor]: { apiKey: 'k', apiBase: server.openaiBase } } };
  const request = ask('The time?', TOOLS);
  const asked = await finish(simulated('openai', server, { config, model: models[0] }), request);
  const messages: ModelMessage[] = [
    ...request.messages,
    { role: 'assistant', text: '', toolCalls: asked.toolCalls, thinking: asked.thinking },
    { role: 'tool', callId: callId('call_a'), name: 'time', text: 'noon', failed: false },
  ];
  const next = simulated('openai', server, { config, model: models[1] });
  await finish(next, { ...request, messages });
  server.assertDone();
  return JSON.stringify(server.requests[1]?.body);
}

const CALL = { id: 'call_a', name: 'time', arguments: {} };

test('Gemini gets the signature of its own call back', async () => {
  const models = ['gemini/gemini-3-pro', 'gemini/gemini-3-pro'] as const;
  const body = await secondRequest('gemini', models, { ...CALL, signature: 'SIG' });
  expect(body).toContain('"thought_signature":"SIG"');
});

test('Gemini gets no signature that another model gave', async () => {
  const models = ['gemini/gemini-3-pro', 'gemini/gemini-3-flash'] as const;
  const body = await secondRequest('gemini', models, { ...CALL, signature: 'SIG' });
  expect(body).not.toContain('SIG"');
  expect(body).toContain('skip_thought_signature_validator');
});

test('DeepSeek gets the thinking before its tool calls back', async () => {
  const models = ['deepseek/deepseek-flash', 'deepseek/deepseek-flash'] as const;
  const body = await secondRequest('deepseek', models, { ...CALL, thinking: 'let me look' });
  expect(body).toContain('"reasoning_content":"let me look"');
});

test('half a character left by a cut does not reach a vendor', async () => {
  const body = await bodySentTo('openai', 'openai/gpt-4.1', {
    messages: [{ role: 'user', text: 'cut here \ud83d' }],
  });
  expect(JSON.stringify(body)).toContain('cut here \ufffd');
});

test.each([
  ['claude-3-5-sonnet-latest', 'budget', true],
  ['claude-sonnet-4-20250514', 'budget', true],
  ['claude-opus-4-5-20251101', 'budget', true],
  ['claude-opus-4-6', 'adaptive', true],
  ['claude-opus-4-7', 'adaptive', false],
  ['claude-sonnet-5', 'adaptive', false],
  ['claude-haiku-5-5', 'adaptive', false],
] as const)('%s thinks by %s; it takes a temperature: %s', (model, thinking, sampling) => {
  expect(claudeTraits(model)).toEqual({ thinking, sampling });
});
